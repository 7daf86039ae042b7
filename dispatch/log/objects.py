"""The JSON objects that stand inside the lines of a session log: cartridges, rules, instructions, legal rows, ledgers.

The lines themselves are in `records.py`. Docstrings are part of the format's description (`schema.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, Strict

from kernel.contract import Option
from kernel.opcode import Instruction, canonical

SIZE = 1 << 63
Integer = Annotated[int, Strict(), Field(ge=-SIZE, lt=SIZE)]
Count = Annotated[int, Strict(), Field(ge=0, lt=SIZE)]
Number = Annotated[float, Strict()]
"""Scores; they may be infinite or NaN."""
Finite = Annotated[float, Strict(), AllowInfNan(False)]
Duration = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0, le=1e15)]
Flag = Annotated[bool, Strict()]
EACH = 2
"""Rows of a ledger's step: at least so many others are legal, and so many removed, where there are that many."""


class Record(BaseModel):
    """Anything that stands in a log. Immutable; fields that this version does not know survive.

    What stands below a field describes it; `schema.py` reads that where it is asked for, since it takes time.
    """

    model_config = ConfigDict(frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True)


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
    """`greedy`, `exact`, `calibrated`, `sample`, `learned`, or a name of the player's own."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Whatever the rule needs to decide again: temperature, seed, tolerance."""


class JudgeRecord(Record):
    """What says how a decision ends."""

    name: str
    """`thresholds`, or a name of the program's own."""
    thresholds: dict[str, Finite] | None = None
    """The thresholds by name; one that is absent was not looked at."""


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
    logprob: Number | None = None
    """Log-probability under the prompt."""
    null: Number | None = None
    """Log-probability under the null prompt (the mean of several), where the rule asks for one."""
    score: Number | None = None
    """What the rule compared; the highest wins."""
    probability: Number | None = None
    """Share among the legal opcodes, 0 to 1."""


class Offer(Record):
    """An option of the planner that was offered to the model."""

    instruction: InstructionRecord
    """What it would do."""
    score: Number
    """The planner's score; higher is better."""
    note: str = ""
    """The planner's reason in words."""

    @classmethod
    def of(cls, option: Option) -> Self:
        """Return the record of an option."""
        return cls(instruction=InstructionRecord.of(option.instruction), score=float(option.score), note=option.note)


class Delta(Record):
    """A list of token ids, told as the difference from another list."""

    of: Count | None = Field(default=None, ge=1)
    """Of a null prompt: which of the decision's rotations, from 1, is the other list; absent: the decision's prompt."""
    keep: Count
    """How many leading ids are the same as in the list before."""
    new: tuple[Count, ...] = Field(fail_fast=True)
    """The ids that follow them."""
    lines: tuple[Count, ...] | None = Field(default=None, fail_fast=True)
    """Of a prompt with lines without an order: how many ids the lead has, then each line; the rest is the question."""


class TokenRow(Record):
    """One token of a ledger: exactly one of `text` and `hex` gives its bytes."""

    id: Count
    """Token id."""
    text: str | None = None
    """Its bytes, where they are valid UTF-8."""
    hex: str | None = None
    """Its bytes in hexadecimal, where they are not."""
    logprob: Number
    """Log-probability in the full vocabulary."""
    legal: Flag
    """Whether the mask let it through."""
    rank: Count | None = Field(default=None, ge=1)
    """Its place among all ids by log-probability, from 1, ties by id."""

    @classmethod
    def of(cls, id: int, piece: bytes, logprob: float, *, legal: bool, rank: int | None = None) -> Self:
        """Return the row of a token with these exact bytes."""
        try:
            return cls(id=id, text=piece.decode("utf-8"), logprob=logprob, legal=legal, rank=rank)
        except UnicodeDecodeError:
            return cls(id=id, hex=piece.hex(), logprob=logprob, legal=legal, rank=rank)

    @property
    def piece(self) -> bytes:
        """The exact bytes of the token."""
        return bytes.fromhex(self.hex) if self.hex is not None else (self.text or "").encode("utf-8")


class LedgerStep(Record):
    """One choosing step inside a decision: the token taken and its strongest rivals."""

    at: Count
    """Place in the decision's `ids`; ids without a ledger step were forced."""
    legal: Count
    """How many ids were legal."""
    mass: Number
    """Their probability together, before the mask."""
    rows: tuple[TokenRow, ...] = Field(fail_fast=True)
    """The token taken and up to ten others."""
