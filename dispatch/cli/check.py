"""`check`: runs the checker on a cartridge, with both wire forms, the vocabularies at hand and a second process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dispatch.checker import BUDGET, STEPS, Report, Status, check_cartridge
from dispatch.cli.common import MOST_TOKENS, AsJson, name_values
from dispatch.cli.output import failing, note, print_json, print_table, say, shown
from dispatch.loading.registry import load
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.errors import CartridgeError
from kernel.models import catalogue as models
from kernel.text.vocabulary import Vocabulary

PREFERRED = ("llama-spm", "qwen2", "gpt-2")
"""Vocabularies that differ in kind: SentencePiece; byte pairs, digits apart; byte pairs."""

WANTED = 3
"""Vocabularies that make a check worth its name."""

SET_UP = Path(__file__).parents[2] / ".cache" / "vocabs"
"""Where `make setup` keeps vocabulary-only files in a checkout. Beside an installed package there is no such folder."""

COLOURS = {Status.PASSED: "green", Status.FAILED: "bold red", Status.SKIPPED: "yellow"}

Spec = Annotated[str, typer.Argument(help="A name from `list`, package.module, or a folder.", metavar="CARTRIDGE")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="Model or vocabulary-only GGUF file; may be given several times.",
                 show_default="those that are here"),
]  # fmt: skip
Options = Annotated[
    list[str] | None, typer.Option("--option", help="Option of the cartridge, name=value.", show_default="none")
]
Steps = Annotated[int, typer.Option(help="Instructions that the random player gives.", min=1, max=1_000_000)]
Budget = Annotated[int, typer.Option(help="Tokens that a prompt may have.", min=1, max=MOST_TOKENS)]


def check_command(
    spec: Spec,
    model: Models = None,
    option: Options = None,
    steps: Steps = STEPS,
    budget: Budget = BUDGET,
    as_json: AsJson = False,
) -> None:
    """Check that a cartridge keeps the contract. Exits with 1 when it does not.

    Same seed same states, plans legal and reached, copies independent, null prompts blank, requests only data, every
    opcode compiled and parsed back, and so on. What a cartridge does outside (acts_outside) is not carried out.

    Example: check ./robot2
    """
    with failing():
        options = name_values(option or (), "--option")
        load(spec, **options)  # what was typed wrong is told before seconds go into vocabularies
        found = vocabularies(model or ())
        if not model and len(found) < WANTED:
            note(f"note: {len(found)} of the {WANTED} vocabularies wanted are here: name more with --model")
        report = check(spec, options, found, steps=steps, budget=budget)
    if as_json:
        print_json(_document(report, found))
    else:
        _tell(report)
    raise typer.Exit(0 if report.ok else 1)


def check(
    spec: str,
    options: Mapping[str, str] | None = None,
    found: Mapping[str, Vocabulary] | None = None,
    *,
    steps: int = STEPS,
    budget: int = BUDGET,
    seeds: Sequence[int] = (0, 1, 2),
) -> Report:
    """Load a cartridge and check it, as the command does; raises what `dispatch.loading.registry.load` raises.

    Args:
        spec: name, module or folder.
        options: of its `make`.
        found: vocabularies by name; None means those that are here.
    """
    options = dict(options or {})
    cartridge = load(spec, **options)
    return check_cartridge(
        cartridge,
        vocabularies=vocabularies() if found is None else found,
        wires={name: Wire([cartridge], form) for name, form in FORMS.items()},
        steps=steps,
        budget=budget,
        seeds=seeds,
        elsewhere=_elsewhere(spec, options),
    )


def vocabularies(given: Sequence[str] = ()) -> dict[str, Vocabulary]:
    """Return the vocabularies of the models given, by name; without any, of what is here.

    That is the default model, if it is pulled, and in a checkout as many of the files PREFERRED in SET_UP as make
    WANTED in all.
    """
    from kernel.backends.llama_cpp import read_vocabulary

    paths = {Path(name).stem.removeprefix("ggml-vocab-"): models.resolve(name, pull=False) for name in given}
    if not paths:
        if models.catalogue()[models.DEFAULT].pulled:
            paths[models.DEFAULT] = models.resolve(models.DEFAULT, pull=False)
        for name in PREFERRED:
            file = SET_UP / f"ggml-vocab-{name}.gguf"
            if file.is_file() and len(paths) < WANTED:
                paths[name] = file
    return {name: read_vocabulary(path) for name, path in paths.items()}


def _elsewhere(spec: str, options: Mapping[str, str]) -> Callable[[Sequence[int], int], list[list[str]]]:
    """Return what plays random games in another process, in which texts have other hashes."""

    def play(seeds: Sequence[int], steps: int) -> list[list[str]]:
        code = (
            "import json, sys\n"
            "from dispatch.checker.outside import harmless\n"
            "from dispatch.checker.subject import trace\n"
            "from dispatch.loading.registry import load\n"
            "spec, options, seeds, steps = json.loads(sys.argv[1])\n"
            "make = harmless(load(spec, **options)).engine\n"
            "print('\\0' + json.dumps([trace(make(), seed, steps) for seed in seeds]))\n"
        )
        command = [sys.executable, "-c", code, json.dumps([spec, options, list(seeds), steps])]
        paths = os.pathsep.join(path or "." for path in sys.path)
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "12345"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CartridgeError(f"the other process failed: {done.stderr.strip().splitlines()[-1:]}")
        traces: list[list[str]] = json.loads(done.stdout.rpartition("\0")[2])
        return traces

    return play


def _tell(report: Report) -> None:
    """Print a line for each finding."""
    if not Console().is_terminal:
        for finding in report.findings:
            say(str(finding))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        for finding in report.findings:
            what = Text(finding.check).append(f"\n{shown(finding.detail)}", "dim" if finding.status != "failed" else "")
            table.add_row(Text(finding.status.value, COLOURS[finding.status]), what)
        print_table(table)
    say(report.summary)


def _document(report: Report, found: Mapping[str, Vocabulary]) -> dict[str, Any]:
    return {
        "cartridge": report.name,
        "version": report.version,
        "ok": report.ok,
        "vocabularies": list(found),
        "findings": [{"check": f.check, "status": f.status.value, "detail": f.detail} for f in report.findings],
    }
