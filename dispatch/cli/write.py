"""`write`: the model writes one value of a JSON Schema. It is one decision, so there is no session and no log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import HOTTEST, MOST_SEED, MOST_TOKENS, N_CTX, AsJson, ContextSize, Model, Threads
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, note, print_json, say
from dispatch.wire.value import SCHEMA, TOKENS, Value, write

Schema = Annotated[
    Path | None,
    typer.Option("--schema", help="JSON Schema of the value.", show_default="a character of a story"),
]
About = Annotated[str, typer.Option("--prompt", help="What it is to be about.", show_default="anything")]
Raw = Annotated[bool, typer.Option("--raw", help="Hold nothing: what the model writes alone.")]
Budget = Annotated[int, typer.Option(help="Tokens that the value may have.", min=1, max=MOST_TOKENS)]
Temperature = Annotated[float, typer.Option(help="0 takes the most probable token.", min=0, max=HOTTEST)]
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of a temperature above 0.")]


def write_command(
    schema: Schema = None,
    prompt: About = "",
    raw: Raw = False,
    model: Model = "smollm2",
    max_tokens: Budget = TOKENS,
    temperature: Temperature = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Let the model write a value of a JSON Schema; with --raw, see what it writes without the schema.

    Example: write --schema character.schema.json --prompt "a lighthouse keeper with a parrot"
    """
    with failing():
        with load_kernel(model, n_ctx=n_ctx, threads=threads) as kernel:
            value = write(
                kernel, schema or SCHEMA, prompt, raw, max_tokens=max_tokens, temperature=temperature, seed=seed
            )
        for told in value.notes:
            note(f"note: {told}")
    if value.written.closed:
        note(f"note: {max_tokens} tokens were used up; what was open then was closed")
    if as_json:
        print_json(_document(value, raw))
    elif raw:
        for line in value.text.splitlines():
            say(line)
        note(value.fault or "valid this time")
    else:
        print_json(value.value)


def _document(value: Value, raw: bool) -> dict[str, object]:
    written = value.written
    return {
        "raw": raw,
        "valid": not value.fault,
        "fault": value.fault,
        "value": value.value,
        "text": value.text,
        "chosen_tokens": written.chosen,
        "forced_tokens": written.forced,
        "closed_tokens": written.closed,
        "passes": written.cost.passes,
    }
