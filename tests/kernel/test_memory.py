"""What is decoded, when and on which sequence: by hand on a runtime without weights, at random against its rows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel.backends.scripted import ScriptedBackend
from kernel.choose.score import Scorer, evaluate
from kernel.errors import BackendError, ContextError
from kernel.memory.grow import grow
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import MAIN, Cost, Work
from kernel.memory.tree import STEM, ScoreTree
from kernel.prompt import Part
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

Row = NDArray[np.float32]
SEQUENCES = [[1, 2, 3], [1, 2, 4, 5], [1, 6], [9]]  # drawn in test_tree.py


class Recorder(ScriptedBackend):
    """Notes for each pass which token stands where: (id, position, sequences)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.passes: list[list[tuple[int, int, tuple[int, ...]]]] = []
        self.clears = 0

    def decode(self, tokens: Any, positions: Any, sequences: Any, outputs: Any) -> None:
        """Note it if the runtime takes it."""
        super().decode(tokens, positions, sequences, outputs)
        self.passes.append([(t, p, tuple(s)) for t, p, s in zip(tokens, positions, sequences, strict=True)])

    def clear(self) -> None:
        """Count it."""
        super().clear()
        self.clears += 1

    @property
    def main_ids(self) -> list[int]:
        """All ids ever decoded on the session's own sequence, pass after pass."""
        return [token for each in self.passes for token, _, on in each if MAIN in on]


def letters(size: int) -> Vocabulary:
    """Single bytes; nothing here tokenizes."""
    return Vocabulary([bytes([65 + i]) for i in range(size)], np.full(size, NORMAL, np.int32), lambda *_: [])


def tree_of(legal: list[int]) -> ScoreTree:
    trie = Trie.of(SEQUENCES)
    tree = grow(trie, Subset.of(trie, legal), np.array([3, 4, 2, 1], np.int32), 100)
    assert tree is not None
    return tree


def work(prompts: Any, tree: ScoreTree, keep: int = 1) -> Work:
    return Work(tuple(map(tuple, prompts)), tree, keep)


def run(memory: Memory, prompts: Any, tree: ScoreTree, read: Any, keep: int = 1) -> None:
    evaluate(memory, work(prompts, tree, keep), read)


def ignore(stem: int, point: int, row: Row) -> None:
    pass


@pytest.fixture
def make(tools: SimpleNamespace) -> Callable[..., Recorder]:
    """A runtime over 40 ids whose rows are a function of the ids before."""

    def build(**kwargs: Any) -> Recorder:
        return Recorder(letters(40), tools.hashed_row(40), **kwargs)

    return build


Make = Callable[..., Recorder]


# -- one decision, by hand -------------------------------------------------------------------------------------------


def test_prompt_prefix_and_tree_go_in_one_pass(make: Make) -> None:
    """Prompt 20 21 22, forced 1, then 2 and 4 on the one strand; rows after 1, 2 and 4."""
    backend = make(n_seq=4)
    memory = Memory(backend)
    seen: list[tuple[int, int]] = []
    run(memory, [[20, 21, 22]], tree_of([0, 1, 2]), lambda stem, point, row: seen.append((stem, point)))
    assert backend.passes == [
        [(20, 0, (0, 1)), (21, 1, (0, 1)), (22, 2, (0, 1)), (1, 3, (0, 1)), (2, 4, (1,)), (4, 5, (1,))]
    ]
    assert seen == [(0, STEM), (0, 0), (0, 1)]
    assert memory.cost == Cost(passes=1, tokens=6)
    assert memory.held == [20, 21, 22, 1] == backend.sequence(MAIN)
    assert backend.cells == 4  # the strand is gone


def test_the_rows_are_those_behind_the_ids(make: Make, tools: SimpleNamespace) -> None:
    """Point by point: the row after prompt, prefix and path."""
    backend = make()
    tree = tree_of([0, 1, 2])
    rows: dict[int, Row] = {}
    run(Memory(backend), [[20, 21]], tree, lambda stem, point, row: rows.__setitem__(point, row))
    row = tools.hashed_row(40)
    assert sorted(rows) == [STEM, 0, 1]
    for point, ids in {STEM: (20, 21, 1), 0: (20, 21, 1, 2), 1: (20, 21, 1, 2, 4)}.items():
        assert (rows[point] == row(ids)).all()


