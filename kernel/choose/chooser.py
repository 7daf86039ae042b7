"""Makes a decision: asks for the scores that a rule needs, combines them, picks. Knows no game and no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernel.choose.decision import Decision, Stop
from kernel.choose.greedy import walk
from kernel.choose.nulls import MANY, Nulls
from kernel.choose.rule import Rule, RuleName
from kernel.choose.score import Scorer, Scores
from kernel.choose.search import BestFirst
from kernel.errors import LogitsError, NoLegalOpcodeError, UsageError
from kernel.memory.memory import Cost, Memory
from kernel.memory.rows import Watch
from kernel.memory.tree import ScoreTree, grow
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset

Floats = NDArray[np.float64]
Ids = tuple[int, ...]

WIDER = 64
"""Tokens a prompt that it may cost to see what is not legal as well."""

NULL_LIMIT = 100_000
"""Tokens that a null prompt may cost, once: minutes for a small model on two cores."""


class Chooser:
    """Applies rules on one memory. Remembers what null prompts said, so one that does not vary costs nothing."""

    def __init__(self, memory: Memory, nulls: Nulls | None = None) -> None:
        self.memory = memory
        self.scorer = Scorer(memory)
        self._nulls = nulls or Nulls()

    def choose(
        self,
        opcodes: OpcodeSet,
        subset: Subset,
        prompt: Sequence[int],
        nulls: Sequence[Sequence[int]] = (),
        rule: Rule | None = None,
        *,
        prior: Floats | None = None,
        number: int = 0,
        rotations: Sequence[Sequence[int]] = (),
        watch: Watch | None = None,
        beyond: bool = False,
    ) -> Decision:
        """Choose one legal opcode.

        Args:
            prompt: ids of the whole prompt; what is equal to the last one's beginning is not evaluated again.
            nulls: ids of the null prompts; needed by `calibrated` only.
            prior: float64, shape (n_leaves,): the planner's scores by opcode index, NaN where it has none.
            number: of the decision, for `sample`.
            rotations: ids of the prompt with its options in other orders; `calibrated` averages over all orders
                where the set is small enough to score whole.
            watch: sees the rows of the choosing steps, chosen or not.
            beyond: also find out whether the model would rather have an opcode that is not legal now, where all of
                them can be scored in the same pass for at most WIDER tokens more a prompt.

        Raises:
            UsageError: `calibrated` without a null prompt, or over so many opcodes that the null takes too long;
                `sample` over more opcodes than are scored whole.
            NoLegalOpcodeError, ContextError, LogitsError, BackendError: the session is as it was.
        """
        rule = rule or Rule(RuleName.CALIBRATED if nulls else RuleName.EXACT)
        if rule.name is RuleName.CALIBRATED and not nulls:
            raise UsageError("the rule 'calibrated' needs at least one null prompt; give one or use 'exact'")
        if subset.trie is not opcodes.trie:
            raise NoLegalOpcodeError("the legal set belongs to another set of opcodes")
        if len(subset) == 1:
            return self._forced(opcodes, subset, rule)
        if rule.name is RuleName.GREEDY:
            return self._greedy(opcodes, subset, prompt, rule, watch)
        tree = self.scorer.tree(opcodes, subset)
        if tree is None:
            return self._search(opcodes, subset, prompt, nulls, rule, prior, watch)
        prompts = [prompt, *rotations]
        wider = self._wider(opcodes, subset, tree, rule, prompts) if beyond else None
        return self._whole(opcodes, subset, tree, prompts, nulls, rule, prior, number, watch, wider)

    def _forced(self, opcodes: OpcodeSet, subset: Subset, rule: Rule) -> Decision:
        leaves = subset.leaves()
        one = np.zeros(1)
        return self._decision(opcodes, subset, rule, leaves, one, one, None, np.ones(1), 0, 1.0, Cost())

    # -- the whole tree ------------------------------------------------------------------------------------------

    def _whole(
        self,
        opcodes: OpcodeSet,
        subset: Subset,
        tree: ScoreTree,
        prompts: Sequence[Sequence[int]],
        nulls: Sequence[Sequence[int]],
        rule: Rule,
        prior: Floats | None,
        number: int,
        watch: Watch | None,
        wider: ScoreTree | None,
    ) -> Decision:
        wanted = [tuple(null) for null in nulls] if rule.name is RuleName.CALIBRATED else []
        orders = prompts if wanted else prompts[:1]
        before = self.memory.cost
        said, missing = self._recalled(opcodes, subset, tree, wanted)
        if len(missing) >= MANY:
            self._read_many(opcodes, orders, missing)
            said, missing = self._recalled(opcodes, subset, tree, wanted)
        if wider is not None:  # what is known of the legal ones alone does not do
            missing = self._recalled(opcodes, opcodes.everything, wider, wanted)[1]
        while True:
            part, missing = missing[: self._at_once], missing[self._at_once :]
            scores = self.scorer.score([*orders, *part], tree, None if missing else watch, len(orders), wider)
            said |= self._remembered(opcodes, subset, tree, part, scores)
            if wider is not None and scores.wider is not None:
                self._remembered(opcodes, opcodes.everything, wider, part, scores.wider)
            if not missing:
                break
        raw = scores.log_probabilities[: len(orders)].mean(axis=0)
        null = np.mean([said[ids] for ids in wanted], axis=0) if wanted else None
        compared = _combined(raw, null, rule, _of(prior, scores.leaves))
        shares = _softmax(compared / rule.temperature if rule.name is RuleName.SAMPLE else compared)
        if rule.name is RuleName.SAMPLE:
            position = int(np.random.default_rng([rule.seed, number]).choice(len(shares), p=shares))
        else:
            position = _first_best(compared, opcodes, scores.leaves)
        decision = self._decision(
            opcodes,
            subset,
            rule,
            scores.leaves,
            compared,
            raw,
            null,
            shares,
            position,
            scores.mass,
            self.memory.cost - before,
        )
        if wider is None or scores.wider is None:
            return decision
        return self._compared_beyond(decision, opcodes, wider, scores.wider, len(orders), wanted, rule)

    def _wider(
        self, opcodes: OpcodeSet, subset: Subset, tree: ScoreTree, rule: Rule, prompts: Sequence[Sequence[int]]
    ) -> ScoreTree | None:
        """Return the tree of all opcodes, if it says more, is not much larger and certainly fits into the memory."""
        if len(subset) == len(opcodes) or rule.name is RuleName.SAMPLE or rule.planner_weight:
            return None
        whole = self.scorer.tree(opcodes, opcodes.everything)
        if whole is None or len(whole.tokens) > len(tree.tokens) + WIDER:
            return None
        needed = sum(map(len, prompts)) + len(prompts) * (len(whole.tokens) + whole.longest)
        return whole if needed <= self.memory.backend.n_ctx else None

    def _compared_beyond(
        self,
        decision: Decision,
        opcodes: OpcodeSet,
        wider: ScoreTree,
        scores: Scores,
        orders: int,
        nulls: Sequence[Ids],
        rule: Rule,
    ) -> Decision:
        """Say whether an opcode that is not legal scores higher than the chosen one."""
        said, missing = self._recalled(opcodes, opcodes.everything, wider, nulls)
        if missing:
            return decision
        null = np.mean([said[ids] for ids in nulls], axis=0) if nulls else None
        compared = _combined(scores.log_probabilities[:orders].mean(axis=0), null, rule, None)
        best = int(np.argmax(compared))
        by = float(compared[best] - compared[np.flatnonzero(scores.leaves == decision.index)[0]])
        index = int(scores.leaves[best])
        if not by > 0 or index in decision.leaves:
            return decision
        return replace(decision, preferred=index, preferred_by=by)

    def _recalled(
        self, opcodes: OpcodeSet, subset: Subset, tree: ScoreTree, nulls: Sequence[Ids]
    ) -> tuple[dict[Ids, Floats], list[Ids]]:
        """Return what is known of null prompts, and those of which nothing is."""
        found = {null: self._nulls.recall(opcodes, subset, null, tree) for null in nulls}
        said = {null: sums for null, sums in found.items() if sums is not None}
        return said, [null for null in found if null not in said]

    @property
    def _at_once(self) -> int:
        """How many null prompts go into one pass: those that it has no sequences for go before."""
        return max(1, self.memory.backend.n_seq // 4)

    def _read_many(self, opcodes: OpcodeSet, prompts: Sequence[Sequence[int]], nulls: Sequence[Ids]) -> None:
        """Score null prompts over every opcode, or take what was kept of them: they then answer for any legal set.

        Where the set is too large for that, nothing is read.
        """
        tree = self.scorer.tree(opcodes, opcodes.everything)
        if tree is None or self._nulls.load(opcodes, tree, nulls):
            return
        for at in range(0, len(nulls), self._at_once):
            part = nulls[at : at + self._at_once]
            scores = self.scorer.score([*prompts, *part], tree, keep=len(prompts))
            self._remembered(opcodes, opcodes.everything, tree, part, scores)
        self._nulls.save(opcodes, nulls)

    def _remembered(
        self, opcodes: OpcodeSet, subset: Subset, tree: ScoreTree, nulls: Sequence[Ids], scores: Scores
    ) -> dict[Ids, Floats]:
        """Remember and return what the last prompts of a pass said, which are these null prompts."""
        behind = scores.log_probabilities[len(scores.values) - len(nulls) :]
        values = scores.values[len(scores.values) - len(nulls) :]
        for null, sums, read in zip(nulls, behind, values, strict=True):
            self._nulls.remember(opcodes, subset, null, sums, tree, read)
        return dict(zip(nulls, behind, strict=True))

    # -- too many to score whole ---------------------------------------------------------------------------------

    def _search(
        self,
        opcodes: OpcodeSet,
        subset: Subset,
        prompt: Sequence[int],
        nulls: Sequence[Sequence[int]],
        rule: Rule,
        prior: Floats | None,
        watch: Watch | None,
    ) -> Decision:
        if rule.name is RuleName.SAMPLE:
            raise UsageError(f"{len(subset)} legal opcodes are too many to sample over; use 'exact' or fewer")
        before = self.memory.cost
        leaves = np.sort(subset.leaves())
        null = None
        if rule.name is RuleName.CALIBRATED:
            null = np.mean([self._null_of_all(opcodes, subset, n, leaves) for n in nulls], axis=0)
        bonus = None
        if null is not None or (prior is not None and rule.planner_weight):
            bonus = np.full(len(opcodes), -np.inf)
            bonus[leaves] = _combined(np.zeros(len(leaves)), null, rule, _of(prior, leaves))
        found = BestFirst(self.memory, self.scorer.rows, opcodes, subset, bonus, watch).run(list(prompt))
        raw = np.full(len(leaves), np.nan)
        raw[np.searchsorted(leaves, list(found.known))] = list(found.known.values())
        scores = raw + bonus[leaves] if bonus is not None else raw
        position = int(np.searchsorted(leaves, found.best))
        # Shares are lower bounds: all that is still open could at most have this much.
        top = float(scores[position])
        if not np.isfinite(top):
            raise LogitsError(f"none of {len(scores)} legal opcodes has a finite log-probability")
        weights = np.exp(scores - top)
        total = float(np.nansum(weights)) + found.open_share
        decision = self._decision(
            opcodes, subset, rule, leaves, scores, raw, null, weights / total, position, found.mass,
            self.memory.cost - before,
        )  # fmt: skip
        return replace(decision, margin=top - found.runner_up)

    def _null_of_all(
        self, opcodes: OpcodeSet, subset: Subset, null: Sequence[int], leaves: NDArray[np.int32]
    ) -> Floats:
        """Return the null's log-probability of every legal opcode, evaluated once in as many passes as it takes."""
        known = self._nulls.recall(opcodes, subset, null)
        if known is None:
            tree = grow(opcodes.trie, subset, opcodes.scored, NULL_LIMIT)
            if tree is None:
                raise UsageError(
                    f"the null prompt of {len(subset)} legal opcodes needs more than {NULL_LIMIT} tokens; "
                    "use 'exact', which looks into few of them, or fewer"
                )
            scores = self.scorer.score([null], tree)
            known = scores.log_probabilities[0][np.argsort(scores.leaves)]
            self._nulls.remember(opcodes, subset, null, known)
        return known

    # -- the baseline --------------------------------------------------------------------------------------------

    def _greedy(
        self, opcodes: OpcodeSet, subset: Subset, prompt: Sequence[int], rule: Rule, watch: Watch | None
    ) -> Decision:
        before = self.memory.cost
        walked = walk(self.memory, self.scorer.rows, opcodes.trie, subset, list(prompt), watch)
        leaves = subset.leaves()
        position = int(np.flatnonzero(leaves == walked.leaf)[0])
        raw = np.full(len(leaves), np.nan)
        raw[position] = walked.log_probability
        shares = np.where(np.isnan(raw), np.nan, np.exp(walked.log_share))
        cost = self.memory.cost - before
        decision = self._decision(opcodes, subset, rule, leaves, raw, raw, None, shares, position, walked.mass, cost)
        return replace(decision, margin=walked.margin)

    def _decision(
        self,
        opcodes: OpcodeSet,
        subset: Subset,
        rule: Rule,
        leaves: NDArray[np.int32],
        scores: Floats,
        raw: Floats,
        null: Floats | None,
        shares: Floats,
        position: int,
        mass: float,
        cost: Cost,
    ) -> Decision:
        index = int(leaves[position])
        ids = tuple(opcodes.trie.sequence(index).tolist())
        choices = _choices(subset, ids)
        others = np.delete(scores, position)
        others = others[~np.isnan(others)]
        return Decision(
            index=index,
            text=opcodes.labels[index],
            ids=ids,
            rule=str(rule.name),
            leaves=leaves,
            scores=scores,
            raw=raw,
            null=null,
            shares=shares,
            margin=float(scores[position] - others.max()) if len(others) else float("inf"),
            legal_mass=mass,
            chosen_tokens=choices,
            forced_tokens=len(ids) - choices,
            passes=cost.passes,
            tokens_evaluated=cost.tokens,
            stop=Stop.COMPLETE if choices else Stop.FORCED,
            opcodes=opcodes,
            refused_removals=cost.refused_removals,
        )


