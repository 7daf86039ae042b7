"""Reads the regular expressions of JSON Schema (ECMA-262) into shapes; the caller says how a character is written.

Where engines disagree, a pattern is read so that all of them agree: `\\d` and `\\w` are ASCII, `.` leaves out every
line end, and a negated class leaves out what any engine would count as a member.
"""

from __future__ import annotations

from collections.abc import Callable

from kernel.errors import OpcodeError, short
from kernel.shape.limits import COUNTED, GROUPS, PATTERN, REPETITIONS
from kernel.shape.shape import (
    ANY,
    Ranges,
    Repeat,
    Shape,
    alt,
    common,
    inside_out,
    normal,
    parts_of,
    repeat,
    seq,
    without,
)

Written = Callable[[Ranges], Shape]

DIGIT: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = normal(
    [(9, 13), (0x2000, 0x200A), (0x2028, 0x2029), *((c, c) for c in (0x20, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000))]
)
SPACE_SOMEWHERE: Ranges = normal([*SPACE, (28, 31), (133, 133), (0xFEFF, 0xFEFF)])
LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
BEYOND_ASCII: Ranges = ((128, 0x10FFFF),)
ESCAPES = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
CLASSES = {
    "d": DIGIT,
    "w": WORD,
    "s": SPACE,
    "D": common(without(DIGIT), without(BEYOND_ASCII)),
    "W": common(without(WORD), without(BEYOND_ASCII)),
    "S": without(SPACE_SOMEWHERE),
}


def parse(pattern: str, written: Written) -> Shape:
    """Return the shape of all texts in which a pattern is found; anchors are honoured at the ends.

    Raises OpcodeError for what is no regular language or not held: lookaround, references, `\\b`, anchors inside.

    >>> from kernel.shape.listing import texts
    >>> from kernel.shape.shape import Chars
    >>> list(texts(parse("^a[xy]?$", Chars)))
    ['a', 'ax', 'ay']
    """
    if len(pattern) > PATTERN:
        raise OpcodeError(f"a pattern of {len(pattern)} characters cannot be held; at most {PATTERN} can")
    parser = _Parser(pattern, written)
    parts = parser.alternatives(outermost=True)
    if parser.at < len(pattern):
        raise parser.error("unbalanced ')'")
    return alt(*parts)