def test_null_prompts_share_what_they_have_in_common(make: Make) -> None:
    """20 21 22 against 20 21 30: the first two stand on all four sequences, then each has its own end and tree."""
    backend = make(n_seq=8)
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [20, 21, 30]], tree_of([0, 2]), ignore)  # 1 is forced, 2 evaluated
    assert backend.passes == [
        [
            (20, 0, (0, 2, 1, 3)),
            (21, 1, (0, 2, 1, 3)),
            (22, 2, (0, 2)),
            (1, 3, (0, 2)),
            (30, 2, (1, 3)),
            (1, 3, (1, 3)),
            (2, 4, (2,)),
            (2, 4, (3,)),
        ]
    ]
    assert memory.cost == Cost(passes=1, tokens=8)
    assert memory.held == [20, 21, 22, 1]
    assert backend.cells == 4


def test_a_tree_without_tokens_needs_no_further_sequence(make: Make) -> None:
    """Leaves 2 and 3 part at once: the row after the prompt says all, two sequences are enough."""
    backend = make(n_seq=2)
    memory = Memory(backend)
    run(memory, [[20, 21]], tree_of([2, 3]), ignore)
    assert backend.passes == [[(20, 0, (0, 1)), (21, 1, (0, 1)), (1, 2, (1,))]]
    run(memory, [[20, 21, 22]], ScoreTree((), (), (), tree_of([2, 3]).reads[:1], (0, 1), (), 1), ignore)
    assert backend.passes[1] == [(22, 2, (0,))]


def test_a_decision_without_a_choice_asks_nothing(make: Make) -> None:
    """One legal opcode: no pass, no token, certainty."""
    backend = make()
    scores = Scorer(Memory(backend)).score(work([[20, 21], [20]], tree_of([1])))
    assert backend.passes == []
    assert scores.leaves.tolist() == [1]
    assert scores.log_probabilities.tolist() == [[0.0], [0.0]]
    assert (scores.mass, scores.cost) == (1.0, Cost())


# -- several decisions, by hand --------------------------------------------------------------------------------------


def test_a_longer_prompt_costs_its_new_ids_only(make: Make) -> None:
    """The session grew by the rest of the chosen opcode (2 3) and a result (23): 1 stays from the forced prefix."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21]], tree_of([0, 2]), ignore)
    run(memory, [[20, 21, 1, 2, 3, 23]], tree_of([0, 2]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 1, 2], [2, 3, 23, 1, 2]]
    assert memory.cost == Cost(passes=2, tokens=9)


def test_another_opcode_than_the_forced_prefix_drops_it(make: Make) -> None:
    """The prefix 1 stood in memory; the session went on with 9: only the ids before are kept."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21]], tree_of([0, 2]), ignore)
    run(memory, [[20, 21, 9, 23]], tree_of([0, 2]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 1, 2], [9, 23, 1, 2]]
    assert backend.sequence(MAIN) == [20, 21, 9, 23, 1]


def test_a_branching_prompt_keeps_the_longest_common_prefix(make: Make) -> None:
    """20 21 22 23 after 20 21 30: two ids are kept, one is dropped, two are new."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 30]], tree_of([2, 3]), ignore)
    run(memory, [[20, 21, 22, 23]], tree_of([2, 3]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 30, 1], [22, 23, 1]]


def test_the_same_prompt_again_evaluates_its_last_id_only(make: Make) -> None:
    """The row after it is needed, and rows do not stay."""
    backend = make()
    memory = Memory(backend)
    for _ in range(2):
        run(memory, [[20, 21, 22]], tree_of([2, 3]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 22, 1], [22, 1]]


def test_a_shorter_prompt_is_cut_out_of_the_longer_one(make: Make) -> None:
    """20 21 after 20 21 22: its last id is evaluated anew."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 22]], tree_of([2, 3]), ignore)
    run(memory, [[20, 21]], tree_of([2, 3]), ignore)
    assert [t for t, *_ in backend.passes[1]] == [21, 1]
    assert backend.sequence(MAIN) == [20, 21]


