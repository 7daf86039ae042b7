"""Best first: the winner is that of brute force on any trie, any rows, any small memory, and the proof holds."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.backends.scripted import ScriptedBackend
from kernel.choose.question import PromptIds, Question
from kernel.choose.search import BestFirst, Found
from kernel.errors import BuildError
from kernel.memory.memory import Memory
from kernel.memory.rows import RowReader
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.subset import Subset

PROMPT = "The best: "


def search(
    opcodes: OpcodeSet, backend: ScriptedBackend, subset: Subset | None = None, bonus: np.ndarray | None = None
) -> tuple[Found, Memory]:
    memory = Memory(backend)
    reader = RowReader(len(opcodes.vocabulary))
    prompt = opcodes.vocabulary.plain(PROMPT)
    question = Question(PromptIds(tuple(prompt)), opcodes, subset)
    return BestFirst(memory, reader, question, bonus).run(), memory


def brute(tools: SimpleNamespace, opcodes: OpcodeSet, row: object, leaves: list[int]) -> dict[int, float]:
    sequences = [opcodes.trie.sequence(leaf).tolist() for leaf in leaves]
    scored = [int(opcodes.scored[leaf]) for leaf in leaves]
    return dict(zip(leaves, tools.plain_scores(row, opcodes.vocabulary.plain(PROMPT), sequences, scored), strict=True))


@settings(max_examples=60, deadline=None)
@given(
    bodies=st.lists(st.text("abc", min_size=1, max_size=6), min_size=2, max_size=14, unique=True),
    closers=st.lists(st.sampled_from(["", ";", ";x", ";yz"]), min_size=14, max_size=14),
    legal=st.sets(st.integers(0, 13), min_size=2),
    seed=st.integers(0, 10_000),
    n_seq=st.integers(2, 6),
    room=st.integers(0, 30),
    n_batch=st.integers(1, 40),
    shares=st.booleans(),
    weigh=st.booleans(),
)
def test_the_winner_is_that_of_brute_force(
    tools: SimpleNamespace,
    bodies: list[str],
    closers: list[str],
    legal: set[int],
    seed: int,
    n_seq: int,
    room: int,
    n_batch: int,
    shares: bool,
    weigh: bool,
) -> None:
    """Random texts, subsets, rows, bonuses and memories: same winner, same scores, and a bound over all others."""
    vocabulary = tools.toy_vocabulary(["ab", "bc", "abc"])
    try:
        opcodes = OpcodeSet([Literal(b, c) for b, c in zip(bodies, closers, strict=False)], vocabulary)
    except BuildError:
        return
    leaves = sorted(leaf for leaf in legal if leaf < len(opcodes))
    if len(leaves) < 2:
        return
    row = tools.hashed_row(len(vocabulary), seed)
    bonus = np.random.default_rng(seed).normal(0, 5, len(opcodes)) if weigh else None
    n_ctx = len(PROMPT) + opcodes.trie.longest + room
    backend = ScriptedBackend(vocabulary, row, n_ctx=n_ctx, n_batch=n_batch, n_seq=n_seq, shares_tokens=shares)
    found, _ = search(opcodes, backend, Subset.of(opcodes.trie, leaves), bonus)

    expected = brute(tools, opcodes, row, leaves)
    total = {leaf: value + (bonus[leaf] if bonus is not None else 0.0) for leaf, value in expected.items()}
    best = max(total.values())
    assert total[found.best] == pytest.approx(best, abs=1e-5)
    for leaf, value in found.known.items():
        assert value == pytest.approx(expected[leaf], abs=1e-5)
    others = [value for leaf, value in total.items() if leaf != found.best]
    assert max(others) <= found.runner_up + 1e-5
    assert found.runner_up <= total[found.best] + 1e-5
    unknown = sum(math.exp(value - best) for leaf, value in total.items() if leaf not in found.known)
    assert unknown <= found.open_share + 1e-4
    assert all(not backend.sequence(s) for s in range(1, n_seq)), "every sequence but the prompt's is given back"


def test_ties_go_to_the_first_in_the_order_of_ids(tools: SimpleNamespace) -> None:
    """Every row is the same, with equal logits for all letters: of four opcodes of equal length `aa` is first."""
    vocabulary = tools.toy_vocabulary()
    row = np.zeros(len(vocabulary), np.float32)
    row[0] = 1.0
    for texts in (["ba", "bb", "ab", "aa"], ["aa", "ab", "ba", "bb"]):
        opcodes = OpcodeSet(texts, vocabulary)
        found, _ = search(opcodes, ScriptedBackend(vocabulary, lambda ids: row))
        assert opcodes.texts[found.best] == "aa"
        assert found.runner_up == pytest.approx(found.known[found.best], abs=1e-6)


def test_a_sure_model_is_asked_once_a_branch(tools: SimpleNamespace) -> None:
    """Of 26 x 26 x 26 opcodes the wanted one takes three passes: prompt, first letter, second letter."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = tools.toy_vocabulary()
    opcodes = OpcodeSet([a + b + c for a in letters for b in letters for c in letters], vocabulary)
    start = len(vocabulary.plain(PROMPT))
    wish = vocabulary.plain("fox")

    def row(ids: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(len(vocabulary), np.float32)
        out[wish[len(ids) - start]] = 20.0
        return out

    backend = ScriptedBackend(vocabulary, row)
    found, memory = search(opcodes, backend)
    assert opcodes.texts[found.best] == "fox"
    assert memory.cost.passes == 3
    assert found.runner_up < found.known[found.best] - 10
    assert found.mass == pytest.approx(1.0, abs=1e-6)
