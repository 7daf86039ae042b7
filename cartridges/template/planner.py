"""Ranks what is legal: it tries each instruction on a copy of the engine and looks at what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.contract import Engine, Option

from .engine import FLOORS, Lift


class LiftPlanner:
    """Prefers people served, then being close to the next one."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal instruction, best first."""
        assert isinstance(engine, Lift), "this planner knows lifts only"
        options = []
        for instruction in engine.legal():
            after = engine.copy()
            happened = after.apply(instruction)
            options.append(Option(instruction, self.score(after), happened, (instruction,)))
        return sorted(options, key=lambda option: -option.score)

    def score(self, lift: Lift) -> float:
        """Return FLOORS for each person who got in and again for each who arrived, less the way to the next one."""
        state = lift.state
        served = 2 * state.arrived + len(state.inside)
        away = min((abs(floor - state.floor) for floor in lift.wishes()), default=0)
        return float(FLOORS * served - away)