def test_all_ids_of_a_session_are_decoded_once(make: Make) -> None:
    """Three turns: what was decoded on the session's sequence, put together, is the session, nothing twice."""
    backend = make()
    memory = Memory(backend)
    session = [20, 21]
    for leaf, result in [(0, [30, 31]), (2, [32]), (1, [33, 34, 35])]:
        run(memory, [session], tree_of([0, 1, 2]), ignore)
        session = [*session, *SEQUENCES[leaf], *result]
    memory.open(session, ignore)
    assert backend.main_ids == session == memory.held
    assert [p for each in backend.passes for _, p, on in each if MAIN in on] == list(range(len(session)))


def test_history_is_kept_as_ids_and_never_tokenized_again(load: Callable[[str], Vocabulary]) -> None:
    """Turns that end in a newline, results that begin with one or with a letter, a prompt that ends in a space.

    qwen2 fuses `>` with a newline and two newlines, so the transcript as one text would have other ids; the session
    goes on with those that were decoded, each of them once.
    """
    vocabulary = load("qwen2")
    gates = OpcodeSet([f"<|call|>gate.{w} {{}}<|/call|>\n" for w in ("open", "close", "lift")], vocabulary)
    rows = np.random.default_rng(1).normal(size=(2, len(vocabulary))).astype(np.float32)
    backend = Recorder(vocabulary, lambda ids: rows[len(ids) % 2])
    scorer = Scorer(Memory(backend))
    tree = scorer.tree(gates, gates.everything)
    assert tree is not None
    session, text = vocabulary.prompt([Part("Gate of the north\n")]), "Gate of the north\n"
    for turn, result in enumerate(["\nthe gate is open\n", "it is closed\n", "\nMove: "]):
        scorer.score(work([session], tree))
        session = [*session, *gates.trie.sequence(turn).tolist(), *vocabulary.prompt([Part(result)], start=False)]
        text += gates.texts[turn] + result
    scorer.score(work([session], tree))
    assert backend.main_ids == [*session, *tree.prefix]
    assert vocabulary.join(session) == text.encode()
    assert session != vocabulary.plain(text)


def test_null_prompts_are_cheap_in_later_turns_too(make: Make) -> None:
    """The null prompt shares a head with the session; what it shares is copied, only its own ids are evaluated."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [20, 21, 30]], tree_of([2, 3]), ignore)
    run(memory, [[20, 21, 22, 23], [20, 21, 30]], tree_of([2, 3]), ignore)
    assert sorted(t for t, *_ in backend.passes[1]) == [1, 1, 23, 30]
    assert memory.cost.passes == 2


def test_kept_orders_cost_their_new_ids_only(make: Make) -> None:
    """Heads 20 21 and 30 31, then a request: 22, later 23. A null behind the second head begins with what is there."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [30, 31, 22]], tree_of([2, 3]), ignore, keep=2)
    run(memory, [[20, 21, 23], [30, 31, 23], [30, 31, 24]], tree_of([2, 3]), ignore, keep=2)
    assert sorted(t for t, *_ in backend.passes[1]) == [1, 1, 1, 23, 23, 24]
    assert memory.cost.passes == 2
    assert (memory.held, memory.kept) == ([20, 21, 23], [[30, 31, 23]])


def test_a_null_needs_room_for_what_it_does_not_share(make: Make) -> None:
    """Heads of 5 and 6 ids, nulls of 7: all lengths together need 20 cells, what is not shared only 14."""
    backend = make(n_ctx=16, n_seq=8)
    memory = Memory(backend)
    heads = [[20, 21, 22, 23, 24], [30, 31, 32, 33, 34, 35]]
    nulls = [[*heads[1], 36], [*heads[1], 37]]
    run(memory, [*heads, *nulls], tree_of([2, 3]), ignore, keep=2)
    assert (memory.held, memory.kept) == ([*heads[0]], [heads[1]])
    assert memory.cost.tokens == 5 + 6 + 1 + 1 + 4  # each head once, what each null adds, one tree each
    run(memory, [[*heads[0], 25], [*heads[1], 25]], tree_of([2, 3]), ignore, keep=2)
    assert sorted(t for t, *_ in backend.passes[-1]) == [1, 1, 25, 25]


