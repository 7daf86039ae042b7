"""Scores of whole opcodes on real graphs: those of one token at a time in a fresh memory, on every kind of memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.score import TREES_KEPT, Scorer, Scores, evaluate
from kernel.errors import BackendError, ContextError, LogitsError
from kernel.memory.memory import Memory
from kernel.memory.passes import Work
from kernel.trie.opcodes import Literal, OpcodeSet

ARCHES = ["llama", "gemma3", "lfm2", "mamba"]
TOLERANCE = 2e-3
"""Of a sum of log-probabilities, with caches in float32 and attention spelled out; the worst seen is 8e-4 (gemma3).
Sums of different opcodes, and of one opcode behind different prompts, lie 0.1 to 20 apart."""
SMOLLM2 = 0.5
"""Of quantised weights between batch shapes: 3e-7 on a portable build for x86, tenths with other kernels."""
LOOSE = 0.15
"""The same with llama.cpp's defaults, where one token and several go through different half-precision kernels."""

MOVES = [f" move {word}\n@tetris\n" for word in ("left", "right", "rotate", "down")] + [" drop\n@tetris\n"]
CALLS = [
    *(Literal(f' move {{"action":"{word}"}}', "<|/call|>\n") for word in ("left", "right", "rotate")),
    *(Literal(f' place {{"column":{column},"rotation":0}}', "<|/call|>\n") for column in range(4)),
    Literal(" drop", "<|/call|>\n"),
]

Open = Callable[..., LlamaCppBackend]


@pytest.fixture
def open_model(tiny_models: dict[str, Path]) -> Iterator[Open]:
    """Open a tiny model by architecture."""
    made: list[LlamaCppBackend] = []

    def build(arch: str, **kwargs: Any) -> LlamaCppBackend:
        made.append(LlamaCppBackend(tiny_models[arch], **{"n_ctx": 512, "n_seq": 32, "threads": 1, **kwargs}))
        return made[-1]

    yield build
    for backend in made:
        backend.close()


def work(prompts: Any, tree: Any) -> Work:
    return Work(tuple(map(tuple, prompts)), tree)


class Bench:
    """A scorer on a tiny model, beside the plainest evaluation of the same file."""

    def __init__(self, backend: LlamaCppBackend, alone: Any, tools: Any, tolerance: float = TOLERANCE) -> None:
        self.backend = backend
        self.vocabulary = backend.vocabulary
        self.scorer = Scorer(Memory(backend))
        self.alone = alone
        self.tools = tools
        self.tolerance = tolerance
        self.worst = 0.0

    def ids(self, text: str) -> list[int]:
        """Tokenize."""
        return self.vocabulary.plain(text)

    def decide(self, prompts: list[str], opcodes: OpcodeSet, texts: list[str] | None = None) -> Scores:
        """Score and compare every number with the fresh context's."""
        subset = opcodes.everything if texts is None else opcodes.subset(texts)
        tree = self.scorer.tree(opcodes, subset)
        assert tree is not None
        stems = [self.ids(prompt) for prompt in prompts]
        scores = self.scorer.score(work(stems, tree))
        leaves = scores.leaves.tolist()
        sequences = [opcodes.trie.sequence(leaf).tolist() for leaf in leaves]
        counts = [int(opcodes.scored[leaf]) for leaf in leaves]
        for stem, line in zip(stems, scores.log_probabilities, strict=True):
            expected = self.tools.plain_scores(self.alone.row, stem, sequences, counts)
            self.worst = max(self.worst, float(np.abs(line - expected).max()))
            assert line == pytest.approx(expected, abs=self.tolerance)
        return scores


@pytest.fixture
def bench(
    precise: None, open_model: Open, tiny_models: dict[str, Path], fresh: Any, tools: Any
) -> Callable[..., Bench]:
    """Make a Bench by architecture."""
    return lambda arch, **kwargs: Bench(open_model(arch, **kwargs), fresh(tiny_models[arch], "precise"), tools)


