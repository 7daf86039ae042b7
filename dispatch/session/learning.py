"""Learns from labelled requests to some cartridges: their own of the half `dev`, and those that a person adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dispatch.log.corrections import corrections
from dispatch.session.guides import asked_of_all, guide_of, is_one_of_all
from dispatch.session.learned import keys_of
from kernel.api import Kernel
from kernel.casefile import NONE, numbered
from kernel.choose.learned import Learned
from kernel.choose.outcome import Thresholds
from kernel.contract import Cartridge, Case
from kernel.errors import CartridgeError, UsageError
from kernel.learn.features import features
from kernel.learn.fit import Crossed, Fit, accuracy
from kernel.prompt import Prompt, explained


class Labelled(BaseModel):
    """A line of a file of cases: a request and the command that answers it, `none` or nothing where none does."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    request: str
    answer: str = NONE


@dataclass(frozen=True)
class Lesson:
    """What was learned, and from how much.

    Attributes:
        answered, nothing: how many requests with an answer, and that nothing should answer.
        before, after: share of those with an answer that the calibrated scores answer rightly, and that are answered
            rightly by what was learned from the others (five-fold cross-validation).
        held_back: share of the latter that the thresholds hold back.
        refused: share of the requests for nothing that the thresholds hold back; None without any.
    """

    learned: Learned
    answered: int
    nothing: int
    before: float
    after: float
    held_back: float
    refused: float | None


def own_cases(cartridges: Sequence[Cartridge]) -> list[tuple[str, str]]:
    """Return the labelled requests of cartridges of the half `dev`, each with its answer as words, "" for nothing.

    What has one answer in a cartridge may have another beside it. For several, a case that names one of the others as
    `elsewhere` is left out, and so is a request that stands in two sets with two answers.
    """
    found: dict[str, set[str]] = {}
    for case in _to_learn_from(cartridges):
        if case.request and (case.answer or case.kind):
            found.setdefault(case.request, set()).add(case.answer.strip())
    return [(request, answers.pop()) for request, answers in found.items() if len(answers) == 1]


def _to_learn_from(cartridges: Sequence[Cartridge]) -> Iterator[Case]:
    for cartridge in cartridges:
        for make in [*([cartridge.cases] if cartridge.cases else []), *cartridge.more_cases.values()]:
            yield from (case for case in make() if case.split == "dev" and is_one_of_all(case, cartridges))


def file_cases(path: Path, known: Sequence[str]) -> list[tuple[str, str]]:
    """Return the labelled requests of a file of JSON lines.

    Args:
        known: the commands.
    Raises:
        CartridgeError: a line is no labelled request, or its answer no command; file and line are named.
    """
    found = []
    for number, row in numbered(path, Labelled, str(path)):
        answer = "" if row.answer == NONE else row.answer.strip()
        if answer and answer not in known:
            raise CartridgeError(f"{path}:{number}: answer: {row.answer!r} is none of the {len(known)} commands")
        found.append((row.request, answer))
    return found


def logged_cases(path: Path, known: Sequence[str]) -> list[tuple[str, str]]:
    """Return what a person corrected in a log, as labelled requests; what is only called wrong teaches nothing.

    Args:
        known: the commands; a correction to another one is left out, it was made in another session of cartridges.
    Raises:
        LogError: the file is no log.
    """
    said = [(each.request, each.answer) for each in corrections(path) if each.answer is not None]
    return [(request, answer) for request, answer in said if not answer or answer in known]


def lesson(
    kernel: Kernel,
    cartridges: Sequence[Cartridge],
    labelled: Sequence[tuple[str, str]],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Lesson:
    """Read labelled requests to some cartridges with a model, and learn from them and from those of the guides.

    Raises:
        UsageError: a cartridge explains no commands, scipy is missing, or no request has an answer.
        ContextError, LogitsError, BackendError.
    """
    if odd := [c.name for c in cartridges if not c.guide or not c.takes_requests]:
        raise UsageError(f"learn: {odd[0]!r} has no guide that explains its commands for requests")
    guide = guide_of(cartridges)
    labelled = [*labelled, *((each.request, each.words) for each in guide)]
    options = tuple(f" {each.words}" for each in guide)

    def prompt(request: str) -> Prompt:
        return asked_of_all(request, guide) if len(cartridges) > 1 else explained(request, guide)

    cases = [
        Case(str(n), prompt(request), options, f" {answer}" if answer else "", "dev", request)
        for n, (request, answer) in enumerate(labelled)
    ]
    found = features(kernel, cases, progress)
    labels = found.labels([case.answer for case in cases])
    kinds = {case.request: case.kind for case in _to_learn_from(cartridges)}
    fit = Fit(found, labels, of_guide=len(guide), kinds=[kinds.get(request, "") for request, _ in labelled])
    crossed = fit.crossed()
    thresholds = fit.thresholds()
    held = held_back(crossed, thresholds)
    right = fit.asked & (labels >= 0) & (crossed.scores.argmax(axis=1) == labels)
    nothing = labels < 0
    after = accuracy(crossed.scores, labels)
    about: dict[str, Any] = {
        "cartridges": sorted(cartridge.name for cartridge in cartridges),
        "model": kernel.backend.name,
        "answered": int((~nothing).sum()),
        "nothing": int(nothing.sum()),
        "cross_validated": round(after, 4),
    }
    learned = fit.learned(thresholds, about)
    if learned.keys != keys_of(kernel, cartridges):
        raise UsageError("learn: the guide explains other commands than those that are scored")
    return Lesson(
        learned,
        about["answered"],
        about["nothing"],
        accuracy(fit.calibrated, labels),
        after,
        float(held[right].mean()) if right.any() else 0.0,
        float(held[nothing].mean()) if nothing.any() else None,
    )


def held_back(crossed: Crossed, thresholds: Thresholds) -> NDArray[np.bool_]:
    """Return which requests the thresholds hold back, as cross-validation scores them."""
    best = np.sort(crossed.scores, axis=1)
    held: NDArray[np.bool_] = best[:, -1] - best[:, -2] < (thresholds.margin or 0.0)
    return held if thresholds.meant is None else held | (crossed.meant < thresholds.meant)
