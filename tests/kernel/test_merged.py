"""The merged tree of several option sets, by hand, and decisions of different sets that share a pass."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import TOLERANCE
from kernel.choose.question import PromptIds, Question
from kernel.memory.grow import grow
from kernel.memory.merged import merged
from kernel.memory.tree import STEM, ScoreTree
from kernel.prompt import Lines, Part, Prompt
from kernel.trie.opcodes import Literal
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie


def tree_of(*sequences: list[int]) -> ScoreTree:
    """Return the tree of sequences that are scored whole."""
    trie = Trie.of(list(sequences))
    tree = grow(trie, Subset.of(trie, list(range(len(sequences)))), np.array([len(s) for s in sequences], np.int32), 99)
    assert tree is not None
    return tree


def test_a_merged_tree_has_each_token_once_and_reads_what_any_tree_reads() -> None:
    """`1 2 3 | 1 2 4 5` has the prefix 1 2 and evaluates 4; `1 6 | 1 7` has the prefix 1 and evaluates nothing.

    Behind the common prefix 1: token 2, and 4 behind it. Behind 1 the ids 6 and 7 are read, behind 1 2 the ids 3 and 4,
    behind 1 2 4 the id 5.
    """
    first, second = tree_of([1, 2, 3], [1, 2, 4, 5]), tree_of([1, 6], [1, 7])
    assert (first.prefix, first.tokens, second.prefix, second.tokens) == ((1, 2), (4,), (1,), ())
    both = merged([first, second])
    assert (both.prefix, both.tokens, both.parents, both.tips) == ((1,), (2, 4), (STEM, 0), (1,))
    assert [(read.point, read.ids.tolist()) for read in both.reads] == [(STEM, [6, 7]), (0, [3, 4]), (1, [5])]
    assert (both.longest, both.paths()) == (4, [[0, 1]])
    values = {STEM: np.array([-6.0, -7.0]), 0: np.array([-3.0, -4.0]), 1: np.array([-5.0])}
    assert dict(zip(first.leaves, first.sums(first.out_of(both, values)), strict=True)) == {0: -3.0, 1: -9.0}
    assert dict(zip(second.leaves, second.sums(second.out_of(both, values)), strict=True)) == {0: -6.0, 1: -7.0}


def test_trees_that_are_one_stay_it() -> None:
    """Nothing is copied."""
    tree = tree_of([1], [2])
    assert merged([tree, tree]) is tree


def test_sets_share_a_pass_where_what_the_others_ask_is_little(tools: SimpleNamespace) -> None:
    """Two sets of single letters share one; a third that would add ten tokens to each prompt has its own."""
    vocabulary = tools.toy_vocabulary(["a", "b", "c", "d", "x" * 3])
    kernel = Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=500, n_seq=64))
    small, other = kernel.compile(["a", "b"]), kernel.compile(["c", "d"])
    large = kernel.compile(["a" * 7, "b" * 7])
    ids = [tuple(vocabulary.plain(text)) for text in ("ab", "cd", "dc")]
    questions = [Question(PromptIds(i), s) for i, s in zip(ids, (small, other, large), strict=True)]
    alone = [kernel.decide(question) for question in questions]
    together = kernel.decide_many(questions)
    assert [d.passes for d in together] == [1, 0, 1]
    for one, many in zip(alone, together, strict=True):
        assert (one.text, one.legal_mass) == (many.text, pytest.approx(many.legal_mass))
        np.testing.assert_allclose(one.scores, many.scores)


@pytest.mark.model
def test_sessions_with_sets_of_their_own_share_a_pass_and_score_as_alone(smollm2_path: Path) -> None:
    """Four prompts that show three of forty options each, and a null prompt each: the scores of each alone, within
    the tolerance, in a single pass, because the lines are stored."""
    with Kernel(LlamaCppBackend(smollm2_path, threads=1)) as kernel:
        labels = ["ba", "be", "bi", "bo", "ca", "ce", "ci", "co", *(f"{c}{v}" for c in "dfghklmn" for v in "aeio")]
        opcodes = kernel.compile([Literal(f" {label}", "\n") for label in labels])

        def asked(first: int) -> Question:
            shown = labels[first : first + 3]

            def parts(marked: int) -> tuple[Part | Lines, ...]:
                lines = tuple(f"- {'best' if n == marked else 'good'}: {label}\n" for n, label in enumerate(shown))
                return (
                    Part("Options:\n- good: none\n", trusted=True),
                    Lines(lines, trusted=True),
                    Part("Best move:", trusted=True),
                )

            prompt = Prompt(parts(1), (parts(-1),))
            return Question(kernel.ids(prompt), opcodes, opcodes.subset_of(range(first, first + 3)))

        questions = [asked(first) for first in (0, 2, 4, 9)]
        alone = [kernel.decide(question) for question in questions]
        together = kernel.decide_many(questions)
    assert [d.passes for d in together] == [1, 0, 0, 0]
    for one, many in zip(alone, together, strict=True):  # where a line stands in memory moves a score a little
        np.testing.assert_allclose(one.scores, many.scores, rtol=0, atol=TOLERANCE)
        assert one.text == many.text or one.margin < TOLERANCE