BASE = "The best move is down. go north >\nTetris, piece L, rows 2 to 9 are free."
TURNS = [
    [BASE + "\nMove:"],
    [BASE + "\nMove: left\n@tetris\nok\nMove:"],  # grows
    [BASE + "\nMove: left\n@tetris\nok\nMove:", BASE + "\nMove: left\n@tetris\nN/A\nMove:"],
    [BASE + "\nMove: right\n@tetris\nno\nMove:", "N/A\nMove:", BASE],  # branches; three prompts
    [BASE + "\nMove:"],  # shrinks
    [BASE + "\nMove:", BASE + "\nMove: left", "The", "The best move is down. go north >\nMove:"],
    ["north"],
    [BASE + "\nMove: down\n@tetris\nok\nMove:", BASE + "\nMove: down\n@tetris\nok\nMove:"],  # the same twice
]


@pytest.mark.parametrize("arch", ARCHES)
def test_decisions_in_a_row_equal_fresh_contexts(bench: Callable[..., Bench], arch: str) -> None:
    """Eight decisions, prompts that grow, branch and shrink, up to three null prompts, two opcode sets and subsets."""
    on = bench(arch)
    moves, calls = OpcodeSet(MOVES, on.vocabulary), OpcodeSet(CALLS, on.vocabulary)
    for turn, prompts in enumerate(TURNS):
        scores = on.decide(prompts, moves if turn % 2 else calls)
        assert scores.log_probabilities.shape == (len(prompts), 5 if turn % 2 else 8)
        if on.backend.shares_tokens:
            assert scores.cost.passes == 1
    on.decide(TURNS[1], moves, MOVES[1:3])
    on.decide(TURNS[2], calls, [calls.texts[i] for i in (0, 3, 4, 6)])
    assert on.worst < TOLERANCE
    if on.backend.shares_tokens:
        assert on.scorer.memory.cost.refused_removals == 0
    else:
        assert on.scorer.memory.cost.refused_removals == 6


@pytest.mark.parametrize("arch", ARCHES)
def test_with_default_kernels_the_scores_are_close(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any, tools: Any, arch: str
) -> None:
    """As the product runs: half-precision caches, fused attention."""
    on = Bench(open_model(arch), fresh(tiny_models[arch]), tools, LOOSE)
    moves = OpcodeSet(MOVES, on.vocabulary)
    for prompts in TURNS:
        on.decide(prompts, moves)


@pytest.mark.parametrize("arch", ARCHES)
def test_little_room_changes_no_score(bench: Callable[..., Bench], arch: str) -> None:
    """Batches of 5, four sequences: prompts in parts, trees in parts, one null prompt after the other."""
    on = bench(arch, n_batch=5, n_seq=4)
    calls = OpcodeSet(CALLS, on.vocabulary)
    for prompts in TURNS[:4]:
        scores = on.decide(prompts[:3], calls)
        assert scores.cost.passes > 1


@pytest.mark.parametrize("arch", ARCHES)
def test_a_nearly_full_context_changes_no_score(bench: Callable[..., Bench], arch: str) -> None:
    """256 cells: a prompt of 180 ids and two null prompts that share half of it fit one after the other only."""
    on = bench(arch, n_ctx=256)
    moves = OpcodeSet(MOVES, on.vocabulary)
    long = "go north " * 90
    prompts = [long[: 9 * 90 - 1], long[: 9 * 45] + "move " * 25, long[: 9 * 45] + "left " * 25]
    assert [len(on.ids(p)) for p in prompts] == [180, 116, 116]
    on.decide(prompts, moves)
    on.decide([prompts[0] + " left", prompts[1]], moves)


