"""What the model says of the candidates of each field: how well each goes on behind the field's line.

Fields whose candidates are of one kind share a token tree and a pass. Each candidate is read behind the line of each
field, and behind a line to compare with.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernel.choose.rule import Floats
from kernel.choose.score import Scorer
from kernel.memory.memory import Memory
from kernel.memory.passes import Work
from kernel.opcode.opcode import SchemaOpcode
from kernel.prompt import NOTHING
from kernel.text.vocabulary import Vocabulary
from kernel.tools.candidates import ORDER, Candidate
from kernel.tools.fields import Field
from kernel.tools.heads import line_of
from kernel.trie.opcodes import Literal, OpcodeSet

MOST_TOKENS, FEW = 700, 8
"""Tokens of the trees that a pass may evaluate; beyond that candidates are left out, down to FEW."""


class Reads(Protocol):
    """As much of a kernel as it takes to read evidence."""

    memory: Memory
    vocabulary: Vocabulary

    def compile(self, literals: Sequence[Literal | str], *, keep: bool = True) -> OpcodeSet:
        """See Kernel."""


class Kind(enum.StrEnum):
    """Kinds of fields, by how their candidates come about."""

    NUMBER = "number"
    STRING = "string"
    LISTED = "listed"
    """The schema lists the values."""
    OTHER = "other"
    """Lists, and what may be of several types."""


@dataclass(frozen=True)
class Evidence:
    """Log-probabilities of the candidates of one field, float64, shape (n,) each.

    Attributes:
        asked: behind the field's line.
        general: behind a line that asks for a value of no field in particular; where the candidates are those of one
            field alone, behind the field's line, the request asking for nothing.
        others: shape (m, n), behind the lines of the other fields of the same kind.
    """

    kind: Kind
    candidates: tuple[Candidate, ...]
    asked: Floats
    general: Floats
    others: Floats


def said(text: str) -> str:
    """Return how a value stands behind a line: a string without its quotes, the rest as JSON.

    >>> said('"Rome"'), said("[1,2]")
    ('Rome', '[1,2]')
    """
    value = json.loads(text)
    return value if isinstance(value, str) else text


def kind_of(field: Field) -> Kind:
    """Return the kind of a field."""
    schema = field.schema
    kind = schema.get("type")
    if "enum" in schema or "const" in schema or kind == "boolean":
        return Kind.LISTED
    return {"integer": Kind.NUMBER, "number": Kind.NUMBER, "string": Kind.STRING}.get(str(kind), Kind.OTHER)


Member = tuple[Field, tuple[Candidate, ...]]


class EvidenceReader:
    """Reads the evidence of the fields of one kind, with one kernel's memory."""

    def __init__(self, kernel: Reads) -> None:
        self.kernel = kernel
        self.scorer = Scorer(kernel.memory)

    def read(self, opcode: type[SchemaOpcode], request: str, members: Sequence[Member]) -> list[Evidence]:
        """Return the evidence of fields that share their candidates, in the order of the fields.

        Those are the numbers, the strings, or one field of another kind.
        """
        ranked = sorted((each for _, several in members for each in several), key=lambda each: ORDER.index(each.source))
        texts = list(dict.fromkeys(each.text for each in ranked))
        while (found := self._read(opcode, request, members, texts)) is None:
            texts = texts[: len(texts) * 2 // 3]
        return found

    def _read(
        self, opcode: type[SchemaOpcode], request: str, members: Sequence[Member], texts: Sequence[str]
    ) -> list[Evidence] | None:
        """Read the evidence of some of the candidates; None where they are too many."""
        kind = kind_of(members[0][0])
        shared = kind in (Kind.NUMBER, Kind.STRING)
        spoken: dict[str, list[str]] = {}
        for text in texts:
            spoken.setdefault(f" {said(text)}\n", []).append(text)
        if len(spoken) == 1:  # something has to be there to compare with
            spoken.setdefault(f" {NOTHING}\n", [])
        opcodes = self.kernel.compile([Literal(text) for text in spoken], keep=False)
        tree = self.scorer.tree(opcodes, opcodes.everything)
        if tree is None or (len(tree.tokens) * (len(members) + 1) > MOST_TOKENS and len(texts) > FEW):
            return None
        lines = [line_of(opcode, request, field) for field, _ in members]
        lines.append(line_of(opcode, request, None) if shared else line_of(opcode, "", members[0][0]))
        prompts = tuple(tuple(self.kernel.vocabulary.prompt(parts)) for parts in lines)
        scores = self.scorer.score(Work(prompts, tree))
        values = np.empty((len(prompts), len(spoken)))
        values[:, scores.leaves] = scores.log_probabilities
        column = {text: at for at, several in enumerate(spoken.values()) for text in several}
        found = []
        for number, (_, all_) in enumerate(members):
            several = tuple(each for each in all_ if each.text in column)
            columns = [column[each.text] for each in several]
            rows = values[:, columns]
            others = np.delete(rows[: len(members)], number, axis=0)
            found.append(Evidence(kind, several, rows[number], rows[len(members)], others))
        return found
