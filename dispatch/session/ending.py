"""Whether a session is over: by the rules of its engines, or at a limit that was given at its start."""

from __future__ import annotations

from collections.abc import Mapping

from dispatch.log.records import Ending
from dispatch.log.report import ended
from kernel.contract import Engine
from kernel.errors import UsageError


def over(engines: Mapping[str, Engine], limits: Mapping[str, int | float], decisions: int) -> tuple[Ending, str] | None:
    """Return why the session may not go on, or None while it may.

    Args:
        engines: by cartridge name; the rules have to end all of them.
        limits: largest values by name; see `count`.
        decisions: made so far.
    """
    if (reason := ended(engines)) is not None:
        return Ending.RULES, reason
    for limit, most in limits.items():
        if count(limit, engines, decisions) >= most:
            return Ending.LIMIT, f"{most} {limit}"
    return None


def count(limit: str, engines: Mapping[str, Engine], decisions: int) -> int | float:
    """Return how far a limit is used up: decisions, or the largest number of that name in the engines' summaries.

    Raises UsageError when no engine counts anything of that name.
    """
    if limit == "decisions":
        return decisions
    found = [engine.summary().get(limit) for engine in engines.values()]
    counts = [value for value in found if isinstance(value, int | float)]
    if not counts:
        raise UsageError(f"{' '.join(engines)}: nothing here counts {limit!r}, so it is no limit")
    return max(counts)
