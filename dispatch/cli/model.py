"""What commands with a model share: loading it or its vocabulary, with what they tell meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from dispatch.cli.common import N_CTX
from dispatch.cli.output import console, note, shown, working
from dispatch.loading.registry import load
from dispatch.session.model_player import leaves
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.contract import Cartridge
from kernel.models import catalogue as models
from kernel.models import fetch
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal

PIPE_SECONDS = 5.0
"""Time between two lines of progress where no terminal is."""


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
