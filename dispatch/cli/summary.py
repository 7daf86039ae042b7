"""The summary that `run` prints at the end: a JSON document, or a table for a person."""

from __future__ import annotations

from typing import Any

from dispatch.cli.opening import Wanted
from dispatch.cli.output import print_rows
from dispatch.log.tally import Tally
from dispatch.session.session import Session
from kernel.choose.outcome import Outcome


def summary(session: Session, wanted: Wanted) -> dict[str, Any]:
    """Return what `--json` prints."""
    tally = session.tally
    summaries = {name: dict(engine.summary()) for name, engine in session.engines.items()}
    first = next(iter(summaries.values()))
    decided = session.player.name == "model"
    out: dict[str, Any] = {
        "cartridges": list(summaries),
        "player": session.player.name,
        "seed": session.seed,
        **({"model": wanted.model, "rule": str(wanted.rule.name), "wire": wanted.wire} if decided else {}),
        **(first if len(summaries) == 1 else {"summaries": summaries, "decided": dict(tally.by_cartridge)}),
        "decisions": tally.decisions,
        "ending": str(session.ending),
        "detail": session.detail,
        "held": tally.held,
        **({"outcomes": dict(tally.outcomes)} if tally.outcomes.keys() - {Outcome.CHOSEN} else {}),
        **({"confirmed": dict(tally.confirmed)} if tally.confirmed else {}),
        "refused": tally.refused,
        "failed": tally.failed,
        "agreement": _share(tally.agreed, tally.with_offer),
        "agreement_first": _share(tally.agreed_first, tally.with_offer),
    }
    if decided:
        out |= {
            "passes": tally.passes,
            "passes_per_decision": _share(tally.passes, tally.decisions),
            "tokens_evaluated": tally.tokens_evaluated,
            **_lines(tally),
            "chosen_tokens": tally.chosen_tokens,
            "forced_tokens": tally.forced_tokens,
            "closed": tally.closed,
            "legal_mass": _share(tally.legal_mass, tally.decisions),
            "smallest_legal_mass": tally.smallest_legal_mass if tally.decisions else None,
            "refused_removals": tally.refused_removals,
        }
    rest = session.seconds - (tally.model_ms + tally.planner_ms) / 1000
    out |= {
        "seconds": round(session.seconds, 3),
        "seconds_model": round(tally.model_ms / 1000, 3),
        "seconds_planner": round(tally.planner_ms / 1000, 3),
        "seconds_rest": round(rest, 3),
        "decisions_per_second": round(tally.decisions / max(session.seconds, 1e-9), 2),
    }
    return out


def tell(found: dict[str, Any]) -> None:
    """Print the summary for a person."""
    told = {name: value for name, value in found.items() if value is not None and value != ""}
    print_rows([], [(name.replace("_", " "), _value(value)) for name, value in told.items()])


def _lines(tally: Tally) -> dict[str, int]:
    """Return what the line store did, where a prompt had lines without an order."""
    if not tally.line_hits + tally.line_misses:
        return {}
    return {"line_hits": tally.line_hits, "line_misses": tally.line_misses, "tokens_saved": tally.tokens_saved}


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {_value(v)}" if not isinstance(v, dict) else f"{name}: {_value(v)}" for name, v in value.items()
        )
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
