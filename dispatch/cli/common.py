"""What several commands share: their options, reading `name=value`, and telling which extra is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kernel.errors import UsageError

of_model = partial(typer.Option, rich_help_panel="Model")
"""Declares an option in the panel of the help that these stand in."""

CartridgeName = Annotated[
    str, typer.Argument(help="Cartridge, see `list`; a folder such as ./mytools.", metavar="CARTRIDGE")
]
Opcodes = Annotated[
    str | None,
    typer.Option(help="Opcode set, where a cartridge has several (tetris: place, moves).", show_default=False),
]
WireForm = Annotated[str, of_model("--wire", help="Wire form: compact or tagged.")]
LogFiles = Annotated[list[Path], typer.Argument(help="Session logs.", exists=True, dir_okay=False, show_default=False)]
Model = Annotated[str, of_model("--model", "-m", help="A name from `models`, hf:OWNER/REPO/FILE.gguf, a path.")]
RULES = "calibrated, exact, greedy, sample, learned; with a parameter: calibrated:0.5, sample:0.7."
RuleOption = Annotated[str | None, of_model("--rule", help=RULES, show_default="best")]
MOST_THREADS = min(512, max(8, 2 * (os.cpu_count() or 1)))
"""llama.cpp takes 512. Its threads spin while they wait, so more than two a core hold one another up for minutes."""
Threads = Annotated[
    int | None, of_model(help="CPU threads.", min=1, max=MOST_THREADS, show_default="all cores, at most 8")
]
MOST_TOKENS = 131_072
"""Of a memory or a budget: far more than any prompt here, and still gigabytes and not the whole machine."""
ContextSize = Annotated[int, of_model("--n-ctx", help="Tokens that the model's memory holds.", min=8, max=MOST_TOKENS)]
MOST_SEED = 2**63 - 1
MOST = 1_000_000_000
"""Of what is counted in decisions."""
HOTTEST = 1000.0
"""A temperature at which every choice is chance."""
N_CTX = 2048
"""Tokens of memory, unless told otherwise: enough for the prompts of our cartridges."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def name_values(given: Sequence[str], what: str) -> dict[str, str]:
    """Return `name=value` texts as a dict; `what` is the option that they were given with.

    >>> name_values(["opcodes=place"], "--option")
    {'opcodes': 'place'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or name in found:
            raise UsageError(f"{what} {text!r}: give name=value, each name once")
        found[name] = value
    return found


@contextmanager
def extra(command: str) -> Iterator[None]:
    """Import inside what a command needs beyond the rest; what is not installed is told with the extra of its name."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "dispatch", "kernel"):
            raise
        raise UsageError(
            f"{command} needs {missing!r}, which is not installed: pip install 'cartridge-kernel[{command}]'"
        ) from error
