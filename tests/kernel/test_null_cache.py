"""What a null prompt said of a whole set holds for every part of it, against the definition of a score."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.choose import null_cache as module
from kernel.choose.null_cache import NullCache
from kernel.choose.score import Values
from kernel.memory.grow import grow
from kernel.memory.tree import ScoreTree
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

NULL = [7, 8]


class Set:
    """Sequences of ids in place of an OpcodeSet, which only its trie and its length are asked of, and what is legal."""

    def __init__(self, sequences: list[list[int]], scored: list[int]) -> None:
        self.trie = Trie.of(sequences)
        self.scored = np.array(scored, np.int32)
        self.everything = Subset.all(self.trie)

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


@settings(max_examples=100, deadline=None)
@given(made=sets(), seed=st.integers(0, 5))
def test_what_is_read_off_the_whole_is_what_the_part_would_say(
    tools: SimpleNamespace, made: tuple[list[list[int]], list[int], list[int]], seed: int
) -> None:
    """Forced beginnings, ends that nobody else has and unscored closers included."""
    sequences, scored, legal = made
    opcodes, row = Set(sequences, scored), tools.hashed_row(9, seed)
    whole = Subset.all(opcodes.trie)
    tree, nulls = opcodes.tree(whole), NullCache()
    values = read(tools, tree, row)
    nulls.remember_whole(opcodes, NULL, tree, values)  # type: ignore[arg-type]
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
    nulls = NullCache()
    nulls.remember(opcodes, some, NULL, np.zeros(1))  # type: ignore[arg-type]
    assert nulls.recall(opcodes, some, NULL) is not None  # type: ignore[arg-type]
    assert nulls.recall(opcodes, more, NULL, opcodes.tree(more)) is None  # type: ignore[arg-type]
    assert nulls.recall(opcodes, some, [7], opcodes.tree(some)) is None  # type: ignore[arg-type]
    assert nulls.recall(other, some, NULL, opcodes.tree(some)) is None  # type: ignore[arg-type]


def test_only_the_last_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two, the one that was asked for stays when a third comes."""
    monkeypatch.setattr(module, "NULLS_KEPT", 2)
    opcodes = OpcodeSet.__new__(OpcodeSet)
    opcodes.texts = ("a", "b", "c")
    subset, nulls = Subset.of(Trie.of([[1], [2], [3]]), [0]), NullCache()
    for null in ([1], [2]):
        nulls.remember(opcodes, subset, null, np.zeros(1))
    assert nulls.recall(opcodes, subset, [1]) is not None
    nulls.remember(opcodes, subset, [3], np.zeros(1))
    assert [nulls.recall(opcodes, subset, [n]) is not None for n in (1, 2, 3)] == [True, False, True]


# -- on disk ---------------------------------------------------------------------------------------------------------


class Kept:
    """The opcodes `left`, `right` and `rightax` on a made-up vocabulary, and what so many null prompts say of them."""

    def __init__(self, tools: SimpleNamespace, count: int = module.MANY) -> None:
        self.opcodes = OpcodeSet(["left", "right;", "rightax"], tools.toy_vocabulary(["left", "right", "ax"]))
        self.everything = self.opcodes.everything
        tree = grow(self.opcodes.trie, self.everything, self.opcodes.scored, 100)
        assert tree is not None
        self.tree = tree
        row = tools.hashed_row(len(self.opcodes.vocabulary))
        self.nulls = [(n, 1) for n in range(count)]
        self.values: dict[tuple[int, ...], Values] = {}
        for null in self.nulls:
            ids = {r.point: tools.log_softmax(row((*null, *tree.ids_to(r.point))))[r.ids] for r in tree.reads}
            self.values[null] = ids

    def said_to(self, nulls: NullCache) -> None:
        """Let it remember everything."""
        for null, values in self.values.items():
            nulls.remember_whole(self.opcodes, null, self.tree, values)


