"""Makes decisions: gets the scores that a rule needs, compares them, says what came out.

one legal opcode            -> it is forced, and the model is not asked
the rule `greedy`           -> `greedy.walk`: one id after the other
the rule `learned`          -> `by_learned`: every opcode whole, behind one prompt, in one pass
a tree of up to 1024 tokens -> `score`: every legal opcode whole, behind all prompts, in one pass
more                        -> `search`: best first, until nothing else can win
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernel.choose.beyond import Beyond, beyond, looks, wider_tree
from kernel.choose.by_learned import choose_learned
from kernel.choose.decision import Comparison, Decision, decided
from kernel.choose.greedy import walk
from kernel.choose.null_cache import NullCache
from kernel.choose.nulls import NullPrompts
from kernel.choose.question import Question
from kernel.choose.rule import Floats, RuleName, finite
from kernel.choose.score import Scorer, Scores
from kernel.choose.search import BestFirst
from kernel.choose.verdict import judged
from kernel.errors import UsageError
from kernel.memory.listed import Listed
from kernel.memory.memory import Memory
from kernel.memory.passes import Work
from kernel.memory.tree import ScoreTree

_log = logging.getLogger(__name__)


class Chooser:
    """Decides questions on one memory."""

    def __init__(self, memory: Memory, nulls: NullCache | None = None) -> None:
        self.memory = memory
        self.scorer = Scorer(memory)
        self.nulls = NullPrompts(self.scorer, nulls or NullCache())
        self._told = False

    def choose(self, question: Question) -> Decision:
        """Choose one legal opcode.

        Raises:
            UsageError: `calibrated` over so many opcodes that the null prompt takes too long; `sample` over more
                opcodes than are scored whole.
            ContextError, LogitsError, BackendError: the session is as it was.
        """
        with self.memory.lock:
            return self._choose(self.as_read(question))

    def as_read(self, question: Question) -> Question:
        """Return the question as this memory can hold it: what a prompt shows as a set may have to become lists."""
        prompt = question.prompt
        if self.memory.backend.shares_tokens or not any(
            isinstance(each, Listed) for each in (prompt.main, *prompt.nulls)
        ):
            return question
        if not self._told:
            self._told = True
            _log.warning(
                "%s: its memory cannot hold a set, so options are read as lists in every rotated order",
                self.memory.backend.name,
            )
        return replace(question, prompt=prompt.as_lists())

    def _choose(self, question: Question) -> Decision:
        before, margin, seen = self.memory.cost, None, None
        if len(question.legal) == 1 and (question.judge is None or not looks(question)):
            comparison = self._forced(question)
        elif question.by.name is RuleName.GREEDY:
            comparison, margin = self._greedy(question)
        elif question.by.name is RuleName.LEARNED:
            comparison, seen = choose_learned(self.scorer, question)
        elif (tree := self.scorer.tree(question.opcodes, question.legal)) is not None:
            comparison, seen = self._whole(question, tree)
        else:
            comparison, margin = self._search(question)
        made = decided(question, comparison, self.memory.cost - before)
        return judged(question, made if margin is None else replace(made, margin=margin), seen)

    def _forced(self, question: Question) -> Comparison:
        zero, one = np.zeros(1), np.ones(1)
        return Comparison(question.legal.leaves(), zero, zero, None, one, 0, 1.0)

    def _greedy(self, question: Question) -> tuple[Comparison, float]:
        """Return the comparison, and the margin of the closest choice on the way."""
        walked = walk(self.memory, self.scorer.rows, question)
        leaves = question.legal.leaves()
        position = int(np.flatnonzero(leaves == walked.leaf)[0])
        raw = np.full(len(leaves), np.nan)
        raw[position] = walked.log_probability
        shares = np.where(np.isnan(raw), np.nan, np.exp(walked.log_share))
        return Comparison(leaves, raw, raw, None, shares, position, walked.mass), walked.margin

    def _whole(self, question: Question, tree: ScoreTree) -> tuple[Comparison, Beyond | None]:
        """Score all legal opcodes; return also what was seen beyond them, where that was asked for."""
        orders = question.orders
        wider = wider_tree(self.scorer, question, tree)
        nulls = self.nulls.of(question, tree, wider)
        parts = nulls.parts()
        for number, part in enumerate(parts, 1):
            work = Work((*orders, *part), tree, len(orders))
            scores = self.scorer.score(work, question.watch if number == len(parts) else None, wider)
            nulls.take(part, scores)
        comparison = self.compare(question, scores, slice(len(orders)), nulls.mean())
        if scores.wider is None:
            return comparison, None
        return comparison, beyond(question, comparison, scores.wider, nulls)

    def _search(self, question: Question) -> tuple[Comparison, float]:
        """Return the comparison, and by how much nothing else can be better."""
        if question.by.name is RuleName.SAMPLE:
            raise UsageError(f"{len(question.legal)} legal opcodes are too many to sample over; use 'exact' or fewer")
        leaves = np.sort(question.legal.leaves())
        null = self.nulls.of_all_legal(question, leaves)
        bonus = None
        if null is not None or (question.prior is not None and question.by.planner_weight):
            bonus = np.full(len(question.opcodes), -np.inf)
            bonus[leaves] = self._compared(question, leaves, np.zeros(len(leaves)), null)
        found = BestFirst(self.memory, self.scorer.rows, question, bonus).run()
        raw = np.full(len(leaves), np.nan)
        raw[np.searchsorted(leaves, list(found.known))] = list(found.known.values())
        scores = raw + bonus[leaves] if bonus is not None else raw
        position = int(np.searchsorted(leaves, found.best))
        # Shares are lower bounds: all that is still open could at most have this much.
        top = finite(float(scores[position]), len(scores))
        weights = np.exp(scores - top)
        shares = weights / (float(np.nansum(weights)) + found.open_share)
        return Comparison(leaves, scores, raw, null, shares, position, found.mass), top - found.runner_up

    def compare(self, question: Question, scores: Scores, orders: slice, null: Floats | None) -> Comparison:
        """Apply the rule to what was scored; `orders` are the rows of the question's prompts."""
        raw = scores.log_probabilities[orders].mean(axis=0)
        against = self._compared(question, scores.leaves, raw, null)
        shares = question.by.shares(against)
        position = question.by.pick(against, question.opcodes.trie.rank_of[scores.leaves], question.number)
        return Comparison(scores.leaves, against, raw, null, shares, position, scores.mass)

    @staticmethod
    def _compared(question: Question, leaves: NDArray[np.int32], raw: Floats, null: Floats | None) -> Floats:
        return question.by.compare(raw, null, None if question.prior is None else question.prior[leaves])