class _Parser:
    def __init__(self, pattern: str, written: Written) -> None:
        self.pattern = pattern
        self.written = written
        self.at = 0
        self.anything = Repeat(written(ANY), 0, None)
        self.groups = 0

    def error(self, what: str) -> OpcodeError:
        return OpcodeError(f"pattern {short(self.pattern)} cannot be held: {what} at character {self.at}")

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.at += len(text)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise self.error("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, *, outermost: bool) -> list[Shape]:
        parts = [self.sequence(outermost)]
        while self.take("|"):
            parts.append(self.sequence(outermost))
        return parts

    def sequence(self, outermost: bool) -> Shape:
        parts: list[Shape] = []
        start = end = False
        if outermost:
            while self.take("^"):
                start = True
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            if self.peek("$") and outermost and self.pattern[self.at + 1 : self.at + 2] in ("", "|"):
                self.at += 1
                end = True
                break
            parts.append(self.repeated())
        if outermost:
            parts = [*([] if start else [self.anything]), *parts, *([] if end else [self.anything])]
        return seq(*parts)

    def repeated(self) -> Shape:
        atom = self.atom()
        if self.take("*"):
            low, high = 0, None
        elif self.take("+"):
            low, high = 1, None
        elif self.take("?"):
            low, high = 0, 1
        elif (bounds := self.braces()) is not None:
            low, high = bounds
        else:
            return atom
        self.take("?")  # lazy or not, the language is the same
        if self.peek("+"):
            raise self.error("a possessive quantifier")
        if self.at < len(self.pattern) and self.pattern[self.at] in "*?{":
            raise self.error("a repetition of a repetition; put the inner one into a group")
        atom = repeat(atom, low, high)
        self.count(atom)
        return atom

    def count(self, atom: Shape) -> None:
        """Measure a repetition by those inside it; raise OpcodeError when they are too many together."""
        times: dict[int, int] = {}
        for part in inside_out(atom):
            most = max((times[id(inner)] for inner in parts_of(part)), default=1)
            times[id(part)] = most * max(part.low, part.high or 1, 1) if isinstance(part, Repeat) else most
        if times[id(atom)] > COUNTED:
            raise self.error(f"more than {COUNTED} repetitions inside each other")

    def braces(self) -> tuple[int, int | None] | None:
        if not self.peek("{"):
            return None
        close = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : close].partition(",")
        if close < 0 or not low.isascii() or not low.isdigit() or not (high == "" or high.isdigit()):
            raise self.error("a '{' that counts nothing; write it as '\\{'")
        bounds = int(low), (int(high) if high else None) if comma else int(low)
        if max(bounds[0], bounds[1] or 0) > REPETITIONS:
            raise self.error(f"more than {REPETITIONS} repetitions")
        if bounds[1] is not None and bounds[0] > bounds[1]:
            raise self.error("an inverted count")
        self.at = close + 1
        return bounds

    def atom(self) -> Shape:
        char = self.next()
        match char:
            case "(":
                return self.group()
            case "[":
                return self.written(self.bracket())
            case ".":
                return self.written(without(LINE_ENDS))
            case "\\":
                return self.written(self.escape())
            case "^" | "$":
                raise self.error(f"an anchor {char!r} inside")
            case "*" | "+" | "?" | "{":
                raise self.error(f"nothing before {char!r} to repeat")
            case _:
                return self.written(((ord(char), ord(char)),))

    def group(self) -> Shape:
        if self.take("?"):
            if self.take(":"):
                pass
            elif self.peek("=") or self.peek("!") or self.peek("<=") or self.peek("<!"):
                raise self.error("lookaround")
            elif self.take("<") or self.take("P<"):
                while self.next() != ">":
                    pass
            else:
                raise self.error("an unknown kind of group")
        self.groups += 1
        if self.groups > GROUPS:
            raise self.error(f"more than {GROUPS} groups inside each other")
        parts = self.alternatives(outermost=False)
        if not self.take(")"):
            raise self.error("a '(' without its ')'")
        self.groups -= 1
        return alt(*parts)

    def escape(self) -> Ranges:
        char = self.next()
        if char in CLASSES:
            return CLASSES[char]
        if char in ESCAPES:
            if char == "0" and self.pattern[self.at : self.at + 1].isdigit():
                raise self.error("an octal escape")
            return ((ESCAPES[char], ESCAPES[char]),)
        if char in "xu":
            code = self.hexadecimal(2 if char == "x" else 4)
            return ((code, code),)
        if char.isalnum():
            raise self.error(f"'\\{char}'")
        return ((ord(char), ord(char)),)

    def hexadecimal(self, width: int) -> int:
        digits = self.pattern[self.at : self.at + width]
        try:
            code = int(digits, 16)
        except ValueError:
            raise self.error(f"{digits!r} instead of {width} hexadecimal digits") from None
        if len(digits) < width or 0xD800 <= code <= 0xDFFF:
            raise self.error(f"{digits!r} as a character")
        self.at += width
        return code

    def bracket(self) -> Ranges:
        negated = self.take("^")
        out: list[tuple[int, int]] = []
        while not self.take("]"):
            low = self.member()
            if len(low) == 1 and low[0][0] == low[0][1] and self.peek("-") and not self.peek("-]"):
                self.at += 1
                high = self.member()
                if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                    raise self.error("a range without two ends")
                out.append((low[0][0], high[0][1]))
            else:
                out += low
        ranges = normal(out)
        return common(without(ranges), ANY) if negated else ranges

    def member(self) -> Ranges:
        char = self.next()
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self.peek("b"):
            self.at += 1
            return ((8, 8),)
        return self.escape()
