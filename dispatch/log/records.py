"""What a session log holds, declared once: header, decisions, outcome. Knows no file, no checksum, no engine.

A number that is not finite is written as null and named in the line's `nonfinite` (see dispatch/log.py); a field
that has no value is left out, so null never means anything else. Unknown fields are kept.
"""

from __future__ import annotations

import enum
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from kernel.contract import Option
from kernel.opcode import Instruction, canonical

SCHEMA = 1
"""The version of the log's form that this code writes; it reads this one and every older one."""


class Ending(enum.StrEnum):
    """Why a session came to its end; ended by the rules and cut off from outside stay apart."""

    RULES = "rules"
    """The engine says that it is over: no instruction is legal any more."""
    HALT = "halt"
    """The halt instruction was chosen."""
    LIMIT = "limit"
    """A limit given at the start was reached (pieces, decisions, seconds)."""
    REPEAT = "repeat"
    """Nobody was watching, and an instruction was given again on a state that it had left as it was."""
    INTERRUPTED = "interrupted"
    """A person stopped it."""
    ERROR = "error"
    """Something failed; `detail` says what."""


class Record(BaseModel):
    """Anything that stands in a log. Immutable; fields that this version does not know survive."""

    model_config = ConfigDict(
        frozen=True, extra="allow", use_attribute_docstrings=True, validate_by_name=True, validate_by_alias=True
    )


class CartridgeRecord(Record):
    """A cartridge that takes part, and what is needed to build its engine again."""

    name: str
    """The name under which the registry finds it."""
    version: str
    """Its version when the session was played."""
    state: str | None = None
    """State hash right after `reset(seed)`."""
    opcodes: str | None = None
    """Fingerprint of its compiled opcodes."""
    options: dict[str, Any] | None = None
    """Options with which its engine was built."""


class ModelRecord(Record):
    """The model that chose."""

    name: str
    """The name or path that was asked for."""
    fingerprint: str | None = None
    """Hash of the size, head and tail of the model file: equal ones hold the same weights."""
    tokenizer: str | None = None
    """Fingerprint of the vocabulary: equal fingerprints mean that ids mean the same."""


class RuleRecord(Record):
    """How decisions are made from the logits."""

    name: str
    """`greedy`, `exact`, `calibrated`, `sample`, or a name of the player's own."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Whatever the rule needs to decide again: temperature, seed, tolerance."""


class Header(Record):
    """Line 1: what was played, with what, from where."""

    event: Literal["header"] = "header"
    """Kind of the line."""
    version: int = Field(default=SCHEMA, alias="schema")
    """Version of the log's form. A newer one than the reader's is refused."""
    started: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When the session began, UTC, ISO 8601."""
    cartridges: tuple[CartridgeRecord, ...]
    """The cartridges, in the order in which they were loaded."""
    seed: int
    """Given to every engine's `reset`."""
    player: str = "model"
    """Who chose: `model`, `planner`, `random`."""
    rule: RuleRecord | None = None
    """How the model's logits became a choice."""
    wire: str | None = None
    """Name of the wire form of the decoded text."""
    model: ModelRecord | None = None
    """The model, when one chose."""
    max_tokens: int | None = None
    """Tokens that an instruction with open arguments may have, when a model chose."""
    limits: dict[str, int | float] | None = None
    """Limits given at the start, by name."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of the software, by name."""
    redacted: str | None = None
    """Fingerprint of the salt, when prompts and requests were dropped."""


class InstructionRecord(Record):
    """An instruction, as an object that other tools can read."""

    cartridge: str
    """Name of its cartridge; empty for the shared halt."""
    method: str
    """Name of its opcode."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Its arguments in declaration order."""

    @classmethod
    def of(cls, instruction: Instruction) -> Self:
        """Return the record of an instruction."""
        return cls(cartridge=instruction.cartridge, method=instruction.method, arguments=instruction.args)

    def instruction(self) -> Instruction:
        """Return the instruction, equal to the one that was recorded."""
        return Instruction(self.cartridge, self.method, canonical(self.arguments) if self.arguments else "{}")


class LegalRow(Record):
    """One legal opcode and what the model thinks of it."""

    text: str
    """Its wire text, or the label that stood in the prompt."""
    logprob: float | None = None
    """Log-probability under the prompt."""
    null: float | None = None
    """Log-probability under the null prompt (the mean of several), where the rule asks for one."""
    score: float | None = None
    """What the rule compared; the highest wins."""
    probability: float | None = None
    """Share among the legal opcodes, 0 to 1."""


class Offer(Record):
    """An option of the planner that was offered to the model."""

    instruction: InstructionRecord
    """What it would do."""
    score: float
    """The planner's score; higher is better."""
    note: str = ""
    """The planner's reason in words."""

    @classmethod
    def of(cls, option: Option) -> Self:
        """Return the record of an option."""
        return cls(instruction=InstructionRecord.of(option.instruction), score=option.score, note=option.note)


class Delta(Record):
    """A list of token ids, told as the difference from another list."""

    of: int | None = Field(default=None, ge=1)
    """Of a null prompt: which of the decision's rotations, from 1, is the other list; absent: the decision's prompt."""
    keep: int = Field(ge=0)
    """How many leading ids are the same as in the list before."""
    new: tuple[int, ...]
    """The ids that follow them."""


