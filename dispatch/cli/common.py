"""What the commands share: options, errors in one line, loading with a word about it. Knows no command."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from dispatch.cli.output import shown
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from kernel.models import catalogue as models
from kernel.models import fetch

CartridgeName = Annotated[
    str, typer.Argument(help="Cartridge, see `list`; a folder such as ./mytools.", metavar="CARTRIDGE")
]
Opcodes = Annotated[
    str | None,
    typer.Option(help="Opcode set, where a cartridge has several (tetris: place, moves).", show_default=False),
]
WireForm = Annotated[str, typer.Option("--wire", help="Wire form of the instructions: compact or tagged.")]
LogFiles = Annotated[list[Path], typer.Argument(help="Session logs.", exists=True, dir_okay=False, show_default=False)]
Model = Annotated[
    str, typer.Option("--model", "-m", help="Model: a name from `models`, hf:OWNER/REPO/FILE.gguf, a path.")
]
RuleOption = Annotated[
    str | None, typer.Option("--rule", help="calibrated, exact, greedy or sample.", show_default="best")
]
Calibration = Annotated[float, typer.Option(help="How much of the null's log-probability is subtracted, 0 to 1.")]
Temperature = Annotated[float, typer.Option(help="Of --rule sample.")]
Threads = Annotated[int | None, typer.Option(help="CPU threads.", min=1, show_default="all cores, at most 8")]
ContextSize = Annotated[int, typer.Option("--n-ctx", help="Tokens that the model's memory holds.", min=8)]
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
    with Console(stderr=True).status(f"loading {shown(model)} …"):  # which a pipe does not see
        return Kernel(LlamaCppBackend(path, n_ctx=n_ctx, threads=threads), cache=models.cache_dir())


@contextmanager
def progress_bar(name: str) -> Iterator[fetch.Progress]:
    """Give what `models.pull` and `models.resolve` report to: a bar in a terminal, a line now and then in a pipe.

    Nothing appears when nothing is downloaded.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _progress_lines(name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as bar:
        task: TaskID | None = None

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task(name, total=total)
            bar.update(task, description=f"{name}: {what}", completed=done, total=total)

        yield report


def _progress_lines(name: str) -> fetch.Progress:
    told = float("-inf")

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < PIPE_SECONDS:
            return
        told = now
        amount = f" {done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""
        print(f"{name}: {what}{amount}", file=sys.stderr, flush=True)

    return report


def make_rule(
    name: str | None, *, calibration: float = 1.0, temperature: float = 1.0, seed: int = 0, planner_weight: float = 0.0
) -> Rule:
    """Return a rule from what was typed; None is the default rule."""
    chosen = RuleName.CALIBRATED if name is None else name
    return Rule(chosen, calibration, temperature, seed, planner_weight)  # type: ignore[arg-type]
