"""Fits the weights by which it is told whether a tool is meant at all (kernel/tools/meant.py), on development cases.

    python benchmarks/fit_meant.py

A logistic regression over the words that a request and the best matching tool have in common and over what the tool
needs and the request says. To the leaderboard's categories come plain requests (plain_requests.py), as one speaks to a
house or a file server, and two that are made, since hardly a case of their kind is left: one like `multiple`, a case of
`simple_python` with one to three functions of others, and one like `live_simple`, a case of `live_multiple` with the
right function alone. Told by five-fold cross-validation over functions is the share of each category that is held
back, at thresholds where so much of those that mean a tool is.
The last line of stdout is one JSON document.
"""

from __future__ import annotations

import random
from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np
from bfcl_cases import CATEGORIES, Case, cases
from call_peers import LONGEST, opcodes
from harness import make_parser, publish
from numpy.typing import NDArray
from plain_requests import UNWANTED, WANTED
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from kernel.tools.matching import comparable, matches
from kernel.tools.meant import Words, words_of

WEIGHT = {
    "irrelevance": 8.0, "live_irrelevance": 1.0, "plain, none": 6.0, "plain": 3.0,
    "simple_python": 1.0, "multiple-like": 1.0, "live_simple": 2.0, "live_multiple": 0.4, "live_simple-like": 0.4,
}  # fmt: skip
"""Of a case: there are few of some categories, and the weights are for all of them."""
GOALS = (0.03, 0.04, 0.05, 0.06)
STRENGTH = 0.3
"""Inverse of the penalty, for signs of about one size."""


def main() -> None:
    """Read, fit, print."""
    given = make_parser(__doc__).parse_args()
    rows, wanted, groups, names = [], [], [], []
    for kind, case in _cases():
        found = list(opcodes(case))
        if not found or not comparable(case.request):
            continue
        request = case.request[:LONGEST]
        rows.append(astuple(words_of(request, found, matches(request, found))))
        wanted.append(bool(case.wanted))
        groups.append(case.wanted or min(opcode.original for opcode in found))
        names.append(kind)
    values, right, category = np.array(rows, float), np.array(wanted), np.array(names)
    weights = np.array([WEIGHT[name] for name in names])
    odds = np.zeros(len(right))
    for train, test in GroupKFold(5).split(values, right, groups):
        odds[test] = _fitted(values[train], right[train], weights[train]).decision_function(values[test])
    model = _fitted(values, right, weights)
    own = model.decision_function(values)
    told: dict[str, Any] = {}
    for goal in GOALS:
        told[str(goal)] = {
            "held back in cross-validation": _shares(odds, category, _threshold(odds, category, goal)),
            "bias": round(float(model.intercept_[0]) - _threshold(own, category, goal), 2),
        }
        print(f"{goal:.0%} of those that mean a tool: {told[str(goal)]}")
    found_weights = dict(zip([field.name for field in fields(Words)], model.coef_[0].round(2).tolist(), strict=True))
    print(found_weights)
    publish("fit_meant", {"cases": len(rows), "weights": found_weights, "thresholds": told}, given.out)


def _cases() -> list[tuple[str, Case]]:
    found = [(name, case) for name in WEIGHT if name in CATEGORIES for case in cases(name, dev=True)]
    for some, wanted in WANTED:
        for tool, requests in wanted.items():
            found += [("plain", Case("", "plain", text, tuple(some), ({tool: {}},))) for text in requests]
    for some, requests in UNWANTED:
        found += [("plain, none", Case("", "plain", text, tuple(some), ())) for text in requests]
    for name, case in tuple(found):
        if name == "live_multiple":
            right = tuple(function for function in case.functions if function["name"] == case.wanted)
            found.append(("live_simple-like", replace(case, functions=right)))
    simple, rng = [case for name, case in found if name == "simple_python"], random.Random(7)
    for case in simple:
        others = [each.functions[0] for each in rng.sample(simple, rng.choice((1, 2, 3))) if each is not case]
        found.append(("multiple-like", replace(case, functions=(*others, *case.functions))))
    return found


def _fitted(values: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64]) -> LogisticRegression:
    scale = values.std(axis=0) + 1e-9
    model = LogisticRegression(C=STRENGTH, max_iter=500).fit(values / scale, right, sample_weight=weights)
    model.coef_ = model.coef_ / scale  # of the signs as they are
    return model


def _threshold(odds: NDArray[np.float64], category: NDArray[np.str_], goal: float) -> float:
    """Return the largest threshold that holds back a goal of the relevant cases, as a mean over their categories."""
    relevant = [name for name in WEIGHT if "irrelevance" not in name and "none" not in name]
    held = [
        t for t in np.unique(odds) if np.mean([_shares(odds, category, t)[name] for name in relevant]) <= 100 * goal
    ]
    return float(max(held, default=float(odds.min())))


def _shares(odds: NDArray[np.float64], category: NDArray[np.str_], threshold: float) -> dict[str, float]:
    return {name: round(100 * float(np.mean(odds[category == name] < threshold)), 1) for name in WEIGHT}


if __name__ == "__main__":
    main()
