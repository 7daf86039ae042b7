"""Which null prompts a decision has to evaluate, when, and over which opcodes.

A null prompt mostly stays the same from decision to decision, so it is evaluated once and what it said is kept
(`null_cache`). The policy:

- Null prompts of which nothing is known go into the pass of the decision, as many as it has sequences for.
- MANY or more of them (a guide has one for each command) are scored over every opcode before the decision: they then
  answer for any legal set, and for the next session from disk.
- One that shows a set is read in the pass of every decision: its lines are stored, so it costs little. Where the
  opcodes make few such sets (three of five keys), it comes again: then it is read once, alone, and kept. Which of the
  two depends on the question only, so that passes of one question have one shape, and its scores are the same to the
  last bit.
- Where the legal set is searched because it is too large to be scored whole, each null prompt is scored over all of it,
  once, in as many passes as that takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernel.choose.null_cache import MANY, NULLS_KEPT, NullCache
from kernel.choose.question import Question
from kernel.choose.rule import Floats
from kernel.choose.score import Scorer, Scores
from kernel.errors import UsageError
from kernel.memory.grow import grow
from kernel.memory.listed import Listed, Prompted
from kernel.memory.passes import Ids, Work
from kernel.memory.tree import ScoreTree
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset

WIDER = 64
"""Tokens that it may cost to score a null prompt over what is not legal now as well."""

LIMIT = 100_000
"""Tokens that a null prompt may cost, once: minutes for a small model on two cores."""


class NullPrompts:
    """What the null prompts of one scorer's decisions said."""

    def __init__(self, scorer: Scorer, cache: NullCache) -> None:
        self.scorer = scorer
        self.cache = cache
        self.at_once = max(1, scorer.memory.room.n_seq // 4)
        """How many null prompts go into one pass."""

    def of(self, question: Question, tree: ScoreTree, wider: ScoreTree | None) -> NullReading:
        """Return the null prompts of a decision whose legal set is scored whole.

        Args:
            tree: of the legal opcodes.
            wider: of all opcodes, where these are scored too.
        """
        return NullReading(self, question, tree, wider)

    def of_all_legal(self, question: Question, leaves: NDArray[np.int32]) -> Floats | None:
        """Return the mean over the null prompts of the log-probability of every legal opcode; None without any.

        Args:
            leaves: the legal opcodes, in the order of the result.

        Raises:
            UsageError: it would take more than LIMIT tokens.
        """
        if not question.nulls:
            return None
        return _mean([self._of_all_legal(question, null, leaves) for null in question.nulls])

    def _of_all_legal(self, question: Question, null: Prompted, leaves: NDArray[np.int32]) -> Floats:
        opcodes, legal = question.opcodes, question.legal
        kept = comes_again(opcodes, null)
        known = self.cache.recall(opcodes, legal, null) if kept else None
        if known is None:
            tree = grow(opcodes.trie, legal, opcodes.scored, LIMIT)
            if tree is None:
                raise UsageError(
                    f"the null prompt of {len(legal)} legal opcodes needs more than {LIMIT} tokens; "
                    "use 'exact', which looks into few of them, or fewer"
                )
            scores = self.scorer.score(Work((null,), tree))
            known = scores.log_probabilities[0][np.argsort(scores.leaves)]
            if kept:
                self.cache.remember(opcodes, legal, null, known)
        return known

    def recall(
        self, opcodes: OpcodeSet, legal: Subset, tree: ScoreTree, nulls: Sequence[Prompted]
    ) -> dict[Prompted, Floats]:
        """Return what is known of null prompts over a legal set that has this tree."""
        kept = [null for null in nulls if comes_again(opcodes, null)]
        found = {null: self.cache.recall(opcodes, legal, null, tree) for null in kept}
        return {null: sums for null, sums in found.items() if sums is not None}

    def read_many(self, question: Question, missing: Sequence[Ids]) -> None:
        """Score null prompts over every opcode, or take what was kept of them on disk.

        Where the set is too large for that, nothing is read.
        """
        opcodes, orders = question.opcodes, question.orders
        tree = self.scorer.tree(opcodes, opcodes.everything)
        if tree is None or self.cache.load(opcodes, tree, missing):
            return
        for at in range(0, len(missing), self.at_once):
            part = missing[at : at + self.at_once]
            scores = self.scorer.score(Work((*orders, *part), tree, len(orders)))
            self.remember(opcodes, opcodes.everything, part, scores)
        self.cache.save(opcodes, missing)

    def read_alone(self, question: Question, tree: ScoreTree, nulls: Sequence[Prompted]) -> None:
        """Score null prompts in a pass each: over every opcode where that costs little more than the legal ones."""
        opcodes, legal = question.opcodes, question.legal
        whole = self.scorer.tree(opcodes, opcodes.everything)
        if whole is not None and len(whole.tokens) <= len(tree.tokens) + WIDER:
            tree, legal = whole, opcodes.everything
        for null in nulls:
            self.remember(opcodes, legal, [null], self.scorer.score(Work((null,), tree)))

    def remember(
        self, opcodes: OpcodeSet, legal: Subset, nulls: Sequence[Prompted], scores: Scores
    ) -> dict[Prompted, Floats]:
        """Keep and return what the last prompts of a pass said, which are these null prompts."""
        first = len(scores.values) - len(nulls)
        behind = scores.log_probabilities[first:]
        for null, sums, values in zip(nulls, behind, scores.values[first:], strict=True):
            if not comes_again(opcodes, null):
                continue
            if len(legal) == len(opcodes):
                self.cache.remember_whole(opcodes, null, scores.tree, values)
            else:
                self.cache.remember(opcodes, legal, null, sums)
        return dict(zip(nulls, behind, strict=True))


class NullReading:
    """The null prompts of one decision: those that are known, and those that go into its passes."""

    def __init__(self, nulls: NullPrompts, question: Question, tree: ScoreTree, wider: ScoreTree | None) -> None:
        self._nulls, self._question, self._tree, self._wider = nulls, question, tree, wider
        self._known = self._recall(tree)
        missing = self._missing(self._known)
        again = [null for null in missing if isinstance(null, Listed) and comes_again(question.opcodes, null)]
        if again:
            nulls.read_alone(question, tree, again)
        many = [null for null in missing if not isinstance(null, Listed)]
        if len(many) >= MANY:
            nulls.read_many(question, many)
        self._known = self._recall(tree)
        self._known_wider = self._recall_wider(wider) if wider is not None else {}
        # what is known of the legal ones alone does not do where all are scored
        self._to_read = self._missing(self._known if wider is None else self._known_wider)

    def parts(self) -> list[tuple[Prompted, ...]]:
        """Return the null prompts that go into each pass of the decision; there is one pass at least."""
        at_once = self._nulls.at_once
        return [tuple(self._to_read[at : at + at_once]) for at in range(0, max(1, len(self._to_read)), at_once)]

    def take(self, part: Sequence[Prompted], scores: Scores) -> None:
        """Keep what a pass said of its null prompts."""
        opcodes = self._question.opcodes
        self._known |= self._nulls.remember(opcodes, self._question.legal, part, scores)
        if scores.wider is not None:
            self._known_wider |= self._nulls.remember(opcodes, opcodes.everything, part, scores.wider)

    def mean(self) -> Floats | None:
        """Return the mean log-probability of each leaf of the tree; None where the rule asks for no null prompt."""
        wanted = self._question.nulls
        return _mean([self._known[null] for null in wanted]) if wanted else None

    def wider_mean(self, wider: ScoreTree) -> Floats | None:
        """Return the same over all opcodes; zeros where no null prompt is asked for, None where one is not known."""
        wanted = self._question.nulls
        if self._missing(self._known_wider):
            return None
        return _mean([self._known_wider[null] for null in wanted]) if wanted else np.zeros(len(wider.leaves))

    def _recall(self, tree: ScoreTree) -> dict[Prompted, Floats]:
        return self._nulls.recall(self._question.opcodes, self._question.legal, tree, self._question.nulls)

    def _recall_wider(self, wider: ScoreTree) -> dict[Prompted, Floats]:
        opcodes = self._question.opcodes
        return self._nulls.recall(opcodes, opcodes.everything, wider, self._question.nulls)

    def _missing(self, known: dict[Prompted, Floats]) -> list[Prompted]:
        return [null for null in dict.fromkeys(self._question.nulls) if null not in known]


def comes_again(opcodes: OpcodeSet, null: Prompted) -> bool:
    """Whether a null prompt is worth keeping: a list is, a set where so many lines of these opcodes make few sets."""
    return not isinstance(null, Listed) or math.comb(len(opcodes), len(null.lines)) <= NULLS_KEPT


def _mean(columns: Sequence[Floats]) -> Floats:
    mean: Floats = np.mean(columns, axis=0)
    return mean
