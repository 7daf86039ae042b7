"""Lines without an order: by hand on a runtime without weights, at random against its rows, on real weights."""

from __future__ import annotations

import functools
import itertools
import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.choose import nulls
from kernel.choose.chooser import Chooser
from kernel.choose.decision import TOLERANCE
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.choose.score import Scorer
from kernel.errors import BackendError, ContextError, UsageError
from kernel.memory.grow import grow
from kernel.memory.listed import Listed, Prompted, cells_of
from kernel.memory.memory import Memory
from kernel.memory.passes import Cost, Work
from kernel.memory.store import Line
from kernel.memory.tree import ScoreTree
from kernel.prompt import Lines, Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

Row = NDArray[np.float32]
Seen = list[tuple[int, int, tuple[int, ...]]]


class Recorder(ScriptedBackend):
    """Notes for each pass which token stands where: (id, position, sequences)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.passes: list[Seen] = []
        self.fails_at = -1

    def decode(self, tokens: Any, positions: Any, sequences: Any, outputs: Any) -> None:
        """Note it if the runtime takes it; refuse the pass of that number."""
        if len(self.passes) == self.fails_at:
            raise BackendError("refused")
        super().decode(tokens, positions, sequences, outputs)
        self.passes.append([(t, p, tuple(s)) for t, p, s in zip(tokens, positions, sequences, strict=True)])


def letters(size: int) -> Vocabulary:
    """Single bytes; nothing here tokenizes."""
    return Vocabulary([bytes([65 + i]) for i in range(size)], np.full(size, NORMAL, np.int32), lambda *_: [])


@pytest.fixture
def make(tools: SimpleNamespace) -> Callable[..., Recorder]:
    """A runtime over 40 ids whose rows are a function of the ids before."""

    def build(**kwargs: Any) -> Recorder:
        return Recorder(letters(40), tools.hashed_row(40), **kwargs)

    return build


Make = Callable[..., Recorder]


def tree_of(*sequences: list[int]) -> ScoreTree:
    trie = Trie.of(list(sequences))
    tree = grow(trie, Subset.of(trie, list(range(len(sequences)))), np.array([len(s) for s in sequences], np.int32), 99)
    assert tree is not None
    return tree


AB = ((10, 11), (12,))
"""Two lines, of two ids and of one."""
TREE = tree_of([1, 2], [3, 4])
"""No prefix; 1 and 3 are evaluated, 2 and 4 only read."""


def ask(memory: Memory, *prompts: Prompted) -> NDArray[np.float64]:
    return Scorer(memory).score(Work(prompts, TREE)).log_probabilities


# -- a prompt with lines ---------------------------------------------------------------------------------------------


def test_a_list_in_any_order_is_one_prompt() -> None:
    """Lines are sorted by their ids, each stands once, and an empty one is none."""
    orders = [Listed((1,), tuple(o), (9,)) for o in itertools.permutations([(5, 6), (5,), (2, 7, 1)])]
    assert len(set(orders)) == 1
    assert orders[0].lines == ((2, 7, 1), (5,), (5, 6))
    assert Listed((1,), ((5,), (5,), ()), (9,)).lines == ((5,),)


def test_the_question_stands_behind_the_longest_line() -> None:
    """A lead of 2, lines of 2 and 1, a question of 2: positions 4 and 5; 7 ids in all."""
    prompt = Listed((8, 9), AB, (20, 21))
    assert (prompt.begin, prompt.end, cells_of(prompt)) == (4, 6, 7)
    assert prompt.flat == (8, 9, 10, 11, 12, 20, 21)
    assert Listed.cut(prompt.flat, prompt.lengths) == prompt
    assert prompt.orders() == ((8, 9, 10, 11, 12, 20, 21), (8, 9, 12, 10, 11, 20, 21))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((Lines(("a\n",)), Part("q")), "nothing before its lines"),
        ((Part("x"), Lines(("a\n",))), "nothing behind its lines"),
        ((Part("x"), Lines(("a\n",)), Part("y"), Lines(("b\n",)), Part("q")), "without an order 2 times"),
    ],
)
def test_lines_stand_once_between_a_lead_and_a_question(make: Make, parts: Any, said: str) -> None:
    """Anything else is refused before the model reads it."""
    with pytest.raises(UsageError, match=said):
        Kernel(make()).ids(Prompt(parts))


# -- one decision, by hand -------------------------------------------------------------------------------------------


def test_lines_are_evaluated_side_by_side_and_then_only_the_question(make: Make) -> None:
    """Twelve sequences: lines on 11 and 10, the lead on 9; the prompt on 0, its strands on 1 and 2.

    First pass: the lead on all three, behind it the lines at the same positions. Second pass: the question behind the
    longest, and the tree. The next decision evaluates the second pass alone.
    """
    backend = make(n_seq=12)
    memory = Memory(backend)
    prompt = Listed((8,), AB, (20, 21))
    first = ask(memory, prompt)
    lines: Seen = [(8, 0, (9, 11, 10)), (10, 1, (11,)), (11, 2, (11,)), (12, 1, (10,))]
    question: Seen = [(20, 3, (0, 1, 2)), (21, 4, (0, 1, 2)), (1, 5, (1,)), (3, 5, (2,))]
    assert backend.passes == [lines, question]
    assert memory.cost == Cost(passes=2, tokens=8, line_misses=2)
    assert memory.stored.sequences == {Line((8,), (10, 11)): 11, Line((8,), (12,)): 10, Line((8,)): 9}
    assert (ask(memory, Listed((8,), AB[::-1], (20, 21))) == first).all()
    assert backend.passes[2:] == [question]
    assert memory.cost == Cost(passes=3, tokens=12, line_hits=2, line_misses=2, tokens_saved=4)
    assert backend.cells == 4  # prompt and strands are gone


def test_prompt_and_null_prompt_share_the_lines_that_they_have_in_common(make: Make) -> None:
    """Lines 10 11 and 12 in one, 12 and 13 in the other: three lines, one pass for both questions."""
    backend = make(n_seq=24)
    memory = Memory(backend)
    ask(memory, Listed((8,), AB, (20,)), Listed((8,), ((12,), (13,)), (20,)))
    assert [len(each) for each in backend.passes] == [1 + 2 + 1 + 1, 2 * (1 + 2)]
    assert memory.cost == Cost(passes=2, tokens=11, line_misses=3)


def test_a_new_line_is_evaluated_behind_the_lead_that_is_there(make: Make) -> None:
    """Only its own ids."""
    backend = make(n_seq=12)
    memory = Memory(backend)
    ask(memory, Listed((8, 9), AB, (20,)))
    ask(memory, Listed((8, 9), (AB[0], (14, 15)), (20,)))
    assert backend.passes[2] == [(14, 2, (8,)), (15, 3, (8,))]


def test_scores_are_those_behind_lead_lines_and_question(make: Make, tools: SimpleNamespace) -> None:
    """The runtime without weights answers with the row of the ids, lines in the order of theirs."""
    found = ask(Memory(make()), Listed((8,), AB, (20,)), (30, 31))
    row = tools.hashed_row(40)
    for line, prompt in zip(found, [(8, 10, 11, 12, 20), (30, 31)], strict=True):
        assert line.tolist() == pytest.approx(tools.plain_scores(row, prompt, [[1, 2], [3, 4]], [2, 2]), abs=1e-4)


def test_what_was_not_used_for_longest_goes(make: Make) -> None:
    """Nine sequences, six of them for lines: with the lead there is room for five, the sixth takes the first one's."""
    memory = Memory(make(n_seq=9))
    for line in (10, 11, 12, 13, 14):
        ask(memory, Listed((8,), ((line,),), (20,)))
    ask(memory, Listed((8,), ((10,),), (20,)))
    ask(memory, Listed((8,), ((15,),), (20,)))
    assert [each.line for each in memory.stored.sequences] == [(12,), (13,), (14,), (10,), (15,), ()]


