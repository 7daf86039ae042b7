"""The lines of a session log: header, decision, resumed, joined, left and outcome, each declared once.

A field that has no value is left out of its line. A number that is not finite is written as null, and the line's
`nonfinite` names it (see `encoding.py`), so null has no other meaning. Unknown fields are kept.
"""

from __future__ import annotations

import enum
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, Strict

from dispatch.log.objects import (
    CartridgeRecord,
    Count,
    Delta,
    Duration,
    Finite,
    Flag,
    InstructionRecord,
    Integer,
    JudgeRecord,
    LedgerStep,
    LegalRow,
    ModelRecord,
    Number,
    Offer,
    Record,
    RuleRecord,
)

FORMAT = 2
"""The version of the log's format that this code writes; it reads this one and every older one."""


class Ending(enum.StrEnum):
    """Why a session came to its end; ended by the rules and cut off from outside stay apart."""

    RULES = "rules"
    """The engine says that it is over: no instruction is legal any more."""
    HELD = "held"
    """Nobody was watching, and nothing was chosen or agreed to; `detail` says why."""
    HALT = "halt"
    """The halt instruction was chosen."""
    LIMIT = "limit"
    """A limit given at the start was reached (pieces, decisions, seconds)."""
    REPEAT = "repeat"
    """Nobody was watching, and an instruction was given again on a state that it had left as it was, or, where it acts
    outside, gave a result that it had given before."""
    FAILED = "failed"
    """Nobody was watching, and an action outside the engine failed; `detail` says how."""
    INTERRUPTED = "interrupted"
    """A person stopped it."""
    ERROR = "error"
    """Something failed; `detail` says what."""


class Unchosen(enum.StrEnum):
    """How a decision ended in which nothing was chosen."""

    NONE = "none"
    """Nothing of what there is seemed to be meant."""
    UNSURE = "unsure"
    """Two were too close to choose between them."""
    NOT_LEGAL = "not legal"
    """What seemed to be meant was not legal then."""


class Confirmed(enum.StrEnum):
    """What became of an instruction that somebody has to agree to."""

    AGREED = "agreed"
    """Somebody agreed, and it was carried out."""
    BEFOREHAND = "beforehand"
    """It was agreed to before the session began."""
    DECLINED = "declined"
    """Somebody declined; nothing was done."""
    UNASKED = "unasked"
    """Nobody was there to agree; nothing was done."""


class Header(Record):
    """Line 1: what was played, with what, from where."""

    event: Literal["header"] = "header"
    """Kind of the line."""
    version: Count = Field(default=FORMAT, alias="schema")
    """Version of the log's form. A newer one than the reader's is refused."""
    started: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When the session began, UTC, ISO 8601."""
    cartridges: tuple[CartridgeRecord, ...] = Field(fail_fast=True)
    """The cartridges, in the order in which they were loaded."""
    seed: Annotated[int, Strict()]
    """Given to every engine's `reset`."""
    player: str = "model"
    """Who chose: `model`, `planner`, `random`."""
    rule: RuleRecord | None = None
    """How the model's logits became a choice."""
    judge: JudgeRecord | None = None
    """What said how decisions on requests end; absent where something was always chosen."""
    wire: str | None = None
    """Name of the wire form of the decoded text."""
    model: ModelRecord | None = None
    """The model, when one chose."""
    max_tokens: Count | None = None
    """Tokens that an instruction with open arguments may have, when a model chose."""
    limits: dict[str, Integer | Finite] | None = None
    """Limits given at the start, by name."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of the software, by name."""
    redacted: str | None = None
    """Fingerprint of the salt, when prompts and requests were dropped."""
    keyed: str | None = None
    """Fingerprint of the key, when every line is sealed with one (its `mac`)."""


