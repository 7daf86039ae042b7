"""How a decision ends, on the model of test_choose, whose every probability is written down.

P (prompt)  left 0.3   rightup 0.24  rightax 0.06
N (null)    left 0.9   rightup 0.02  rightax 0.0025
ratio       left 1/3   rightup 12    rightax 24        their logarithms: -1.099, 2.485, 3.178; of their sum: 3.593
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.backends.scripted import ScriptedBackend
from kernel.choose import score
from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision, Stop
from kernel.choose.many import choose_many
from kernel.choose.outcome import Evidence, Outcome, Thresholds
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import UsageError
from kernel.memory.memory import Memory
from kernel.trie.opcodes import OpcodeSet

LEFT, UP, AX = 0, 1, 2
NOTHING = Thresholds(top=None, margin=None, beyond=None)
"""Looks at nothing; what a test is about is added."""
TABLE = {
    ("P",): {"left": 0.3, "right": 0.6},
    ("P", "right"): {"up": 0.4, "ax": 0.1},
    ("N",): {"left": 0.9, "right": 0.05},
    ("N", "right"): {"up": 0.4, "ax": 0.05},
}


class Bench:
    """The three opcodes, and a backend that answers from the table."""

    def __init__(self, tools: SimpleNamespace) -> None:
        self.vocabulary = tools.toy_vocabulary(["left", "right", "up", "ax"])
        self.ids = {piece.decode(): i for i, piece in enumerate(self.vocabulary.pieces)}
        self.chooser = Chooser(Memory(ScriptedBackend(self.vocabulary, self.row)))
        self.opcodes = OpcodeSet(["left", "rightup", "rightax"], self.vocabulary)

    def row(self, ids: tuple[int, ...]) -> NDArray[np.float32]:
        """Logarithms of what the table says; what it leaves over is spread over all other ids."""
        said = TABLE[tuple(self.vocabulary.pieces[i].decode() for i in ids)]
        size = len(self.vocabulary)
        out = np.full(size, (1 - sum(said.values())) / (size - len(said)))
        for piece, probability in said.items():
            out[self.ids[piece]] = probability
        return np.log(out).astype(np.float32)

    def question(self, legal: Sequence[int], rule: RuleName, **more: object) -> Question:
        """What is asked behind P, with N where the rule is calibrated."""
        nulls = (tuple(self.vocabulary.plain("N")),) if rule is RuleName.CALIBRATED else ()
        prompt = PromptIds(tuple(self.vocabulary.plain("P")), nulls)
        return Question(prompt, self.opcodes, self.opcodes.subset_of(legal), Rule(rule), **more)  # type: ignore[arg-type]

    def __call__(
        self, legal: Sequence[int] = (LEFT, UP, AX), rule: RuleName = RuleName.CALIBRATED, **more: object
    ) -> Decision:
        """Decide it."""
        return self.chooser.choose(self.question(legal, rule, **more))


@pytest.fixture
def bench(tools: SimpleNamespace) -> Bench:
    return Bench(tools)


def test_the_evidence_is_what_the_table_says(bench: Bench) -> None:
    """Everything follows from six numbers; without a null prompt nothing says what the request made likelier."""
    found = bench().evidence
    assert (found.top, found.total) == pytest.approx((math.log(24), math.log(1 / 3 + 12 + 24)), abs=1e-5)
    assert (found.share, found.margin) == pytest.approx((24 / (1 / 3 + 36), math.log(2)), abs=1e-5)
    assert (found.mass, found.beyond) == pytest.approx((0.9, 0.0), abs=1e-5)
    exact = bench(rule=RuleName.EXACT).evidence
    assert math.isnan(exact.top)
    assert math.isnan(exact.total)
    assert exact.margin == pytest.approx(math.log(0.3 / 0.24), abs=1e-5)


@pytest.mark.parametrize(
    ("judge", "outcome", "close"),
    [
        (None, Outcome.CHOSEN, ()),
        (NOTHING, Outcome.CHOSEN, ()),
        (Thresholds(), Outcome.CHOSEN, ()),
        (Thresholds(top=3.17), Outcome.CHOSEN, ()),
        (Thresholds(top=3.19), Outcome.NONE, ()),
        (Thresholds(total=3.58), Outcome.CHOSEN, ()),
        (Thresholds(total=3.60), Outcome.NONE, ()),
        (Thresholds(share=0.67), Outcome.NONE, ()),
        (Thresholds(mass=0.91), Outcome.NONE, ()),
        (Thresholds(meant=9.0), Outcome.CHOSEN, ()),
        (Thresholds(margin=0.69), Outcome.CHOSEN, ()),
        (Thresholds(margin=0.70), Outcome.UNSURE, ("rightax", "rightup")),
        (Thresholds(top=3.19, margin=0.70), Outcome.NONE, ()),
    ],
)
def test_thresholds_hold_back_what_is_below_them(
    bench: Bench, judge: Thresholds | None, outcome: Outcome, close: tuple[str, ...]
) -> None:
    """Whatever the outcome, the best opcode and its scores are the same. What is not known holds nothing back."""
    d = bench(judge=judge)
    assert (d.outcome, d.close) == (outcome, close)
    assert (d.index, d.passes) == (AX, 1)


def test_a_wish_that_is_not_legal_is_told_apart(bench: Bench) -> None:
    """`rightax` is meant and not legal. The evidence is that of all opcodes, so it is not taken for nothing at all."""
    d = bench([LEFT, UP], judge=Thresholds(), beyond=True)
    assert (d.outcome, d.text, d.preferred_text) == (Outcome.NOT_LEGAL, "rightup", "rightax")
    assert (d.preferred_by, d.evidence.beyond) == pytest.approx((math.log(2), math.log(2)), abs=1e-5)
    assert d.evidence.top == pytest.approx(math.log(24), abs=1e-5)
    assert bench([LEFT, UP], judge=Thresholds(top=3.19), beyond=True).outcome is Outcome.NONE
    assert bench([LEFT, UP], judge=Thresholds(beyond=0.7), beyond=True).outcome is Outcome.CHOSEN
    assert bench([LEFT, UP], judge=Thresholds()).outcome is Outcome.CHOSEN  # nobody looked
    assert bench([UP, AX], judge=Thresholds(), beyond=True).outcome is Outcome.CHOSEN


@pytest.mark.parametrize(
    ("legal", "rule", "outcome"),
    [
        (UP, RuleName.CALIBRATED, Outcome.NOT_LEGAL),
        (AX, RuleName.CALIBRATED, Outcome.CHOSEN),
        (AX, RuleName.EXACT, Outcome.NOT_LEGAL),
        (LEFT, RuleName.EXACT, Outcome.CHOSEN),
    ],
)
def test_the_model_is_asked_where_one_opcode_is_legal_and_another_may_be_meant(
    bench: Bench, legal: int, rule: RuleName, outcome: Outcome
) -> None:
    """A judge has to know; without one the only legal opcode is forced and costs nothing."""
    d = bench([legal], rule, judge=Thresholds(), beyond=True)
    assert (d.index, d.outcome, d.stop, d.passes) == (legal, outcome, Stop.FORCED, 1)
    assert d.shares.tolist() == [1.0]
    for alone in (bench([legal], rule, beyond=True), bench([legal], rule, judge=Thresholds())):
        assert (alone.index, alone.outcome, alone.stop, alone.passes) == (legal, Outcome.CHOSEN, Stop.FORCED, 0)


def test_draws_and_walks_have_no_margin_to_be_unsure_by(bench: Bench) -> None:
    """A draw may fall on what is behind, and a walk compares no whole opcodes."""
    for rule in (RuleName.SAMPLE, RuleName.GREEDY):
        d = bench(rule=rule, judge=Thresholds(margin=100.0))
        assert (d.outcome, math.isnan(d.evidence.margin)) == (Outcome.CHOSEN, True)


def test_a_search_knows_what_it_proved(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The winner's ratio is known; the margin is at least what nothing else can exceed."""
    monkeypatch.setattr(score, "TREE_LIMIT", 0)
    found = bench().evidence
    assert found.top == pytest.approx(math.log(24), abs=1e-5)
    assert 0 < found.margin <= math.log(2) + 1e-5
    assert bench(judge=Thresholds(top=3.19)).outcome is Outcome.NONE


def test_several_questions_end_as_each_would_alone(bench: Bench) -> None:
    """Two judges, one shared pass."""
    asked = [bench.question([LEFT, UP, AX], RuleName.CALIBRATED, judge=j) for j in (Thresholds(), Thresholds(top=4.0))]
    assert [d.outcome for d in choose_many(bench.chooser, asked)] == [Outcome.CHOSEN, Outcome.NONE]


def test_thresholds_are_values_that_json_carries() -> None:
    """There and back; a name or a value that is none is told."""
    made = Thresholds(top=None, meant=-0.5)
    assert Thresholds.of(json.loads(json.dumps(made.as_json()))) == made
    with pytest.raises(UsageError, match="no threshold 'tip'; did you mean 'top'"):
        Thresholds.of({"tip": 1.0})
    for value in (math.nan, math.inf, "1", True):
        with pytest.raises(UsageError, match="no finite number"):
            Thresholds(top=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["top", "total", "share", "mass", "meant", "margin"])
def test_nothing_is_held_back_by_what_is_not_known(name: str) -> None:
    """NaN is below nothing."""
    assert Thresholds(**{"top": None, "margin": None, name: 5.0}).judge(Evidence()) is Outcome.CHOSEN