def test_a_prompt_without_lines_gets_the_room_that_it_needs(make: Make) -> None:
    """Stored lines stay beside a small prompt and go for a large one; it is evaluated in one pass as ever."""
    backend = make(n_seq=12, n_ctx=30)
    memory = Memory(backend)
    ask(memory, Listed((8,), AB, (20,)))
    ask(memory, (30, 31))
    assert len(memory.stored.sequences) == 3
    ask(memory, tuple(range(27)))
    assert (len(memory.stored.sequences), len(backend.passes)) == (0, 4)
    assert memory.held == list(range(27))


def test_a_prompt_without_lines_stays_beside_one_with_lines(make: Make) -> None:
    """Its ids are still there when it comes again, so only its last one is evaluated and the tree."""
    backend = make(n_seq=24)
    memory = Memory(backend)
    ask(memory, (30, 31, 32))
    ask(memory, Listed((8,), AB, (20,)))
    ask(memory, (30, 31, 32))
    assert [t for t, *_ in backend.passes[-1]] == [32, 1, 3]


def test_a_pass_that_fails_leaves_nothing_stored(make: Make) -> None:
    """Whichever pass it is: afterwards the memory is empty, and the next decision is right."""
    for fails_at in (0, 1):
        backend = make(n_seq=12)
        memory = Memory(backend)
        backend.fails_at = fails_at
        with pytest.raises(BackendError):
            ask(memory, Listed((8,), AB, (20,)))
        assert (backend.cells, dict(memory.stored.sequences)) == (0, {})
        backend.fails_at = -1
        assert (ask(memory, Listed((8,), AB, (20,))) == ask(Memory(make()), Listed((8,), AB, (20,)))).all()