class DecisionRecord(Record):
    """One decision: what was legal, what the model thought, what was done, what came of it."""

    event: Literal["decision"] = "decision"
    """Kind of the line."""
    n: Count = Field(ge=1)
    """Number of the decision, from 1, without gaps."""
    cartridge: str
    """The cartridge whose turn it was."""
    instruction: InstructionRecord
    """What was done; or where nothing was done, what was best of what is legal (arguments that have to be written are
    not)."""
    outcome: Unchosen | None = None
    """How it ended where nothing was chosen. Nothing was done then, unless a person settled it."""
    close: tuple[str, ...] | None = Field(default=None, min_length=2, max_length=2, fail_fast=True)
    """After `unsure`: the wire texts of the two between which it was unsure, the better one first."""
    settled: Flag | None = None
    """After `unsure`, where somebody was asked: whether one of the two was taken; it is `instruction` then."""
    confirmed: Confirmed | None = None
    """What became of an instruction that somebody has to agree to."""
    text: str = ""
    """The wire text that was decoded, or written where arguments are open."""
    ids: tuple[Count, ...] = Field(default=(), fail_fast=True)
    """Its token ids."""
    state: str
    """State hash of the cartridge's engine afterwards."""
    result: str = ""
    """What the engine said, verbatim. Data, never instructions."""
    refused: Flag = False
    """True when the engine did not allow the instruction, or tried it in vain; the state is as it was. `result` holds
    the reason of a refusal."""
    failed: str | None = None
    """What failed outside the engine, in words, where the instruction was tried in vain. `refused` is true then."""
    request: str | None = None
    """What a person typed, where the decision answers a request."""
    prompt: Delta | None = None
    """Prompt ids, as difference from the prompt ids of the decision before."""
    nulls: tuple[Delta, ...] | None = Field(default=None, fail_fast=True)
    """Null prompt ids, each as difference from this decision's prompt ids or those of a rotation."""
    nulls_of: Count | None = None
    """The decision before this one that gave the null prompts, where they are still the same; it stands for `nulls`."""
    rotations: tuple[Delta, ...] | None = Field(default=None, fail_fast=True)
    """Ids of the prompt with its options in other orders, each as difference from this decision's prompt ids."""
    legal: tuple[LegalRow, ...] | None = Field(default=None, fail_fast=True)
    """The legal opcodes, in the order in which they were offered to the rule; of very many the best by score."""
    legal_count: Count | None = None
    """How many opcodes were legal."""
    chosen: Count | None = None
    """Place of the choice in `legal`, from 0."""
    offered: tuple[Offer, ...] | None = Field(default=None, fail_fast=True)
    """The planner's options that the prompt showed, best first."""
    rule: str | None = None
    """The rule that decided."""
    margin: Number | None = None
    """Score of the winner minus score of the second."""
    preferred: str | None = None
    """An opcode that scored higher than the chosen one but was not legal: what the request asked for, probably."""
    preferred_by: Number | None = None
    """By how much."""
    legal_mass: Number | None = None
    """Probability of all legal continuations before the mask, at the first choosing step."""
    passes: Count | None = None
    """Calls of `llama_decode`."""
    tokens_evaluated: Count | None = None
    """Tokens that these calls evaluated."""
    line_hits: Count | None = None
    """Of the prompt's lines without an order, those of its null prompts included: how many were in memory already."""
    line_misses: Count | None = None
    """How many had to be evaluated."""
    tokens_saved: Count | None = None
    """Tokens of what was in memory."""
    chosen_tokens: Count | None = None
    """Tokens of `ids` that were a choice."""
    forced_tokens: Count | None = None
    """Tokens of `ids` that had no legal alternative."""
    refused_removals: Count | None = None
    """How often the model's memory refused to forget a part and was filled anew."""
    stop: str | None = None
    """Why decoding stopped."""
    model_ms: Duration | None = None
    """Time in the model."""
    planner_ms: Duration | None = None
    """Time in the planner."""
    at_ms: Duration | None = None
    """Time since the session began, when the decision was logged."""
    ledger: tuple[LedgerStep, ...] | None = Field(default=None, fail_fast=True)
    """The choosing steps token by token."""
    redacted: dict[str, str] | None = None
    """Salted hashes of what was dropped, by field."""

    @property
    def held(self) -> bool:
        """Whether nothing was done: nothing was chosen and nobody settled it, or nobody agreed."""
        return held(self.outcome, self.confirmed, settled=bool(self.settled))

    @property
    def taken(self) -> LegalRow | None:
        """The choice's row in `legal`, where it is logged."""
        rows, at = self.legal or (), self.chosen
        found = rows[at : at + 1] if at is not None else [row for row in rows if row.text == self.text]
        return found[0] if found else None


def held(outcome: str | None, confirmed: str | None, *, settled: bool) -> bool:
    """Return whether nothing was done in a decision with these fields."""
    if outcome is None:
        return confirmed in (Confirmed.DECLINED, Confirmed.UNASKED)
    return outcome != Unchosen.UNSURE or not settled


class Resumed(Record):
    """The session was broken off above, and goes on below."""

    event: Literal["resumed"] = "resumed"
    """Kind of the line."""
    n: Count
    """How many decisions stand above."""
    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When it went on, UTC, ISO 8601."""
    dropped: Count
    """How many bytes were taken off: a cut line, or an outcome."""
    ending: Ending | None = None
    """The ending that stood in that outcome."""


class Joined(Record):
    """A cartridge takes part from here on; one that was there already has other opcodes now, and begins anew."""

    event: Literal["joined"] = "joined"
    """Kind of the line."""
    n: Count
    """How many decisions stand above."""
    cartridge: CartridgeRecord
    """The cartridge; `state` is that of its engine right after `reset(seed)`."""


class Left(Record):
    """A cartridge takes part no more."""

    event: Literal["left"] = "left"
    """Kind of the line."""
    n: Count
    """How many decisions stand above."""
    cartridge: str
    """Its name."""


class Corrected(Record):
    """A person said that a decision was wrong. The last such line of a decision counts; nothing was undone."""

    event: Literal["corrected"] = "corrected"
    """Kind of the line."""
    n: Count
    """How many decisions stand above."""
    decision: Count = Field(ge=1)
    """Number of the decision."""
    answer: str | None = None
    """What would have been right, in words: a command, or `none` where nothing was to be done."""
    instruction: InstructionRecord | None = None
    """The same command as an instruction."""


class Outcome(Record):
    """The last line: how it ended."""

    event: Literal["outcome"] = "outcome"
    """Kind of the line."""
    decisions: Count
    """How many decisions stand above."""
    ending: Ending
    """Why the session ended."""
    detail: str = ""
    """The engine's reason, the limit's name, the error's text."""
    summary: dict[str, dict[str, int | float | str]] = Field(default_factory=dict)
    """`Engine.summary()` at the end, by cartridge."""
    seconds: Duration | None = None
    """Time from header to outcome."""
    totals: dict[str, Integer | Number] | None = None
    """Sums over the session, by name: passes, tokens evaluated, agreement with the planner."""


LogRecord = Header | DecisionRecord | Resumed | Joined | Left | Corrected | Outcome
