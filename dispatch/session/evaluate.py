"""Puts labelled cases to a model under one rule and counts: right answers, the positions picked, passes, tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from kernel.api import Kernel
from kernel.choose.question import Question
from kernel.choose.rule import Rule
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.trie.opcodes import Literal

CLOSER = "\n"
"""Stands behind every option, as the wire's closer does; it is scored only where one option begins another."""

Z95 = 1.959963984540054


class Failed(BaseModel):
    """A case that was answered wrongly: what was asked, what is right, what was chosen, and how clearly."""

    model_config = ConfigDict(frozen=True)

    id: str
    request: str
    """Empty where the case is no request."""
    answer: str
    choice: str
    margin: float
    """Score of the choice minus that of the second."""


class Result(BaseModel):
    """What one rule did on one split of one set of cases with one model."""

    model_config = ConfigDict(frozen=True)

    model: str
    set: str
    split: str
    rule: str
    cases: int
    correct: int
    accuracy: float
    low: float
    """Lower end of the 95 % interval (Wilson)."""
    high: float
    chance: float
    """Accuracy of a blind pick."""
    positions: tuple[int, ...]
    """How often the first option, the second ... was picked."""
    passes: float
    """Mean passes a decision."""
    tokens: float
    """Mean tokens evaluated a decision."""
    failed: tuple[Failed, ...] = ()
    """The cases that were answered wrongly, in their order."""


def wilson(correct: int, cases: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927, JASA 22:209).

    >>> [round(x, 3) for x in wilson(8, 10)]
    [0.49, 0.943]
    """
    if not cases:
        return 0.0, 1.0
    share, z2 = correct / cases, Z95**2
    centre = share + z2 / (2 * cases)
    spread = Z95 * math.sqrt(share * (1 - share) / cases + z2 / (4 * cases**2))
    scale = 1 + z2 / cases
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def evaluate(
    kernel: Kernel,
    cases: Sequence[Case],
    rule: Rule,
    *,
    model: str,
    name: str,
    split: str = "test",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Decide every case of a split and compare with its answer.

    Raises UsageError when there is no case in the split.
    """
    chosen = [case for case in cases if split in ("all", case.split)]
    if not chosen:
        raise UsageError(f"{name}: no case in the split {split!r}; there is: {sorted({c.split for c in cases})}")
    passes, tokens = 0, 0
    failed: list[Failed] = []
    picked: Counter[int] = Counter()
    for number, case in enumerate(chosen, 1):
        opcodes = kernel.compile([Literal(option, CLOSER) for option in case.options])
        decision = kernel.decide(Question(kernel.ids(case.prompt), opcodes, rule=rule, number=number))
        choice = case.options[decision.index]
        if choice != case.answer:
            failed.append(
                Failed(
                    id=case.id,
                    request=case.request,
                    answer=case.answer,
                    choice=choice,
                    margin=round(decision.margin, 4),
                )
            )
        picked[decision.index] += 1
        passes += decision.passes
        tokens += decision.tokens_evaluated
        progress(number, len(chosen))
    correct = len(chosen) - len(failed)
    low, high = wilson(correct, len(chosen))
    return Result(
        model=model,
        set=name,
        split=split,
        rule=str(rule.name),
        cases=len(chosen),
        correct=correct,
        accuracy=correct / len(chosen),
        low=low,
        high=high,
        chance=sum(1 / len(case.options) for case in chosen) / len(chosen),
        positions=tuple(picked[n] for n in range(max(len(c.options) for c in chosen))),
        passes=passes / len(chosen),
        tokens=tokens / len(chosen),
        failed=tuple(failed),
    )
