"""What the bench offers to begin with: schemas, prompts and lists of options."""

from __future__ import annotations

import json
from typing import Any

from dispatch.inspector.jsonable import Json
from dispatch.wire.value import SCHEMA

TICKET: Json = {
    "title": "Ticket",
    "type": "object",
    "properties": {
        "area": {"enum": ["billing", "login", "delivery", "other"]},
        "urgent": {"type": "boolean"},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["area", "urgent", "stars"],
}
PLACE: Json = {
    "title": "Place",
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 30},
        "country": {"type": "string", "minLength": 2, "maxLength": 30},
        "population": {"type": "integer", "minimum": 0, "maximum": 40000000},
    },
    "required": ["city", "country", "population"],
}


def presets() -> list[Json]:
    """Return the presets; each may be edited in the page."""
    character = SCHEMA.read_text("utf-8")
    ticket = "The parcel never came and I want my money back now!\n\nThis complaint as a ticket in JSON:\n"
    story = "Write a short profile of a lighthouse keeper.\n\nProfile in JSON:\n"
    words, commands = ["shut", "opener", "openly"], ["heater warmer", "heater cooler", "music play", "light off"]
    request, nothing = "Request: I'm freezing\nCommand:", "Request: N/A\nCommand:"
    return [
        _of("character", "A character of a story", story, schema=character, max_tokens=200),
        _of("ticket", "A complaint, sorted", ticket, schema=json.dumps(TICKET, indent=2)),
        _of("place", "A place", "The capital of France as JSON:\n", schema=json.dumps(PLACE, indent=2)),
        _of("opposite", "The opposite of open", "The opposite of open is", options=words, max_tokens=12),
        _of("command", "A command for a request", request, null=nothing, options=commands, max_tokens=12),
    ]


def _of(id: str, title: str, prompt: str, *, max_tokens: int = 120, **more: Any) -> Json:
    known = {"schema": None, "options": None, "null": None, **more}
    kind = "options" if known["options"] is not None else "schema"
    return {"id": id, "kind": kind, "title": title, "prompt": prompt, "max_tokens": max_tokens, **known}