def test_what_does_not_fit_is_refused_before_anything_is_evaluated(make: Make) -> None:
    """Too few cells; too few sequences for a prompt, a line and their lead."""
    for limits, said in (({"n_ctx": 6}, "n_ctx is 6"), ({"n_seq": 2}, "n_seq=3 or more")):
        backend = make(**limits)
        with pytest.raises(ContextError, match=said):
            ask(Memory(backend), Listed((8,), AB, (20, 21)))
        assert backend.passes == []


def test_a_memory_of_states_reads_lists_in_every_order_and_says_so(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Recurrent and hybrid models: the lines one behind the other, from each of them on, in any order of theirs."""
    opcodes = OpcodeSet([Literal(text) for text in ("BC", "DE")], byte_vocabulary())
    found = []
    for order in (AB, AB[::-1]):
        chooser = Chooser(Memory(make(shares_tokens=False)))
        null = Listed((8,), order, (22,))
        with caplog.at_level(logging.WARNING):
            found.append(chooser.choose(Question(PromptIds(Listed((8,), order, (20,)), (null,)), opcodes)))
    assert found[0].prompt == (8, 10, 11, 12, 20)
    assert found[0].rotations == ((8, 12, 10, 11, 20),)
    assert found[0].nulls == ((8, 10, 11, 12, 22), (8, 12, 10, 11, 22))
    assert (found[0].scores == found[1].scores).all()
    assert sum("cannot hold a set" in record.getMessage() for record in caplog.records) == 2  # once each


def byte_vocabulary() -> Vocabulary:
    """Forty letters that are spelled one by one."""
    return Vocabulary(
        [bytes([65 + i]) for i in range(40)], np.full(40, NORMAL, np.int32), lambda text, *_: [b - 65 for b in text]
    )


# -- at random -------------------------------------------------------------------------------------------------------

ids = st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple)
sets = st.builds(Listed, st.sampled_from([(1, 0), (2,)]), st.lists(ids, max_size=5), ids)


@settings(max_examples=50, deadline=None)
@given(
    turns=st.lists(st.lists(st.one_of(sets, sets, ids), min_size=1, max_size=3), min_size=1, max_size=6),
    n_seq=st.integers(3, 16),
    n_batch=st.sampled_from([1, 3, 8, 100]),
    n_ctx=st.integers(8, 60),
)
def test_any_decisions_give_the_scores_of_the_model(
    tools: SimpleNamespace, turns: list[list[Prompted]], n_seq: int, n_batch: int, n_ctx: int
) -> None:
    """Prompts with lines and without in a row, in memories of any size: the sums are those of the row function.

    What cannot fit is refused with nothing decoded. The store is bounded, it holds what the runtime holds, every line
    with its lead, and nothing else is left of a prompt with lines.
    """
    row = tools.hashed_row(5)
    backend = Recorder(letters(5), row, n_seq=n_seq, n_batch=n_batch, n_ctx=n_ctx)
    scorer = Scorer(Memory(backend))
    memory = scorer.memory
    for prompts in turns:
        passes = len(backend.passes)
        try:
            scores = scorer.score(Work(tuple(prompts), TREE))
        except ContextError:
            assert len(backend.passes) == passes
            continue
        for prompt, line in zip(prompts, scores.log_probabilities, strict=True):
            flat = prompt.flat if isinstance(prompt, Listed) else prompt
            assert line.tolist() == pytest.approx(tools.plain_scores(row, flat, [[1, 2], [3, 4]], [2, 2]), abs=1e-4)
        assert scores.cost.tokens == sum(map(len, backend.passes[passes:]))
        stored = memory.stored.sequences
        for (lead, line), sequence in stored.items():
            assert backend.sequence(sequence) == [*lead, *line]
            assert not (line and lead) or Line(lead) in stored
        assert len(set(stored.values())) == len(stored) <= n_seq - 1
        assert memory.held == [] or backend.sequence(0) == memory.held
        held = len(memory.held) + sum(map(len, memory.kept))
        assert memory.stored.cells <= backend.cells <= memory.stored.cells + held


# -- real weights ----------------------------------------------------------------------------------------------------

LABELS = ("3-1", "0-0", "7-0", "5-2")


def marked(labels: Sequence[str], best: str | None, lead: str = "Options:\n- good: none\n") -> tuple[Any, ...]:
    lines = tuple(f"- {'best' if label == best else 'good'}: {label}\n" for label in labels)
    return Part(lead, trusted=True), Lines(lines, trusted=True), Part("Best move:", trusted=True)


def shown(labels: Sequence[str], best: str) -> Prompt:
    return Prompt(marked(labels, best), (marked(labels, None),))


def question(kernel: Kernel, labels: Sequence[str], rule: RuleName | None = None) -> Question:
    opcodes = kernel.compile([Literal(f" {label}", "\n") for label in LABELS])
    legal = opcodes.subset_of([LABELS.index(label) for label in sorted(labels)])
    return Question(kernel.ids(shown(labels, "3-1")), opcodes, legal, None if rule is None else Rule(rule))


@pytest.fixture(scope="module")
def model(smollm2_path: Path) -> Any:
    """The default model, loaded once."""
    with Kernel(LlamaCppBackend(smollm2_path, threads=1)) as kernel:
        yield kernel


@pytest.mark.model
@pytest.mark.parametrize("count", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_options_in_any_order_score_the_same_to_the_last_bit(model: Kernel, count: int) -> None:
    """All 6 orders of three and all 24 of four, the first one on an empty store.

    Three of three make one null prompt, which comes again: at first its lines and then it are read in passes of their
    own, then the marked line, then the question alone; later only the question is.
    """
    model.memory.reset()
    found = [model.decide(question(model, order)) for order in itertools.permutations(LABELS[:count])]
    assert len({(tuple(d.scores.tolist()), d.text, d.margin) for d in found}) == 1
    assert {d.text for d in found} == {" 3-1\n"}
    assert [(d.passes, d.line_misses) for d in found[:2]] == [(4, count + 1), (1, 0)]


@pytest.mark.model
def test_a_null_prompt_that_comes_again_is_read_once_and_says_the_same(
    model: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four options are one of 6 sets, so it is kept; where none is kept, each decision reads it, for as much
    again as its own question. The scores are the same to the last bit, on this model."""
    model.memory.reset()
    asked = question(model, LABELS[:2])
    kept = [model.decide(asked) for _ in range(2)]
    monkeypatch.setattr(nulls, "NULLS_KEPT", 0)
    anew = [model.decide(asked) for _ in range(2)]
    assert len({tuple(d.scores.tolist()) for d in (*kept, *anew)}) == 1
    assert len({tuple(np.asarray(d.null).tolist()) for d in (*kept, *anew)}) == 1
    assert kept[1].passes == anew[1].passes == 1
    assert anew[1].tokens_evaluated == 2 * kept[1].tokens_evaluated


def test_null_prompts_are_kept_where_the_opcodes_make_few_sets() -> None:
    """Three of 19 are 969 sets, of 20 they are 1,140, which is more than are kept. A list is kept in any case."""
    null = Listed((8,), ((10,), (11,), (12,)), (20,))
    for size, kept in ((3, True), (19, True), (20, False)):
        opcodes: Any = range(size)
        assert nulls.comes_again(opcodes, null) == kept
        assert nulls.comes_again(opcodes, (1, 2, 3))


@pytest.mark.model
def test_one_line_is_the_same_text_in_a_row(model: Kernel) -> None:
    """Lead, line and question stand at the positions that they have as one run of text."""
    opcodes = model.compile([Literal(f" {label}", "\n") for label in LABELS])
    listed = model.ids(Prompt(marked(["3-1"], "3-1"))).main
    assert isinstance(listed, Listed)
    both = [model.decide(Question(PromptIds(prompt), opcodes)).raw for prompt in (listed, listed.flat)]
    assert np.abs(both[0] - both[1]).max() < TOLERANCE


@pytest.mark.model
def test_scores_are_those_of_the_runtime_token_by_token(model: Kernel, tools: SimpleNamespace) -> None:
    """Each token in a call of its own, lines attached by hand; and again in memories too small to store them."""
    prompt = model.ids(shown(LABELS, "3-1")).main
    assert isinstance(prompt, Listed)
    opcodes = model.compile([Literal(f" {label}", "\n") for label in LABELS])
    wanted = model.decide(Question(PromptIds(prompt), opcodes))
    backend = model.backend
    model.memory.reset()
    lead = len(prompt.lead)
    for number, line in enumerate(prompt.lines, 1):
        for at, token in enumerate((*prompt.lead, *line)):
            backend.decode([token], [at], [(number,)], [])
    backend.copy(1, 0, lead)
    for number, line in enumerate(prompt.lines, 1):
        backend.copy(number, 0, lead + len(line), lead)

    @functools.cache
    def row(ids: tuple[int, ...]) -> Row:
        """The row after these ids, behind the one before it."""
        begun = len(prompt.question) if len(ids) > len(prompt.question) else 0
        backend.remove(0, prompt.begin + begun)
        for at, token in enumerate(ids[begun:], begun):
            backend.decode([token], [prompt.begin + at], [(0,)], [0])
        return backend.logits(0).copy()

    row(prompt.question)

    sequences = [opcodes.trie.sequence(leaf).tolist() for leaf in wanted.leaves.tolist()]
    scored = [int(opcodes.scored[leaf]) for leaf in wanted.leaves.tolist()]
    expected = tools.plain_scores(row, prompt.question, sequences, scored)
    model.memory.reset()
    assert wanted.raw.tolist() == pytest.approx(expected, abs=TOLERANCE)
    for limits in ({"n_seq": 3}, {"n_seq": 9, "n_ctx": 64}):
        with Kernel(LlamaCppBackend(Path(str(backend._path)), threads=1, **limits)) as small:  # type: ignore[attr-defined]
            same = small.compile([Literal(f" {label}", "\n") for label in LABELS])
            found = small.decide(Question(PromptIds(prompt), same))
            assert found.raw.tolist() == pytest.approx(wanted.raw.tolist(), abs=TOLERANCE)
            assert found.line_hits == 0


@pytest.mark.model
def test_every_rule_reads_the_set(model: Kernel) -> None:
    """Greedy walks and draws behind the same lines; a prompt without lines afterwards is what it was."""
    before = model.choose("The opposite of open is", ["opener", "shut"])
    exact = model.decide(question(model, LABELS, RuleName.EXACT))
    greedy = model.decide(question(model, LABELS, RuleName.GREEDY))
    assert greedy.legal_mass == pytest.approx(exact.legal_mass, rel=0.1)
    sampled = model.decide(question(model, LABELS, RuleName.SAMPLE))
    assert sampled.raw.tolist() == pytest.approx(exact.raw.tolist(), abs=TOLERANCE)
    after = model.choose("The opposite of open is", ["opener", "shut"])
    assert after.scores.tolist() == pytest.approx(before.scores.tolist(), abs=TOLERANCE)


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("arch", ["llama", "gemma3"])
def test_scores_do_not_depend_on_what_is_stored(tiny_models: dict[str, Path], arch: str) -> None:
    """Real graphs with float weights: sets of random size, stored, gone and stored again, against an empty store.

    Scores lie apart by 1 to 6; the worst difference seen is 1e-4. (On quantised weights the place of a cell may move
    a rounding, which is then as large as between batch shapes.)
    """
    rng = random.Random(3)
    labels = [f"{letter}{end}" for letter in "bcdfg" for end in ("a", "e", "io", "uaeb")]
    long, short = (Kernel(LlamaCppBackend(tiny_models[arch], threads=1, n_seq=24, n_ctx=512)) for _ in range(2))
    opcodes = [kernel.compile([Literal(f" {label}", "\n") for label in labels]) for kernel in (long, short)]
    hits = 0
    for _ in range(20):
        some = rng.sample(labels, rng.randint(2, 4))
        prompt = Prompt(marked(some, some[0]), (marked(some, None),))
        short.memory.reset()
        found = [
            kernel.decide(Question(kernel.ids(prompt), each, each.subset_of(sorted(map(labels.index, some)))))
            for kernel, each in zip((long, short), opcodes, strict=True)
        ]
        assert found[0].scores.tolist() == pytest.approx(found[1].scores.tolist(), abs=1e-3)
        hits += found[0].line_hits
    assert hits > 20
    assert len(long.memory.stored.sequences) == 16
    for kernel in (long, short):
        kernel.close()


@pytest.mark.model
def test_options_of_a_choice_may_be_shown_as_a_set(model: Kernel) -> None:
    """`listed`: in any order one choice with one score each; prompt and null prompt read the same lines.

    Options in another order are another set of opcodes, so for each order the null prompt is read once, in a pass of
    its own: its three lines are evaluated for the first, and stored for the prompt and for all that come later.
    """
    options = ["heater warmer", "heater cooler", "music play"]
    null = "Request: N/A\nCommand:"
    model.memory.reset()
    orders = list(itertools.permutations(options))
    found, again = (
        [model.choose("Request: I'm freezing\nCommand:", order, null=null, listed=True) for order in asked]
        for asked in (orders, orders[:2])
    )
    assert len({tuple(sorted(zip(d.texts, d.scores.tolist(), strict=True))) for d in (*found, *again)}) == 1
    assert len({d.text for d in found}) == 1
    assert [(d.line_misses, d.line_hits) for d in found] == [(3, 3)] + 5 * [(0, 6)]
    assert [(d.line_misses, d.line_hits, d.passes) for d in again] == 2 * [(0, 3, 1)]
    main, read = found[0].prompt, found[0].nulls[0]
    assert isinstance(main, Listed)
    assert isinstance(read, Listed)
    assert (main.lead, main.lines) == (read.lead, read.lines)
    assert model.vocabulary.join(main.lead) == b"Options:\n- none\n"
    shown = sorted(map(model.vocabulary.join, main.lines))
    assert shown == [f"- {option}\n".encode() for option in sorted(options)]
    plain = model.choose("Request: I'm freezing\nCommand:", options, null=null)
    assert not isinstance(plain.prompt, Listed)
