"""Makes every decision of a log again and compares: the choice is the same, or another one by some margin.

A replay of the log provides the state in which each decision was made. The model reads the logged ids, unless its
tokenizer is another one or no ids were logged: then the cartridge's view writes the prompt again from the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Header
from dispatch.log.replay import MakeCartridge, Replay, ReplayReport
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice
from dispatch.session.situation import Situation, situation
from kernel.api import Kernel
from kernel.choose.decision import TOLERANCE
from kernel.choose.question import PromptIds
from kernel.choose.rule import Rule, RuleName
from kernel.errors import LogError, UsageError
from kernel.opcode import Instruction

RUNTIME = "llama-cpp-python"
"""The package whose version may change scores."""


class Divergence(BaseModel):
    """A decision that came out differently."""

    model_config = ConfigDict(frozen=True)

    n: int
    then: str
    now: str
    margin_then: float | None
    margin_now: float
    planner_then: float | None
    """The planner's score of the logged choice, where it has one."""
    planner_now: float | None
    """Its score of the new choice."""


class DecideReport(BaseModel):
    """A log decided again."""

    model_config = ConfigDict(frozen=True)

    replay: ReplayReport
    changed: tuple[str, ...]
    """What decides differently than it did: model, tokenizer, rule. Empty: the same is expected."""
    tolerance: float
    decisions: int
    agree: int
    within: int
    """Other choices where one of the margins is below the tolerance."""
    beyond: int
    """Other choices where both are not."""
    first: Divergence | None
    """The first other choice."""
    first_beyond: Divergence | None
    largest_shift: float
    """Largest difference of a margin where the choice is the same."""
    planner_first_then: float | None
    """Share of decisions that took the planner's best option."""
    planner_first_now: float | None
    planner_prefers_then: int
    """Of the other choices: how often the planner scores the logged one higher."""
    planner_prefers_now: int
    planner_gain: float | None
    """Of the other choices: by how much the planner scores the new one higher, on average."""
    rewritten: int
    """Decisions whose prompt the view wrote again; the others read the logged ids."""
    prompts_changed: int
    """Decisions whose prompt the view would write differently today; the logged one was used."""

    @property
    def good(self) -> bool:
        """Whether the log verifies and the choices agree where they have to."""
        return self.replay.good and (bool(self.changed) or not self.beyond)


@dataclass(frozen=True, slots=True)
class Again:
    """One decision, as it was made then and as it is made now."""

    n: int
    then: Instruction
    now: Instruction
    margin_then: float | None
    margin_now: float
    best: Instruction | None
    """The planner's best option, where it has any."""
    planner_then: float | None
    planner_now: float | None
    prompt: Literal["logged", "changed", "rewritten"]
    """Whether the logged ids were read, whether the view would write them differently today, or wrote them anew."""

    @property
    def smaller_margin(self) -> float:
        """The smaller one of the two margins."""
        return self.margin_now if self.margin_then is None else min(self.margin_now, self.margin_then)

    @property
    def divergence(self) -> Divergence:
        """What the report says of it."""
        return Divergence(
            n=self.n,
            then=repr(self.then),
            now=repr(self.now),
            margin_then=self.margin_then,
            margin_now=self.margin_now,
            planner_then=self.planner_then,
            planner_now=self.planner_now,
        )


def decide_again(
    path: str | Path,
    make_cartridge: MakeCartridge,
    player: ModelPlayer,
    changed: tuple[str, ...],
    *,
    tolerance: float = TOLERANCE,
    last: int | None = None,
) -> DecideReport:
    """Decide a whole log again; raises LogError without a header or behind a redacted request.

    Args:
        path: of the log.
        make_cartridge: as of a replay.
        player: what decides now, with the cartridges of the log.
        changed: what `changes` found.
        tolerance: margins below it may come out differently.
        last: stop after this decision.
    """
    read_ids = not any(text.startswith(("tokenizer", "strategy")) for text in changed)
    made: list[Again] = []
    with LogReader(path) as reader:
        run, prompts = Replay(reader, make_cartridge, last=last), Prompts()
        player.max_tokens = reader.header.max_tokens or player.max_tokens
        names = list(run.cartridges)
        for record in run.decisions():
            if "request" in (record.redacted or {}):
                raise LogError(f"decision {record.n}: the request was redacted, so it cannot be decided again")
            if list(run.cartridges) != names:  # some joined or left
                names = list(run.cartridges)
                player.use(list(run.cartridges.values()))
            seen, _ = situation(run.cartridges, run.engines, record.n, record.request or "")
            ids, nulls, rotations = prompts.take(record)
            if ids and read_ids:
                same = player.kernel.vocabulary.prompt(seen.prompt.parts) == ids
                logged = PromptIds(tuple(ids), tuple(map(tuple, nulls)), tuple(map(tuple, rotations)))
                decision = player.kernel.decide(player.question(seen, logged))
                made.append(_again(record, seen, player.said(decision, record.n), same))
            else:
                made.append(_again(record, seen, player.choose(seen), None))
        return _report(run.report(), made, changed, tolerance)


