"""Makes every decision of a log again and compares: the same choice, or by how much another one. Knows no screen.

The state in which a decision was made is that of the replay. The model reads the logged ids, unless its tokenizer is
another one or none were logged: then the cartridge's view writes the prompt again from the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Header
from dispatch.log.replay import MakeCartridge, Replay, ReplayReport
from dispatch.session.players import Choice, ModelPlayer, Situation
from dispatch.session.session import Session
from kernel.api import Kernel
from kernel.choose.decision import TOLERANCE
from kernel.choose.rule import Rule, RuleName
from kernel.errors import LogError, UsageError
from kernel.opcode import Instruction


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


class Decider:
    """Makes the decisions of one log again.

    Args:
        run: a replay, not yet iterated.
        player: what decides now, with the cartridges of the log.
        changed: what `changes` found.
        tolerance: margins below it may come out differently.
    """

    def __init__(
        self, run: Replay, player: ModelPlayer, changed: tuple[str, ...], tolerance: float = TOLERANCE
    ) -> None:
        self._run = run
        self._player = player
        player.max_tokens = run.reader.header.max_tokens or player.max_tokens
        self._changed = changed
        self._tolerance = tolerance
        self._same_ids = not any(text.startswith(("tokenizer", "strategy")) for text in changed)
        self._session = Session(list(run.cartridges.values()), player, seed=run.reader.header.seed)
        self._session.cartridges, self._session.engines = run.cartridges, run.engines
        self._names = list(run.cartridges)
        self._prompts = Prompts()
        self._agree = self._within = self._beyond = self._rewritten = self._prompts_changed = 0
        self._ranked = self._first_then = self._first_now = 0
        self._gains: list[float] = []
        self._first: Divergence | None = None
        self._first_beyond: Divergence | None = None
        self._shift = 0.0
        run.before = self._again

    def report(self) -> DecideReport:
        """Return what was found up to where the replay stands."""
        gains = self._gains
        return DecideReport(
            replay=self._run.report(),
            changed=self._changed,
            tolerance=self._tolerance,
            decisions=self._agree + self._within + self._beyond,
            agree=self._agree,
            within=self._within,
            beyond=self._beyond,
            first=self._first,
            first_beyond=self._first_beyond,
            largest_shift=self._shift,
            planner_first_then=self._first_then / self._ranked if self._ranked else None,
            planner_first_now=self._first_now / self._ranked if self._ranked else None,
            planner_prefers_then=sum(gain < 0 for gain in gains),
            planner_prefers_now=sum(gain > 0 for gain in gains),
            planner_gain=sum(gains) / len(gains) if gains else None,
            rewritten=self._rewritten,
            prompts_changed=self._prompts_changed,
        )

    def _again(self, record: DecisionRecord) -> None:
        if "request" in (record.redacted or {}):
            raise LogError(f"decision {record.n}: the request was redacted, so it cannot be decided again")
        if list(self._run.cartridges) != self._names:  # some joined or left
            self._player.use(list(self._run.cartridges.values()))
            self._names = list(self._run.cartridges)
        situation, _ = self._session.situation(record.n, record.request or "")
        choice = self._choose(situation, record)
        then, now = record.instruction.instruction(), choice.instruction
        scores = {option.instruction: option.score for option in reversed(situation.options)}
        if situation.options:
            best = situation.options[0].instruction
            self._ranked += 1
            self._first_then += then == best
            self._first_now += now == best
        self._compare(record, choice, then, now, scores)

    def _choose(self, situation: Situation, record: DecisionRecord) -> Choice:
        player = self._player
        ids, nulls, rotations = self._prompts.take(record)
        vocabulary = player.kernel.vocabulary
        if not ids or not self._same_ids:
            self._rewritten += 1
            return player.choose(situation)
        if vocabulary.prompt(situation.prompt.parts) != ids:
            self._prompts_changed += 1
        decision = player.kernel.decide_ids(
            ids,
            nulls,
            player.opcodes,
            player.opcodes.subset_of([player.leaf(i) for i in situation.choices]),
            rule=player.rule,
            prior=player.prior(situation.options),
            number=record.n,
            rotations=rotations,
        )
        return player.said(decision, record.n)

    def _compare(
        self,
        record: DecisionRecord,
        choice: Choice,
        then: Instruction,
        now: Instruction,
        scores: dict[Instruction, float],
    ) -> None:
        margin = choice.decision.margin if choice.decision is not None else 0.0
        if then == now:
            self._agree += 1
            if record.margin is not None and not self._changed:
                self._shift = max(self._shift, abs(record.margin - margin))
            return
        found = Divergence(
            n=record.n,
            then=repr(then),
            now=repr(now),
            margin_then=record.margin,
            margin_now=margin,
            planner_then=scores.get(then),
            planner_now=scores.get(now),
        )
        self._first = self._first or found
        if min(margin, margin if record.margin is None else record.margin) < self._tolerance:
            self._within += 1
        else:
            self._beyond += 1
            self._first_beyond = self._first_beyond or found
        if then in scores and now in scores:
            self._gains.append(scores[now] - scores[then])


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
    for name in ("llama-cpp-python",):
        if header.versions.get(name) != versions.get(name):
            found.append(f"{name}: {header.versions.get(name)} then, {versions.get(name)} now")
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


def decide_again(
    path: str | Path,
    make_cartridge: MakeCartridge,
    player: ModelPlayer,
    changed: tuple[str, ...],
    *,
    tolerance: float = TOLERANCE,
    last: int | None = None,
) -> DecideReport:
    """Decide a whole log again; raises LogError without a header or behind a redacted request."""
    with LogReader(path) as reader:
        run = Replay(reader, make_cartridge, last=last)
        decider = Decider(run, player, changed, tolerance)
        for _ in run:
            pass
        return decider.report()
