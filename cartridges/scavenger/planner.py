"""Ranks instructions by how soon the next object is delivered after them. Owns no rule: it tries them on copies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from cartridges.kit.search import routes
from cartridges.scavenger.engine import ScavengerEngine
from kernel.contract import Engine, Option
from kernel.errors import CartridgeError

NO_WAY = -1000.0
"""The score of an instruction that does not lead to a delivery: lower than any way is long."""


def _place(engine: ScavengerEngine) -> Hashable:
    """What matters to the search; the moves only count up."""
    return engine.position, engine.carried, engine.lying, engine.delivered


class ScavengerPlanner:
    """Breadth-first search to the next delivery; the score is minus the number of instructions."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal instruction, best first, ties in the order of the declaration.

        Raises CartridgeError for an engine that is not the scavenger's.
        """
        if not isinstance(engine, ScavengerEngine):
            raise CartridgeError(f"scavenger: the planner cannot rank for {engine!r}; give it a ScavengerEngine")
        if engine.ended() is not None:
            return []
        had = engine.delivered
        options = []
        for instruction, route in routes(engine, _place, lambda after: after.delivered > had).items():
            steps = len(route.plan)
            if steps:
                note = f"delivers the {route.plan[-1].args['item']} in {steps} move{'s' if steps > 1 else ''}"
            else:
                note = route.ended or "leads away"
            options.append(Option(instruction, float(-steps) if steps else NO_WAY, note, route.plan))
        return sorted(options, key=lambda option: -option.score)
