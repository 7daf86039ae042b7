"""Rules on a model without weights whose every probability is written down, so that each number is worked out by hand.

P (prompt)  left 0.3   right 0.6 -- up 0.4, ax 0.1          exact: left 0.3, rightup 0.24, rightax 0.06
N (null)    left 0.9   right 0.05 - up 0.4, ax 0.05                left 0.9, rightup 0.02, rightax 0.0025
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.backends.scripted import ScriptedBackend
from kernel.choose import beyond, nulls, score
from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision, Stop
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BackendError, BuildError, ContextError, LogitsError, NoLegalOpcodeError, UsageError
from kernel.memory.memory import Memory
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.subset import Subset

Table = Mapping[tuple[str, ...], Mapping[str, float]]

LEFT, UP, AX = 0, 1, 2
TEXTS = ["left", "rightup", "rightax"]
TABLE: Table = {
    ("P",): {"left": 0.3, "right": 0.6},
    ("P", "right"): {"up": 0.4, "ax": 0.1},
    ("N",): {"left": 0.9, "right": 0.05},
    ("N", "right"): {"up": 0.4, "ax": 0.05},
    ("M",): {"left": 0.1, "right": 0.05},
    ("M", "right"): {"up": 0.4, "ax": 0.05},
}
OTHERWISE = {"left": 0.2, "right": 0.3, "up": 0.1, "ax": 0.05}


class Bench:
    """A vocabulary, the three opcodes and a backend that answers from a table of probabilities."""

    def __init__(
        self,
        tools: SimpleNamespace,
        table: Table = TABLE,
        texts: Sequence[str | Literal] = TEXTS,
        *,
        patch: Mapping[str, float] | None = None,
        **memory: int | bool,
    ) -> None:
        self.vocabulary = tools.toy_vocabulary(["left", "right", "up", "ax"])
        self.ids = {piece.decode(): i for i, piece in enumerate(self.vocabulary.pieces)}
        self.table = table
        self.patch = patch or {}
        self.backend = ScriptedBackend(self.vocabulary, self.row, **memory)  # type: ignore[arg-type]
        self.memory = Memory(self.backend)
        self.chooser = Chooser(self.memory)
        self.opcodes = OpcodeSet(texts, self.vocabulary)

    def row(self, ids: tuple[int, ...]) -> NDArray[np.float32]:
        """Logarithms of what the table says; what it leaves over is spread over all other ids."""
        said = self.table.get(tuple(self.vocabulary.pieces[i].decode() for i in ids), OTHERWISE)
        size = len(self.vocabulary)
        out = np.full(size, (1 - sum(said.values())) / (size - len(said)))
        for piece, probability in said.items():
            out[self.ids[piece]] = probability
        logits = np.log(out).astype(np.float32)
        for piece, logit in self.patch.items():
            logits[self.ids[piece]] = logit
        return logits

    def __call__(
        self,
        rule: Rule | RuleName | None = None,
        prompt: str = "P",
        nulls: Sequence[str] = (),
        *,
        legal: Sequence[int] | None = None,
        **more: object,
    ) -> Decision:
        """Decide, with prompts as text."""
        subset = self.opcodes.everything if legal is None else self.opcodes.subset_of(legal)
        made = Rule(rule) if isinstance(rule, RuleName) else rule
        ids = self.vocabulary.plain
        turned: Sequence[Sequence[int]] = more.pop("rotations", ())  # type: ignore[assignment]
        prompts = PromptIds(tuple(ids(prompt)), tuple(tuple(ids(n)) for n in nulls), tuple(map(tuple, turned)))
        return self.chooser.choose(Question(prompts, self.opcodes, subset, made, **more))  # type: ignore[arg-type]


@pytest.fixture
def bench(tools: SimpleNamespace) -> Bench:
    return Bench(tools)


def by_index(decision: Decision, values: NDArray[np.float64]) -> dict[int, float]:
    return dict(zip(decision.leaves.tolist(), values.tolist(), strict=True))


def near(values: Mapping[int, float]) -> object:
    return pytest.approx(values, abs=1e-5)


def test_exact_adds_up_log_probabilities(bench: Bench) -> None:
    """0.3 beats 0.6 x 0.4 and 0.6 x 0.1, in one pass of the prompt and `right`; 0.9 of the mass was legal."""
    d = bench(RuleName.EXACT)
    assert (d.index, d.text, d.rule, d.stop) == (LEFT, "left", "exact", Stop.COMPLETE)
    assert by_index(d, d.raw) == near({LEFT: math.log(0.3), UP: math.log(0.24), AX: math.log(0.06)})
    assert by_index(d, d.shares) == near({LEFT: 0.5, UP: 0.4, AX: 0.1})
    assert d.margin == pytest.approx(math.log(0.3 / 0.24), abs=1e-5)
    assert d.legal_mass == pytest.approx(0.9, abs=1e-5)
    assert (d.passes, d.tokens_evaluated, d.chosen_tokens, d.forced_tokens) == (1, 2, 1, 0)
    assert d.null is None


def test_exact_never_takes_the_mean(bench: Bench) -> None:
    """By the mean of its tokens `rightup` would win: the square root of 0.24 is 0.49."""
    d = bench(RuleName.EXACT)
    raw = by_index(d, d.raw)
    assert math.exp(raw[UP] / 2) == pytest.approx(0.49, abs=1e-3)
    assert raw[UP] / 2 > raw[LEFT]
    assert d.text == "left"


def test_greedy_takes_the_likeliest_token_and_stays_with_it(bench: Bench) -> None:
    """`right` has 0.6, so `left` is out, though it is the likeliest opcode; the record says which rule that was."""
    d = bench(RuleName.GREEDY)
    assert (d.index, d.rule, d.passes) == (UP, "greedy", 2)
    assert by_index(d, d.raw)[UP] == pytest.approx(math.log(0.24), abs=1e-5)
    assert d.probability == pytest.approx(0.6 / 0.9 * 0.4 / 0.5, abs=1e-5)
    assert d.margin == pytest.approx(math.log(0.6 / 0.3), abs=1e-5)
    assert d.legal_mass == pytest.approx(0.9, abs=1e-5)
    assert math.isnan(by_index(d, d.raw)[LEFT])


def test_calibrated_subtracts_what_the_null_says(bench: Bench) -> None:
    """0.3 / 0.9, 0.24 / 0.02 and 0.06 / 0.0025 are 1/3, 12 and 24; their shares add up to 1."""
    d = bench(RuleName.CALIBRATED, nulls=["N"])
    assert d.index == AX
    assert by_index(d, d.scores) == near({LEFT: math.log(1 / 3), UP: math.log(12), AX: math.log(24)})
    assert d.null is not None
    assert by_index(d, d.null) == near({LEFT: math.log(0.9), UP: math.log(0.02), AX: math.log(0.0025)})
    total = 1 / 3 + 12 + 24
    assert by_index(d, d.shares) == near({LEFT: 1 / 3 / total, UP: 12 / total, AX: 24 / total})
    assert d.margin == pytest.approx(math.log(2), abs=1e-5)


@pytest.mark.parametrize(("calibration", "winner"), [(0.0, LEFT), (0.5, UP), (1.0, AX)])
def test_calibration_is_tempered(bench: Bench, calibration: float, winner: int) -> None:
    """Half of it divides by square roots: 0.32, 1.70 and 1.20. None of it is exact, all of it is calibrated."""
    d = bench(Rule(RuleName.CALIBRATED, calibration), nulls=["N"])
    assert d.index == winner
    if calibration == 0.5:
        hand = {LEFT: 0.3 / math.sqrt(0.9), UP: 0.24 / math.sqrt(0.02), AX: 0.06 / math.sqrt(0.0025)}
        assert by_index(d, d.scores) == near({leaf: math.log(value) for leaf, value in hand.items()})


def test_several_nulls_are_averaged(bench: Bench) -> None:
    """Of logarithms: the geometric mean of 0.9 and 0.1 is 0.3, so `left` is at 1."""
    d = bench(RuleName.CALIBRATED, nulls=["N", "M"])
    assert by_index(d, d.scores)[LEFT] == pytest.approx(0.0, abs=1e-5)
    assert d.passes == 1


def test_the_default_is_calibrated_where_there_is_a_null(bench: Bench) -> None:
    """And exact where there is none."""
    assert bench().rule == "exact"
    assert bench(nulls=["N"]).rule == "calibrated"


def test_a_null_that_does_not_vary_costs_nothing_the_second_time(bench: Bench) -> None:
    """Prompt and null and `right` twice are four tokens; the next prompt is two, in one pass, with equal numbers."""
    first = bench(RuleName.CALIBRATED, nulls=["N"])
    bench(RuleName.CALIBRATED, prompt="M", nulls=["N"])
    again = bench(RuleName.CALIBRATED, nulls=["N"])
    assert (first.passes, first.tokens_evaluated) == (1, 4)
    assert (again.passes, again.tokens_evaluated) == (1, 2)
    assert again.scores.tolist() == pytest.approx(first.scores.tolist(), abs=1e-6)


def test_a_null_of_everything_costs_nothing_for_a_part(bench: Bench) -> None:
    """With `rightax` illegal the tree is another one; the null is not asked again, and is the same. Nor the reverse."""
    bench(RuleName.CALIBRATED, nulls=["N"])
    other = bench(RuleName.CALIBRATED, prompt="M", nulls=["N"], legal=[LEFT, UP])
    assert other.null is not None
    assert by_index(other, other.null) == near({LEFT: math.log(0.9), UP: math.log(0.02)})
    assert other.tokens_evaluated == 2  # M and `right`
    forced = bench(RuleName.CALIBRATED, nulls=["N"], legal=[UP, AX])
    assert forced.null is not None
    assert by_index(forced, forced.null) == near({UP: math.log(0.4), AX: math.log(0.05)})  # `right` is not scored


def test_a_null_of_a_part_is_asked_again_for_everything(bench: Bench) -> None:
    """Nobody has seen what it says of `rightax`."""
    bench(RuleName.CALIBRATED, nulls=["N"], legal=[LEFT, UP])
    whole = bench(RuleName.CALIBRATED, prompt="M", nulls=["N"])
    assert whole.null is not None
    assert by_index(whole, whole.null) == near({LEFT: math.log(0.9), UP: math.log(0.02), AX: math.log(0.0025)})
    assert whole.tokens_evaluated == 4


@pytest.mark.parametrize(
    ("rule", "nulls", "legal", "winner", "preferred", "by"),
    [
        (RuleName.EXACT, [], [UP, AX], UP, LEFT, math.log(0.3 / 0.24)),
        (RuleName.EXACT, [], [LEFT, AX], LEFT, None, 0.0),
        (RuleName.CALIBRATED, ["N"], [LEFT, UP], UP, AX, math.log(2)),
        (RuleName.CALIBRATED, ["N"], [LEFT, AX], AX, None, 0.0),
        (RuleName.EXACT, [], [LEFT, UP, AX], LEFT, None, 0.0),
    ],
)
def test_what_the_model_would_rather_have_is_told_where_it_is_not_legal(
    bench: Bench, rule: RuleName, nulls: list[str], legal: list[int], winner: int, preferred: int | None, by: float
) -> None:
    """In the same pass, with equal numbers for what is legal, also when the null prompt is known already."""
    plain = bench(rule, nulls=nulls, legal=legal)
    assert plain.preferred is None
    for _ in range(2):
        d = bench(rule, nulls=nulls, legal=legal, beyond=True)
        assert (d.index, d.preferred, d.passes) == (winner, preferred, 1)
        assert d.preferred_by == pytest.approx(by, abs=1e-5)
        assert by_index(d, d.raw) == near(by_index(plain, plain.raw))
        assert by_index(d, d.scores) == near(by_index(plain, plain.scores))
        assert (d.margin, d.legal_mass) == pytest.approx((plain.margin, plain.legal_mass), abs=1e-5)


def test_the_ledger_sees_what_is_legal_only(bench: Bench) -> None:
    """Rows and legal ids of the choosing steps are the same, whether one looks beyond or not."""

    def watched(beyond: bool) -> list[tuple[tuple[int, ...], list[int]]]:
        seen: list[tuple[tuple[int, ...], list[int]]] = []
        bench(
            RuleName.EXACT,
            legal=[LEFT, UP],
            beyond=beyond,
            watch=lambda path, ids, row, normaliser: seen.append((path, ids.tolist())),
        )
        return seen

    assert watched(True) == watched(False) == [((), [bench.ids["left"], bench.ids["right"]])]


def test_nobody_looks_beyond_where_that_costs_much_or_means_nothing(
    bench: Bench, tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger tree, one that may not fit, a drawn sample, a choice that is forced or mixed with the planner's."""
    for rule in (Rule(RuleName.SAMPLE), Rule(RuleName.GREEDY), Rule(RuleName.EXACT, planner_weight=1.0)):
        assert bench(rule, legal=[UP, AX], beyond=True, prior=np.zeros(3)).preferred is None
    assert bench(RuleName.EXACT, legal=[AX], beyond=True).preferred is None
    assert Bench(tools, n_ctx=3)(RuleName.EXACT, legal=[UP, AX], beyond=True).preferred is None
    monkeypatch.setattr(beyond, "WIDER", 0)
    assert bench(RuleName.EXACT, legal=[UP, AX], beyond=True).preferred is None


