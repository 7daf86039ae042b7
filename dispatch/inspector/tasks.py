"""What the bench holds a model to: a schema, or a list of options, compiled; and what is right about a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernel.api import Kernel
from kernel.canon import canonical
from kernel.choose.options import option_literals
from kernel.choose.question import Question
from kernel.choose.rule import Rule
from kernel.errors import NoLegalOpcodeError, OpcodeError
from kernel.prompt import Part, Prompt
from kernel.shape.json_schema import read_value
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Shape, seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages


class Mask(Protocol):
    """What may come next, while the text is one that may be."""

    @property
    def ended(self) -> bool:
        """Whether the text is complete."""

    def legal(self) -> NDArray[np.int32]:
        """Return the legal next ids."""

    def consume(self, token: int) -> None:
        """Take one id; raises NoLegalOpcodeError when it is not legal."""


class SchemaTask:
    """A schema, read and compiled for a vocabulary; raises OpcodeError for one that cannot be held, BuildError."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.shape, self.notes = schema_shape(text)
        self._stages = Stages([seq(self.shape, "\n")], vocabulary)
        self._reader = Recogniser(self.shape)

    def matcher(self, budget: int | None) -> Matcher:
        """Return a cursor at the start; ContextError when the budget does not do for the shortest value."""
        return Matcher(self._stages, budget)

    def judge(self, text: str) -> tuple[Any, str | None]:
        """Return the value of a text, and what is wrong with it."""
        try:
            value = json.loads(text)
            written = canonical(value)
        except (ValueError, RecursionError) as error:
            return None, f"no JSON: {error}"
        return value, None if self._reader.accepts(written) else "JSON, but no value of the schema"


def schema_shape(text: str) -> tuple[Shape, Sequence[object]]:
    """Return the shape of a schema that is given as JSON, and what is noted of it; raises OpcodeError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OpcodeError(f"the schema is no JSON: {error}") from error
    return read_value("schema", found)


class Paths:
    """The mask of a list of options: ids that lead to one of them."""

    def __init__(self, sequences: Sequence[tuple[int, ...]]) -> None:
        self._open = list(sequences)
        self._path: tuple[int, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether an option is complete and none goes on."""
        return self._path in self._open and len(self._open) == 1

    def legal(self) -> NDArray[np.int32]:
        """Return the legal next ids."""
        at = len(self._path)
        return np.array(sorted({ids[at] for ids in self._open if len(ids) > at}), np.int32)

    def consume(self, token: int) -> None:
        """Take one id."""
        path = (*self._path, token)
        left = [ids for ids in self._open if ids[: len(path)] == path]
        if not left:
            raise NoLegalOpcodeError(f"id {token} leads to no option")
        self._path, self._open = path, left


class OptionsTask:
    """A list of options behind a prompt, compiled; raises UsageError and BuildError for what is no such list."""

    def __init__(
        self, kernel: Kernel, prompt: str, options: Sequence[str], null: str | None, rule: Rule | None
    ) -> None:
        asked = Prompt((Part(prompt, trusted=True),), () if null is None else ((Part(null, trusted=True),),))
        opcodes = kernel.compile(option_literals(prompt, options), keep=False)
        self.question = Question(kernel.ids(asked), opcodes, rule=rule)
        self.sequences = [tuple(opcodes.trie.sequence(i).tolist()) for i in range(len(opcodes))]
        self._bodies = {str(literal.body).strip(): literal.label for literal in option_literals(prompt, options)}

    def judge(self, text: str) -> tuple[Any, str | None]:
        """Return the option that a text is, or what is wrong with it."""
        known = self._bodies.get(text.strip())
        return known, None if known is not None else "none of the options"
