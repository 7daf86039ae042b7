"""Holds the scores of a decision against each other: the legal rows, the choice, its margin, the ledger.

The rules of `kernel/choose/rule.py` are repeated here as equations between logged numbers. What a search did not
evaluate is NaN, and says nothing. Numbers are logged to six decimals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dispatch.log.encoding import shortly
from dispatch.log.objects import LedgerStep, LegalRow, RuleRecord
from dispatch.log.records import DecisionRecord
from kernel.choose.kinds import RuleName, Stop

MOST = 64
"""Of more legal opcodes than these only the best by score are logged, and their number."""
OFF = 1e-5
"""Numbers so close are equal: each is rounded, and some are computed from two or three others."""


def agree(logged: float, found: float, off: float = OFF) -> bool:
    """Whether two numbers are the same up to rounding; NaN is NaN, and what is infinite has to be equal."""
    if math.isfinite(logged) and math.isfinite(found):
        return abs(logged - found) <= off + 1e-9 * max(abs(logged), abs(found))
    return logged == found or (math.isnan(logged) and math.isnan(found))


def check_scores(record: DecisionRecord, rule: RuleRecord | None) -> None:
    """Raise ValueError where the legal rows, the choice and what is derived from them contradict each other.

    Args:
        rule: that of the session, whose parameters the scores follow from.
    """
    rows = record.legal
    if (record.preferred is None) != (record.preferred_by is None):
        raise ValueError("preferred_by: goes with preferred")
    if not (record.preferred_by or 0.0) >= 0:
        raise ValueError(f"preferred_by: {record.preferred_by} is below 0")
    if record.legal_mass is not None:
        _check_share("legal_mass", record.legal_mass)
    _check_counts(record)
    if rows is None:
        if lone := [name for name in ("chosen", "legal_count") if getattr(record, name) is not None]:
            raise ValueError(f"legal: missing beside {lone[0]}")
        return
    texts = [row.text for row in rows]
    if len(set(texts)) < len(texts) or not texts:
        raise ValueError("legal: the same text twice, or none at all")
    if record.preferred in texts:
        raise ValueError(f"preferred: {shortly(record.preferred)} is legal")
    if record.chosen is not None and record.chosen >= len(rows):
        raise ValueError(f"chosen: {record.chosen} of {len(rows)} legal rows")
    if record.legal_count is not None and len(rows) != min(record.legal_count, MOST):
        raise ValueError(f"legal_count: {record.legal_count}, and {len(rows)} rows")
    for at, row in enumerate(rows):
        for name, value in (("logprob", row.logprob), ("null", row.null)):
            if value is not None and value > OFF:
                raise ValueError(f"legal.{at}.{name}: {value} is above 0")
        if row.probability is not None and not math.isnan(row.probability):
            _check_share(f"legal.{at}.probability", row.probability)
        _check_score(at, row, record, rule)
    _check_shares(rows, record, rule)
    if record.chosen is not None:
        _check_margin(rows, record.chosen, record)


def _check_counts(record: DecisionRecord) -> None:
    chosen, forced = record.chosen_tokens, record.forced_tokens
    if chosen is not None and forced is not None and forced != max(0, len(record.ids) - chosen):
        raise ValueError(f"forced_tokens: {forced}, and {chosen} were chosen of {len(record.ids)} ids")
    if chosen is not None and record.stop is not None and record.stop not in tuple(Stop):
        raise ValueError(f"stop: {shortly(record.stop)} is none of {', '.join(Stop)}")
    if chosen is not None and record.stop is not None and (record.stop == Stop.FORCED) != (chosen == 0):
        raise ValueError(f"stop: {shortly(record.stop)}, and {chosen} tokens were a choice")


def _check_share(field: str, value: float) -> None:
    if not 0 <= value <= 1 + OFF:
        raise ValueError(f"{field}: {value} is no probability")


def _parameter(rule: RuleRecord | None, name: str, default: float) -> float:
    value: Any = (rule.parameters if rule else {}).get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"rule: {name} is {shortly(value)}, no number")
    return value


def _check_score(at: int, row: LegalRow, record: DecisionRecord, rule: RuleRecord | None) -> None:
    """Hold a score against the log-probabilities that it is computed from, where nothing else is added to it.

    The planner may add to it, and what was learned does; its file is not in the log.
    """
    if row.score is None or row.logprob is None or record.rule not in tuple(RuleName):
        return
    if rule is None or record.rule == RuleName.LEARNED or _parameter(rule, "planner_weight", 0.0):
        return
    found = row.logprob
    if row.null is not None and math.isfinite(row.null):
        found -= _parameter(rule, "calibration", 1.0) * row.null
    if not agree(row.score, found):
        raise ValueError(f"legal.{at}.score: {row.score}, its log-probabilities give {found:.6f}")


def _check_shares(rows: Sequence[LegalRow], record: DecisionRecord, rule: RuleRecord | None) -> None:
    """Hold the probabilities against the scores, and their sum against 1."""
    shares = [(at, row.score, row.probability) for at, row in enumerate(rows) if row.probability is not None]
    known = [(at, score, share) for at, score, share in shares if not math.isnan(share)]
    total = sum(share for *_, share in known)
    whole = record.legal_count == len(rows) == len(known) and record.rule in tuple(RuleName)
    if total > 1 + OFF * (1 + len(rows)) or (whole and total < 1 - OFF * (1 + len(rows))):
        raise ValueError(f"legal: the probabilities add up to {total:.6f}")
    if record.rule not in tuple(RuleName) or not known or (record.rule == RuleName.SAMPLE and rule is None):
        return
    heat = _parameter(rule, "temperature", 1.0) if record.rule == RuleName.SAMPLE else 1.0
    _, best, most = max(known, key=lambda each: each[2])
    if best is None or not math.isfinite(best) or not heat > 0:
        return
    for at, score, share in known:
        found = most if score is None else most * math.exp(min(0.0, (score - best) / heat))
        if not agree(share, found, OFF * (1 + 1 / heat)):
            raise ValueError(f"legal.{at}.probability: {share}, the scores give {found:.6f}")


def _check_margin(rows: Sequence[LegalRow], chosen: int, record: DecisionRecord) -> None:
    """Hold the margin against the scores, and the choice against the rule.

    A search knows an upper bound of what it did not evaluate, and an instruction with open arguments has the smallest
    margin on its way: there the margin is no larger than the scores say. `greedy` scores no opcode but one.
    """
    margin, scores = record.margin, [row.score for row in rows]
    if margin is None or any(score is None for score in scores):
        return
    if math.isnan(margin):
        raise ValueError("margin: nan")
    if record.settled:  # a person took one of the two best; the margin is between these
        known = [-math.inf if score is None or math.isnan(score) else score for score in scores]
        chosen = known.index(max(known))
    winner = scores[chosen]
    others = [score for at, score in enumerate(scores) if at != chosen and score is not None and not math.isnan(score)]
    if winner is None or not math.isfinite(winner):
        raise ValueError(f"legal.{chosen}.score: {winner} was chosen")
    found = winner - max(others, default=-math.inf)
    searched = any(score is not None and math.isnan(score) for score in scores)
    derived = not searched and record.legal_count in (None, len(rows)) and rows[chosen].text == record.text
    if not (agree(margin, found) if derived else margin <= found + OFF):
        raise ValueError(f"margin: {margin}, the scores give {found:.6f}")
    if record.rule in tuple(RuleName) and record.rule != RuleName.SAMPLE and not min(margin, found) >= -OFF:
        raise ValueError(f"chosen: {chosen} does not have the highest score")


def check_ledger(record: DecisionRecord) -> None:
    """Raise ValueError where the ledger is not that of the decoded ids."""
    before = -1
    for number, step in enumerate(record.ledger or ()):
        where = f"ledger.{number}"
        if not before < step.at < len(record.ids):
            raise ValueError(f"{where}.at: {step.at}, behind {before} and of {len(record.ids)} ids")
        before = step.at
        _check_step(where, step, record.ids[step.at])
    if record.ledger and record.legal_mass is not None and not agree(record.ledger[0].mass, record.legal_mass, 1e-3):
        raise ValueError(f"legal_mass: {record.legal_mass}, the ledger's first step has {record.ledger[0].mass}")


def _check_step(where: str, step: LedgerStep, taken: int) -> None:
    _check_share(f"{where}.mass", step.mass)
    rows = step.rows
    if len({row.id for row in rows}) < len(rows) or not any(row.id == taken and row.legal for row in rows):
        raise ValueError(f"{where}.rows: an id twice, or without the token {taken} that was taken")
    for at, row in enumerate(rows):
        if (row.text is None) == (row.hex is None):
            raise ValueError(f"{where}.rows.{at}: exactly one of text and hex")
        try:
            row.piece  # noqa: B018 - which is where hexadecimal is read
        except ValueError as error:
            raise ValueError(f"{where}.rows.{at}.hex: {shortly(row.hex)}: {error}") from error
        if row.rank is not None and row.rank <= max((above.rank or 0 for above in rows[:at]), default=0):
            raise ValueError(f"{where}.rows.{at}.rank: {row.rank}, and a row above it has one as high")
        if not row.logprob <= OFF:
            raise ValueError(f"{where}.rows.{at}.logprob: {row.logprob} is no log-probability")
    legal = [math.exp(row.logprob) for row in rows if row.legal]
    if len(legal) > step.legal or sum(legal) > step.mass + OFF * (1 + len(legal)):
        raise ValueError(f"{where}.legal: {step.legal} ids of mass {step.mass}, its rows have more")
