"""`run story`: a schema and a prompt in, a value of the schema out. Knows no session: there is one decision.

It has no rules and no board, so it is no cartridge that takes turns, and `run` has options for it alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dispatch.cli.common import N_CTX, failing, load_kernel
from dispatch.cli.frame import shown
from dispatch.wire.value import SCHEMA, Story, write
from kernel.errors import UsageError

NAME = "story"
TOKENS = 400
OWN = ("schema", "prompt", "raw")
"""Parameters of `run` that are for the story alone."""
SHARED = ("names", "model", "max_tokens", "temperature", "seed", "as_json", "n_ctx", "threads")
"""Those that it takes as well."""


def is_story(names: Sequence[str], given: Mapping[str, str]) -> bool:
    """Return whether the story is what is to be run.

    Args:
        given: what was typed: parameter -> how it is called on the command line.
    Raises:
        UsageError: the story beside cartridges; an option of the one with the other.
    """
    if NAME not in names:
        if odd := [given[name] for name in OWN if name in given]:
            raise UsageError(f"run: {odd[0]} is for the story; say: run {NAME} {odd[0]}")
        return False
    if len(names) > 1:
        raise UsageError(f"run: {NAME!r} is one value of a schema and takes no turns; run it alone")
    if odd := [said for name, said in given.items() if name not in (*OWN, *SHARED)]:
        raise UsageError(f"run: {odd[0]} is nothing for the story; it takes --{', --'.join(OWN)}")
    return True


def tell_story(
    schema: Path | None,
    prompt: str,
    *,
    raw: bool = False,
    model: str = "smollm2",
    max_tokens: int = TOKENS,
    temperature: float = 0.0,
    seed: int = 0,
    as_json: bool = False,
    n_ctx: int = N_CTX,
    threads: int | None = None,
) -> None:
    """Write one value and print it; with `raw`, what the model writes alone, and on stderr what is wrong with it."""
    with failing():
        with load_kernel(model, n_ctx=n_ctx, threads=threads) as kernel:
            story = write(
                kernel, schema or SCHEMA, prompt, raw, max_tokens=max_tokens, temperature=temperature, seed=seed
            )
        for note in story.notes:
            print(f"note: {shown(str(note))}", file=sys.stderr)
    if story.written.closed:
        print(f"note: {max_tokens} tokens were used up; what was open then was closed", file=sys.stderr)
    if as_json:
        print(json.dumps(_document(story, raw), ensure_ascii=False, indent=2))
    elif raw:
        print("\n".join(map(shown, story.text.splitlines())))
        print(story.fault or "valid this time", file=sys.stderr)
    else:
        print(json.dumps(story.value, ensure_ascii=False, indent=2))


def _document(story: Story, raw: bool) -> dict[str, object]:
    written = story.written
    return {
        "raw": raw,
        "valid": not story.fault,
        "fault": story.fault,
        "value": story.value,
        "text": story.text,
        "chosen_tokens": written.chosen,
        "forced_tokens": written.forced,
        "closed_tokens": written.closed,
        "passes": written.cost.passes,
    }