def _of(prior: Floats | None, leaves: NDArray[np.int32]) -> Floats | None:
    return None if prior is None else prior[leaves]


def _combined(raw: Floats, null: Floats | None, rule: Rule, prior: Floats | None) -> Floats:
    """Return what the rule compares.

    An opcode that is impossible (-inf) behind the prompt stays so, whatever the null says; one that only the null
    finds impossible is compared as if the null had nothing against it. The planner's scores are centred and scaled
    to its best and worst being 1 apart, so that a weight means log-probability; options it does not know get its worst.
    """
    scores = raw.copy()
    if null is not None:
        finite = np.isfinite(null)
        scores[finite] -= rule.calibration * null[finite]
    if prior is not None and rule.planner_weight:
        known = prior[np.isfinite(prior)]
        if len(known):
            span = float(known.max() - known.min()) or 1.0
            filled = np.where(np.isfinite(prior), prior, known.min())
            scores = scores + rule.planner_weight * (filled - known.max()) / span
    return scores


def _softmax(scores: Floats) -> Floats:
    top = float(np.max(scores, initial=-np.inf))
    if not np.isfinite(top):
        raise LogitsError(f"none of {len(scores)} legal opcodes has a finite log-probability")
    weights = np.exp(scores - top)
    out: Floats = weights / weights.sum()
    return out


def _first_best(scores: Floats, opcodes: OpcodeSet, leaves: NDArray[np.int32]) -> int:
    """Return the position of the highest score; of equal ones that which comes first in the order of ids."""
    best = np.flatnonzero(scores == scores.max())
    if len(best) == 1:
        return int(best[0])
    return int(min(best.tolist(), key=lambda n: int(opcodes.trie.rank_of[leaves[n]])))


def _choices(subset: Subset, ids: tuple[int, ...]) -> int:
    """Return at how many places along a path more than one id was legal."""
    trie = subset.trie
    node, depth, count = 0, 0, 0
    while True:
        edges = subset.legal_edges(node)
        count += len(edges) > 1
        firsts = trie.edge_ids[edges]
        edge = int(edges[int(np.searchsorted(firsts, ids[depth]))])
        if trie.edge_child[edge] < 0:
            return count
        depth += len(trie.tail(edge))
        node = int(trie.edge_child[edge])
