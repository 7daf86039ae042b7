"""Reads a text against a shape, and finds the shortest way to end a text that was begun.

It knows neither tokens nor the grammar engine: it reads one character at a time with the states of `states.py`. So it
is slower than the engine, but it can check what the engine says, and only it can tell what is missing:

    shape        [ then three digits or more, with commas between, then ]
    read         [1,2
    shortest     ,0]            the third digit that the shape demands, and the bracket

The shortest rest of a stack is the shortest rest of what was begun and the shortest text of each part below it.
"""

from __future__ import annotations

import heapq
import itertools

from kernel.errors import OpcodeError
from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Scalar, Seq, Shape, Text
from kernel.shape.states import (
    PLEASANT,
    InBoth,
    InExcept,
    InRepeat,
    InText,
    Item,
    Stack,
    State,
    after,
    next_chars,
    opened,
)

SEARCHED = 20_000
"""States that are tried for the shortest text that several shapes have in common."""


class Recogniser:
    """Reads texts of one shape.

    >>> from kernel.shape.shape import alt, seq
    >>> reader = Recogniser(seq('{"n":', alt(Text("1"), Text("12")), "}"))
    >>> reader.accepts('{"n":12}'), reader.accepts('{"n":2}'), reader.shortest(reader.read('{"n"'))
    (True, False, ':1}')
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._minimal: dict[int, tuple[Shape, str | None]] = {}
        self._refs: dict[tuple[int, str], Ref] = {}
        self._named: dict[tuple[int, str], str] = {}
        """The shortest text of each rule, as far as it is known."""
        self._settle()
        self.start = opened(shape)

    def accepts(self, text: str) -> bool:
        """Whether this is a text of the shape."""
        return self.read(text).may_end

    def read(self, text: str, state: State | None = None) -> State:
        """Return the state after some more text; a falsy one when the text cannot begin so."""
        state = self.start if state is None else state
        for char in text:
            state = after(state, char)
        return state

    def shortest(self, state: State) -> str | None:
        """Return the text of fewest bytes that ends what was begun, ties by its characters; None when none does."""
        if state.may_end:
            return ""
        rests = [text for stack in state.stacks if (text := self._rest(stack)) is not None]
        return min(rests, key=lambda text: (_size(text), text), default=None)

    def minimal(self, shape: Shape) -> str | None:
        """Return the text of a part of the shape with the fewest bytes; None when it has no text."""
        known = self._minimal.get(id(shape))
        if known is None:
            known = self._minimal[id(shape)] = (shape, self._measure(shape))
        return known[1]

    def _settle(self) -> None:
        """Measure all parts. Rules may lead to each other, so it is done again until nothing gets shorter."""
        changed = True
        while changed:
            changed = False
            self._minimal.clear()
            self.minimal(self.shape)
            for key, ref in list(self._refs.items()):
                found = self.minimal(ref.target)
                if found is not None and (key not in self._named or _size(found) < _size(self._named[key])):
                    self._named[key] = found
                    changed = True

    def _rest(self, stack: Stack[Item] | None) -> str | None:
        """Return the shortest text of all that stands on a stack."""
        out = []
        text: str | None
        while stack is not None:
            match stack.top:
                case Shape() as shape:
                    text = self.minimal(shape)
                case InText(whole, at):
                    text = whole.text[at:]
                case InRepeat(repeat, count):
                    missing = max(0, repeat.low - count)
                    each = self.minimal(repeat.part) if missing else ""
                    text = None if each is None else each * missing
                case InBoth() | InExcept() as begun:
                    text = self._search(begun)
            if text is None:
                return None
            out.append(text)
            stack = stack.rest
        return "".join(out)

    def _measure(self, shape: Shape) -> str | None:
        match shape:
            case Text(text):
                return text
            case Chars(ranges):
                return next((c for c in PLEASANT if c in shape), chr(ranges[0][0]) if ranges else None)
            case Seq(parts):
                each_least = [self.minimal(part) for part in parts]
                return None if None in each_least else "".join(t for t in each_least if t is not None)
            case Alt(parts):
                some = [least for part in parts if (least := self.minimal(part)) is not None]
                return min(some, key=_size, default=None)
            case Scalar(part):
                return self.minimal(part)
            case Repeat(part, low, _):
                each = self.minimal(part)
                return "" if low == 0 else None if each is None else each * low
            case Both() | Except():
                return self._search(shape)
            case Ref(name, rules):
                key = (id(rules), name)
                self._refs.setdefault(key, shape)
                return self._named.get(key)
        raise TypeError(f"{shape!r} is not a shape")

    def _search(self, item: Both | Except | InBoth | InExcept) -> str | None:
        """Return the shortest text that ends an item that reads several shapes at once."""
        first = opened(item)
        order = itertools.count()
        heap: list[tuple[int, int, State, str]] = [(0, next(order), first, "")]
        seen = {first}
        while heap and len(seen) < SEARCHED:
            size, _, state, text = heapq.heappop(heap)
            if state.may_end:
                return text
            for char in next_chars(state):
                longer = after(state, char)
                if longer and longer not in seen:
                    seen.add(longer)
                    heapq.heappush(heap, (size + _size(char), next(order), longer, text + char))
        if heap:
            shape = item.both if isinstance(item, InBoth) else item.shape if isinstance(item, InExcept) else item
            raise OpcodeError(f"what {shape!r:.80} has in common is too far to search; loosen its bounds")
        return None


def _size(text: str) -> int:
    return len(text.encode())