class TokenRow(Record):
    """One token of a ledger: exactly one of `text` and `hex` gives its bytes."""

    id: int
    """Token id."""
    text: str | None = None
    """Its bytes, where they are valid UTF-8."""
    hex: str | None = None
    """Its bytes in hexadecimal, where they are not."""
    logprob: float
    """Log-probability in the full vocabulary."""
    legal: bool
    """Whether the mask let it through."""

    @classmethod
    def of(cls, id: int, piece: bytes, logprob: float, *, legal: bool) -> Self:
        """Return the row of a token with these exact bytes."""
        try:
            return cls(id=id, text=piece.decode("utf-8"), logprob=logprob, legal=legal)
        except UnicodeDecodeError:
            return cls(id=id, hex=piece.hex(), logprob=logprob, legal=legal)

    @property
    def piece(self) -> bytes:
        """The exact bytes of the token."""
        return bytes.fromhex(self.hex) if self.hex is not None else (self.text or "").encode("utf-8")


class LedgerStep(Record):
    """One choosing step inside a decision: the token taken and its strongest rivals."""

    at: int = Field(ge=0)
    """Place in the decision's `ids`; ids without a ledger step were forced."""
    legal: int
    """How many ids were legal."""
    mass: float
    """Their probability together, before the mask."""
    rows: tuple[TokenRow, ...]
    """The token taken and up to ten others."""


class DecisionRecord(Record):
    """One decision: what was legal, what the model thought, what was done, what came of it."""

    event: Literal["decision"] = "decision"
    """Kind of the line."""
    n: int = Field(ge=1)
    """Number of the decision, from 1, without gaps."""
    cartridge: str
    """The cartridge whose turn it was."""
    instruction: InstructionRecord
    """What was done."""
    text: str = ""
    """The wire text that was decoded, or written where arguments are open."""
    ids: tuple[int, ...] = ()
    """Its token ids."""
    state: str
    """State hash of the cartridge's engine afterwards."""
    result: str = ""
    """What the engine said, verbatim. Data, never instructions."""
    refused: bool = False
    """True when the engine did not allow the instruction; the state is as it was and `result` holds the reason."""
    request: str | None = None
    """What a person typed, where the decision answers a request."""
    prompt: Delta | None = None
    """Prompt ids, as difference from the prompt ids of the decision before."""
    nulls: tuple[Delta, ...] | None = None
    """Null prompt ids, each as difference from this decision's prompt ids or those of a rotation."""
    nulls_of: int | None = None
    """The decision before this one that gave the null prompts, where they are still the same; it stands for `nulls`."""
    rotations: tuple[Delta, ...] | None = None
    """Ids of the prompt with its options in other orders, each as difference from this decision's prompt ids."""
    legal: tuple[LegalRow, ...] | None = None
    """The legal opcodes, in the order in which they were offered to the rule; of very many the best by score."""
    legal_count: int | None = None
    """How many opcodes were legal."""
    chosen: int | None = None
    """Place of the choice in `legal`, from 0."""
    offered: tuple[Offer, ...] | None = None
    """The planner's options that the prompt showed, best first."""
    rule: str | None = None
    """The rule that decided."""
    margin: float | None = None
    """Score of the winner minus score of the second."""
    preferred: str | None = None
    """An opcode that scored higher than the chosen one but was not legal: what the request asked for, probably."""
    preferred_by: float | None = None
    """By how much."""
    legal_mass: float | None = None
    """Probability of all legal continuations before the mask, at the first choosing step."""
    passes: int | None = None
    """Calls of `llama_decode`."""
    tokens_evaluated: int | None = None
    """Tokens that these calls evaluated."""
    chosen_tokens: int | None = None
    """Tokens of `ids` that were a choice."""
    forced_tokens: int | None = None
    """Tokens of `ids` that had no legal alternative."""
    refused_removals: int | None = None
    """How often the model's memory refused to forget a part and was filled anew."""
    stop: str | None = None
    """Why decoding stopped."""
    model_ms: float | None = None
    """Time in the model."""
    planner_ms: float | None = None
    """Time in the planner."""
    at_ms: float | None = None
    """Time since the session began, when the decision was logged."""
    ledger: tuple[LedgerStep, ...] | None = None
    """The choosing steps token by token."""
    redacted: dict[str, str] | None = None
    """Salted hashes of what was dropped, by field."""


class Resumed(Record):
    """The session was broken off above, and goes on below."""

    event: Literal["resumed"] = "resumed"
    """Kind of the line."""
    n: int = Field(ge=0)
    """How many decisions stand above."""
    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When it went on, UTC, ISO 8601."""
    dropped: int = Field(ge=0)
    """How many bytes were taken off: a cut line, or an outcome."""
    ending: Ending | None = None
    """The ending that stood in that outcome."""


class Joined(Record):
    """A cartridge takes part from here on."""

    event: Literal["joined"] = "joined"
    """Kind of the line."""
    n: int = Field(ge=0)
    """How many decisions stand above."""
    cartridge: CartridgeRecord
    """The cartridge; `state` is that of its engine right after `reset(seed)`."""


class Left(Record):
    """A cartridge takes part no more."""

    event: Literal["left"] = "left"
    """Kind of the line."""
    n: int = Field(ge=0)
    """How many decisions stand above."""
    cartridge: str
    """Its name."""


class Outcome(Record):
    """The last line: how it ended."""

    event: Literal["outcome"] = "outcome"
    """Kind of the line."""
    decisions: int = Field(ge=0)
    """How many decisions stand above."""
    ending: Ending
    """Why the session ended."""
    detail: str = ""
    """The engine's reason, the limit's name, the error's text."""
    summary: dict[str, dict[str, int | float | str]] = Field(default_factory=dict)
    """`Engine.summary()` at the end, by cartridge."""
    seconds: float | None = None
    """Time from header to outcome."""
    totals: dict[str, int | float] | None = None
    """Sums over the session, by name: passes, tokens evaluated, agreement with the planner."""


LogRecord = Header | DecisionRecord | Resumed | Joined | Left | Outcome
