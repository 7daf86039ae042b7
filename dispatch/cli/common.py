"""What the commands share: options, errors in one line, loading with a word about it. Knows no command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from dispatch.cli.frame import shown
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from kernel.errors import KernelError, UsageError
from kernel.models import catalogue as models

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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@contextmanager
def failing() -> Iterator[None]:
    """Print an error of ours in one line on stderr; exit with 2 for misuse, with 1 for failure."""
    try:
        yield
    except KernelError as error:
        print(f"error: {shown(str(error))}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from error


def load_kernel(model: str, *, n_ctx: int = N_CTX, threads: int | None = None) -> Kernel:
    """Load a model, fetching it first when it is a named one that is not here; says so on stderr."""
    from dispatch.cli.models import progress_bar
    from kernel.backends.llama_cpp import LlamaCppBackend

    with progress_bar(model) as progress:
        path = models.resolve(model, progress=progress)
    with Console(stderr=True).status(f"loading {shown(model)} …"):  # which a pipe does not see
        return Kernel(LlamaCppBackend(path, n_ctx=n_ctx, threads=threads), cache=models.cache_dir())


def make_rule(
    name: str | None, *, calibration: float = 1.0, temperature: float = 1.0, seed: int = 0, planner_weight: float = 0.0
) -> Rule:
    """Return a rule from what was typed; None is the default rule."""
    chosen = RuleName.CALIBRATED if name is None else name
    return Rule(chosen, calibration, temperature, seed, planner_weight)  # type: ignore[arg-type]
