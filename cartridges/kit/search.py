"""Breadth-first search over copies of an engine, for planners that prefer the shortest way to a goal.

The planner of `gymnasium` does not use this search: an environment has
rewards and no goal, so the nearest reward need not be the one to go for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from typing import TypeVar

from kernel.contract import Engine, Option
from kernel.opcode import Instruction

E = TypeVar("E", bound=Engine)

SLACK = 2
"""How many levels beyond the nearest goal are searched: enough to take any one step back again."""

MAX_PLACES = 50_000
"""After so many places without a goal the search gives up, so that an endless engine cannot hang it."""

NO_WAY = -1000.0
"""The score of an instruction that leads to no goal: lower than any way is long."""


def ranked(
    engine: E,
    place: Callable[[E], Hashable],
    reached: Callable[[E], bool],
    note: Callable[[tuple[Instruction, ...]], str],
) -> list[Option]:
    """Return an option for each legal instruction, the shortest way to a goal first, ties in the order of `legal()`.

    The score is minus the number of instructions, NO_WAY where no goal is found. An option's plan is the way, which
    begins with its instruction; it is empty when no goal is near or the session ends before one.

    Args:
        engine: the state to start from; only copies of it are changed.
        place: what makes two states the same for the search (leave out what only counts, such as a battery).
        reached: whether a state is a goal; never asked of the start, nor of a step that leads back there.
        note: says a way in words; without a way the reason of the ending is said, or "leads away".

    Ways are shortest in instructions; ties go to the instruction that is legal first. A way that is more than SLACK
    steps longer than the shortest of all is not found, nor is any when MAX_PLACES places hold no goal.
    """
    start = place(engine)
    children: dict[Hashable, dict[Instruction, Hashable]] = {}
    parents: dict[Hashable, list[Hashable]] = defaultdict(list)
    ends: dict[Hashable, str | None] = {}
    goals: list[Hashable] = []
    nearest: int | None = None
    waiting: deque[tuple[int, Hashable, E]] = deque([(0, start, engine)])
    while waiting and len(children) < MAX_PLACES:
        depth, here, state = waiting.popleft()
        if nearest is not None and depth >= nearest + SLACK:
            break
        children[here] = {}
        for instruction in state.legal():
            after = state.copy()
            after.apply(instruction)
            there = place(after)
            children[here][instruction] = there
            known = there in parents or there == start
            parents[there].append(here)
            if known:
                continue
            if reached(after):
                goals.append(there)
                nearest = depth + 1 if nearest is None else nearest
            elif after.ended() is None:
                waiting.append((depth + 1, there, after))
            else:
                ends[there] = after.ended()
    steps = _steps_to_goal(goals, parents)
    options = []
    for instruction, there in children[start].items():
        plan = _plan(instruction, there, children, steps)
        said = note(plan) if plan else ends.get(there) or "leads away"
        options.append(Option(instruction, float(-len(plan)) if plan else NO_WAY, said, plan))
    return sorted(options, key=lambda option: -option.score)


def _steps_to_goal(goals: list[Hashable], parents: dict[Hashable, list[Hashable]]) -> dict[Hashable, int]:
    """Return how many instructions each place is away from its nearest goal."""
    steps = dict.fromkeys(goals, 0)
    waiting = deque(goals)
    while waiting:
        here = waiting.popleft()
        for before in parents[here]:
            if before not in steps:
                steps[before] = steps[here] + 1
                waiting.append(before)
    return steps


def _plan(
    first: Instruction,
    there: Hashable,
    children: dict[Hashable, dict[Instruction, Hashable]],
    steps: dict[Hashable, int],
) -> tuple[Instruction, ...]:
    """Return the way that begins with `first` and then always comes nearer; empty when no goal was found."""
    if there not in steps:
        return ()
    plan = [first]
    while steps[there]:
        instruction, there = min(children[there].items(), key=lambda way: steps.get(way[1], len(steps)))
        plan.append(instruction)
    return tuple(plan)
