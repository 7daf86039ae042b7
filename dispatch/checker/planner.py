"""Checks of the planner: its options are legal, and its plans can be carried out to their end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dispatch.checker.report import FaultError, SkipError
from dispatch.checker.subject import Subject
from kernel.contract import Engine, Option, Planner
from kernel.errors import IllegalInstructionError

PLANS = 5
"""Plans of one state that are carried out, the best first."""

ASKED = 30
"""Plans that are followed on the way to an ending."""


def plans(subject: Subject) -> str:
    """Every planned move is legal and reached."""
    planner = subject.cartridge.planner
    if planner is None:
        raise SkipError("there is no planner")
    options_seen = moves = 0
    for where, engine, options, _ in subject.states:
        before = engine.state_hash()
        if tuple(planner.rank(engine)) != options:
            raise FaultError(f"{where}: rank() says something else when it is asked again")
        if engine.state_hash() != before:
            raise FaultError(f"{where}: rank() changes the engine; let it try on engine.copy()")
        _ranked(where, engine, options)
        for option in options[:PLANS]:
            moves += _carried_out(where, engine, option)
        options_seen += len(options)
    for seed in subject.seeds:
        _at_the_end(planner, subject.engine(seed), f"seed {seed}")
    return f"{options_seen} options are legal, {moves} planned moves were made"


def _ranked(where: str, engine: Engine, options: Sequence[Option]) -> None:
    legal = set(engine.legal())
    offered = [option.instruction for option in options]
    if not offered:
        raise FaultError(f"{where}: {len(legal)} instructions are legal and the planner offers none")
    for instruction in offered:
        if instruction not in legal:
            raise FaultError(f"{where}: {instruction!r} is offered but not legal")
    if len(set(offered)) < len(offered):
        raise FaultError(f"{where}: an instruction is offered twice: {offered!r}")
    scores = [option.score for option in options]
    if any(math.isnan(score) for score in scores) or scores != sorted(scores, reverse=True):
        raise FaultError(f"{where}: scores are not best first: {scores!r}")


def _carried_out(where: str, engine: Engine, option: Option) -> int:
    """Follow one plan on a copy; return its moves."""
    if not option.plan:
        return 0
    if option.plan[0] != option.instruction:
        raise FaultError(f"{where}: the plan of {option.instruction!r} begins with {option.plan[0]!r}")
    twin = engine.copy()
    for number, instruction in enumerate(option.plan, 1):
        try:
            twin.apply(instruction)
        except IllegalInstructionError as error:
            raise FaultError(f"{where}: move {number} of the plan {list(option.plan)!r}: {error}") from error
    return len(option.plan)


def _at_the_end(planner: Planner, engine: Engine, where: str) -> None:
    """Ask for options after the end, where the planner's own moves lead to one soon."""
    for _ in range(ASKED):
        if (ended := engine.ended()) is not None:
            if options := planner.rank(engine):
                raise FaultError(f"{where}: after the end ({ended}) the planner still offers {options[0]!r}")
            return
        best = planner.rank(engine)[0]
        for instruction in best.plan or (best.instruction,):
            engine.apply(instruction)