@pytest.mark.parametrize("arch", ARCHES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_decisions_equal_fresh_contexts(bench: Callable[..., Bench], arch: str, data: st.DataObject) -> None:
    """Random words as opcodes and prompts, random limits, three decisions in a row."""
    words = st.sampled_from([" go", " north", " left", "x", "\n", " best", "1"])
    texts = data.draw(
        st.lists(st.lists(words, min_size=1, max_size=4).map("".join), min_size=2, max_size=8, unique=True)
    )
    on = bench(
        arch,
        n_ctx=256,
        n_seq=data.draw(st.integers(4, 20)),
        n_batch=data.draw(st.sampled_from([3, 16, 256])),
    )
    opcodes = OpcodeSet([Literal(text, ";") for text in texts], on.vocabulary)
    for _ in range(3):
        prompt = st.lists(words, min_size=1, max_size=8).map("".join)
        on.decide(data.draw(st.lists(prompt, min_size=1, max_size=3)), opcodes)
    on.backend.close()


@pytest.mark.parametrize("arch", ARCHES)
def test_five_options_of_different_length(bench: Callable[..., Bench], arch: str) -> None:
    """Scored by branching from one prompt, then the winner joins the session, three times: fresh scores each time."""
    on = bench(arch)
    options = [" go", " go north", " rotate left", " pick the axe and drop", " place the best move right down"]
    opcodes = OpcodeSet([Literal(text, "\n") for text in options], on.vocabulary)
    session = "The best\n"
    for _ in range(3):
        scores = on.decide([session], opcodes)
        session += opcodes.texts[int(scores.leaves[scores.log_probabilities[0].argmax()])] + "done. "


@pytest.mark.parametrize("arch", ARCHES)
def test_overflow_is_refused_and_the_next_call_is_as_fresh(bench: Callable[..., Bench], arch: str) -> None:
    """n_ctx 256, n_batch 64. 250 ids and an opcode of ten; a prompt of 300; then a short one, as in a new session."""
    on = bench(arch, n_ctx=256, n_batch=64)
    moves = OpcodeSet(MOVES, on.vocabulary)
    tree = on.scorer.tree(moves, moves.everything)
    assert tree is not None
    on.decide(["go north" * 100], moves)  # 200 ids are held
    held, passes = list(on.scorer.memory.held), on.scorer.memory.cost.passes
    assert len(held) == 200
    go = on.ids("go")
    for prompt in (go * 250, go * 300):
        needed = len(prompt) + tree.longest
        with pytest.raises(ContextError, match=rf"{len(prompt)} prompt ids, .* need {needed}, but n_ctx is 256"):
            on.scorer.score(work([prompt], tree))
        assert (on.scorer.memory.held, on.scorer.memory.cost.passes) == (held, passes)
    scores = on.decide(["go north"], moves)
    again = Scorer(Memory(LlamaCppBackend(on.backend._path, n_ctx=256, n_batch=64, n_seq=32, threads=1)))
    assert again.score(work([on.ids("go north")], tree)).log_probabilities == pytest.approx(
        scores.log_probabilities, abs=TOLERANCE
    )
    on.decide(["go north" * 100 + " left"], moves)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_failure_in_the_middle_leaves_no_residue(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    """The second pass is evaluated and then fails: what it left in memory is gone before the next decision."""
    on = bench(arch, n_batch=8)
    calls = OpcodeSet(CALLS, on.vocabulary)
    on.decide(TURNS[0], calls)
    real, count = on.backend.decode, 0

    def decode(*args: Any) -> None:
        nonlocal count
        real(*args)
        count += 1
        if count == 2:
            raise BackendError("llama_decode of 8 tokens returned 2")

    monkeypatch.setattr(on.backend, "decode", decode)
    tree = on.scorer.tree(calls, calls.everything)
    assert tree is not None
    with pytest.raises(BackendError, match="returned 2"):
        on.scorer.score(work([on.ids(text) for text in TURNS[3]], tree))
    assert on.scorer.memory.held == []
    on.decide(TURNS[3], calls)
    on.decide(TURNS[4], calls)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("at", [0, 2, 7])
def test_a_reader_that_raises_leaves_no_residue(bench: Callable[..., Bench], arch: str, at: int) -> None:
    """Two decisions, the third is broken off in its callback, the fourth equals a fresh session."""
    on = bench(arch)
    calls = OpcodeSet(CALLS, on.vocabulary)
    on.decide(TURNS[0], calls)
    on.decide(TURNS[1], calls)
    tree = on.scorer.tree(calls, calls.everything)
    assert tree is not None
    count = 0

    def read(stem: int, point: int, row: Any) -> None:
        nonlocal count
        count += 1
        if count > at:
            raise RuntimeError("progress bar")

    with pytest.raises(RuntimeError, match="progress bar"):
        evaluate(on.scorer.memory, work([on.ids(text) for text in TURNS[2]], tree), read)
    on.decide(TURNS[2], calls)


# -- on a runtime without weights --------------------------------------------------------------------------------------


def scripted(tools: Any, row: Any = None) -> tuple[Scorer, OpcodeSet]:
    vocabulary = tools.toy_vocabulary(["left", "right", "drop"])
    backend = ScriptedBackend(vocabulary, row or tools.hashed_row(len(vocabulary)))
    return Scorer(Memory(backend)), OpcodeSet(["left", "right", "drop"], vocabulary)


def test_mass_is_what_the_legal_ids_have_of_all(tools: Any) -> None:
    """Logits log 3, log 2, log 1 for the three, 0 for the other 97 ids: 6 of 103, whatever the null prompt says."""
    size = len(tools.toy_vocabulary(["left", "right", "drop"]))
    assert size == 100
    row, null = np.zeros(size, np.float32), np.arange(size, dtype=np.float32)
    scorer, opcodes = scripted(tools, lambda ids: row if ids == (1, 2) else null)
    for i, weight in enumerate((3, 2, 1)):
        row[opcodes.trie.sequence(i)[0]] = np.log(weight)
    tree = scorer.tree(opcodes, opcodes.everything)
    assert tree is not None
    scores = scorer.score(work([[1, 2], [3]], tree))
    assert scores.mass == pytest.approx(6 / 103)
    by_leaf = dict(zip(scores.leaves.tolist(), scores.log_probabilities[0].tolist(), strict=True))
    assert [by_leaf[i] for i in range(3)] == pytest.approx(np.log(np.array([3, 2, 1]) / 103).tolist(), abs=1e-6)
    firsts = [opcodes.trie.sequence(leaf)[0] for leaf in scores.leaves.tolist()]
    assert scores.log_probabilities[1] == pytest.approx(tools.log_softmax(null)[firsts], abs=1e-5)


def test_three_opcodes_far_down_the_ranking(tools: Any) -> None:
    """The three are below 50,000 other ids; the second is the best of them and wins, and the mass says how little."""
    size = 50_100
    base = tools.toy_vocabulary(["left", "right", "drop"])
    vocabulary = type(base)(
        [*base.pieces, *(b"?" for _ in range(size - len(base)))], np.full(size, 4, np.int32), base._tokenize
    )
    opcodes = OpcodeSet(["left", "right", "drop"], vocabulary)
    row = np.linspace(5, 15, size, dtype=np.float32)
    for i, value in enumerate((-2.0, -1.0, -3.0)):
        row[opcodes.trie.sequence(i)[0]] = value
    scorer = Scorer(Memory(ScriptedBackend(vocabulary, lambda ids: row)))
    tree = scorer.tree(opcodes, opcodes.everything)
    assert tree is not None
    scores = scorer.score(work([[1, 2]], tree))
    assert opcodes.texts[int(scores.leaves[scores.log_probabilities[0].argmax()])] == "right"
    assert 0 < scores.mass < 1e-9


def test_a_constant_row_is_refused_and_leaves_no_residue(tools: Any) -> None:
    """A runtime that shows a buffer of zeros is found out at the first row."""
    size = len(tools.toy_vocabulary(["left", "right", "drop"]))
    rows = [np.zeros(size, np.float32)]
    scorer, opcodes = scripted(tools, lambda ids: rows[0])
    tree = scorer.tree(opcodes, opcodes.everything)
    assert tree is not None
    with pytest.raises(LogitsError, match="the runtime shows a row that the model did not write"):
        scorer.score(work([[1, 2]], tree))
    assert scorer.memory.held == []
    rows[0] = np.arange(size, dtype=np.float32)
    assert scorer.score(work([[1, 2]], tree)).cost.tokens == 2


def test_trees_are_remembered_by_set_and_subset(tools: Any) -> None:
    """Equal subsets of one set share a tree; equal subsets of two sets do not; the oldest are forgotten."""
    scorer, opcodes = scripted(tools)
    other = OpcodeSet(["drop", "right", "left"], opcodes.vocabulary)
    first = scorer.tree(opcodes, opcodes.subset(["left", "drop"]))
    assert scorer.tree(opcodes, opcodes.subset(["drop", "left", "drop"])) is first
    assert scorer.tree(other, other.subset(["left", "drop"])) is not first
    many = OpcodeSet([chr(97 + i) for i in range(26)], opcodes.vocabulary)
    for pair in itertools.islice(itertools.combinations(many.texts, 2), TREES_KEPT - 2):
        scorer.tree(many, many.subset(list(pair)))
    assert scorer.tree(opcodes, opcodes.subset(["left", "drop"])) is first
    for pair in itertools.islice(itertools.combinations(many.texts, 2), TREES_KEPT, 2 * TREES_KEPT):
        scorer.tree(many, many.subset(list(pair)))
    assert scorer.tree(opcodes, opcodes.subset(["left", "drop"])) is not first
    assert len(scorer._trees) == TREES_KEPT


# -- real weights ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[LlamaCppBackend]:
    """The default model, opened once."""
    backend = LlamaCppBackend(smollm2_path, n_ctx=512, n_seq=64)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def smollm2_alone(smollm2_path: Path, tools: Any) -> Iterator[Any]:
    """The same file one token at a time."""
    alone = tools.Fresh(smollm2_path, n_ctx=256, threads=1, rewind=True)
    yield alone
    alone.close()


def score(backend: LlamaCppBackend, prompt: str, texts: list[Literal | str]) -> tuple[dict[str, float], Scores]:
    scorer = Scorer(Memory(backend))
    backend.clear()
    opcodes = OpcodeSet(texts, backend.vocabulary)
    tree = scorer.tree(opcodes, opcodes.everything)
    assert tree is not None
    scores = scorer.score(work([backend.vocabulary.plain(prompt)], tree))
    named = [opcodes.literals[leaf].body for leaf in scores.leaves.tolist()]
    return dict(zip(named, scores.log_probabilities[0].tolist(), strict=True)), scores


@pytest.mark.model
@pytest.mark.parametrize("order", [[" Lima", " Oslo", " Paris"], [" Paris", " Lima", " Oslo"]])
def test_paris_wins_whatever_the_order(
    smollm2: LlamaCppBackend, smollm2_alone: Any, tools: Any, order: list[str]
) -> None:
    """And its log-probability is that of an independent read of the last position."""
    prompt = "The capital of France is"
    scores, _ = score(smollm2, prompt, list(order))
    assert max(scores, key=scores.__getitem__) == " Paris"
    ids = smollm2.vocabulary.plain(prompt)
    paris = smollm2.vocabulary.literal(" Paris")
    row = tools.log_softmax(smollm2_alone.row(ids))
    assert scores[" Paris"] == pytest.approx(row[paris[0]], abs=SMOLLM2)
    assert row.std() > 1  # the row of a model, not a buffer of zeros


@pytest.mark.model
def test_shut_wins_over_opener(smollm2: LlamaCppBackend, smollm2_alone: Any, tools: Any) -> None:
    """As a whole ` shut` has -8.3 and ` opener` -14.3, though ` open` is the likelier first token.

    Published numbers differ by 0.2 between processors; one at a time and all at once agree far better than that.
    """
    prompt = "The opposite of open is"
    scores, _ = score(smollm2, prompt, [" opener", " shut"])
    assert scores[" shut"] == pytest.approx(-8.3, abs=0.3)
    assert scores[" opener"] == pytest.approx(-14.3, abs=0.3)
    ids = smollm2.vocabulary.plain(prompt)
    opener, shut = (smollm2.vocabulary.literal(text) for text in (" opener", " shut"))
    row = tools.log_softmax(smollm2_alone.row(ids))
    assert row[opener[0]] > row[shut[0]]
    expected = tools.plain_scores(smollm2_alone.row, ids, [opener, shut], [len(opener), len(shut)])
    assert [scores[" opener"], scores[" shut"]] == pytest.approx(expected, abs=SMOLLM2)


@pytest.mark.model
def test_34_placements_in_one_pass_equal_one_token_at_a_time(
    smollm2: LlamaCppBackend, smollm2_alone: Any, tools: Any
) -> None:
    """Every placement of an L piece: 34 sums in one pass, each close to the plain evaluation."""
    places = [(c, r) for r in range(4) for c in range(8 if r % 2 == 0 else 9)]
    assert len(places) == 34
    texts = [Literal(f" place {c} {r}", "\n@tetris\n") for c, r in places]
    prompt = "Piece L. Best: place 3 1. Move:"
    got, scores = score(smollm2, prompt, list(texts))
    assert scores.cost.passes == 1
    opcodes = OpcodeSet(texts, smollm2.vocabulary)
    sequences = [opcodes.trie.sequence(i).tolist() for i in range(34)]
    expected = tools.plain_scores(
        smollm2_alone.row, smollm2.vocabulary.plain(prompt), sequences, opcodes.scored.tolist()
    )
    values = [got[text.body] for text in texts]
    assert values == pytest.approx(expected, abs=SMOLLM2)
    assert np.corrcoef(values, expected)[0, 1] > 0.99
