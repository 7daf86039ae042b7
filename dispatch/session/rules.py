"""A rule as a person writes it: its name, and its parameters behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import UsageError
from kernel.tools.caller import PRIOR

WEIGHED = (RuleName.CALIBRATED, RuleName.EXACT)
"""The rules under which words in common count when a tool is chosen."""

OWN_PARAMETER = {RuleName.CALIBRATED.value: "calibration", RuleName.SAMPLE.value: "temperature"}
"""The parameter of a rule that needs no name."""


def make_rule(text: str | None, *, seed: int = 0, where: str = "--rule") -> Rule:
    """Return the rule that a text names; None is the default rule.

    A number behind the name is the rule's own parameter. `planner_weight` may follow by name.

    Args:
        seed: of `sample`.
        where: begins the error.
    Raises:
        UsageError: no such rule or parameter, or a value that the parameter cannot have.

    >>> rule = make_rule("sample:0.7,planner_weight=2", seed=3)
    >>> rule.temperature, rule.seed, rule.planner_weight
    (0.7, 3, 2.0)
    >>> make_rule("exact:0.5")
    Traceback (most recent call last):
    kernel.errors.UsageError: --rule 'exact:0.5': 'exact' has no parameter but planner_weight=NUMBER
    """
    name, _, rest = (text or RuleName.CALIBRATED).partition(":")
    own = OWN_PARAMETER.get(name)
    given: dict[str, float] = {}
    for each in filter(None, rest.split(",")):
        parameter, _, value = each.rpartition("=")
        parameter = parameter or own or ""
        try:
            given[parameter] = float(value)
        except ValueError:
            raise UsageError(f"{where} {text!r}: {value!r} is not a number") from None
        if parameter not in (own, "planner_weight"):
            known = "no parameter but" if own is None else f"the parameters {own}=NUMBER and"
            raise UsageError(f"{where} {text!r}: {name!r} has {known} planner_weight=NUMBER")
    return Rule(name, seed=seed, **given)  # type: ignore[arg-type]


def rule_for(rule: Rule, cartridges: Sequence[Cartridge]) -> Rule:
    """Return the rule by which a session of some cartridges decides.

    Of tools, words in common with the request are a prior: its weight is that of the rule, which logs have.
    """
    tools = len(cartridges) == 1 and cartridges[0].tools
    if not tools or rule.planner_weight or rule.name not in WEIGHED:
        return rule
    return replace(rule, planner_weight=PRIOR)