def test_an_order_that_shares_more_than_it_kept_starts_anew(make: Make) -> None:
    """Kept 30 of 30 40; now 30 31 is the session's beginning too. llama.cpp couples only sequences of one length."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [30, 40, 22]], tree_of([2, 3]), ignore, keep=2)
    run(memory, [[30, 31, 25], [30, 31, 26]], tree_of([2, 3]), ignore, keep=2)
    assert sorted(t for t, *_ in backend.passes[1]) == [1, 1, 25, 26, 30, 31]
    assert (memory.held, memory.kept) == ([30, 31, 25], [[30, 31, 26]])


def test_kept_orders_leave_when_other_work_needs_their_sequences(make: Make) -> None:
    """One prompt alone: only the session's own sequence stays."""
    backend = make()
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [30, 31, 22]], tree_of([2, 3]), ignore, keep=2)
    memory.open([20, 21, 25], ignore)
    assert (memory.kept, backend.cells) == ([], 3)


# -- too little room: several passes ---------------------------------------------------------------------------------


def test_strands_beyond_the_sequences_go_into_further_passes(make: Make) -> None:
    """Four strands on two free sequences: two passes, the prompt in the first only."""
    trie = Trie.of([[a, 7, b] for a in (1, 2, 3, 4) for b in (5, 6)])
    tree = grow(trie, Subset.all(trie), np.full(8, 3, np.int32), 100)
    assert tree is not None
    backend = make(n_seq=3)
    memory = Memory(backend)
    run(memory, [[20, 21]], tree, ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 1, 7, 2, 7], [3, 7, 4, 7]]
    assert memory.cost == Cost(passes=2, tokens=10)


@pytest.mark.parametrize(
    ("shares", "n_ctx", "nulls", "strands"),
    [
        (True, 8, 0, [2, 2]),
        (True, 10, 0, [3, 1]),
        (True, 9, 1, [2, 2, 1, 1, 1, 1]),
        (True, 11, 1, [3, 1, 2, 2]),
        (False, 8, 0, [2, 2]),
        (False, 10, 0, [3, 1]),
        (False, 9, 1, [1, 1, 1, 1, 1, 1, 1, 1]),
        (False, 11, 1, [2, 2, 2, 2]),
    ],
)
def test_strands_beyond_the_cells_go_into_further_passes(
    make: Make, shares: bool, n_ctx: int, nulls: int, strands: list[int]
) -> None:
    """Four strands of two ids behind a prompt of four: eight cells hold two strands at a time, ten hold three.

    A null prompt takes two cells more. On attention it comes into memory after the session's tree is done.
    """
    trie = Trie.of([[a, 7, b] for a in (1, 2, 3, 4) for b in (5, 6)])
    tree = grow(trie, Subset.all(trie), np.full(8, 3, np.int32), 100)
    assert tree is not None
    backend = make(n_ctx=n_ctx, shares_tokens=shares)
    run(Memory(backend), [[20, 21, 22, 23], *[[20, 21, 30, 31]] * nulls], tree, ignore)
    begun = [sum(position == 4 for _, position, _ in each) for each in backend.passes]
    assert [count for count in begun if count] == strands
    assert backend.cells == 4


def test_a_prompt_longer_than_a_batch_is_fed_in_full_batches(make: Make) -> None:
    """Ten ids, a batch of four, one id in the tree: four, three, and the last three with the tree."""
    backend = make(n_batch=4)
    run(Memory(backend), [list(range(20, 30))], tree_of([2, 3]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 22, 23], [24, 25, 26], [27, 28, 29, 1]]


