"""Values of a JSON Schema that a request asks for by `response_format`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatch.serve.errors import RequestError
from dispatch.serve.form import ResponseFormat
from dispatch.serve.messages import Talk
from kernel.canon import canonical
from kernel.errors import OpcodeError, short
from kernel.opcode.domains import read_schema
from kernel.prompt import Part
from kernel.recent import keep, recall
from kernel.shape.json_schema import read_value
from kernel.shape.shape import Shape, seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.stages import Stages

KEPT = 32
"""Schemas that are kept compiled."""

FIELD = "response_format"


@dataclass
class Asked:
    """A schema that answers, read once; `stages` is compiled when it is first written by."""

    title: str
    shape: Shape
    notes: tuple[str, ...]
    compiled: Stages | None = None

    def stages(self, vocabulary: Vocabulary) -> Stages:
        """Return what holds the writing; on the kernel's thread."""
        if self.compiled is None:
            self.compiled = Stages([seq(self.shape, "\n")], vocabulary)
        return self.compiled

    def parts(self, talk: Talk) -> tuple[Part, ...]:
        """Return what the model reads: what was said, and the title of what it writes."""
        parts = [Part(f"{talk.told.strip()}\n")] if talk.told.strip() else []
        for turn in talk.turns:
            parts += [Part(f"\n{turn.said}:" if parts else f"{turn.said}:", trusted=True)]
            parts += [Part(f" {' '.join(turn.text.split())}")]
        return (*parts, Part("\n", trusted=True), Part(self.title), Part(" in JSON:\n", trusted=True))


class Schemas:
    """Reads schemas, and keeps those that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Asked] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, wanted: ResponseFormat) -> Asked | None:
        """Return what `response_format` asks for, None for plain text; raises RequestError for what cannot be held."""
        if wanted.type == "text":
            return None
        if wanted.type != "json_schema":
            raise RequestError(
                f"{FIELD}.type {short(wanted.type)} is not supported: give 'json_schema', which says what is written",
                param=f"{FIELD}.type",
                code="unsupported",
            )
        if wanted.json_schema is None:
            field = f"{FIELD}.json_schema"
            raise RequestError(f"{field} is missing", param=field, code="missing_field")
        schema, name = wanted.json_schema.schema_, wanted.json_schema.name
        key = canonical([name, schema])
        with self._lock:
            known = recall(self._kept, key)
        if known is None:
            known = _read(name, schema)
            with self._lock:
                keep(self._kept, key, known, KEPT)
        return known


def _read(name: str, schema: Mapping[str, Any]) -> Asked:
    try:
        plain = read_schema(name, schema)
        if plain is None:
            raise OpcodeError(f"{name}: there is no schema")
        shape, notes = read_value(name, plain)
    except OpcodeError as error:
        raise RequestError(str(error), param=f"{FIELD}.json_schema.schema", code="unsupported_schema") from error
    title = plain.get("title")
    title = title if isinstance(title, str) and title.strip() else name.replace("_", " ")
    return Asked(" ".join(title.split()), shape, tuple(str(note) for note in notes))
