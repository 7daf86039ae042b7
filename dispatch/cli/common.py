"""What several commands share: their options, reading `--rule` and `name=value`, and loading a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from dispatch.cli.output import console, note, shown, working
from dispatch.loading.registry import load
from dispatch.session.model_player import leaves
from dispatch.session.rules import make_rule as make_rule
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.contract import Cartridge
from kernel.errors import UsageError
from kernel.models import catalogue as models
from kernel.models import fetch
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal

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
PIPE_SECONDS = 5.0
"""Time between two lines of progress where no terminal is."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def load_kernel(model: str, *, n_ctx: int = N_CTX, threads: int | None = None) -> Kernel:
    """Load a model, fetching it first when it is a named one that is not here; says so on stderr."""
    from kernel.backends.llama_cpp import LlamaCppBackend

    with progress_bar(model) as progress:
        path = models.resolve(model, progress=progress)
    with working(f"loading {model} …"):
        return Kernel(LlamaCppBackend(path, n_ctx=n_ctx, threads=threads), cache=models.cache_dir())


@contextmanager
def progress_bar(name: str) -> Iterator[fetch.Progress]:
    """Give what `models.pull` and `models.resolve` report to: a bar in a terminal, a line now and then in a pipe.

    Nothing appears when nothing is downloaded.
    """
    out = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal) as bar:
        task: TaskID | None = None
        due = 0.0

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal task, due
            if out.is_terminal:
                task = bar.add_task(shown(name), total=total) if task is None else task
                bar.update(task, description=shown(f"{name}: {what}"), completed=done, total=total)
            elif (now := time.monotonic()) >= due:
                due = now + PIPE_SECONDS
                note(f"{name}: {what}" + (f" {done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""))

        yield report


def tokenizable(name: str, opcodes: str | None, wire: str, model: str) -> tuple[Cartridge, list[Literal], Vocabulary]:
    """Return a cartridge, what its instructions are on the wire, and the vocabulary of a model that is here."""
    from kernel.backends.llama_cpp import read_vocabulary

    cartridge = load(name, **({} if opcodes is None else {"opcodes": opcodes}))
    literals = leaves(cartridge, Wire([cartridge], form(wire))).values()
    return cartridge, list(literals), read_vocabulary(models.resolve(model, pull=False))


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
