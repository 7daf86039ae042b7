"""Makes one logged decision again: by another rule, by another model, behind an edited prompt. One step of --decide."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from dispatch.inspector import decision as told
from dispatch.inspector.bench import options_of
from dispatch.inspector.boards import Engines
from dispatch.inspector.index import LogIndex
from dispatch.inspector.jsonable import Json, clip, number
from dispatch.inspector.lines import outcome_of
from dispatch.inspector.prompts import PromptsOf, prompts_of
from dispatch.log.records import DecisionRecord, Header
from dispatch.session.decide import RUNTIME, changes, logged_rule
from dispatch.session.held import behind
from dispatch.session.judging import logged_judge
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice
from dispatch.session.rules import make_rule
from dispatch.session.situation import Situation, situation
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.outcome import Outcome
from kernel.choose.question import PromptIds
from kernel.choose.rule import Rule
from kernel.errors import LogError
from kernel.prompt import Part
from kernel.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Asked:
    """What is to be different.

    Attributes:
        rule: in place of the log's.
        prompt: in place of the prompt's text; the null prompts stay, its other orders are left out.
        control: whether markers of control tokens in that text are such tokens.
    """

    rule: Rule | None = None
    prompt: str | None = None
    control: bool = False


@dataclass(frozen=True)
class By:
    """A model that decides now, and its name. It is used on the thread of its kernel."""

    kernel: Kernel
    model: str


def again(
    index: LogIndex, n: int, before: Engines, by: By, asked: Asked, *, vocabulary: Vocabulary | None = None
) -> Json:
    """Return decision `n` as it was made and as it is made now; docs/inspector.md has the form.

    Args:
        before: the engines in the state in which it was made.
        vocabulary: of the model that chose then, where it is here.
    Raises:
        LogError: its request was redacted, or the log contradicts itself.
        UsageError: the rule needs null prompts that there are not.
        ContextError, BuildError.
    """
    header, record = index.header, index.record(n)
    if "request" in (record.redacted or {}):
        raise LogError(f"decision {n}: the request was redacted, so it cannot be decided again")
    rule = asked.rule or logged_rule(header) or make_rule(None)
    cartridges = list(before.cartridges.values())
    wire = Wire(cartridges, form(header.wire or "compact"))
    player = ModelPlayer(by.kernel, wire, cartridges, rule, ledger=True)
    player.judge = logged_judge(header)
    player.max_tokens = header.max_tokens or player.max_tokens
    engines = {name: engine.copy() for name, engine in before.engines.items()}
    seen, _ = situation(before.cartridges, engines, n, record.request or "")
    same_ids = header.model is not None and header.model.tokenizer == by.kernel.vocabulary.fingerprint
    logged = prompts_of(index, n) if same_ids else None
    choice = player.answer(seen, _ids(by.kernel, seen, logged, asked))
    changed = changes(header, by.kernel, by.model, rule, {RUNTIME: version(RUNTIME)})
    changed += ("prompt: edited",) if asked.prompt is not None else ()
    then, now = record.instruction.instruction(), choice.instruction
    return {
        "n": n,
        "changed": list(changed),
        "agrees": then == now and outcome_of(record) == _outcome(choice),
        "behind": number(behind(then, choice, player, n)),
        "notes": list(_notes(logged, asked)),
        "then": _then(record, header, by.kernel.vocabulary if same_ids else vocabulary),
        "now": _now(choice, by),
    }


def _outcome(choice: Choice) -> str | None:
    """Return how a decision ends where nothing is chosen."""
    return None if choice.outcome is Outcome.CHOSEN else str(choice.outcome)


def _ids(kernel: Kernel, seen: Situation, logged: PromptsOf | None, asked: Asked) -> PromptIds:
    """Return what is read now: the logged ids, or what the view writes, or an edited prompt in place of the first."""
    found = kernel.ids(seen.prompt)
    if logged is not None:
        found = PromptIds(logged.main, tuple(logged.nulls), tuple(logged.rotations))
    if asked.prompt is None:
        return found
    return PromptIds(tuple(kernel.vocabulary.prompt([Part(asked.prompt, trusted=asked.control)])), found.nulls)


def _notes(logged: PromptsOf | None, asked: Asked) -> list[str]:
    notes = [] if logged is not None else ["the prompt was written again by the view; the logged ids are not used"]
    if asked.prompt is not None:
        notes.append("the edited prompt is read in one order; the null prompts are those of the decision")
    return notes


def _then(record: DecisionRecord, header: Header, vocabulary: Vocabulary | None) -> Json:
    return {
        "said": clip(told.said(record)),
        "text": clip(record.text),
        "outcome": outcome_of(record),
        "rule": record.rule,
        "model": None if header.model is None else clip(header.model.name),
        "margin": number(record.margin),
        "legal_mass": number(record.legal_mass),
        "passes": record.passes,
        "evaluated": record.tokens_evaluated,
        "tokens": told.tokens(record.ids, record.ledger or (), vocabulary),
        "ledger": told.steps(record),
        "options": told.options(record),
    }


def _now(choice: Choice, by: By) -> Json:
    made = choice.decision
    assert made is not None  # a model chose
    ends = [*(step.at for step in choice.ledger[1:]), len(made.ids)]
    return {
        "said": clip(repr(choice.instruction)),
        "text": clip(choice.text),
        "outcome": _outcome(choice),
        "rule": made.rule,
        "model": by.model,
        "margin": number(made.margin),
        "legal_mass": number(made.legal_mass),
        "passes": made.passes,
        "evaluated": made.tokens_evaluated,
        "tokens": told.tokens(made.ids, choice.ledger, by.kernel.vocabulary),
        "ledger": [
            told.step_told(step, made.ids[step.at], place, end)
            for place, (step, end) in enumerate(zip(choice.ledger, ends, strict=False))
        ],
        "options": options_of(made),
    }