def test_samples_follow_the_exact_distribution(bench: Bench) -> None:
    """Of 1000 draws 500, 400 and 100 are due, and five standard deviations are 80 at most."""
    seen = Counter(bench(Rule(RuleName.SAMPLE, seed=3), number=n).index for n in range(1000))
    for leaf, share in ((LEFT, 0.5), (UP, 0.4), (AX, 0.1)):
        assert abs(seen[leaf] - 1000 * share) < 5 * math.sqrt(1000 * share * (1 - share))


def test_a_sample_is_that_of_its_seed_and_number(bench: Bench, tools: SimpleNamespace) -> None:
    """Decision 17 alone is decision 17 of a session; another seed draws others."""
    session = [bench(Rule(RuleName.SAMPLE, seed=5), number=n).index for n in range(40)]
    assert [Bench(tools)(Rule(RuleName.SAMPLE, seed=5), number=n).index for n in (39, 17)] == [session[39], session[17]]
    assert session != [bench(Rule(RuleName.SAMPLE, seed=6), number=n).index for n in range(40)]


def test_temperature_sharpens_over_whole_opcodes(bench: Bench) -> None:
    """At 0.5 the probabilities are squared: 0.09, 0.0576 and 0.0036."""
    d = bench(Rule(RuleName.SAMPLE, temperature=0.5))
    total = 0.09 + 0.0576 + 0.0036
    assert by_index(d, d.shares) == near({LEFT: 0.09 / total, UP: 0.0576 / total, AX: 0.0036 / total})


