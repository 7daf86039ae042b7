"""The baseline: walk the trie, take the most probable legal id at each branch. Scores no opcode whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.choose.question import Question
from kernel.errors import LogitsError
from kernel.memory.listed import end_of, joined
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import MAIN
from kernel.memory.rows import RowReader
from kernel.memory.sets import open_prompt
from kernel.trie.subset import Subset

BRANCH = 1
"""The sequence that carries the opcode, so that the prompt's own stays clean."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a walk ended.

    Attributes:
        leaf: opcode index.
        log_probability: sum over the chosen ids, of the full vocabulary.
        log_share: the same among the legal ids of each branch.
        margin: of the closest of its choices, in log-probability.
        mass: probability of the legal ids at the first branch.
    """

    leaf: int
    log_probability: float
    log_share: float
    margin: float
    mass: float


def walk(memory: Memory, rows: RowReader, question: Question) -> Walk:
    """Choose greedily; ties go to the lowest id. One pass a branch, forced runs go in with the next.

    Raises:
        ContextError: before anything is evaluated, when the longest opcode would not fit.
        LogitsError: no legal id of a branch has a finite logit.
    """
    memory.check([question.prompt.main], longest_legal(question.legal))
    try:
        return _walk(memory, rows, question)
    finally:
        memory.drop(BRANCH)


def longest_legal(subset: Subset) -> int:
    """Return how many ids the longest legal opcode has."""
    trie = subset.trie
    if len(subset) == trie.n_leaves:
        return trie.longest
    return int((trie.starts[1:] - trie.starts[:-1])[subset.leaves()].max())


def _walk(memory: Memory, rows: RowReader, question: Question) -> Walk:
    prompt, legal, trie = question.prompt.main, question.legal, question.opcodes.trie
    path: list[int] = []
    node, done, source = 0, -1, MAIN
    total = share = 0.0
    margin, mass = float("inf"), 1.0
    values: list[NDArray[np.float64]] = []
    while node >= 0:
        edges = legal.legal_edges(node)
        edge = int(edges[0])
        if len(edges) > 1:
            ids = trie.edge_ids[edges]

            at = tuple(path)

            def read(
                _: int, __: int, row: NDArray[np.float32], ids: NDArray[np.int32] = ids, at: tuple[int, ...] = at
            ) -> None:
                values.append(rows.log_probabilities(row, ids, at, question.watch))

            if done < 0:
                open_prompt(memory, joined(prompt, path), read)
            else:
                new = tuple(path[done:])
                memory.expand([Growth(source, end_of(prompt) + done, BRANCH, new, len(new) - 1)], read)
                source = BRANCH
            row = values.pop()
            best = int(np.argmax(row))
            if not np.isfinite(row[best]):
                raise LogitsError(f"none of {len(row)} legal ids has a finite logit")
            if done < 0:
                mass = float(np.exp(row).sum())
            done = len(path)
            edge = int(edges[best])
            total += float(row[best])
            share += float(row[best]) - float(np.logaddexp.reduce(row))
            margin = min(margin, float(row[best] - np.delete(row, best).max()))
        path += trie.tail(edge).tolist()
        node, leaf_edge = int(trie.edge_child[edge]), edge
    return Walk(trie.leaf(leaf_edge), total, share, margin, mass)
