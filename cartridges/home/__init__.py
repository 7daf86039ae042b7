"""A simulated house that takes requests in everyday words: lights, heater, door, blinds, music, vacuum, timer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cartridges.home.engine import House
from cartridges.home.guide import GUIDE
from cartridges.home.opcodes import LISTED, NAME, SETS, TYPED, Remind, Set
from cartridges.home.typed import GUIDE as TYPED_GUIDE
from cartridges.home.typed import prompt as typed_prompt
from cartridges.home.view import HomeView
from cartridges.kit.rules import opcode_set
from kernel.casefile import nothing, refusals, requests
from kernel.contract import Cartridge, Case
from kernel.opcode import words

CASES = Path(__file__).with_name("cases.jsonl")
"""Short everyday requests, one right command each. Nothing may be tuned on `test`."""

HINTS = Path(__file__).with_name("hints.jsonl")
"""The harder set: longer requests, most of which avoid the words of the command."""

MORE = Path(__file__).with_name("more.jsonl")
"""Further requests of the half `dev`, to learn from: as people talk, misspelt, indirect, in two sentences."""

FRESH = Path(__file__).with_name("fresh.jsonl")
"""Requests that are kept apart: nothing is chosen or learned by them, not even by `dev` of their kind."""

NOTHING = Path(__file__).with_name("none.jsonl")
"""Requests that nothing should answer: nonsense, what the house lacks, negated, vague."""

NOTHING_TYPED = Path(__file__).with_name("none-typed.jsonl")
"""The same for the typed opcodes."""


def make(opcodes: Set = "commands") -> Cartridge:
    """Return the cartridge; `opcodes` is `commands` (24 of them) or `typed` (rooms, degrees, minutes, free text).

    It has no planner: a person's request is all there is to go by, so all commands stand. The labelled requests are
    those of `commands`.

    Raises UsageError for another set.
    """
    labelled = opcodes == "commands"
    return Cartridge(
        name=NAME,
        version="1",
        summary="Lights, heater, door, blinds, music, vacuum and timer of a simulated house, asked for in plain words.",
        opcodes=opcode_set(NAME, opcodes, SETS),
        engine=partial(House, opcodes),
        view=HomeView(),
        takes_requests=True,
        guide=GUIDE if labelled else TYPED_GUIDE,
        learned=Path(__file__).with_name("learned") if labelled else None,
        cases=partial(requests, CASES, GUIDE) if labelled else None,
        more_cases=_more() if labelled else {"none": _nothing_typed},
        options={} if labelled else {"opcodes": opcodes},
    )


def _more() -> dict[str, Callable[[], list[Case]]]:
    """Return the further sets of the commands."""
    files = {"hints": HINTS, "more": MORE, "fresh": FRESH}
    named = {name: partial(requests, path, GUIDE) for name, path in files.items()}
    return {**named, "none": partial(refusals, NOTHING, GUIDE)}


def _nothing_typed() -> list[Case]:
    """Return the requests to the typed house that nothing should answer, with all that can be listed as options."""
    listed = [words(instruction, TYPED) for instruction in LISTED["typed"]]
    return nothing(NOTHING_TYPED, typed_prompt, [*listed, Remind.method])
