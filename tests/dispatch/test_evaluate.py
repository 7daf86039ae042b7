"""Labelled states through a rule: counts, intervals, positions, chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.session.evaluate import evaluate
from dispatch.session.metrics import aurc, calibration_error, separation, wilson
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary

PIECES = [b"\n", *(bytes([b]) for b in range(32, 127))]
OF = {piece: i for i, piece in enumerate(PIECES)}


def kernel() -> Kernel:
    """A model that says the first letter of the line above: `b?` makes it want ` b`."""

    def tokenize(text: bytes, *_: bool) -> list[int]:
        return [OF[bytes([b])] for b in text]

    vocabulary = Vocabulary(PIECES, np.full(len(PIECES), NORMAL, np.int32), tokenize)

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.zeros(len(PIECES), np.float32)
        out[ids[0]] = 5.0
        return out

    return Kernel(ScriptedBackend(vocabulary, row))


def case(n: int, says: str, options: Sequence[str], answer: str, split: str = "test") -> Case:
    return Case(f"c{n}", Prompt((Part(f"{says}?"),), ((Part("-?"),),)), tuple(options), answer, split)


CASES = [
    case(1, "b", [" a", " b"], " b"),
    case(2, "a", [" a", " b"], " a"),
    case(3, "a", [" a", " b"], " b"),
    case(4, "d", [" a", " b", " c", " d"], " d"),
    case(5, "a", [" a", " b"], " b", split="dev"),
]


@pytest.mark.parametrize("rule", [RuleName.GREEDY, RuleName.EXACT, RuleName.CALIBRATED])
def test_right_answers_and_positions_are_counted(rule: RuleName) -> None:
    """Three of four are right; second, first, first and fourth option were picked; chance is (3/2 + 1/4) / 4."""
    found = evaluate(kernel(), CASES, Rule(rule), model="toy", name="letters")
    assert (found.cases, found.correct, found.accuracy) == (4, 3, 0.75)
    assert found.positions == (2, 1, 0, 1)
    assert found.chance == pytest.approx((3 * 0.5 + 0.25) / 4)
    assert (found.low, found.high) == wilson(3, 4)
    assert (found.model, found.set, found.split, found.rule) == ("toy", "letters", "test", str(rule))
    assert found.passes == 1
    assert found.tokens > 1


def test_each_wrong_answer_is_told() -> None:
    """Kind: a count that cannot be looked into. The third case says a, which is wrong; by how much stands beside it."""
    found = evaluate(kernel(), CASES, Rule(RuleName.EXACT), model="toy", name="letters")
    (wrong,) = found.failed
    assert (wrong.id, wrong.answer, wrong.choice) == ("c3", " b", " a")
    assert wrong.margin == pytest.approx(5.0, abs=1e-3)
    assert found.correct + len(found.failed) == found.cases


def test_splits_are_kept_apart() -> None:
    """One case is of `dev`; `all` is five."""
    assert evaluate(kernel(), CASES, Rule(RuleName.EXACT), model="", name="", split="dev").correct == 0
    assert evaluate(kernel(), CASES, Rule(RuleName.EXACT), model="", name="", split="all").cases == 5
    with pytest.raises(UsageError, match=r"letters: no case in the split 'train'; there is: \['dev', 'test'\]"):
        evaluate(kernel(), CASES, Rule(RuleName.EXACT), model="", name="letters", split="train")


def test_progress_is_told_case_by_case() -> None:
    """Done and of how many."""
    told: list[tuple[int, int]] = []
    evaluate(kernel(), CASES, Rule(RuleName.EXACT), model="", name="", progress=lambda *at: told.append(at))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("rule", [RuleName.GREEDY, RuleName.EXACT, RuleName.CALIBRATED])
def test_an_option_that_begins_another_can_be_had_and_so_can_the_other(rule: RuleName) -> None:
    """A model that wants an end behind ` a` gets ` a`, and one that wants more gets ` aa`."""
    cases = [case(1, "\n", [" a", " aa"], " a"), case(2, "a", [" a", " aa"], " aa")]
    found = evaluate(kernel(), cases, Rule(rule), model="", name="")
    assert (found.correct, found.positions) == (2, (1, 1))


@pytest.mark.parametrize(
    ("correct", "cases", "low", "high"),
    [(8, 10, 0.490, 0.943), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (0, 0, 0, 1)],
)
def test_the_interval_is_wilsons(correct: int, cases: int, low: float, high: float) -> None:
    """Values of the textbook: 8 of 10 is 0.490 to 0.943, 0 of 10 ends at 0.278."""
    found = wilson(correct, cases)
    assert found[0] == pytest.approx(low, abs=1e-3)
    assert found[1] == pytest.approx(high, abs=1e-3)


def test_cases_that_ask_for_nothing_are_right_where_nothing_is_done() -> None:
    """The null prompt wants `-`. A letter asked for is e^5 times as likely as behind it; of `z` there is no option.

    Five decisions, by how likely the choice is: three of a letter (two right), then `z` twice, which is a draw between
    two or four. Risks of the most confident ones: 1/3 for the three, then 2/4, 3/5; AURC is their mean.
    """
    nothing = [
        replace(case(6, "z", [" a", " b"], ""), kind="odd"),
        case(7, "z", [" a", " b", " c", " d"], ""),
    ]
    found = evaluate(
        kernel(), [*CASES[:3], *nothing], Rule(RuleName.CALIBRATED), model="toy", name="x", judge=Thresholds()
    )
    assert (found.cases, found.correct) == (3, 2)
    assert [(f.id, f.answer, f.outcome) for f in found.failed] == [("c3", " b", Outcome.CHOSEN)]
    held = found.held
    assert held is not None
    assert held.outcomes == {"chosen": 3, "none": 2}
    assert (held.coverage.count, held.coverage.of) == (3, 5)
    assert (held.accuracy.count, held.accuracy.of) == (2, 3)
    assert (held.held_right.count, held.held_right.of) == (0, 2)
    assert (held.nothing_done.count, held.nothing_done.of, held.nothing_done.share) == (2, 2, 1.0)
    assert held.nothing_done_by_kind["odd"].of == 1
    assert held.separation == 1.0
    assert [risk for _, risk in held.curve] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 4, 3 / 5])
    assert held.aurc == pytest.approx((1 + 2 / 4 + 3 / 5) / 5)
    sure = 1 / (1 + math.exp(-5))
    assert held.calibration_error == pytest.approx(sure - 2 / 3, abs=1e-4)
    assert {(c.right, c.said): c.times for c in held.confusion} == {
        ("a", "a"): 1, ("b", "b"): 1, ("b", "a"): 1, ("none", "none"): 2
    }  # fmt: skip


def test_what_is_right_may_be_held_back() -> None:
    """Thresholds that nothing reaches: nothing is acted on, two of the right ones and the wrong one are held."""
    found = evaluate(kernel(), CASES[:3], Rule(RuleName.CALIBRATED), model="", name="", judge=Thresholds(top=99.0))
    assert found.held is not None
    assert (found.held.coverage.count, found.held.accuracy.share) == (0, None)
    assert (found.held.held_right.count, found.correct, len(found.failed)) == (2, 2, 1)


def test_measures_of_nothing_are_none() -> None:
    """Without decisions there is no area and no error."""
    assert (aurc([]), calibration_error([], []), separation([], [1.0])) == (None, None, None)
    assert separation([math.nan, 2.0], [1.0]) == 0.5