def test_the_planner_weighs_as_much_as_it_is_told(bench: Bench) -> None:
    """Best and worst are W apart; what it does not know counts as worst. log 0.06 is -2.81, log 0.3 - 3 -4.20."""
    prior = np.array([np.nan, 0.0, 10.0])
    d = bench(Rule(RuleName.EXACT, planner_weight=3.0), prior=prior)
    assert d.index == AX
    assert by_index(d, d.scores) == near({LEFT: math.log(0.3) - 3, UP: math.log(0.24) - 3, AX: math.log(0.06)})
    assert bench(RuleName.EXACT, prior=prior).index == LEFT, "at weight 0 the model decides"


def test_a_single_legal_opcode_asks_nothing_of_the_model(bench: Bench) -> None:
    """No pass, no token, probability 1."""
    for rule in RuleName:
        d = bench(rule, nulls=["N"], legal=[AX])
        assert (d.text, d.stop, d.passes, d.tokens_evaluated, d.chosen_tokens) == ("rightax", Stop.FORCED, 0, 0, 0)
        assert d.probabilities == {"rightax": 1.0}
    assert bench.backend.decoded == []


def test_a_shared_beginning_is_evaluated_and_not_scored(bench: Bench) -> None:
    """Of `rightup` and `rightax` only what comes behind `right` counts: 0.4 and 0.1."""
    d = bench(RuleName.EXACT, legal=[UP, AX])
    assert by_index(d, d.raw) == near({UP: math.log(0.4), AX: math.log(0.1)})
    assert by_index(d, d.shares) == near({UP: 0.8, AX: 0.2})
    assert d.legal_mass == pytest.approx(0.5, abs=1e-5)