def test_a_strand_longer_than_a_batch_is_cut(make: Make) -> None:
    """A batch of two: nothing may need more, however long the opcode."""
    trie = Trie.of([[1, 2, 3, 4, 5], [6]])
    tree = grow(trie, Subset.all(trie), np.array([5, 1], np.int32), 100)
    assert tree is not None
    for shares in (True, False):
        backend = make(n_batch=2, shares_tokens=shares)
        run(Memory(backend), [[20, 21, 22]], tree, ignore)
        assert [t for each in backend.passes for t, *_ in each] == [20, 21, 22, 1, 2, 3, 4]
        assert max(map(len, backend.passes)) == 2


# -- memories that cannot be cut back --------------------------------------------------------------------------------


def test_levels_by_hand(make: Make) -> None:
    """Recurrent: the prompt in one pass, then 2 on a copy; 3 and 4 part behind it, so 4 follows in the next pass.

    With leaf 3 legal the tree is 1, 2, 4 on one strand, one pass a run between branches.
    """
    backend = make(shares_tokens=False)
    memory = Memory(backend)
    run(memory, [[20, 21, 22]], tree_of([0, 1, 2]), ignore)
    assert backend.passes == [
        [(20, 0, (0,)), (21, 1, (0,)), (22, 2, (0,)), (1, 3, (0,))],
        [(2, 4, (1,)), (4, 5, (1,))],
    ]
    assert memory.cost == Cost(passes=2, tokens=6)


def test_branches_are_evaluated_on_copies(make: Make) -> None:
    """1 2 leads to 3 4 and 5 6: the run 1 2 once, then both branches in one pass, one on a copy of the state."""
    trie = Trie.of([[1, 2, 3, 4], [1, 2, 5, 6], [9]])
    tree = grow(trie, Subset.all(trie), np.array([4, 4, 1], np.int32), 100)
    assert tree is not None
    backend = make(shares_tokens=False)
    run(Memory(backend), [[20]], tree, ignore)
    assert backend.passes == [
        [(20, 0, (0,))],
        [(1, 1, (1,)), (2, 2, (1,))],
        [(3, 3, (1,)), (5, 3, (2,))],
    ]


def test_null_prompts_of_a_recurrent_memory_fork_from_the_session(make: Make) -> None:
    """20 21 is evaluated once and copied where the prompts part; their ends go into one pass, so do their trees."""
    backend = make(shares_tokens=False)
    memory = Memory(backend)
    run(memory, [[20, 21, 22], [20, 21, 30]], tree_of([2, 3]), ignore)
    assert backend.passes == [
        [(20, 0, (0,)), (21, 1, (0,))],
        [(30, 2, (1,)), (22, 2, (0,))],
        [(1, 3, (2,)), (1, 3, (3,))],
    ]
    assert memory.cost == Cost(passes=3, tokens=6)


def test_null_prompts_fork_in_the_order_of_what_they_share(make: Make) -> None:
    """The one that leaves the session first is forked first, whatever its place: nothing is evaluated twice."""
    main = [20, 21, 22, 23, 24]
    for nulls in ([[20, 21, 30], [20, 21, 22, 23, 31]], [[20, 21, 22, 23, 31], [20, 21, 30]]):
        backend = make(shares_tokens=False)
        memory = Memory(backend)
        run(memory, [main, *nulls], tree_of([2, 3]), ignore)
        assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21], [22, 23], [30, 31, 24], [1, 1, 1]]
        assert memory.held == main


def test_a_refused_removal_is_counted_and_evaluated_anew(make: Make) -> None:
    """The prompt branches at 22: an attention memory keeps two ids, a recurrent one starts over and says so."""
    backend = make(shares_tokens=False)
    memory = Memory(backend)
    run(memory, [[20, 21, 22]], tree_of([2, 3]), ignore)
    run(memory, [[20, 21, 30]], tree_of([2, 3]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21, 22], [1], [20, 21, 30], [1]]
    assert memory.cost == Cost(passes=4, tokens=8, refused_removals=1)
    assert backend.clears == 1
    assert backend.sequence(MAIN) == [20, 21, 30]


def test_a_growing_prompt_asks_for_no_removal(make: Make) -> None:
    """A session that only grows is as cheap on a recurrent memory: only new ids."""
    backend = make(shares_tokens=False)
    memory = Memory(backend)
    run(memory, [[20, 21]], tree_of([2, 3]), ignore)
    run(memory, [[20, 21, 9, 22]], tree_of([2, 3]), ignore)
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21], [1], [9, 22], [1]]
    assert memory.cost.refused_removals == 0