def _again(record: DecisionRecord, seen: Situation, choice: Choice, same_prompt: bool | None) -> Again:
    """Hold a logged decision against the choice that is made now; `same_prompt` is None where the view wrote it."""
    scores = {option.instruction: option.score for option in reversed(seen.options)}
    then, now = record.instruction.instruction(), choice.instruction
    return Again(
        n=record.n,
        then=then,
        now=now,
        margin_then=record.margin,
        margin_now=choice.decision.margin if choice.decision is not None else 0.0,
        best=seen.options[0].instruction if seen.options else None,
        planner_then=scores.get(then),
        planner_now=scores.get(now),
        prompt="rewritten" if same_prompt is None else "logged" if same_prompt else "changed",
    )


def _report(replay: ReplayReport, made: list[Again], changed: tuple[str, ...], tolerance: float) -> DecideReport:
    agree, others = [d for d in made if d.then == d.now], [d for d in made if d.then != d.now]
    beyond = [d for d in others if not d.smaller_margin < tolerance]  # NaN is no small margin
    ranked = [d for d in made if d.best is not None]
    gains = [d.planner_now - d.planner_then for d in others if d.planner_then is not None and d.planner_now is not None]
    shifts = [abs(d.margin_then - d.margin_now) for d in agree if d.margin_then is not None and not changed]
    return DecideReport(
        replay=replay,
        changed=changed,
        tolerance=tolerance,
        decisions=len(made),
        agree=len(agree),
        within=len(others) - len(beyond),
        beyond=len(beyond),
        first=others[0].divergence if others else None,
        first_beyond=beyond[0].divergence if beyond else None,
        largest_shift=max(shifts, default=0.0),
        planner_first_then=sum(d.then == d.best for d in ranked) / len(ranked) if ranked else None,
        planner_first_now=sum(d.now == d.best for d in ranked) / len(ranked) if ranked else None,
        planner_prefers_then=sum(gain < 0 for gain in gains),
        planner_prefers_now=sum(gain > 0 for gain in gains),
        planner_gain=sum(gains) / len(gains) if gains else None,
        rewritten=sum(d.prompt == "rewritten" for d in made),
        prompts_changed=sum(d.prompt == "changed" for d in made),
    )


def logged_rule(header: Header) -> Rule | None:
    """Return the rule of a log; None when no model chose. Raises LogError when it is none that the kernel knows."""
    if header.rule is None:
        return None
    try:
        return Rule(RuleName(header.rule.name), **header.rule.parameters)
    except (TypeError, ValueError, UsageError) as error:
        raise LogError(f"the log's rule {header.rule.name!r} {header.rule.parameters} is unknown: {error}") from error


def changes(header: Header, kernel: Kernel, model: str, rule: Rule, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return what decides differently than it did when the log was written.

    Args:
        header: of the log.
        kernel: with the model that decides now, which is called `model`.
        rule: by which it decides.
        versions: of the software now, by the names in the header.
    """
    then = header.model
    if then is None:
        return (f"player: {header.player} then, {model} now",)
    found = []
    if then.fingerprint != kernel.backend.fingerprint:
        found.append(f"model: {then.name} then, {model} now")
    if then.tokenizer != kernel.vocabulary.fingerprint:
        found.append("tokenizer: another one; prompts are bridged through the text")
    if (logged := logged_rule(header)) != rule:
        found.append(f"rule: {_words(logged)} then, {_words(rule)} now")
    if (before := header.versions.get(RUNTIME)) != versions.get(RUNTIME):
        found.append(f"{RUNTIME}: {before} then, {versions.get(RUNTIME)} now")
    return tuple(found)


def _words(rule: Rule | None) -> str:
    """Return a rule's name and what differs from its defaults."""
    if rule is None:
        return "none"
    plain = Rule(rule.name)
    odd = [
        f"{f.name}={getattr(rule, f.name)!r}" for f in fields(rule) if getattr(rule, f.name) != getattr(plain, f.name)
    ]
    return " ".join([rule.name.value, *odd])
