"""Puts labelled cases to a model under one rule and counts: right answers, the positions picked, passes, tokens.

Each case is decided once and looked at twice: as if something is always chosen, and as a judge ends it. A case whose
answer is "" asks for nothing of what there is, and is right where nothing is done.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from dispatch.session.metrics import (
    Confusion,
    Share,
    aurc,
    calibration_error,
    confusion,
    risk_coverage,
    separation,
    wilson,
)
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge, Outcome
from kernel.choose.question import Question
from kernel.choose.rule import Rule
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.trie.opcodes import Literal

CLOSER = "\n"
"""Stands behind every option, as the wire's closer does; it is scored only where one option begins another."""

NONE = "none"
"""How the answer "" is called."""


class Failed(BaseModel):
    """A case that was answered wrongly: what was asked, what is right, what was chosen, and how clearly."""

    model_config = ConfigDict(frozen=True)

    id: str
    request: str
    """Empty where the case is no request."""
    answer: str
    """`none` where nothing was to be done."""
    choice: str
    margin: float
    """Score of the choice minus that of the second."""
    outcome: Outcome = Outcome.CHOSEN
    """How the judge ended it."""


class Held(BaseModel):
    """What a judge made of the cases: what it held back, and what is right of what was acted on."""

    model_config = ConfigDict(frozen=True)

    outcomes: dict[str, int]
    """How many decisions ended in which way."""
    coverage: Share
    """Of all cases, those that were acted on."""
    accuracy: Share
    """Of those that were acted on, the right ones (selective accuracy); acting where nothing is meant is wrong."""
    held_right: Share
    """Of the cases that would have been right, those that were held back."""
    nothing_done: Share
    """Of the cases that ask for nothing, those in which nothing was done."""
    nothing_done_by_kind: dict[str, Share]
    """The same by kind of case, where the cases name one."""
    separation: float | None
    """Area under the ROC curve: how well the evidence (`meant`, else `top`) tells cases that ask for something."""
    curve: tuple[tuple[float, float], ...]
    """Coverage and risk when the most confident decisions are acted on; see `confidence`."""
    aurc: float | None
    """Area under that curve; 0 is best."""
    calibration_error: float | None
    """Of the probability of the choice, over the cases that ask for something."""
    confusion: tuple[Confusion, ...]
    """What was right, and what was said."""


class Result(BaseModel):
    """What one rule did on one split of one set of cases with one model."""

    model_config = ConfigDict(frozen=True)

    model: str
    set: str
    split: str
    rule: str
    cases: int
    """Those that ask for something."""
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
    """The cases that were answered wrongly, in their order; acted on, where nothing was to be done."""
    held: Held | None = None
    """What a judge made of them."""


@dataclass(frozen=True)
class Tried:
    """A case and how it was decided."""

    case: Case
    decision: Decision
    choice: str

    @property
    def asks(self) -> bool:
        """Whether the case asks for something."""
        return bool(self.case.answer)

    @property
    def right(self) -> bool:
        """Whether the choice is right, however the decision ended."""
        return self.asks and self.choice == self.case.answer

    @property
    def acted(self) -> bool:
        """Whether something was chosen."""
        return self.decision.outcome is Outcome.CHOSEN

    @property
    def sense(self) -> float:
        """How much speaks for something being meant: what was learned, else how much likelier the request made it."""
        evidence = self.decision.evidence
        return evidence.top if math.isnan(evidence.meant) else evidence.meant

    @property
    def confidence(self) -> float:
        """Probability of the choice, times that of something being meant where that was learned; 0 to 1."""
        meant = self.decision.evidence.meant
        share = self.decision.probability
        return share if math.isnan(meant) else share / (1 + math.exp(-max(meant, -700.0)))


def evaluate(
    kernel: Kernel,
    cases: Sequence[Case],
    rule: Rule,
    *,
    model: str,
    name: str,
    split: str = "test",
    judge: Judge | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Decide every case of a split and compare with its answer.

    Args:
        judge: says how each decision ends; accuracy and failed cases are those of the choices, whatever it says.

    Raises UsageError when there is no case in the split.
    """
    chosen = [case for case in cases if split in ("all", case.split)]
    if not chosen:
        raise UsageError(f"{name}: no case in the split {split!r}; there is: {sorted({c.split for c in cases})}")
    tried: list[Tried] = []
    for number, case in enumerate(chosen, 1):
        opcodes = kernel.compile([Literal(option, CLOSER) for option in case.options])
        question = Question(kernel.ids(case.prompt), opcodes, rule=rule, number=number, judge=judge)
        decision = kernel.decide(question)
        tried.append(Tried(case, decision, case.options[decision.index]))
        progress(number, len(chosen))
    asked = [each for each in tried if each.asks]
    correct = sum(each.right for each in asked)
    low, high = wilson(correct, len(asked))
    picked = Counter(each.decision.index for each in tried)
    return Result(
        model=model,
        set=name,
        split=split,
        rule=str(rule.name),
        cases=len(asked),
        correct=correct,
        accuracy=correct / len(asked) if asked else 0.0,
        low=low,
        high=high,
        chance=sum(1 / len(each.case.options) for each in asked) / len(asked) if asked else 0.0,
        positions=tuple(picked[n] for n in range(max(len(c.options) for c in chosen))),
        passes=sum(each.decision.passes for each in tried) / len(tried),
        tokens=sum(each.decision.tokens_evaluated for each in tried) / len(tried),
        failed=tuple(_failed(each) for each in tried if (not each.right if each.asks else each.acted)),
        held=None if judge is None else held(tried),
    )


def held(tried: Sequence[Tried]) -> Held:
    """Return what a judge made of some cases."""
    acted = [each for each in tried if each.acted]
    asked = [each for each in tried if each.asks]
    nothing = [each for each in tried if not each.asks]
    kinds = dict.fromkeys(kind for each in nothing if (kind := each.case.kind))
    curve = risk_coverage([each.confidence for each in tried], [each.right for each in tried])
    return Held(
        outcomes=dict(Counter(each.decision.outcome.value for each in tried)),
        coverage=Share.made(each.acted for each in tried),
        accuracy=Share.made(each.right for each in acted),
        held_right=Share.made(not each.acted for each in asked if each.right),
        nothing_done=Share.made(not each.acted for each in nothing),
        nothing_done_by_kind={k: Share.made(not e.acted for e in nothing if e.case.kind == k) for k in kinds},
        separation=separation([each.sense for each in asked], [each.sense for each in nothing]),
        curve=tuple(curve),
        aurc=aurc(curve),
        calibration_error=calibration_error([each.decision.probability for each in asked], [e.right for e in asked]),
        confusion=confusion((_answer(each.case), _said(each)) for each in tried),
    )


def _failed(each: Tried) -> Failed:
    return Failed(
        id=each.case.id,
        request=each.case.request,
        answer=each.case.answer or NONE,
        choice=each.choice,
        margin=round(each.decision.margin, 4),
        outcome=each.decision.outcome,
    )


def _answer(case: Case) -> str:
    return case.answer.strip() or NONE


def _said(each: Tried) -> str:
    return each.choice.strip() if each.acted else each.decision.outcome.value