@pytest.fixture
def kept(tools: SimpleNamespace) -> Kept:
    """As many null prompts as are kept on disk."""
    return Kept(tools)


def test_many_null_prompts_come_back_from_disk_to_the_last_bit(tmp_path: Path, kept: Kept) -> None:
    """Another process finds them, for the whole set and for a part; nothing is told."""
    notes: list[str] = []
    first, second = (NullCache(tmp_path, "m", notes.append) for _ in range(2))
    kept.said_to(first)
    first.save(kept.opcodes, kept.nulls)
    assert second.load(kept.opcodes, kept.tree, kept.nulls)
    part = kept.opcodes.subset_of([0, 1])
    tree = grow(kept.opcodes.trie, part, kept.opcodes.scored, 100)
    for null in kept.nulls:
        for subset, laid_out in ((kept.everything, kept.tree), (part, tree)):
            known, found = (each.recall(kept.opcodes, subset, null, laid_out) for each in (first, second))
            assert known is not None
            assert found is not None
            assert found.tolist() == known.tolist()
    assert notes == []


def test_few_null_prompts_are_not_worth_a_file(tmp_path: Path, tools: SimpleNamespace) -> None:
    """Those of a list of options differ from decision to decision; they would fill the disk."""
    few, nulls = Kept(tools, module.MANY - 1), NullCache(tmp_path)
    few.said_to(nulls)
    nulls.save(few.opcodes, few.nulls)
    assert list(tmp_path.iterdir()) == []
    assert not nulls.load(few.opcodes, few.tree, few.nulls)


def test_what_another_model_said_or_other_prompts_is_not_found(tmp_path: Path, kept: Kept) -> None:
    """Nor what is said of other opcodes."""
    nulls = NullCache(tmp_path, "m")
    kept.said_to(nulls)
    nulls.save(kept.opcodes, kept.nulls)
    assert not NullCache(tmp_path, "n").load(kept.opcodes, kept.tree, kept.nulls)
    assert not NullCache(tmp_path, "m").load(kept.opcodes, kept.tree, kept.nulls[::-1])
    other = OpcodeSet(["left", "right;", "rightax", "ax"], kept.opcodes.vocabulary)
    assert not NullCache(tmp_path, "m").load(other, kept.tree, kept.nulls)


def test_a_damaged_file_is_told_and_read_anew(tmp_path: Path, kept: Kept) -> None:
    """Cut or changed anywhere: not used, and the next save replaces it."""
    notes: list[str] = []
    nulls = NullCache(tmp_path, "m", notes.append)
    kept.said_to(nulls)
    nulls.save(kept.opcodes, kept.nulls)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for wrong in (whole[:-9], whole[:-9] + b"x" + whole[-8:], b"", b"PK" + whole[2:]):
        path.write_bytes(wrong)
        assert not NullCache(tmp_path, "m", notes.append).load(kept.opcodes, kept.tree, kept.nulls)
    assert len(notes) == 4
    assert all(str(path) in note for note in notes)
    nulls.save(kept.opcodes, kept.nulls)
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, kept: Kept) -> None:
    """A file stands where the folder should be: what was read counts all the same."""
    (tmp_path / "nulls").write_text("mine")
    notes: list[str] = []
    nulls = NullCache(tmp_path / "nulls", "m", notes.append)
    kept.said_to(nulls)
    nulls.save(kept.opcodes, kept.nulls)
    assert len(notes) == 1
    assert nulls.recall(kept.opcodes, kept.everything, kept.nulls[0]) is not None


def test_the_folder_keeps_the_last_files(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three, two."""
    monkeypatch.setattr(module, "FILES_KEPT", 2)
    for model in "abc":
        nulls = NullCache(tmp_path, model)
        kept.said_to(nulls)
        nulls.save(kept.opcodes, kept.nulls)
    assert len(list(tmp_path.iterdir())) == 2
    assert NullCache(tmp_path, "c").load(kept.opcodes, kept.tree, kept.nulls)
