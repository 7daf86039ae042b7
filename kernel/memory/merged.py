"""One token tree for prompts that choose among different options, so that they share a pass.

A pass evaluates one tree behind every prompt. The merged tree of several trees has each of their tokens once and reads
at each point what any of them reads, so that what each tree would have read stands in it (`ScoreTree.out_of`):

    first     go  north|south          merged    go  north|south
    second    stop|wait                          stop|wait

Its rows are only read, never summed: it has no leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernel.memory.passes import Ids, common_prefix
from kernel.memory.tree import STEM, Read, ScoreTree


def merged(trees: Sequence[ScoreTree]) -> ScoreTree:
    """Return the tree of all tokens of some trees, one at least; the same tree several times is that tree."""
    if len({id(tree) for tree in trees}) == 1:
        return trees[0]
    prefix: Ids = trees[0].prefix
    for tree in trees:
        prefix = prefix[: common_prefix(prefix, tree.prefix)]
    points: dict[Ids, int] = {prefix: STEM}
    tokens: list[int] = []
    parents: list[int] = []
    wanted: dict[Ids, set[int]] = {}
    for tree in trees:
        for point in (STEM, *range(len(tree.tokens))):
            path = tree.ids_to(point)
            for end in range(len(prefix) + 1, len(path) + 1):
                if path[:end] not in points:
                    points[path[:end]] = len(tokens)
                    tokens.append(path[end - 1])
                    parents.append(points[path[: end - 1]])
        for read in tree.reads:
            wanted.setdefault(tree.ids_to(read.point), set()).update(read.ids.tolist())
    reads = [Read(points[path], np.array(sorted(ids), np.int32), ()) for path, ids in wanted.items()]
    reads.sort(key=lambda read: read.point)
    tips = tuple(sorted(set(range(len(tokens))) - set(parents)))
    return ScoreTree(prefix, tuple(tokens), tuple(parents), tuple(reads), (), tips, max(t.longest for t in trees))
