"""Prompts for requests to several cartridges at once: the meaning of every command of all of them, then the request.

The meanings are those of each cartridge's guide. A cartridge without a guide is explained by its opcodes' docstrings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernel.contract import Cartridge, Case
from kernel.errors import UsageError
from kernel.opcode import Halt, Opcode, words
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.spelling import first_words
from kernel.prompt import Explained, Prompt, explained

LISTED = 12
"""A cartridge without a guide has so many of its instructions in the prompt; of more, the first of each opcode."""


def guide_of(cartridges: Sequence[Cartridge]) -> tuple[Explained, ...]:
    """Return the guides of some cartridges one after the other, the same for every order in which they came.

    One that has none is explained by its opcodes' docstrings.
    """
    ordered = sorted(cartridges, key=lambda cartridge: cartridge.name)
    return tuple([each for cartridge in ordered for each in cartridge.guide or _plain(cartridge)])


def waits_for_requests(cartridges: Sequence[Cartridge]) -> bool:
    """Return whether a session waits for requests: it has several cartridges, or one that takes them and cannot plan.

    A single cartridge with a planner plays by itself, unless requests are named.
    """
    return len(cartridges) > 1 or any(each.takes_requests and each.planner is None for each in cartridges)


def asked_of_all(request: str, guide: tuple[Explained, ...]) -> Prompt:
    """Return the prompt of a request behind a guide of several cartridges."""
    return explained(request, guide, short=True)


def is_one_of_all(case: Case, cartridges: Sequence[Cartridge]) -> bool:
    """Return whether a case has one right answer among the commands of some cartridges: no other of them answers it."""
    return not any(cartridge.name in case.elsewhere for cartridge in cartridges)


def cases_of_all(cartridges: Sequence[Cartridge]) -> list[Case]:
    """Return the labelled requests of some cartridges, each to be answered among the commands of all of them.

    A request that another one of them answers as well is left out.
    Raises UsageError where a cartridge has none, or two have a command of the same words.
    """
    guide, options, found = guide_of(cartridges), dict[str, str](), list[Case]()
    for cartridge in cartridges:
        own = [case for case in (cartridge.cases() if cartridge.cases else ()) if case.request]
        if not own:
            raise UsageError(f"{cartridge.name!r} has no labelled requests")
        for option in dict.fromkeys(itertools.chain.from_iterable(case.options for case in own)):
            if (other := options.setdefault(option, cartridge.name)) != cartridge.name:
                raise UsageError(f"{option!r} is a command of {other!r} and of {cartridge.name!r}")
        found += [case for case in own if is_one_of_all(case, cartridges)]
    return [replace(case, prompt=asked_of_all(case.request, guide), options=tuple(options)) for case in found]


def _plain(cartridge: Cartridge) -> list[Explained]:
    opcodes = [opcode for opcode in cartridge.opcodes if not issubclass(opcode, Halt)]
    several = [list(itertools.islice(_said(opcode), LISTED + 1)) for opcode in opcodes]
    if sum(map(len, several)) > LISTED:
        several = [said[:1] for said in several]
    return [
        Explained(each, _phrase(opcode), each, each, foreign=issubclass(opcode, SchemaOpcode))
        for opcode, said in zip(opcodes, several, strict=True)
        for each in said
    ]


def _said(opcode: type[Opcode]) -> Iterator[str]:
    if opcode.is_open():
        return iter([first_words(opcode)])
    return (words(value.instruction(""), [opcode]) for value in opcode.instances())


def _phrase(opcode: type[Opcode]) -> str:
    """Return the first line of the docstring as the guide's other lines are: a small letter, no full stop."""
    text = (opcode.__doc__ or "").strip().split("\n")[0].rstrip(". ") or opcode.method
    return text[0].lower() + text[1:]
