"""What a null prompt said of a whole set holds for every part of it, against the definition of a score."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel import nulls as module
from kernel.compile import OpcodeSet
from kernel.nulls import Nulls
from kernel.score import Values
from kernel.subset import Subset
from kernel.tree import ScoreTree, grow
from kernel.trie import Trie

NULL = [7, 8]


class Set:
    """Sequences of ids in place of an OpcodeSet, which only its trie and its length are asked of."""

    def __init__(self, sequences: list[list[int]], scored: list[int]) -> None:
        self.trie = Trie.of(sequences)
        self.scored = np.array(scored, np.int32)

    def __len__(self) -> int:
        return len(self.scored)

    def tree(self, subset: Subset) -> ScoreTree:
        """Lay the tree out."""
        tree = grow(self.trie, subset, self.scored, 1000)
        assert tree is not None
        return tree


def read(tools: SimpleNamespace, tree: ScoreTree, row: object) -> Values:
    """Return what a model whose rows are a function of the ids before says at each point."""
    return {r.point: tools.log_softmax(row((*NULL, *tree.ids_to(r.point))))[r.ids] for r in tree.reads}  # type: ignore[operator]


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    """Sequences none of which begins another one, how many ids of each are scored, and which are legal."""
    sequences: list[list[int]] = []
    for s in draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=2, max_size=14)):
        if not any(o[: len(s)] == s or s[: len(o)] == o for o in sequences):
            sequences.append(s)
    scored = [draw(st.integers(1, len(s))) for s in sequences]
    return sequences, scored, draw(st.lists(st.sampled_from(range(len(sequences))), min_size=1, unique=True))


@settings(max_examples=300, deadline=None)
@given(made=sets(), seed=st.integers(0, 5))
def test_what_is_read_off_the_whole_is_what_the_part_would_say(
    tools: SimpleNamespace, made: tuple[list[list[int]], list[int], list[int]], seed: int
) -> None:
    """Forced beginnings, ends that nobody else has and unscored closers included."""
    sequences, scored, legal = made
    opcodes, row = Set(sequences, scored), tools.hashed_row(9, seed)
    whole = Subset.all(opcodes.trie)
    tree, nulls = opcodes.tree(whole), Nulls()
    values = read(tools, tree, row)
    nulls.remember(opcodes, whole, NULL, tree.sums(values), tree, values)  # type: ignore[arg-type]
    subset = Subset.of(opcodes.trie, legal)
    part = opcodes.tree(subset)
    found = nulls.recall(opcodes, subset, NULL, part)  # type: ignore[arg-type]
    assert found is not None
    if len(legal) > 1:
        order = list(part.leaves)
        expected = tools.plain_scores(row, NULL, [sequences[i] for i in order], [scored[i] for i in order])
        assert found.tolist() == pytest.approx(expected, abs=1e-9)


def test_a_part_does_not_answer_for_another(tools: SimpleNamespace) -> None:
    """Only what was scored over everything does, and only for the prompt and the set that it was scored for."""
    opcodes, other = Set([[1], [2], [3]], [1, 1, 1]), Set([[1], [2], [3]], [1, 1, 1])
    some, more = Subset.of(opcodes.trie, [0]), Subset.of(opcodes.trie, [0, 1])
    nulls = Nulls()
    nulls.remember(opcodes, some, NULL, np.zeros(1), opcodes.tree(some), {})  # type: ignore[arg-type]
    assert nulls.recall(opcodes, some, NULL) is not None  # type: ignore[arg-type]
    assert nulls.recall(opcodes, more, NULL, opcodes.tree(more)) is None  # type: ignore[arg-type]
    assert nulls.recall(opcodes, some, [7], opcodes.tree(some)) is None  # type: ignore[arg-type]
    assert nulls.recall(other, some, NULL, opcodes.tree(some)) is None  # type: ignore[arg-type]


def test_only_the_last_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two, the one that was asked for stays when a third comes."""
    monkeypatch.setattr(module, "NULLS_KEPT", 2)
    opcodes = OpcodeSet.__new__(OpcodeSet)
    opcodes.texts = ("a", "b", "c")
    subset, nulls = Subset.of(Trie.of([[1], [2], [3]]), [0]), Nulls()
    for null in ([1], [2]):
        nulls.remember(opcodes, subset, null, np.zeros(1))
    assert nulls.recall(opcodes, subset, [1]) is not None
    nulls.remember(opcodes, subset, [3], np.zeros(1))
    assert [nulls.recall(opcodes, subset, [n]) is not None for n in (1, 2, 3)] == [True, False, True]