def test_five_options_by_branching_equal_five_fresh_sessions(make: Make, tools: SimpleNamespace) -> None:
    """Options of one to five ids behind one prompt, removal refused, twice in a row: the scores of fresh sessions."""
    options = [[1], [2, 3], [2, 4, 5], [6, 7, 8, 9], [6, 7, 8, 1, 2]]
    trie = Trie.of(options)
    tree = grow(trie, Subset.all(trie), np.array([1, 2, 3, 4, 5], np.int32), 100)
    assert tree is not None
    scorer = Scorer(Memory(make(shares_tokens=False)))
    for prompt in ([20, 21, 22], [20, 25, 26, 27]):
        scores = scorer.score(work([prompt], tree))
        expected = tools.plain_scores(tools.hashed_row(40), prompt, options, [1, 2, 3, 4, 5])
        got = dict(zip(scores.leaves.tolist(), scores.log_probabilities[0].tolist(), strict=True))
        assert [got[i] for i in range(5)] == pytest.approx(expected, abs=1e-5)
    assert scorer.memory.cost.refused_removals == 1


# -- checks and failures ---------------------------------------------------------------------------------------------


def test_overflow_is_refused_before_anything_is_decoded(make: Make) -> None:
    """Ten ids and an opcode of four need 14, there are 13: the message has all numbers, the memory stays as it was."""
    backend = make(n_ctx=13)
    memory = Memory(backend)
    run(memory, [[20, 21]], tree_of([2, 3]), ignore)
    before = (len(backend.passes), backend.sequence(MAIN), list(memory.held))
    with pytest.raises(ContextError, match=r"10 prompt ids, 0 of a null prompt and up to 4 of an opcode need 14.*13"):
        run(memory, [list(range(20, 30))], tree_of([1, 3]), ignore)
    assert (len(backend.passes), backend.sequence(MAIN), list(memory.held)) == before
    run(memory, [[20, 21, 22]], tree_of([2, 3]), ignore)
    assert [t for t, *_ in backend.passes[-1]] == [22, 1]


def test_a_null_prompt_counts_with_what_it_does_not_share(make: Make) -> None:
    """20..25 and 20 21 40 41: six, two of its own, four of the opcode: 12 fit into 12 and not into 11."""
    main, null = list(range(20, 26)), [20, 21, 38, 39]
    make_memory = lambda n_ctx: Memory(make(n_ctx=n_ctx))  # noqa: E731
    run(make_memory(12), [main, null], tree_of([1, 3]), ignore)
    with pytest.raises(ContextError, match="6 prompt ids, 2 of a null prompt and up to 4 of an opcode need 12"):
        run(make_memory(11), [main, null], tree_of([1, 3]), ignore)


def test_an_empty_prompt_is_refused(make: Make) -> None:
    """There is no row before the first id."""
    with pytest.raises(ContextError, match="a prompt is empty"):
        run(Memory(make()), [[20], []], tree_of([0, 3]), ignore)


def test_more_prompts_than_sequences_are_refused(make: Make) -> None:
    """Each prompt needs one, and one must be left for the tree."""
    with pytest.raises(ContextError, match="3 prompts at once; n_seq=3 holds 2"):
        run(Memory(make(n_seq=3)), [[20], [21], [22]], tree_of([0, 3]), ignore)


class StopReadingError(Exception):
    """Raised by a reader."""


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_aborted_call_leaves_no_residue(make: Make, tools: SimpleNamespace, shares: bool, after: int) -> None:
    """The reader raises in the middle of the second of three decisions: the third is as in a fresh session."""
    backend = make(shares_tokens=shares)
    memory = Memory(backend)
    scorer = Scorer(memory)
    tree = tree_of([0, 1, 2, 3])
    scorer.score(work([[20, 21]], tree))
    count = 0

    def fail(stem: int, point: int, row: Row) -> None:
        nonlocal count
        if count == after:
            raise StopReadingError
        count += 1

    with pytest.raises(StopReadingError):
        run(memory, [[20, 21, 22], [20, 30]], tree, fail)
    assert memory.held == []
    assert backend.cells == 0
    third = scorer.score(work([[20, 21, 23]], tree))
    again = Scorer(Memory(make(shares_tokens=shares))).score(work([[20, 21, 23]], tree))
    assert third.log_probabilities.tolist() == again.log_probabilities.tolist()
    assert third.cost == again.cost