def test_ties_go_to_the_first_in_the_order_of_ids(tools: SimpleNamespace) -> None:
    """`ax` and `left` have 0.25 each; `left` has the lower id."""
    table = {("P",): {"left": 0.25, "ax": 0.25}}
    for texts in (["ax", "left"], ["left", "ax"]):
        bench = Bench(tools, table, texts)
        assert {bench(rule).text for rule in (RuleName.EXACT, RuleName.GREEDY)} == {"left"}
        assert bench(RuleName.EXACT).margin == 0


def test_insertion_order_does_not_matter(tools: SimpleNamespace) -> None:
    """The best wins wherever it stands in the list."""
    for texts in (TEXTS, TEXTS[::-1], [TEXTS[1], TEXTS[0], TEXTS[2]]):
        assert Bench(tools, texts=texts)(RuleName.EXACT).text == "left"


def test_calibrated_needs_a_null(bench: Bench) -> None:
    """Nothing is guessed in its place."""
    with pytest.raises(UsageError, match="'calibrated' needs at least one null prompt"):
        bench(RuleName.CALIBRATED)


def test_a_legal_set_of_other_opcodes_is_refused(bench: Bench, tools: SimpleNamespace) -> None:
    """Ranks of another trie would name other texts."""
    other = OpcodeSet(["up", "left"], bench.vocabulary)
    with pytest.raises(NoLegalOpcodeError, match="belongs to another set of opcodes"):
        bench.chooser.choose(Question(PromptIds((1,)), bench.opcodes, other.everything))


