"""Every cartridge of the registry, with every opcode set, keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cartridges.home.opcodes import SETS
from cartridges.tetris.opcodes import OPCODES
from dispatch.checker import STEPS, Status
from dispatch.cli.check import PREFERRED, check
from dispatch.loading.registry import Registry, load
from kernel.text.vocabulary import Vocabulary

OPTIONS: dict[str, list[dict[str, str]]] = {
    "tetris": [{"opcodes": name} for name in OPCODES],
    "home": [{"opcodes": name} for name in SETS],
}
"""Options that make a cartridge of another kind."""

NEEDED = {
    "Every planned move is legal and reached": "planner",
    "Options are listed as they are scored": "planner",
    "Labelled cases hold what is right": "cases",
    "The guide explains every instruction once": "guide",
}
"""The checks that are skipped, each where a cartridge does not have the part that it looks at."""


def variants() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every installed cartridge of ours with every set of options."""
    registry = Registry()
    for source in registry.sources:
        for options in OPTIONS.get(source.name, [{}]):
            yield source.id, options
    yield "cartridges.template", {}


def label(value: object) -> str:
    """Return a readable id of a parameter."""
    return ",".join(value.values()) if isinstance(value, dict) else str(value)


@pytest.fixture(scope="module", name="load_vocabulary")
def reader(load: Callable[[str], Vocabulary]) -> Callable[[str], Vocabulary]:
    """Read a real vocabulary, once; `load` is what loads cartridges here."""
    return load


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one", "three"])
@pytest.mark.parametrize(("name", "options"), list(variants()), ids=label)
def test_the_checker_finds_nothing_wrong(
    name: str, options: dict[str, str], load_vocabulary: Callable[[str], Vocabulary], whole: bool
) -> None:
    """No finding has failed, in two wire forms, in two processes; as the command checks, or on a third of that: the
    games of one seed of three, on one vocabulary of three."""
    vocabularies = {each: load_vocabulary(each) for each in (PREFERRED if whole else PREFERRED[:1])}
    report = check(
        name, options, vocabularies, seeds=(0, 1, 2) if whole else (0,), steps=STEPS if whole else STEPS // 5
    )
    assert report.ok, str(report)
    skipped = {finding.check for finding in report.findings if finding.status is Status.SKIPPED}
    made = load(name, **options)
    missing = {check for check, part in NEEDED.items() if not getattr(made, part)}
    assert skipped == missing - ({"Labelled cases hold what is right"} if made.more_cases else set()), str(report)
