"""The words that a request and a tool have in common: the prior of the choice of a tool. Knows no model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.fields import Field, fields_of
from kernel.tools.signs import stems

COMMON = 0.3
"""Weight of a word that every tool of the list has; rarer ones weigh more, as in tf-idf."""


@dataclass(frozen=True)
class Match:
    """Shares of words in common, each between 0 and 1, weighed by how few tools have them.

    Attributes:
        name, about, fields: of the request, in the tool's name, in its description, in its arguments.
        of_name, of_about: of the name and of the description, in the request.
    """

    name: float
    about: float
    fields: float
    of_name: float
    of_about: float

    @property
    def score(self) -> float:
        """The sum of all."""
        return self.name + self.about + self.fields + self.of_name + self.of_about


def matches(request: str, opcodes: Sequence[type[SchemaOpcode]]) -> list[Match]:
    """Return how well each tool matches a request.

    >>> tools = [SchemaOpcode.declare(name, {"description": about}) for name, about in
    ...     (("get_weather", "Get the weather."), ("play_song", "Play a song."))]
    >>> [round(match.score, 1) for match in matches("how is the weather in Rome?", tools)]
    [2.6, 0.0]
    """
    words = [_words(opcode) for opcode in opcodes]
    spread = Counter(word for each in words for word in set().union(*each))

    def weight(some: set[str]) -> float:
        return sum(math.log((len(opcodes) + 1) / (spread[word] + 0.5)) + COMMON for word in some)

    asked = set(stems(request))
    whole = weight(asked) or 1.0
    found = []
    for name, about, fields in words:
        shares = [weight(asked & part) / whole for part in (name, about, fields)]
        own = [weight(asked & part) / (weight(part) or 1.0) for part in (name, about)]
        found.append(Match(*shares, *own))
    return found


def comparable(request: str) -> bool:
    """Return whether most letters of a request are Latin, as those of the names of tools are.

    >>> comparable("How warm is it?"), comparable("\u4e0a\u6d77\u5929\u6c14")
    (True, False)
    """
    letters = [char for char in request if char.isalpha()]
    return 2 * sum(char < "\u0250" for char in letters) >= len(letters)


def _words(opcode: type[SchemaOpcode]) -> tuple[set[str], set[str], set[str]]:
    """Return the words of a tool's name, of its description and of its arguments."""
    fields = [word for each in fields_of(opcode) for word in _words_of(each)]
    return set(stems(f"{opcode.original} {opcode.method}")), set(stems(opcode.__doc__ or "")), set(fields)


def _words_of(field: Field) -> list[str]:
    listed = field.schema.get("enum")
    values = " ".join(map(str, listed)) if isinstance(listed, list) else ""
    return stems(f"{field.name} {field.about} {values}")
