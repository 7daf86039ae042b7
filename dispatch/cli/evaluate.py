"""`eval`: measures rules and models on labelled cases, and prints a table and one line of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import load_kernel, make_rule
from dispatch.cli.output import failing, json_text, number, print_json, print_rows, working, written
from dispatch.loading.registry import load
from dispatch.session.evaluate import Result, evaluate
from dispatch.session.guides import cases_of_all
from kernel.choose.rule import RuleName
from kernel.contract import Cartridge, Case
from kernel.errors import UnknownCartridgeError, UsageError, did_you_mean

SETS = {
    "choose": ("choose", ""),
    "home": ("home", ""),
    "hints": ("home", "hints"),
    "tetris": ("tetris", ""),
    "robot-states": ("robot", "states"),
    "scavenger-states": ("scavenger", "states"),
}
"""Owner, and the name that its further set has there."""

Sets = Annotated[
    list[str] | None,
    typer.Argument(
        help="Sets: tetris, home, hints, choose, robot-states, scavenger-states, any with cases, home+robot."
    ),
]
Models = Annotated[list[str] | None, typer.Option("--model", "-m", help="Model; give it several times for several.")]
Rules = Annotated[list[str] | None, typer.Option("--rule", help="Rule; give it several times for several.")]
Split = Annotated[str, typer.Option(help="Which part: test, dev or all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the JSON to this file.")]


def eval_command(
    sets: Sets = None,
    models: Models = None,
    rules: Rules = None,
    split: Split = "test",
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Measure rules on labelled states: accuracy with its 95 % interval, chance, spread over positions, cost.

    A set such as `home+scavenger` puts the labelled requests of several cartridges to all of them at once.

    Example: eval home --model smollm2 --model gemma3-270m
    """
    with failing():
        if split not in ("test", "dev", "all"):
            raise UsageError(f"no split {split!r}; there is: test, dev, all")
        made = {text: make_rule(text) for text in rules or map(str, list(RuleName)[:3])}
        cases = {name: _cases(name) for name in sets or ["tetris", "home", "choose"]}
        if output is not None and (output.is_dir() or not output.parent.is_dir()):
            raise UsageError(f"eval: {str(output)!r} cannot be written; give a file in a folder that is there")
        results = []
        for model in models or ["smollm2"]:
            with load_kernel(model) as kernel, working("") as tell:
                for name, found in cases.items():
                    for text, rule in made.items():

                        def progress(done: int, total: int, what: str = f"{model} {name} {text}") -> None:
                            tell(f"{what}: {done} of {total}")

                        result = evaluate(kernel, found, rule, model=model, name=name, split=split, progress=progress)
                        results.append(result.model_copy(update={"rule": text}))
        if output is not None:
            with written(output) as file:
                file.write(json_text(results, indent=None) + "\n")
        if not as_json:
            _show(results)
            _show_failed(results)
        print_json(results, indent=None)


def _show_failed(results: list[Result]) -> None:
    rows = [
        (r.model, r.set, r.rule, case.request or case.id, case.answer.strip(), case.choice.strip(), number(case.margin))
        for r in results
        for case in r.failed
    ]
    if rows:
        print_rows(["model", "set", "rule", "failed case", "right", "chosen", "margin"], rows)


def _cases(name: str) -> list[Case]:
    if name == "choose":
        from dispatch.session.completions import cases

        return list(cases())
    if "+" in name:
        return cases_of_all([_cartridge(one) for one in dict.fromkeys(name.split("+"))])
    owner, more = SETS.get(name, (name, ""))
    cartridge = _cartridge(owner)
    made = cartridge.more_cases.get(more) if more else cartridge.cases
    if made is None:
        raise UsageError(f"{name!r} has no labelled cases{did_you_mean(name, SETS)}")
    return list(made())


def _cartridge(name: str) -> Cartridge:
    try:
        return load(name)
    except UnknownCartridgeError as error:
        raise UsageError(
            f"no set {name!r}{did_you_mean(name, SETS)}; any cartridge with cases is a set, too"
        ) from error


def _show(results: list[Result]) -> None:
    heads = ["model", "set", "rule", "cases", "correct", "95 %", "chance", "picks by position", "passes", "tokens"]
    print_rows(
        heads,
        [
            (
                r.model,
                r.set,
                r.rule,
                str(r.cases),
                f"{100 * r.accuracy:.0f} %",
                f"{100 * r.low:.0f}-{100 * r.high:.0f}",
                f"{100 * r.chance:.0f} %",
                " ".join(map(str, r.positions[:8])) + (" …" if len(r.positions) > 8 else ""),
                f"{r.passes:.2f}",
                f"{r.tokens:.0f}",
            )
            for r in results
        ],
    )
