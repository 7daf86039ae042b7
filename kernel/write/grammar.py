"""Writes a shape as a grammar in the notation of llguidance, a variant of Lark.

    shape      Seq('{"n":', Scalar(digits), ',"on":', Scalar('true' or 'false'), '}')

    grammar    T0: /(?:[\\x{30}-\\x{39}])+/
               T1: /(?:true|false)/
               start: "{" "\\"n\\"" ":" T0 "," "\\"on\\"" ":" T1 "}"

A Scalar becomes a terminal (T0), everything else becomes rules. Fixed text is cut where JSON would cut it, into
brackets, commas, colons, strings and words, because the engine's lexer takes the longest terminal and does not come
back: if both `,` and `,"b":` were terminals, `,"c":` could not be read.
"""

from __future__ import annotations

import json
import re

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import (
    Alt,
    Both,
    Chars,
    Except,
    Ranges,
    Ref,
    Repeat,
    Scalar,
    Seq,
    Shape,
    Text,
    inside_out,
    parts_of,
)

OPTIONS = '%llguidance {"no_forcing": true}'
"""With forcing on, the masks leave out tokens whose bytes are right, first of all those that straddle a boundary."""

PIECE = re.compile(r'[][{},:]|"(?:[^"\\]|\\.)*"|[^][{},:"]+|"')


NEVER = r"[^\x{0}-\x{10FFFF}]"
"""The regular expression of no text at all."""


def grammar(shape: Shape) -> str:
    """Return the grammar of the texts of a shape.

    >>> from kernel.shape.shape import alt, seq
    >>> print(grammar(seq('{"n":', Scalar(Chars(((48, 57),))), "}")))
    %llguidance {"no_forcing": true}
    T0: /[\\x{30}-\\x{39}]/
    start: "{" "\\"n\\"" ":" T0 "}"
    """
    writer = _Writer(shape)
    start = writer.start(shape)
    return "\n".join([OPTIONS, *writer.lines, f"start: {start}"])


def _in_rules(shape: Shape) -> tuple[Shape, ...]:
    """Return the parts of a shape that rules are made of; what is a terminal has none."""
    return parts_of(shape) if isinstance(shape, Seq | Alt | Repeat | Ref) else ()


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self.reader = Recogniser(shape)
        self.lines: list[str] = []
        self._rules: dict[int, str] = {}
        """The expression of each part of a rule, by its id; parts without any text have none."""
        self._names: dict[tuple[int, str], str] = {}
        self._terminals: dict[str, str] = {}
        self._count = 0

    def start(self, shape: Shape) -> str:
        """Write the rules of a shape and of all it is made of; return the expression of the whole."""
        for part in inside_out(shape, _in_rules):
            if self.reader.size(part) is not None:
                self._rules[id(part)] = self._rule(part)
        for part in inside_out(shape, _in_rules):  # what a name stands for may be around it, so all is known only now
            if isinstance(part, Ref) and (name := self._names.pop((id(part.rules), part.name), None)):
                self.lines.append(f"{name}: {self._rules[id(part.target)]}")
        return self._rules[id(shape)]

    def _rule(self, shape: Shape) -> str:
        match shape:
            case Text(text):
                return " ".join(map(_quoted, PIECE.findall(text)))
            case Seq(parts):
                return " ".join(filter(None, (self._within(part) for part in parts)))
            case Scalar(_, listed) if any(text[:1] in ("[", "{") for text in listed):
                return self._next(" | ".join(self._rule(Text(text)) for text in listed))
            case Scalar(part):
                return self.terminal(self._of(part))
            case Alt(parts):
                return self._next(" | ".join(self._rules[id(part)] for part in parts if id(part) in self._rules))
            case Repeat(part, low, high):
                body = self._rules.get(id(part)) if high != 0 else None
                return f"({body}){{{low},{'' if high is None else high}}}" if body else ""
            case Ref():
                return self._named(shape)
        return self.terminal(self._of(shape))

    def _within(self, part: Shape) -> str:
        """Return the expression of a part of a sequence; a sequence, which many may hold, gets a name for it."""
        if isinstance(part, Seq) and " " in self._rules[id(part)]:
            self._rules[id(part)] = self._next(self._rules[id(part)])
        return self._rules[id(part)]

    def _named(self, ref: Ref) -> str:
        key = (id(ref.rules), ref.name)
        if key not in self._names:
            self._count += 1
            self._names[key] = f"r{self._count}"
        return self._names[key]

    def _next(self, body: str) -> str:
        self._count += 1
        self.lines.append(f"r{self._count}: {body}")
        return f"r{self._count}"

    def terminal(self, expression: str) -> str:
        """Return the name of a terminal; equal expressions share one."""
        name = self._terminals.get(expression)
        if name is None:
            name = self._terminals[expression] = f"T{len(self._terminals)}"
            self.lines.append(f"{name}: {expression}")
        return name

    def _of(self, shape: Shape) -> str:
        """Return the expression of a terminal: one regular expression as far as it goes."""
        if not _combines(shape):
            return f"/{regex(shape)}/"
        match shape:
            case Seq(parts):
                return " ".join(self.terminal(self._of(part)) for part in parts if part != Text(""))
            case Alt(parts):
                some = [part for part in parts if self.reader.size(part) is not None]
                full = " | ".join(self.terminal(self._of(p)) for p in some if not (isinstance(p, Text) and not p.text))
                return f"({full})?" if any(isinstance(p, Text) and not p.text for p in some) else f"({full})"
            case Repeat(part, low, high):
                return f"{self.terminal(self._of(part))}{{{low},{'' if high is None else high}}}"
            case Both(parts):
                return " & ".join(self.terminal(self._of(part)) for part in parts)
            case Except(part, texts):
                barred = "|".join(sorted(map(_escaped, texts)))
                return f"{self.terminal(self._of(part))} & ~{self.terminal(f'/{barred}/')}"
            case Scalar(part):
                return self._of(part)
        raise TypeError(f"{shape!r} cannot be part of a terminal")


def regex(shape: Shape) -> str:
    """Return the regular expression, in Rust's syntax, of a shape without Both, Except and Ref."""
    match shape:
        case Text(text):
            return _escaped(text)
        case Chars(ranges):
            return _class(ranges)
        case Seq(parts):
            return "".join(f"(?:{regex(p)})" if isinstance(p, Alt) else regex(p) for p in parts)
        case Alt(parts):
            return "(?:" + "|".join(map(regex, parts)) + ")" if parts else NEVER
        case Repeat(part, low, high):
            bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
            if bounds is None:
                bounds = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
            return f"(?:{regex(part)}){bounds}"
        case Scalar(part):
            return regex(part)
    raise TypeError(f"{shape!r} is no regular expression")


def _combines(shape: Shape) -> bool:
    match shape:
        case Both() | Except():
            return True
        case Seq(parts) | Alt(parts):
            return any(map(_combines, parts))
        case Repeat(part) | Scalar(part):
            return _combines(part)
    return False


def _class(ranges: Ranges) -> str:
    if not ranges:
        return NEVER
    ends = (f"\\x{{{low:X}}}" + (f"-\\x{{{high:X}}}" if high > low else "") for low, high in ranges)
    return f"[{''.join(ends)}]"


def _escaped(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