# -- nothing that is allowed, or nothing that can be trusted ---------------------------------------------------------


def test_no_opcode_and_no_legal_opcode_are_errors_before_any_pass(bench: Bench) -> None:
    """An empty set never means that everything is allowed."""
    with pytest.raises(BuildError, match="no opcodes to compile"):
        OpcodeSet([], bench.vocabulary)
    with pytest.raises(NoLegalOpcodeError, match="0 of 3 opcodes are legal"):
        Subset.of(bench.opcodes.trie, [])
    assert bench.backend.decoded == []


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY, RuleName.SAMPLE])
def test_legal_ids_that_are_all_impossible_are_an_error(tools: SimpleNamespace, rule: RuleName) -> None:
    """Whatever an illegal id has, it is never taken; a later decision is as if nothing had been."""
    bench = Bench(tools, patch={"left": -np.inf, "right": -np.inf, "z": 0.0})
    with pytest.raises(LogitsError, match=r"none of \d legal"):
        bench(rule)
    bench.patch = {}
    assert bench(RuleName.EXACT).scores.tolist() == Bench(tools)(RuleName.EXACT).scores.tolist()


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY, RuleName.SAMPLE])
@pytest.mark.parametrize("logit", [np.nan, np.inf, -np.inf])
def test_a_legal_id_that_is_no_number_is_impossible(tools: SimpleNamespace, rule: RuleName, logit: float) -> None:
    """`left` is out, the finite rest is chosen among, and no share is NaN."""
    bench = Bench(tools, patch={"left": logit})
    d = bench(rule)
    assert d.text.startswith("right")
    if rule is not RuleName.GREEDY:
        assert by_index(d, d.shares)[LEFT] == 0.0
        assert d.shares.sum() == pytest.approx(1.0)
        assert by_index(d, d.raw)[LEFT] == -math.inf


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY])
def test_a_row_without_a_number_is_an_error(tools: SimpleNamespace, rule: RuleName) -> None:
    """A row of NaN says nothing, and nothing is chosen."""
    bench = Bench(tools)
    bench.patch = dict.fromkeys(bench.ids, math.nan)
    with pytest.raises(LogitsError, match="no finite value"):
        bench(rule)


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY])
def test_a_constant_row_is_refused(tools: SimpleNamespace, rule: RuleName) -> None:
    """A buffer that nobody wrote is all zeros; the lowest id would win for ever."""
    bench = Bench(tools)
    bench.patch = dict.fromkeys(bench.ids, 0.0)
    with pytest.raises(LogitsError, match="a row that the model did not write"):
        bench(rule)


@pytest.mark.parametrize("logit", [np.inf, np.nan, -np.inf])
def test_an_illegal_id_that_is_no_number_changes_no_choice(tools: SimpleNamespace, logit: float) -> None:
    """`z` is no beginning of an opcode; without its small share of the mass the others hardly move."""
    plain, patched = Bench(tools)(RuleName.EXACT), Bench(tools, patch={"z": logit})(RuleName.EXACT)
    assert patched.index == plain.index
    assert patched.shares.tolist() == pytest.approx(plain.shares.tolist(), abs=1e-2)


def test_an_impossible_opcode_stays_impossible_whatever_the_null_says(tools: SimpleNamespace) -> None:
    """And one that only the null finds impossible is compared as if the null had nothing against it."""
    table = dict(TABLE) | {("P",): {"left": 0.3, "right": 0.6}, ("N",): {"left": 0.0, "right": 0.05}}
    with np.errstate(divide="ignore"):
        d = Bench(tools, table)(RuleName.CALIBRATED, nulls=["N"])
        assert by_index(d, d.scores)[LEFT] == pytest.approx(math.log(0.3), abs=1e-5)
        table[("P",)] = {"left": 0.0, "right": 0.6}
        d = Bench(tools, table)(RuleName.CALIBRATED, nulls=["N"])
    assert by_index(d, d.scores)[LEFT] == -math.inf
    assert by_index(d, d.shares)[LEFT] == 0.0


