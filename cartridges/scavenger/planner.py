"""Ranks the scavenger's instructions by how soon they lead to a delivery. It searches on copies of the engine."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.kit.rules import own
from cartridges.kit.search import ranked
from cartridges.scavenger.engine import ScavengerEngine
from kernel.contract import Engine, Option


class ScavengerPlanner:
    """Breadth-first search to the next delivery; the score is minus the number of instructions."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal instruction, best first, ties in the order of the declaration.

        Raises CartridgeError for an engine that is not the scavenger's.
        """
        scavenger = own(engine, ScavengerEngine)
        delivered = scavenger.delivered
        return ranked(
            scavenger,
            lambda each: (each.position, each.carried, each.lying, each.delivered),  # the moves only count up
            lambda after: after.delivered > delivered,
            lambda way: f"delivers the {way[-1].args['item']} in {len(way)} move{'s' if len(way) > 1 else ''}",
        )
