"""What the model reads before a value: the request, and a line that ends where the value begins.

Play a song, an album or an artist.
Request: Play some Miles Davis
query (The song, album or artist to play):
"""

from __future__ import annotations

import re

from kernel.opcode.opcode import SchemaOpcode
from kernel.prompt import NOTHING, Part
from kernel.tools.fields import Field

LONG = 140
"""Characters of a description that are read."""


def line_of(opcode: type[SchemaOpcode], request: str, field: Field | None) -> tuple[Part, ...]:
    """Return a request and the line of a field; without a field, a line that any value may stand behind."""
    told = " ".join((opcode.__doc__ or "").split())[:300]
    name = "value" if field is None else field.path[-1]
    about = "a value" if field is None else first_sentence(field.about)[:LONG]
    return (
        Part(f"{told}\n"),
        Part("Request:", trusted=True),
        Part(f" {' '.join(request.split()) or NOTHING}"),
        Part("\n", trusted=True),
        Part(f"{name} ({about})"),
        Part(":", trusted=True),
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without the full stop.

    >>> first_sentence("The city, e.g. Rome. Required."), first_sentence("How long")
    ('The city, e.g. Rome', 'How long')
    """
    return re.split(r"(?<=[a-z0-9)\"'])(?<!\be\.g)(?<!\bi\.e)\.\s+(?=[A-Z])", " ".join(text.split()))[0].rstrip(".")