def test_the_full_vocabulary_is_read() -> None:
    """Of 50,000 ids the legal ones rank 31,002, 20,417 and 44,900: the second wins, no fallback, and the mass shows."""
    size = 50_000
    pieces = [f"<{i}>".encode() for i in range(size)]
    known = {piece: i for i, piece in enumerate(pieces)}
    vocabulary = Vocabulary(
        pieces, np.full(size, NORMAL, np.int32), lambda text, *_: [known[p + b">"] for p in text.split(b">")[:-1]]
    )
    ranks = {"<7>": 31_002, "<40000>": 20_417, "<123>": 44_900}
    order = [i for i in range(size) if f"<{i}>" not in ranks]
    for text, rank in sorted(ranks.items(), key=lambda item: item[1]):
        order.insert(rank, known[text.encode()])
    row = np.empty(size, np.float32)
    row[order] = np.linspace(10, -10, size)
    opcodes = OpcodeSet(list(ranks), vocabulary)
    for rule in (RuleName.EXACT, RuleName.GREEDY):
        chooser = Chooser(Memory(ScriptedBackend(vocabulary, lambda ids: row)))
        d = chooser.choose(Question(PromptIds((5,)), opcodes, rule=Rule(rule)))
        assert d.text == "<40000>"
        p = np.exp(row.astype(np.float64))
        legal = sum(p[known[text.encode()]] for text in ranks)
        assert d.legal_mass == pytest.approx(legal / p.sum(), rel=1e-4)
        assert d.legal_mass < 1e-4


# -- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", list(RuleName))
def test_memory_that_refuses_removal_gives_the_same_scores(tools: SimpleNamespace, rule: RuleName) -> None:
    """Five decisions in a row on recurrent memory: every score is that of a fresh session, and the refusals count."""
    recurrent = Bench(tools, shares_tokens=False)
    refused = 0
    learned = tools.made_up("scripted", recurrent.opcodes) if rule is RuleName.LEARNED else None
    for prompt in ("P", "PPP", "PPM", "P", "PP"):
        d = recurrent(rule, prompt=prompt, nulls=["N"], learned=learned)
        expected = Bench(tools)(rule, prompt=prompt, nulls=["N"], learned=learned)
        assert d.index == expected.index
        np.testing.assert_allclose(d.scores, expected.scores, atol=1e-6)
        refused += d.refused_removals
    assert refused > 0


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY])
@pytest.mark.parametrize("shares", [True, False])
def test_what_does_not_fit_is_refused_before_any_pass(tools: SimpleNamespace, rule: RuleName, shares: bool) -> None:
    """Nine cells take eight ids of prompt and one more; the next decision is that of a fresh session."""
    bench = Bench(tools, n_ctx=9, shares_tokens=shares)
    before = bench(rule)
    passes = len(bench.backend.decoded)
    for prompt in ("P" * 8, "P" * 300):
        with pytest.raises(ContextError, match=f"{len(prompt)} prompt ids.*n_ctx is 9"):
            bench(rule, prompt=prompt)
    assert len(bench.backend.decoded) == passes
    after = bench(rule)
    np.testing.assert_array_equal(after.scores, before.scores)


def test_only_the_longest_legal_opcode_has_to_fit(tools: SimpleNamespace) -> None:
    """`left` and `up` behind eight ids fit into nine cells, though `rightax`, illegal now, would not."""
    table = {("P",) * 8: {"left": 0.3, "up": 0.2}}
    for rule in (RuleName.EXACT, RuleName.GREEDY):
        bench = Bench(tools, table, ["left", "up", "rightax"], n_ctx=9)
        assert bench(rule, prompt="P" * 8, legal=[0, 1]).text == "left"


