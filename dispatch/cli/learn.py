"""`learn`: teaches a model what requests to some cartridges mean, from labelled requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import N_CTX, AsJson, ContextSize, Model, Threads
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, print_json, say, working
from dispatch.loading.registry import load_all
from dispatch.session.guides import guide_of
from dispatch.session.learned import file_name, own_folder
from dispatch.session.learning import file_cases, lesson, logged_cases, own_cases
from kernel.errors import UsageError

Names = Annotated[list[str], typer.Argument(help="Cartridges, see `list`; several learn requests to all of them.")]
CasesFrom = Annotated[
    list[Path] | None,
    typer.Option("--cases", help='JSON lines: {"request": .., "answer": "light kitchen on", or "none"}.'),
]
Logs = Annotated[list[Path] | None, typer.Option("--log", help="Session log, for what was corrected in it.")]
Only = Annotated[bool, typer.Option("--only", help="Leave out the cartridges' own labelled requests.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default="in the cache")]


def learn_command(
    names: Names,
    cases: CasesFrom = None,
    logs: Logs = None,
    only: Only = False,
    model: Model = "smollm2",
    threads: Threads = None,
    n_ctx: ContextSize = N_CTX,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Learn from labelled requests which command is meant, and whether any is; `run` then decides by it.

    It takes the cartridges' own requests of the half `dev`, those of --cases, and what was corrected in logs. The file
    is good for this model and these commands only, holds nothing but numbers, and lies where `run` looks for it. Needs
    scipy (the extra `learn`).

    Example: learn home --log monday.jsonl
    """
    with failing():
        if len(set(names)) < len(names):
            raise UsageError("learn: a cartridge is named twice")
        cartridges = load_all(tuple(names))
        known = [each.words for each in guide_of(cartridges)]
        labelled = [] if only else own_cases(cartridges)
        for path in cases or ():
            labelled += file_cases(path, known)
        for path in logs or ():
            labelled += logged_cases(path, known)
        with load_kernel(model, n_ctx=n_ctx, threads=threads) as kernel:
            with working("reading requests") as tell:
                found = lesson(kernel, cartridges, labelled, lambda done, total: tell(f"request {done} of {total}"))
            path = output or own_folder() / file_name(kernel, cartridges)
        found.learned.write(path)
    told = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "answered": found.answered,
        "nothing": found.nothing,
        "right_calibrated": found.before,
        "right_cross_validated": found.after,
        "right_held_back": found.held_back,
        "nothing_held_back": found.refused,
        "thresholds": found.learned.thresholds.as_json(),
    }
    if as_json:
        print_json(told, indent=None)
        return
    say(f"{path}: learned from {found.answered} requests with an answer and {found.nothing} without one")
    say(f"right, each by what the others teach: {100 * found.after:.0f} %; before: {100 * found.before:.0f} %")
    refused = "" if found.refused is None else f", and {100 * found.refused:.0f} % of those that ask for nothing"
    say(f"held back at its thresholds: {100 * found.held_back:.0f} % of what is right{refused}")
