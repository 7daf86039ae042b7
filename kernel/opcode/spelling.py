"""Arguments as text: a JSON object, or words in a row. Knows no cartridge and no wire form.

A wire form puts a method before and a closing mark behind; what stands here is what both of ours have in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from kernel.canon import canonical
from kernel.shape.argument import Argument
from kernel.shape.objects import Member, mapping
from kernel.shape.shape import EMPTY, Alt, Except, Scalar, Shape, alt, listed, seq

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
SLOT = re.compile(r"\{([A-Za-z_]\w*)\}")
JSON_WORDS = frozenset({"true", "false", "null"})


def object_shape(arguments: Sequence[Argument]) -> Shape:
    """Return the shape of the arguments as a JSON object; a key with a default is written all the same."""
    return mapping([Member(a.name, a.shape, a.required or a.default is not None) for a in arguments])


def words_shape(arguments: Sequence[Argument], phrase: str = "") -> Shape:
    """Return the shape of the arguments as words, each after a space.

    Values of required arguments stand by position; the others follow as `name=value`, and not at all when they are
    missing or their default. A listed string that is a word stands bare; everything else is JSON.

    Args:
        phrase: how the required ones are said instead, such as `{column}-{rotation}`.

    >>> from kernel.shape.listing import texts
    >>> room = Argument("room", listed(('"hall"', '"back door"')), True)
    >>> speed = Argument("speed", listed(("1", "2")), False, default="1")
    >>> list(texts(words_shape([speed, room])))
    [' hall', ' hall speed=2', ' "back door"', ' "back door" speed=2']
    >>> list(texts(words_shape([room], "to the {room}")))
    [' to the hall', ' to the "back door"']
    """
    required = {argument.name: bare(argument.shape) for argument in arguments if argument.required}
    parts: list[Shape | str] = []
    if phrase:
        pieces = SLOT.split(phrase)
        parts.append(f" {pieces[0]}")
        for name, after in zip(pieces[1::2], pieces[2::2], strict=True):
            parts += [required[name], after]
    else:
        for shape in required.values():
            parts += [" ", shape]
    for argument in arguments:
        if not argument.required:
            name = argument.name if WORD.fullmatch(argument.name) else canonical(argument.name)
            value = argument.shape if argument.default is None else _but(argument.shape, argument.default)
            parts.append(alt(EMPTY, seq(f" {name}=", bare(value))))
    return seq(*parts)


def bare(shape: Shape) -> Shape:
    """Return the shape with listed strings that are words without their quotes."""
    match shape:
        case Alt(parts):
            return Alt(tuple(map(bare, parts)))
        case Scalar(_, values) if values:
            written = tuple(map(_bare, values))
            return shape if written == values else listed(written)
    return shape


def words(shape: Shape) -> frozenset[str]:
    """Return the strings that stand bare where `bare` writes the shape.

    >>> sorted(words(listed(('"hall"', '"back door"', '"true"', "7"))))
    ['hall']
    """
    match shape:
        case Alt(parts):
            return frozenset().union(*map(words, parts))
        case Scalar(_, values):
            return frozenset(written for value in values if (written := _bare(value)) != value)
    return frozenset()


def _bare(text: str) -> str:
    word = json.loads(text) if text.startswith('"') else ""
    return word if WORD.fullmatch(word) and word not in JSON_WORDS else text


def _but(shape: Shape, text: str) -> Shape:
    """Return the shape without one text, as far as scalars go."""
    match shape:
        case Alt(parts):
            return Alt(tuple(_but(part, text) for part in parts))
        case Scalar(_, values) if values:
            return listed(tuple(value for value in values if value != text))
        case Scalar(part):
            return Scalar(Except(part, frozenset({text})))
    return shape