@pytest.mark.parametrize("rule", [RuleName.EXACT, RuleName.GREEDY, RuleName.CALIBRATED])
@pytest.mark.parametrize("shares", [True, False])
def test_a_decision_that_broke_off_leaves_no_residue(
    tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, rule: RuleName, shares: bool
) -> None:
    """Break each pass of a decision in turn; the next decision is the same as without."""
    nulls = ["N"] if rule is RuleName.CALIBRATED else []
    expected = Bench(tools, shares_tokens=shares)(rule, nulls=nulls)
    for broken in range(expected.passes):
        bench = Bench(tools, shares_tokens=shares)
        bench(rule, prompt="M", nulls=nulls)
        real, count = bench.backend.logits, iter(range(100))

        def logits(index: int) -> NDArray[np.float32]:
            if next(count) == broken:  # noqa: B023
                raise BackendError("unplugged")
            return real(index)  # noqa: B023

        monkeypatch.setattr(bench.backend, "logits", logits)
        with pytest.raises(BackendError, match="unplugged"):
            bench(rule, nulls=nulls)
        monkeypatch.setattr(bench.backend, "logits", real)
        again = bench(rule, nulls=nulls)
        np.testing.assert_allclose(again.scores, expected.scores, atol=1e-6)
        assert again.ids == expected.ids


def test_each_decision_starts_at_the_root(tools: SimpleNamespace) -> None:
    """Two in a row, then another: where the last one ended is of no account, and the prompt moves nothing."""
    bench = Bench(tools)
    for rule in (RuleName.GREEDY, RuleName.EXACT, RuleName.GREEDY):
        assert bench(rule, prompt="P").ids == Bench(tools)(rule, prompt="P").ids
        assert bench.memory.held == bench.vocabulary.plain("P")
        assert all(not bench.backend.sequence(s) for s in range(1, bench.backend.n_seq))


# -- more than is scored whole ---------------------------------------------------------------------------------------


@pytest.fixture
def tiny_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set that needs an evaluated token is too large to score whole."""
    monkeypatch.setattr(score, "TREE_LIMIT", 0)


@pytest.mark.usefixtures("tiny_limit")
def test_a_search_finds_the_winner_and_says_what_it_left_out(tools: SimpleNamespace) -> None:
    """`left` has 0.3, and what begins with `right` 0.6: so that is looked into; then 0.24 and 0.06 are known."""
    d = Bench(tools)(RuleName.EXACT)
    assert (d.index, d.passes) == (LEFT, 2)
    assert by_index(d, d.raw) == near({LEFT: math.log(0.3), UP: math.log(0.24), AX: math.log(0.06)})
    assert by_index(d, d.shares) == near({LEFT: 0.5, UP: 0.4, AX: 0.1})
    assert d.margin == pytest.approx(math.log(0.3 / 0.24), abs=1e-5)


@pytest.mark.usefixtures("tiny_limit")
def test_a_search_evaluates_nothing_that_cannot_win(tools: SimpleNamespace) -> None:
    """`left` has 0.7 and all that begins with `right` at most 0.2: one pass; the share is a lower bound, 7/9."""
    d = Bench(tools, {**TABLE, ("P",): {"left": 0.7, "right": 0.2}})(RuleName.EXACT)
    assert (d.index, d.passes, d.tokens_evaluated) == (LEFT, 1, 1)
    assert d.probability == pytest.approx(7 / 9, abs=1e-5)
    assert d.margin == pytest.approx(math.log(0.7 / 0.2), abs=1e-5)
    assert math.isnan(by_index(d, d.shares)[UP])
    assert np.nansum(d.shares) == pytest.approx(7 / 9, abs=1e-5)


@pytest.mark.usefixtures("tiny_limit")
@pytest.mark.parametrize(("calibration", "winner"), [(0.0, LEFT), (0.5, UP), (1.0, AX)])
def test_a_search_is_calibrated_too(tools: SimpleNamespace, calibration: float, winner: int) -> None:
    """The null of every opcode is known once; the search then looks for the highest difference."""
    bench = Bench(tools)
    d = bench(Rule(RuleName.CALIBRATED, calibration), nulls=["N"])
    assert d.index == winner
    assert np.nansum(d.shares) <= 1 + 1e-9
    again = bench(Rule(RuleName.CALIBRATED, calibration), nulls=["N"])
    assert again.index == winner
    assert again.passes < d.passes


@pytest.mark.usefixtures("tiny_limit")
def test_shares_after_a_calibrated_search_are_lower_bounds(tools: SimpleNamespace) -> None:
    """`left` is at 0.7 / 0.01 = 70; below `right` is at most 0.2 / 0.0025 = 80, so that is looked into: 4 and 8.

    With 0.15 it is 60 at most, not looked into, and counted as 60: 70 / 130.
    """
    table = {**TABLE, ("P",): {"left": 0.7, "right": 0.2}, ("N",): {"left": 0.01, "right": 0.05}}
    d = Bench(tools, table)(RuleName.CALIBRATED, nulls=["N"])
    assert (d.index, d.probability) == (LEFT, pytest.approx(70 / 82, abs=1e-4))
    table[("P",)] = {"left": 0.7, "right": 0.15}
    d = Bench(tools, table)(RuleName.CALIBRATED, nulls=["N"])
    assert (d.index, d.probability) == (LEFT, pytest.approx(70 / 130, abs=1e-4))
    assert d.margin == pytest.approx(math.log(70 / 60), abs=1e-4)


@pytest.mark.usefixtures("tiny_limit")
def test_a_null_that_would_take_hours_is_refused(tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any pass; `exact` goes on."""
    monkeypatch.setattr(nulls, "LIMIT", 0)
    bench = Bench(tools)
    with pytest.raises(UsageError, match="3 legal opcodes needs more than 0 tokens; use 'exact'"):
        bench(RuleName.CALIBRATED, nulls=["N"])
    assert bench.backend.decoded == []
    assert bench(RuleName.EXACT).index == LEFT


