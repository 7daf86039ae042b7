"""Says how a decision ended: gathers the evidence and asks the question's judge."""

from __future__ import annotations

import math
from dataclasses import replace

from kernel.choose.beyond import Beyond
from kernel.choose.decision import Decision, choices_of
from kernel.choose.outcome import Evidence, Outcome, gains
from kernel.choose.question import Question
from kernel.choose.rule import RuleName


def judged(question: Question, decision: Decision, seen: Beyond | None) -> Decision:
    """Return a decision with its evidence and its outcome.

    Args:
        seen: of all opcodes, where the question looked beyond the legal ones.
    """
    found = evidence(question, decision, seen)
    known = replace(decision, evidence=found)
    if seen is not None and seen.index is not None:
        known = replace(known, preferred=seen.index, preferred_by=seen.by)
    outcome = Outcome.CHOSEN if question.judge is None else question.judge.judge(found)
    return known if outcome is known.outcome else replace(known, outcome=outcome)


def instead(decision: Decision, position: int) -> Decision:
    """Return a decision with another legal opcode taken, by its place in the arrays; what was judged stays."""
    opcodes, index = decision.opcodes, int(decision.leaves[position])
    ids = tuple(opcodes.trie.sequence(index).tolist())
    choices = choices_of(opcodes.subset_of(decision.leaves.tolist()), ids)
    known = replace(decision, index=index, ids=ids, text=opcodes.labels[index])
    return replace(known, chosen_tokens=choices, forced_tokens=len(ids) - choices)


def evidence(question: Question, decision: Decision, seen: Beyond | None) -> Evidence:
    """Return what the scores of a decision say of it.

    A draw (`sample`) and a walk (`greedy`) compare no whole opcodes, so there the margin is not known.
    """
    by_scores = question.by.name not in (RuleName.SAMPLE, RuleName.GREEDY)
    top, total = gains(decision.raw, decision.null) if seen is None else (seen.top, seen.total)
    return Evidence(
        top=top,
        total=total,
        share=decision.probability,
        margin=decision.margin if by_scores else math.nan,
        mass=decision.legal_mass,
        beyond=0.0 if seen is None else seen.by,
        meant=decision.evidence.meant,
    )
