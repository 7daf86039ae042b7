"""Parameters of rules: what makes no sense is refused where it is said."""

from __future__ import annotations

import math

import pytest

from kernel.choose.rule import Rule, RuleName
from kernel.errors import UsageError


def test_a_rule_is_found_by_its_name() -> None:
    """The five names, as text too."""
    names = ("greedy", "exact", "calibrated", "sample", "learned")
    assert [Rule(name).name for name in names] == list(RuleName)  # type: ignore[arg-type]


def test_the_default_leaves_the_decision_to_the_model() -> None:
    """Calibrated in full, no planner."""
    rule = Rule()
    assert (rule.name, rule.calibration, rule.planner_weight) == (RuleName.CALIBRATED, 1.0, 0.0)


def test_an_unknown_rule_names_what_was_probably_meant() -> None:
    """In plain words, without the name of a class."""
    with pytest.raises(UsageError) as caught:
        Rule("exat")  # type: ignore[arg-type]
    assert str(caught.value) == "no rule 'exat'; did you mean 'exact'?"


@pytest.mark.parametrize("calibration", [-0.1, 1.1, math.nan])
def test_calibration_is_between_0_and_1(calibration: float) -> None:
    """NaN is neither."""
    with pytest.raises(UsageError, match=r"calibration=.* is outside 0\.\.1"):
        Rule(calibration=calibration)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_temperature_is_above_0_and_finite(temperature: float) -> None:
    """At 0 one would mean `exact`; at infinity nothing of the model is left."""
    with pytest.raises(UsageError, match="temperature"):
        Rule(RuleName.SAMPLE, temperature=temperature)


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_the_planners_weight_is_a_finite_number(weight: float) -> None:
    """Else every score would be one, too."""
    with pytest.raises(UsageError, match=r"planner_weight=.* is not a finite number"):
        Rule(planner_weight=weight)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_seed_is_a_whole_number_from_0_on(seed: float) -> None:
    """What draws takes no other."""
    with pytest.raises(UsageError, match=r"seed=.* is no whole number"):
        Rule(RuleName.SAMPLE, seed=seed)  # type: ignore[arg-type]
