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
from collections.abc import Iterator

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Alt, Both, Chars, Except, Ranges, Ref, Repeat, Scalar, Seq, Shape, Text

OPTIONS = '%llguidance {"no_forcing": true}'
"""With forcing on, the masks leave out tokens whose bytes are right, first of all those that straddle a boundary."""

PIECE = re.compile(r'[][{},:]|"(?:[^"\\]|\\.)*"|[^][{},:"]+|"')


def grammar(shape: Shape) -> str:
    """Return the grammar of the texts of a shape.

    >>> from kernel.shape.shape import alt, seq
    >>> print(grammar(seq('{"n":', Scalar(Chars(((48, 57),))), "}")))
    %llguidance {"no_forcing": true}
    T0: /[\\x{30}-\\x{39}]/
    start: "{" "\\"n\\"" ":" T0 "}"
    """
    writer = _Writer(shape)
    start = writer.rule(shape)
    return "\n".join([OPTIONS, *writer.lines, f"start: {start}"])


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self.reader = Recogniser(shape)
        self.lines: list[str] = []
        self._names: dict[int | tuple[int, str], tuple[object, str]] = {}
        self._terminals: dict[str, str] = {}
        self._rules = 0

    def rule(self, shape: Shape) -> str:
        """Return an expression for a shape as part of a rule."""
        match shape:
            case Text(text):
                return " ".join(map(_quoted, PIECE.findall(text)))
            case Seq(parts):
                return " ".join(filter(None, map(self.rule, parts)))
            case Scalar(_, listed) if any(text[:1] in ("[", "{") for text in listed):
                return self._named(shape, lambda: " | ".join(self.rule(Text(text)) for text in listed))
            case Scalar(part):
                return self.terminal(self._of(part))
            case Alt(parts):
                return self._named(shape, lambda: " | ".join(self._alternatives(parts)))
            case Repeat(part, low, high):
                return f"({self.rule(part)}){{{low},{'' if high is None else high}}}"
            case Ref(name, rules):
                key = (id(rules), name)
                if key not in self._names:
                    self._names[key] = (rules, self._next())
                    line = f"{self._names[key][1]}: {self.rule(shape.target)}"
                    self.lines.append(line)
                return self._names[key][1]
        return self.terminal(self._of(shape))

    def _named(self, shape: Shape, body: object) -> str:
        known = self._names.get(id(shape))
        if known is None:
            known = self._names[id(shape)] = (shape, self._next())
            assert callable(body)
            self.lines.append(f"{known[1]}: {body()}")
        return known[1]

    def _alternatives(self, parts: tuple[Shape, ...]) -> Iterator[str]:
        for part in parts:
            if self.reader.minimal(part) is not None:
                yield self.rule(part)

    def _next(self) -> str:
        self._rules += 1
        return f"r{self._rules}"

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
                some = [part for part in parts if self.reader.minimal(part) is not None]
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
            return "(?:" + "|".join(map(regex, parts)) + ")"
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
        return r"[^\x{0}-\x{10FFFF}]"
    ends = (f"\\x{{{low:X}}}" + (f"-\\x{{{high:X}}}" if high > low else "") for low, high in ranges)
    return f"[{''.join(ends)}]"


def _escaped(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