@pytest.mark.usefixtures("tiny_limit")
def test_a_search_minds_the_planner(tools: SimpleNamespace) -> None:
    """As where all are scored."""
    d = Bench(tools)(Rule(RuleName.EXACT, planner_weight=3.0), prior=np.array([np.nan, 0.0, 10.0]))
    assert d.index == AX
    assert d.scores[d.position] == pytest.approx(math.log(0.06), abs=1e-5)


@pytest.mark.usefixtures("tiny_limit")
def test_a_search_cannot_sample(tools: SimpleNamespace) -> None:
    """The distribution over all is what it does not know."""
    with pytest.raises(UsageError, match="3 legal opcodes are too many to sample over"):
        Bench(tools)(RuleName.SAMPLE)


@pytest.mark.usefixtures("tiny_limit")
def test_a_search_among_impossible_opcodes_is_an_error(tools: SimpleNamespace) -> None:
    """As where all are scored."""
    with pytest.raises(LogitsError, match="none of 3 legal opcodes has a finite log-probability"):
        Bench(tools, patch={"left": -np.inf, "right": np.nan})(RuleName.EXACT)


# -- numbers at the edge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [Rule(RuleName.SAMPLE, temperature=t) for t in (1e-300, 1e-3, 1e300)] + [None])
@pytest.mark.parametrize("patch", [{"left": -math.inf}, {"left": 3e38, "up": -3e38}, {"right": -math.inf, "up": 80.0}])
def test_no_number_is_lost_without_a_word(tools: SimpleNamespace, rule: Rule | None, patch: dict[str, float]) -> None:
    """Rows with -inf and with the largest numbers, and temperatures at both ends: no warning, and shares that add up.

    The kind of fault: arithmetic on infinities, of which numpy only warns (a warning fails the test).
    """
    bench = Bench(tools, patch=patch)
    d = bench(rule, nulls=["N"]) if rule is None else bench(rule)
    assert np.nansum(d.shares) == pytest.approx(1.0)
    assert np.isfinite(d.scores[d.position])


@pytest.mark.parametrize("size", [-1, 1])
def test_a_row_of_another_width_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Narrower or wider than the vocabulary: a typed error, not one of numpy."""
    row = bench.backend.row
    width = len(bench.vocabulary) + size
    monkeypatch.setattr(bench.backend, "row", lambda ids: np.resize(row(ids), width))
    with pytest.raises(LogitsError, match=f"a row of {width} logits for a vocabulary of {len(bench.vocabulary)}"):
        bench(RuleName.EXACT)


@pytest.mark.parametrize("indices", [[-1], [0, 5], [3], [-1, 0, 1]])
def test_an_opcode_that_is_not_there_is_no_legal_one(bench: Bench, indices: list[int]) -> None:
    """Of three opcodes. The kind of fault: an index out of range counted as one more, or from the end."""
    odd = next(i for i in indices if not 0 <= i < 3)
    with pytest.raises(NoLegalOpcodeError, match=f"there is no opcode {odd}; the set has those from 0 to 2"):
        bench.opcodes.subset_of(indices)
