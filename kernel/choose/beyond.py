"""Looks beyond what is legal: scores every opcode in the same pass, to know what a request really asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernel.choose.decision import Comparison
from kernel.choose.nulls import NullReading
from kernel.choose.outcome import gains
from kernel.choose.question import Question
from kernel.choose.rule import RuleName
from kernel.choose.score import Scorer, Scores
from kernel.memory.listed import cells_of
from kernel.memory.tree import ScoreTree

WIDER = 64
"""Tokens a prompt that it may cost to see what is not legal as well, where nobody judges by it."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """What every opcode has, legal or not.

    Attributes:
        index: of the opcode that scores higher than the winner and is not legal; None where there is none.
        by: how much higher.
        top, total: as in `Evidence`.
    """

    index: int | None
    by: float
    top: float
    total: float


def looks(question: Question) -> bool:
    """Return whether a question asks to look beyond what is legal, and its rule compares what that takes."""
    fit = question.by.name not in (RuleName.SAMPLE, RuleName.GREEDY) and not question.by.planner_weight
    return question.beyond and fit and len(question.legal) < len(question.opcodes)


def wider_tree(scorer: Scorer, question: Question, tree: ScoreTree) -> ScoreTree | None:
    """Return the tree of all opcodes where it can be scored in the same passes; None where it cannot, or says no more.

    It has to fit into the memory certainly, and where nobody judges by it, it may cost WIDER more tokens a prompt.
    """
    if not looks(question):
        return None
    whole = scorer.tree(question.opcodes, question.opcodes.everything)
    if whole is None or (question.judge is None and len(whole.tokens) > len(tree.tokens) + WIDER):
        return None
    prompts = question.orders
    needed = sum(map(cells_of, prompts)) + len(prompts) * (len(whole.tokens) + whole.longest)
    return whole if needed <= scorer.memory.room.n_ctx else None


def beyond(question: Question, comparison: Comparison, scores: Scores, nulls: NullReading) -> Beyond | None:
    """Return what was seen of all opcodes; None where a null prompt was not read over all of them.

    Args:
        comparison: of the legal opcodes.
        scores: of all opcodes.
    """
    null = nulls.wider_mean(scores.tree)
    if null is None:
        return None
    raw = scores.log_probabilities[: len(question.orders)].mean(axis=0)
    against = question.by.compare(raw, null)
    best = int(np.argmax(against))
    by = float(against[best] - against[np.flatnonzero(scores.leaves == comparison.index)[0]])
    index = int(scores.leaves[best])
    ahead = by > 0 and index not in comparison.leaves
    return Beyond(index if ahead else None, by if ahead else 0.0, *gains(raw, null if question.nulls else None))
