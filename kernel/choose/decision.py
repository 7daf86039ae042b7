"""A decision: what came out of one choice, with all that is needed to explain it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.choose.kinds import TOLERANCE as TOLERANCE
from kernel.choose.kinds import Outcome
from kernel.choose.kinds import Stop as Stop
from kernel.choose.outcome import Evidence
from kernel.choose.question import Question
from kernel.choose.rule import Floats
from kernel.memory.listed import Prompted
from kernel.memory.passes import Cost
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset


@dataclass(frozen=True)
class Comparison:
    """The scores of the legal opcodes and which of them won; what a decision is made of.

    The fields are those of `Decision`; `position` is the winner's place in the arrays, `meant` as in `Evidence`.
    """

    leaves: NDArray[np.int32]
    scores: Floats
    raw: Floats
    null: Floats | None
    shares: Floats
    position: int
    mass: float
    meant: float = math.nan

    @property
    def index(self) -> int:
        """Opcode index of the winner."""
        return int(self.leaves[self.position])

    @property
    def margin(self) -> float:
        """How far the winner is ahead of the second; infinite where nothing else was scored."""
        others = np.delete(self.scores, self.position)
        others = others[~np.isnan(others)]
        return float(self.scores[self.position] - others.max()) if len(others) else float("inf")


@dataclass(frozen=True)
class Decision:
    """One choice among the legal opcodes of one step.

    The arrays have one entry each legal opcode, in the order of `leaves` (opcode indices). A log-probability is
    summed from the first branch to the end of the opcode's body, over the full vocabulary; NaN where a search
    proved that the opcode cannot win and did not evaluate it.

    Attributes:
        index: position of the chosen opcode in its set.
        ids: its token ids.
        scores: what the rule compared; the highest wins, ties go to the first in id order.
        raw, null: log-probabilities behind the prompt and (mean) behind the null prompts, or None.
        shares: probability of each legal opcode under the rule; they add up to 1 (to less, after a search).
        margin: score of the winner minus that of the second.
        legal_mass: probability that the full vocabulary gave to the legal ids at the first branch.
        chosen_tokens, forced_tokens: how many of `ids` were a choice, and how many had no alternative.
        prompt, nulls, rotations: ids that the model read; `Listed` where it was shown a set.
        passes, tokens_evaluated: cost in calls of llama_decode and tokens, null prompts included.
        line_hits, line_misses: lines without an order that were stored, and that had to be evaluated.
        tokens_saved: tokens of what was stored.
        preferred: index of an opcode that scores higher than the chosen one and is not legal now; None where there is
            none, or nobody asked.
        preferred_by: by how much.
        outcome: how it ended; `chosen` unless a judge was asked. `index` is the best legal opcode all the same.
        evidence: what a judge goes by.
    """

    index: int
    text: str
    ids: tuple[int, ...]
    rule: str
    leaves: NDArray[np.int32]
    scores: NDArray[np.float64]
    raw: NDArray[np.float64]
    null: NDArray[np.float64] | None
    shares: NDArray[np.float64]
    margin: float
    legal_mass: float
    chosen_tokens: int
    forced_tokens: int
    passes: int
    tokens_evaluated: int
    stop: Stop
    opcodes: OpcodeSet = field(repr=False, compare=False)
    refused_removals: int = 0
    line_hits: int = 0
    line_misses: int = 0
    tokens_saved: int = 0
    prompt: Prompted = field(default=(), repr=False)
    nulls: tuple[Prompted, ...] = field(default=(), repr=False)
    rotations: tuple[Prompted, ...] = field(default=(), repr=False)
    preferred: int | None = None
    preferred_by: float = 0.0
    outcome: Outcome = Outcome.CHOSEN
    evidence: Evidence = field(default_factory=Evidence)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Label of each legal opcode (its text, unless it has another), in the order of the arrays."""
        return tuple(self.opcodes.labels[leaf] for leaf in self.leaves.tolist())

    @property
    def best_two(self) -> list[int]:
        """Where the two highest scores stand in the arrays, best first, of equal ones the first in id order."""
        scores = np.nan_to_num(self.scores, nan=-np.inf)
        order = np.lexsort((self.opcodes.trie.rank_of[self.leaves], -scores))
        return [int(place) for place in order[:2]]

    @property
    def close(self) -> tuple[str, ...]:
        """Labels of the two best where the outcome is `unsure`, the better one first; else nothing."""
        return tuple(self.texts[at] for at in self.best_two) if self.outcome is Outcome.UNSURE else ()

    @property
    def preferred_text(self) -> str | None:
        """Label of the preferred opcode, if there is one."""
        return None if self.preferred is None else self.opcodes.labels[self.preferred]

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """Probability of every legal opcode under the rule, the most probable first."""
        order = np.argsort(-np.nan_to_num(self.shares, nan=-1.0), kind="stable")
        return {self.texts[i]: float(self.shares[i]) for i in order.tolist()}

    @property
    def probability(self) -> float:
        """Probability of the chosen opcode under the rule."""
        return float(self.shares[self.position])

    @cached_property
    def position(self) -> int:
        """Where the chosen opcode stands in the arrays."""
        return int(np.flatnonzero(self.leaves == self.index)[0])


def decided(question: Question, comparison: Comparison, cost: Cost) -> Decision:
    """Return the decision that a comparison means."""
    opcodes, index = question.opcodes, comparison.index
    ids = tuple(opcodes.trie.sequence(index).tolist())
    choices = choices_of(question.legal, ids)
    return Decision(
        index=index,
        text=opcodes.labels[index],
        ids=ids,
        rule=str(question.by.name),
        leaves=comparison.leaves,
        scores=comparison.scores,
        raw=comparison.raw,
        null=comparison.null,
        shares=comparison.shares,
        margin=comparison.margin,
        legal_mass=comparison.mass,
        chosen_tokens=choices,
        forced_tokens=len(ids) - choices,
        passes=cost.passes,
        tokens_evaluated=cost.tokens,
        stop=Stop.COMPLETE if choices else Stop.FORCED,
        opcodes=opcodes,
        refused_removals=cost.refused_removals,
        line_hits=cost.line_hits,
        line_misses=cost.line_misses,
        tokens_saved=cost.tokens_saved,
        prompt=question.prompt.main,
        nulls=question.prompt.nulls,
        rotations=question.prompt.rotations,
        evidence=Evidence(meant=comparison.meant),
    )


def choices_of(legal: Subset, ids: tuple[int, ...]) -> int:
    """Return at how many places along a path more than one id was legal."""
    trie = legal.trie
    node, depth, count = 0, 0, 0
    while True:
        edges = legal.legal_edges(node)
        count += len(edges) > 1
        firsts = trie.edge_ids[edges]
        edge = int(edges[int(np.searchsorted(firsts, ids[depth]))])
        if trie.edge_child[edge] < 0:
            return count
        depth += len(trie.tail(edge))
        node = int(trie.edge_child[edge])