@pytest.mark.parametrize("shares", [True, False])
def test_a_failed_pass_resets_the_memory(make: Make, monkeypatch: pytest.MonkeyPatch, shares: bool) -> None:
    """The runtime fails in the second pass of a decision: the error comes through, the next call is right."""
    backend = make(shares_tokens=shares, n_batch=3)
    memory = Memory(backend)
    calls = 0

    def decode(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise BackendError("llama_decode of 3 tokens returned 2")
        Recorder.decode(backend, *args)

    monkeypatch.setattr(backend, "decode", decode)
    with pytest.raises(BackendError, match="returned 2"):
        run(memory, [[20, 21, 22, 23, 24]], tree_of([0, 3]), ignore)
    assert (memory.held, backend.cells) == ([], 0)
    run(memory, [[20, 21, 22, 23, 24]], tree_of([0, 3]), ignore)
    assert memory.held == [20, 21, 22, 23, 24]


def test_an_interrupt_resets_the_memory_too(make: Make) -> None:
    """Ctrl-C is no Exception; the session must be right when the caller goes on."""
    backend = make()
    memory = Memory(backend)

    def interrupt(stem: int, point: int, row: Row) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.open([20, 21], interrupt)
    assert (memory.held, backend.cells) == ([], 0)


# -- open and expand -------------------------------------------------------------------------------------------------


def test_open_reads_the_row_after_the_prompt(make: Make, tools: SimpleNamespace) -> None:
    """One pass, and what a call before has left is kept; a batch too large for the runtime is cut."""
    backend = make(n_batch=3)
    memory = Memory(backend)
    rows: list[Row] = []
    for prompt in ([20, 21], [20, 21, 22], [20, 23, 24, 25, 26]):
        memory.open(prompt, lambda stem, point, row: rows.append(row))
    assert [[t for t, *_ in each] for each in backend.passes] == [[20, 21], [22], [23, 24, 25], [26]]
    row = tools.hashed_row(40)
    assert (rows[0] == row((20, 21))).all()
    assert (rows[1] == row((20, 21, 22))).all()
    assert (rows[2] == row((20, 23, 24, 25, 26))).all()


@pytest.mark.parametrize("shares", [True, False])
def test_expand_continues_sequences_side_by_side(make: Make, tools: SimpleNamespace, shares: bool) -> None:
    """Two growths from the prompt and one that goes on where the first ended; rows from the asked id on."""
    memory = Memory(make(shares_tokens=shares))
    row = tools.hashed_row(40)
    seen: dict[tuple[int, int], Row] = {}
    memory.open([20, 21], ignore)
    memory.expand(
        [Growth(MAIN, 2, 1, (1, 2, 3), first=1), Growth(MAIN, 2, 2, (4,))],
        lambda number, offset, values: seen.__setitem__((number, offset), values),
    )
    assert sorted(seen) == [(0, 1), (0, 2), (1, 0)]
    assert (seen[0, 1] == row((20, 21, 1, 2))).all()
    assert (seen[0, 2] == row((20, 21, 1, 2, 3))).all()
    assert (seen[1, 0] == row((20, 21, 4))).all()
    memory.expand([Growth(1, 5, 1, (5,))], lambda number, offset, values: seen.__setitem__((2, offset), values))
    assert (seen[2, 0] == row((20, 21, 1, 2, 3, 5))).all()
    memory.drop(1)
    memory.drop(2)
    assert memory.held == [20, 21]


# -- at random -------------------------------------------------------------------------------------------------------


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    """Sequences none of which begins another one, how many ids of each are scored, and which are legal."""
    sequences: list[list[int]] = []
    for s in draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=10)):
        if not any(o[: len(s)] == s or s[: len(o)] == o for o in sequences):
            sequences.append(s)
    scored = [draw(st.integers(1, len(s))) for s in sequences]
    legal = draw(st.lists(st.sampled_from(range(len(sequences))), min_size=1, unique=True))
    return sequences, scored, sorted(legal)


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(
    turns=st.lists(
        st.tuples(st.lists(prompts, min_size=1, max_size=4), sets(), st.integers(1, 3)), min_size=1, max_size=4
    ),
    shares=st.booleans(),
    n_seq=st.integers(2, 12),
    n_batch=st.sampled_from([1, 2, 3, 5, 8, 100]),
    n_ctx=st.integers(8, 60),
)
def test_any_decisions_give_the_scores_of_the_model(
    tools: SimpleNamespace,
    turns: list[tuple[list[list[int]], tuple[list[list[int]], list[int], list[int]], int]],
    shares: bool,
    n_seq: int,
    n_batch: int,
    n_ctx: int,
) -> None:
    """Random tries, subsets, prompts, orders to keep, null prompts, limits and both memories, decisions in a row.

    Each sum is that of the row function, opcode by opcode. What cannot fit is refused with nothing decoded. One pass
    is enough where tokens are shared and everything fits; then exactly the ids that are new are evaluated, and fewer
    where an order has kept more than it shares with the session's prompt.
    """
    row = tools.hashed_row(3)
    backend = Recorder(letters(3), row, shares_tokens=shares, n_seq=n_seq, n_batch=n_batch, n_ctx=n_ctx)
    scorer = Scorer(Memory(backend))
    held: list[int] = []
    for stems, (sequences, scored, legal), keep in turns:
        trie = Trie.of(sequences)
        tree = grow(trie, Subset.of(trie, legal), np.array(scored, np.int32), 1000)
        assert tree is not None
        passes = len(backend.passes)
        own = [len(s) - _common(stems[0], s) for s in stems]
        if len(legal) > 1 and (len(stems) >= n_seq or _needed(stems, tree, own) > n_ctx):
            with pytest.raises(ContextError):
                scorer.score(work(stems, tree))
            assert len(backend.passes) == passes
            continue
        before = len(scorer.memory.kept)
        scores = scorer.score(work(stems, tree, keep=min(keep, len(stems))))
        for stem, line in zip(stems, scores.log_probabilities, strict=True):
            expected = tools.plain_scores(row, stem, [sequences[i] for i in legal], [scored[i] for i in legal])
            got = dict(zip(scores.leaves.tolist(), line.tolist(), strict=True))
            assert [got[i] for i in legal] == pytest.approx(expected, abs=1e-4)
        assert scores.cost.passes == len(backend.passes) - passes
        assert scores.cost.tokens == sum(map(len, backend.passes[passes:]))
        if len(legal) == 1:
            assert scores.cost.passes == 0
            continue
        full = [[*s, *tree.prefix] for s in stems]
        kept = min(_common(held, full[0]), len(full[0]) - 1)
        fresh = len(full[0]) - kept + sum(len(s) - min(_common(full[0], s), len(s) - 1) for s in full[1:])
        needed = fresh + len(stems) * len(tree.tokens)
        if shares and needed <= min(n_batch, n_ctx - kept) and len(stems) * (1 + len(tree.tips)) <= n_seq:
            if keep == 1 and not before:
                assert scores.cost == Cost(passes=1, tokens=needed)
            else:
                assert scores.cost.tokens <= needed
        held = full[0]
        assert scorer.memory.held == held == backend.sequence(MAIN)
        others = scorer.memory.kept
        assert others == [backend.sequence(n) for n in range(1, len(others) + 1)]
        assert others in ([], full[1:keep])
        assert len(held) <= backend.cells <= len(held) + sum(map(len, others))


def _common(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _needed(stems: list[list[int]], tree: ScoreTree, own: list[int]) -> int:
    full = [[*s, *tree.prefix] for s in stems]
    return max(len(full[0]) + len(s) - _common(full[0], s) for s in full) + tree.longest - len(tree.prefix)
