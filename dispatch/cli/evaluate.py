"""`eval`: measures rules and models on labelled cases, and prints a table and one line of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import MOST
from dispatch.cli.evaluate_shown import show, show_calls, show_confused, show_failed, show_held
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, json_text, print_json, print_rows, working, written
from dispatch.loading.registry import load
from dispatch.session.evaluate import Result, evaluate
from dispatch.session.evaluate_calls import CallResult, evaluate_calls
from dispatch.session.forms import FormResult, try_forms
from dispatch.session.guides import cases_of_all
from dispatch.session.judging import judge_for
from dispatch.session.rules import make_rule
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
    "tools": ("cartridges.everyday", ""),
}
"""Owner, and the name that its further set has there."""

Sets = Annotated[
    list[str] | None,
    typer.Argument(
        help="Sets: tetris, home, hints, choose, robot-states, any with cases; home/none; home,home/none; home+robot."
    ),
]
Models = Annotated[list[str] | None, typer.Option("--model", "-m", help="Model; give it several times for several.")]
Rules = Annotated[list[str] | None, typer.Option("--rule", help="Rule; give it several times for several.")]
Split = Annotated[
    str | None,
    typer.Option(help="Which part: test, dev or all (default: test, and dev with --forms).", show_default=False),
]
Forms = Annotated[bool, typer.Option("--forms", help="Try leads and marks of the options instead of rules.")]
Most = Annotated[int, typer.Option(min=0, max=MOST, help="With --forms: so many cases of each set; 0 is all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the JSON to this file.")]


def eval_command(
    sets: Sets = None,
    models: Models = None,
    rules: Rules = None,
    split: Split = None,
    forms: Forms = False,
    most: Most = 0,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Measure rules on labelled states: accuracy with its 95 % interval, chance, spread over positions, cost.

    Also what is right of what is acted on when decisions may be held back. A set such as `home+scavenger` puts the
    labelled requests of several cartridges to all of them at once, `home/none` is a further set of a cartridge, and
    `home,home/none` is both together.

    With --forms, each set whose prompts mark the best of several options is decided in several forms of that list: what
    stands before the options, and the marks. Nothing may be tuned on the part `test`.

    Example: eval home --model smollm2 --model gemma3-270m
    """
    with failing():
        split = split or ("dev" if forms else "test")
        if split not in ("test", "dev", "all"):
            raise UsageError(f"no split {split!r}; there is: test, dev, all")
        made = {text: make_rule(text) for text in rules or map(str, list(RuleName)[:3])}
        called = {name: cartridge for name in sets or () if (cartridge := with_calls(name)) is not None}
        cases = {name: _cases(name) for name in sets or ["tetris", "home", "choose"] if name not in called}
        if output is not None and (output.is_dir() or not output.parent.is_dir()):
            raise UsageError(f"eval: {str(output)!r} cannot be written; give a file in a folder that is there")
        if forms:
            _try(cases, models or ["smollm2"], split, most, as_json, output)
            return
        results: list[Result] = []
        calls: list[CallResult] = []
        for model in models or ["smollm2"]:
            with load_kernel(model) as kernel, working("") as tell:
                for name, cartridge in called.items():

                    def answered(done: int, total: int, what: str = f"{model} {name}") -> None:
                        tell(f"{what}: {done} of {total}")

                    calls.append(
                        evaluate_calls(kernel, cartridge, model=model, name=name, split=split, progress=answered)
                    )
                for name, found in cases.items():
                    for text, rule in made.items():

                        def progress(done: int, total: int, what: str = f"{model} {name} {text}") -> None:
                            tell(f"{what}: {done} of {total}")

                        result = evaluate(
                            kernel,
                            found,
                            rule,
                            model=model,
                            name=name,
                            split=split,
                            judge=judge_for(kernel, cartridges_of(name), rule),
                            progress=progress,
                        )
                        results.append(result.model_copy(update={"rule": text}))
        if output is not None:
            with written(output) as file:
                file.write(json_text([*calls, *results], indent=None) + "\n")
        if not as_json:
            show_calls(calls)
            show(results)
            show_held(results)
            show_confused(results)
            show_failed(results)
        print_json([*calls, *results], indent=None)


def _try(
    cases: dict[str, list[Case]], models: list[str], split: str, most: int, as_json: bool, output: Path | None
) -> None:
    """Try forms on the sets of cases, model by model."""
    found: list[FormResult] = []
    for model in models:
        with load_kernel(model) as kernel, working("") as tell:
            for name, several in cases.items():

                def progress(done: int, total: int, what: str = f"{model} {name}") -> None:
                    tell(f"{what}: {done} of {total}")

                found += try_forms(kernel, several, model=model, name=name, split=split, most=most, progress=progress)
    if output is not None:
        with written(output) as file:
            file.write(json_text(found, indent=None) + "\n")
    if not as_json:
        heads = ["model", "set", "right", "cases", "best", "other", "lead", "tokens"]
        print_rows(
            heads,
            [
                (
                    r.model,
                    r.set,
                    f"{100 * r.accuracy:.0f} %",
                    str(r.cases),
                    r.best,
                    r.other,
                    repr(r.lead),
                    f"{r.tokens:.0f}",
                )
                for r in found
            ],
        )
    print_json(found, indent=None)


def cartridges_of(name: str) -> list[Cartridge]:
    """Return the cartridges whose requests a set has; none for completions."""
    first = name.split(",")[0]
    owners = [_owner(one)[0] for one in dict.fromkeys(first.split("+"))]
    return [_cartridge(owner) for owner in owners if owner != "choose"]


def _owner(name: str) -> tuple[str, str]:
    """Return the cartridge of a set, which may be a folder, and what its further set is called there.

    >>> _owner("hints"), _owner("robot"), _owner("robot/none"), _owner("./mine/none")
    (('home', 'hints'), ('robot', ''), ('robot', 'none'), ('./mine', 'none'))
    """
    if name in SETS:
        return SETS[name]
    owner, _, more = name.rpartition("/")
    return (name, "") if owner in ("", ".", "..") or not more.isidentifier() or Path(name).exists() else (owner, more)


def with_calls(name: str) -> Cartridge | None:
    """Return the cartridge of a set whose cases are calls of tools; None for other sets."""
    if "," in name or "+" in name or name == "choose" or _owner(name)[1]:
        return None
    cartridge = _cartridge(_owner(name)[0])
    return cartridge if cartridge.call_cases is not None else None


def _cases(name: str) -> list[Case]:
    if "," in name:
        return [case for one in dict.fromkeys(name.split(",")) for case in _cases(one)]
    if name == "choose":
        from dispatch.session.completions import cases

        return list(cases())
    if "+" in name:
        return cases_of_all([_cartridge(one) for one in dict.fromkeys(name.split("+"))])
    owner, more = _owner(name)
    cartridge = _cartridge(owner)
    made = cartridge.more_cases.get(more) if more else cartridge.cases
    if made is None:
        sets = [*SETS, *(f"{owner}/{one}" for one in cartridge.more_cases)]
        raise UsageError(f"{name!r} has no labelled cases{did_you_mean(name, sets)}")
    return list(made())


def _cartridge(name: str) -> Cartridge:
    try:
        return load(name)
    except UnknownCartridgeError as error:
        raise UsageError(
            f"no set {name!r}{did_you_mean(name, SETS)}; any cartridge with cases is a set, too"
        ) from error
