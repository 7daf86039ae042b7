"""Makes every decision of a log again and compares: the choice is the same, or another one by some margin.

A replay of the log provides the state in which each decision was made. The model reads the logged ids, unless its
tokenizer is another one or no ids were logged: then the cartridge's view writes the prompt again from the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dispatch.log.key import Key
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Header
from dispatch.log.replay import MakeCartridge, Replay
from dispatch.log.report import ReplayReport
from dispatch.session.held import behind, misread
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice
from dispatch.session.situation import situation
from kernel.api import Kernel
from kernel.choose.decision import TOLERANCE
from kernel.choose.outcome import Outcome
from kernel.choose.question import PromptIds
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Option
from kernel.errors import LogError, UsageError
from kernel.memory.listed import flat_of

LEARNED = "learned"
"""The version of what was learned, where the rule goes by it."""
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
    behind: float
    """How far the logged choice is behind the new one, both as they are scored now."""
    planner_then: float | None
    """The planner's score of the logged choice, where it has one."""
    planner_now: float | None
    """Its score of the new choice."""


class Ended(BaseModel):
    """A decision that ended in another outcome."""

    model_config = ConfigDict(frozen=True)

    n: int
    then: Outcome
    now: Outcome


class DecideReport(BaseModel):
    """A log decided again."""

    replay: ReplayReport
    changed: tuple[str, ...]
    """What decides differently than it did: model, tokenizer, rule. Empty: the same is expected."""
    tolerance: float
    decisions: int = 0
    agree: int = 0
    within: int = 0
    """Other choices where the logged one is behind by less than the tolerance, as it is scored now."""
    beyond: int = 0
    """Other choices where it is further behind."""
    moved: int = 0
    """The same choices whose logged margin is further from today's than the tolerance, where nothing changed."""
    ended_otherwise: int = 0
    """Decisions that end in another outcome now, more than the tolerance explains, where nothing changed."""
    first_ended: Ended | None = None
    """The first of them."""
    first: Divergence | None = None
    """The first other choice."""
    first_beyond: Divergence | None = None
    largest_shift: float = 0.0
    """Largest difference of a margin where the choice is the same."""
    planner_first_then: float | None = None
    """Share of decisions that took the planner's best option."""
    planner_first_now: float | None = None
    planner_prefers_then: int = 0
    """Of the other choices: how often the planner scores the logged one higher."""
    planner_prefers_now: int = 0
    planner_gain: float | None = None
    """Of the other choices: by how much the planner scores the new one higher, on average."""
    rewritten: int = 0
    """Decisions whose prompt the view wrote again; the others read the logged ids."""
    prompts_changed: int = 0
    """Decisions whose prompt the view would write differently today; the logged one was used."""

    @property
    def good(self) -> bool:
        """Whether the log verifies and the choices agree where they have to."""
        return self.replay.good and (bool(self.changed) or not self.beyond + self.moved + self.ended_otherwise)


def decide_again(
    path: str | Path,
    make_cartridge: MakeCartridge,
    player: ModelPlayer,
    changed: tuple[str, ...],
    *,
    tolerance: float = TOLERANCE,
    last: int | None = None,
    key: Key | None = None,
) -> DecideReport:
    """Decide a whole log again; raises LogError without a header or behind a redacted request.

    Args:
        path: of the log.
        make_cartridge: as of a replay.
        player: what decides now, with the cartridges of the log.
        changed: what `changes` found.
        tolerance: scores so close may come out in another order.
        last: stop after this decision.
        key: of a keyed log.
    """
    read_ids = not any(text.startswith("tokenizer") for text in changed)
    ranked: list[tuple[bool, bool]] = []
    gains: list[float] = []
    with LogReader(path, key) as reader:
        run, prompts = Replay(reader, make_cartridge, last=last), Prompts()
        found = DecideReport(replay=run.report(), changed=changed, tolerance=tolerance)
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
            read = [flat_of(prompt) for prompt in (ids, *nulls, *rotations)]
            if read_ids and (wrong := misread(record, player, read)) is not None:
                run.differs(record.n, *wrong)
                break
            if read[0] and read_ids:
                today = player.kernel.ids(seen.prompt)
                found.prompts_changed += ids not in (today.main, *today.rotations)
                logged = PromptIds(ids, tuple(nulls), tuple(rotations))
                choice = player.said(player.kernel.decide(player.question(seen, logged)), record.n, seen.request)
            else:
                found.rewritten += 1
                choice = player.choose(seen)
            if not changed and (other := _ended(record, choice, player, tolerance)) is not None:
                found.ended_otherwise += 1
                found.first_ended = found.first_ended or other
            made = _divergence(record, seen.options, choice, player)
            found.decisions += 1
            if seen.options:
                best = repr(seen.options[0].instruction)
                ranked.append((made.then == best, made.now == best))
            if made.then == made.now:
                found.agree += 1
                if made.margin_then is not None and not changed and made.margin_then != made.margin_now:
                    shift = abs(made.margin_then - made.margin_now)
                    found.largest_shift = max(found.largest_shift, shift)
                    found.moved += not shift <= tolerance
                continue
            found.first = found.first or made
            if made.planner_then is not None and made.planner_now is not None:
                gains.append(made.planner_now - made.planner_then)
            if made.behind < tolerance:  # NaN is not close
                found.within += 1
            else:
                found.beyond += 1
                found.first_beyond = found.first_beyond or made
        found.replay = run.report()
    if ranked:
        found.planner_first_then = sum(then for then, _ in ranked) / len(ranked)
        found.planner_first_now = sum(now for _, now in ranked) / len(ranked)
    if gains:
        found.planner_gain = sum(gains) / len(gains)
        found.planner_prefers_then, found.planner_prefers_now = sum(g < 0 for g in gains), sum(g > 0 for g in gains)
    return found


def _divergence(record: DecisionRecord, options: Sequence[Option], choice: Choice, player: ModelPlayer) -> Divergence:
    """Hold a logged decision against the choice that is made now."""
    scores = {option.instruction: option.score for option in reversed(options)}
    then, now = record.instruction.instruction(), choice.instruction
    if record.settled and then in choice.close:  # a person took it; the model's own is the better one
        then = now
    return Divergence(
        n=record.n,
        then=repr(then),
        now=repr(now),
        margin_then=record.margin,
        margin_now=choice.decision.margin if choice.decision is not None else 0.0,
        behind=behind(then, choice, player, record.n),
        planner_then=scores.get(then),
        planner_now=scores.get(now),
    )


def _ended(record: DecisionRecord, choice: Choice, player: ModelPlayer, tolerance: float) -> Ended | None:
    """Return the two outcomes of a decision where they differ by more than scores do that move by a tolerance."""
    then, now = Outcome(record.outcome or Outcome.CHOSEN), choice.outcome
    if then is now or choice.decision is None:
        return None
    seen = choice.decision.evidence
    for name in ("top", "total", "margin", "beyond", "meant"):
        for by in (-tolerance, tolerance):
            moved = replace(seen, **{name: getattr(seen, name) + by})
            if player.judge is not None and player.judge.judge(moved) is then:
                return None
    return Ended(n=record.n, then=then, now=now)


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
    if (before := header.versions.get(LEARNED)) != versions.get(LEARNED):
        found.append(f"learned: {before or 'nothing'} then, {versions.get(LEARNED) or 'nothing'} now")
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
