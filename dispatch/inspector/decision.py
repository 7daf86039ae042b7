"""One logged decision as the page shows it: tokens, whole opcodes, the ledger of every choosing step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dispatch.inspector.jsonable import Json, brief, clip, number, of_bytes, plain
from dispatch.inspector.lines import of_record, outcome_of
from dispatch.log.objects import EACH, LedgerStep, LegalRow, TokenRow
from dispatch.log.records import DecisionRecord
from kernel.text.attributes import CONTROL

if TYPE_CHECKING:
    from kernel.text.vocabulary import Vocabulary

UNKNOWN: Json = {"text": None, "hex": None}


def row(record: DecisionRecord) -> Json:
    """Return a decision as a row of a list."""
    seen = of_record(record)
    taken = record.taken
    return {
        "n": record.n,
        "cartridge": brief(record.cartridge),
        "said": brief(said(record)),
        "result": brief(record.failed or record.result),
        "request": None if record.request is None else brief(record.request),
        "margin": number(record.margin),
        "probability": None if taken is None else number(taken.probability),
        "ms": None if math.isnan(seen.ms) else seen.ms,
        "at_ms": record.at_ms,
        "flags": seen.flags,
        "outcome": seen.outcome,
    }


def decision(record: DecisionRecord, vocabulary: Vocabulary | None) -> Json:
    """Return a decision in full; what is not in its line (the board) is added by others.

    Args:
        vocabulary: of the model that chose, where it is here.
    """
    ledger = steps(record)
    return {
        "n": record.n,
        "cartridge": clip(record.cartridge),
        "said": clip(said(record)),
        "instruction": plain(record.instruction),
        "text": clip(record.text),
        "result": clip(record.result),
        "refused": record.refused,
        "failed": None if record.failed is None else clip(record.failed),
        "request": None if record.request is None else clip(record.request),
        "state": clip(record.state),
        "rule": record.rule,
        "margin": number(record.margin),
        "outcome": outcome_of(record),
        "close": plain(record.close),
        "confirmed": plain(record.confirmed),
        "settled": record.settled,
        "stop": record.stop,
        "flags": of_record(record).flags,
        "tokens": tokens(record.ids, record.ledger or (), vocabulary),
        "ledger": ledger,
        "options": options(record),
        "legal_count": record.legal_count,
        "chosen": record.chosen,
        "offered": [
            {
                "said": clip(repr(offer.instruction.instruction())),
                "score": number(offer.score),
                "note": clip(offer.note),
                "taken": offer.instruction == record.instruction,
            }
            for offer in record.offered or ()
        ],
        "preferred": None if record.preferred is None else clip(record.preferred),
        "preferred_by": number(record.preferred_by),
        "legal_mass": number(record.legal_mass),
        "counts": counts(record),
        "ms": {"model": record.model_ms, "planner": record.planner_ms, "at": record.at_ms},
        "extra": plain(record.model_extra or {}),
        "damage": None,
    }


def said(record: DecisionRecord) -> str:
    """Return the instruction as a person reads it."""
    return repr(record.instruction.instruction())


def counts(record: DecisionRecord) -> Json:
    """Return how much was read, kept and evaluated."""
    prompt = record.prompt
    return {
        "prompt": None if prompt is None else prompt.keep + len(prompt.new),
        "kept": None if prompt is None else prompt.keep,
        "evaluated": record.tokens_evaluated,
        "passes": record.passes,
        "chosen": record.chosen_tokens,
        "forced": record.forced_tokens,
        "rotations": len(record.rotations or ()),
        "nulls": len(record.nulls or ()),
    }


def tokens(ids: Sequence[int], ledger: Sequence[LedgerStep], vocabulary: Vocabulary | None) -> list[Json]:
    """Return the decoded ids as pieces; what has no step in the ledger was forced, where there is a ledger."""
    at = {step.at: place for place, step in enumerate(ledger)}
    found = []
    for place, token in enumerate(ids):
        step = ledger[at[place]] if place in at else None
        chosen = next((each for each in step.rows if each.id == token), None) if step is not None else None
        found.append(
            {
                "id": token,
                **piece(token, vocabulary, chosen),
                "forced": step is None and bool(ledger),
                "step": at.get(place),
                "logprob": None if chosen is None else number(chosen.logprob),
            }
        )
    return found


def piece(token: int, vocabulary: Vocabulary | None, logged: TokenRow | None = None) -> Json:
    """Return the bytes of an id and whether it is a control token."""
    if vocabulary is not None and token < len(vocabulary):
        control = bool(vocabulary.attributes[token] & CONTROL)
        return {**of_bytes(vocabulary.pieces[token]), "control": control}
    known = UNKNOWN if logged is None else {"text": logged.text, "hex": logged.hex}
    return {**known, "control": False}


def steps(record: DecisionRecord) -> list[Json]:
    """Return the ledger of a decision, step by step."""
    ledger = [step for step in record.ledger or () if step.at < len(record.ids)]
    ends = [*(step.at for step in ledger[1:]), len(record.ids)]
    pairs = zip(ledger, ends, strict=bool(ledger))
    return [step_told(step, record.ids[step.at], place, end) for place, (step, end) in enumerate(pairs)]


def step_told(step: LedgerStep, taken: int, place: int, next_at: int) -> Json:
    """Return one choosing step: the token taken and its strongest rivals, before and after the mask.

    Args:
        taken: the id that was chosen.
        place: of the step in the ledger.
        next_at: place of the next chosen token in the decision's ids, or their number.
    """
    ranks = ranks_of(step, taken)
    rows = [_ledger_row(each, ranks[each.id], step.mass, taken) for each in step.rows]
    return {
        "step": place,
        "at": step.at,
        "legal": step.legal,
        "mass": number(step.mass),
        "chosen_rank": ranks.get(taken),
        "forced_after": next_at - step.at - 1,
        "rows": rows,
    }


def forced_step(at: int) -> Json:
    """Return what there is to say of a token that had no alternative."""
    return {"step": None, "at": at, "legal": 1, "mass": None, "chosen_rank": None, "forced_after": 0, "rows": []}


def ranks_of(step: LedgerStep, taken: int) -> dict[int, int | None]:
    """Return the rank of each token of a step among the whole vocabulary, from 1, as far as it is certain.

    Older logs do not have it. There the rows are the token taken, the two strongest other legal ones, the two strongest
    that were removed, and the strongest of the rest: so nothing is missing above the weakest of the rest.
    """
    if any(row.rank is not None for row in step.rows):
        return {row.id: row.rank for row in step.rows}
    reserved = {taken}
    for legal in (True, False):
        reserved.update([row.id for row in step.rows if row.legal is legal and row.id != taken][:EACH])
    rest = [place for place, row in enumerate(step.rows) if row.id not in reserved]
    certain = rest[-1] if rest else -1
    return {row.id: place + 1 if place <= certain else None for place, row in enumerate(step.rows)}


def _ledger_row(row: TokenRow, rank: int | None, mass: float, taken: int) -> Json:
    before = math.exp(row.logprob) if row.logprob < 1 else math.nan
    after = (before / mass if mass > 0 else math.nan) if row.legal else 0.0
    return {
        "rank": rank,
        "id": row.id,
        "text": row.text,
        "hex": row.hex,
        "logprob": number(row.logprob),
        "before": number(before),
        "after": number(min(after, 1.0) if after == after else after),
        "state": "chosen" if row.id == taken else "legal" if row.legal else "removed",
    }


def options(record: DecisionRecord) -> list[Json]:
    """Return the legal opcodes with what was thought of each."""
    return [_option(each, place == record.chosen) for place, each in enumerate(record.legal or ())]


def _option(row: LegalRow, chosen: bool) -> Json:
    learned: Any = (row.model_extra or {}).get("learned", getattr(row, "learned", None))
    return {
        "text": clip(row.text),
        "body": clip(body(row.text)),
        "raw": number(row.logprob),
        "null": number(row.null),
        "score": number(row.score),
        "learned": number(learned) if isinstance(learned, int | float) else None,
        "probability": number(row.probability),
        "chosen": chosen,
    }


def body(text: str) -> str:
    """Return the first line of a wire text; the rest is the closer, which tells nothing apart.

    >>> body(" 0-0\\\\n@tetris.place\\\\n".replace("\\\\n", chr(10)))
    '0-0'
    """
    return text.strip().partition("\n")[0]
