"""Lets the model write one value of a JSON Schema, behind a short prompt that says what it is to be about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.api import Kernel
from kernel.canon import canonical
from kernel.errors import UsageError
from kernel.opcode.domains import read_schema
from kernel.prompt import Part
from kernel.shape.json_schema import read_value
from kernel.shape.keywords import Note
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import seq
from kernel.write.stages import Stages
from kernel.write.writer import Written, write_freely
from kernel.write.writer import write as write_opcode

SCHEMA = Path(__file__).with_name("character.schema.json")
"""The schema that is taken where nobody gives one: a character of a story."""

TOKENS = 400


@dataclass(frozen=True)
class Value:
    """What the model wrote.

    Attributes:
        text: as the model wrote it.
        value: the text as JSON; None when it is none, which only `raw` text can be.
        fault: why the text is no value of the schema; "" when it is one.
        notes: what of the schema only describes.
    """

    text: str
    value: Any
    fault: str
    notes: tuple[Note, ...]
    written: Written


def write(
    kernel: Kernel,
    schema: Mapping[str, Any] | str | Path = SCHEMA,
    prompt: str = "",
    raw: bool = False,
    *,
    max_tokens: int = TOKENS,
    temperature: float = 0.0,
    seed: int = 0,
) -> Value:
    """Let the model write a value of a schema.

    Args:
        schema: a JSON Schema, its text, or a file of it.
        prompt: what it is to be about; data, so markers in it stay text.
        raw: hold nothing, to see what the model would write alone behind the same prompt.
    Raises:
        OpcodeError: a schema that cannot be held exactly.
        ContextError: the prompt or the shortest value does not fit.
    """
    plain = read_schema("write", schema)
    if plain is None:
        raise UsageError("there is no schema to write by; give a JSON Schema or a file of it")
    shape, notes = read_value("write", plain)
    ids = kernel.vocabulary.prompt(_parts(plain, prompt))
    if raw:
        written = write_freely(kernel.memory, ids, max_tokens=max_tokens, temperature=temperature, seed=seed)
        value, fault = _judge(written.text, Recogniser(shape))
    else:
        stages = Stages([seq(shape, "\n")], kernel.vocabulary)
        written = write_opcode(kernel.memory, stages, ids, max_tokens=max_tokens, temperature=temperature, seed=seed)
        value, fault = json.loads(written.text), ""
    return Value(written.text.strip(), value, fault, notes, written)


def _parts(schema: Mapping[str, Any], prompt: str) -> tuple[Part, ...]:
    """Return what the model reads; the schema's title says what kind of thing it writes."""
    title = schema.get("title")
    title = " ".join(title.split()) if isinstance(title, str) and title.strip() else "Description"
    return (
        Part("Write a short", trusted=True),
        Part(f" {title.lower()} of {' '.join(prompt.split()) or 'anything'}"),
        Part(".\n\n", trusted=True),
        Part(title),
        Part(" in JSON:\n", trusted=True),
    )


def _judge(text: str, reader: Recogniser) -> tuple[Any, str]:
    """Return the value of a text and what is wrong with it."""
    try:
        value = json.loads(text)
        written = canonical(value)
    except ValueError as error:
        return None, f"no JSON: {error}"
    return value, "" if reader.accepts(written) else "JSON, but no value of the schema"
