"""`run story`: a schema and a prompt in, a value of the schema out. Knows no session: there is one decision."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from cartridges.story import SCHEMA, Story, write
from kernel.cli.common import failing, load_kernel
from kernel.cli.frame import shown


def tell_story(
    schema: Path | None,
    prompt: str,
    *,
    raw: bool = False,
    model: str = "smollm2",
    max_tokens: int = 400,
    temperature: float = 0.0,
    seed: int = 0,
    as_json: bool = False,
    n_ctx: int = 2048,
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
        print(shown(story.text))
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


Schema = typer.Option("--schema", help="JSON Schema that is written by (story).", exists=False, dir_okay=False)
Prompt = typer.Option("--prompt", help="What it is to be about (story).")
Raw = typer.Option("--raw", help="Hold nothing: what the model writes alone (story).")
"""For the command that takes them."""
