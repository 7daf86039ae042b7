"""Reads a text against a shape, and finds the shortest way to end a text that was begun.

It knows neither tokens nor the grammar engine: it reads one character at a time with the states of `states.py`. So it
is slower than the engine, but it can check what the engine says, and only it can tell what is missing:

    shape        [ then three digits or more, with commas between, then ]
    read         [1,2
    shortest     ,0]            the third digit that the shape demands, and the bracket

The shortest rest of a stack is the shortest rest of what was begun and the shortest text of each part below it. Of each
part its size is known, and its text is written out only when it is asked for.
"""

from __future__ import annotations

import heapq
import itertools

from kernel.errors import OpcodeError
from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Shape, Text, inside_out, parts_of
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
    weight,
)

SEARCHED = 20_000
"""States that are tried for the shortest text that several shapes have in common."""
MOVED = 200_000
"""Stacks of these states that are moved for it."""


class Recogniser:
    """Reads texts of one shape.

    >>> from kernel.shape.shape import alt, seq
    >>> reader = Recogniser(seq('{"n":', alt(Text("1"), Text("12")), "}"))
    >>> reader.accepts('{"n":12}'), reader.accepts('{"n":2}'), reader.shortest(reader.read('{"n"'))
    (True, False, ':1}')
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._sizes: dict[int, int] = {}
        """Bytes of the shortest text of each part that has one, by its id."""
        self._shortest: dict[int, Shape | str] = {}
        """What of an Alt is shortest, and the shortest text of a Both or an Except."""
        self._parts = inside_out(shape)
        changed = True
        while changed:  # parts may lead back to each other, so it is done again until nothing gets shorter
            changed = False
            for part in self._parts:
                changed |= self._measure(part)
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

    def size(self, part: Shape) -> int | None:
        """Return how many bytes the shortest text of a part of the shape has; None when it has no text."""
        return self._sizes.get(id(part))

    def longest_minimum(self) -> int:
        """Return how many bytes the longest has among the shortest texts of all parts."""
        return max(self._sizes.values(), default=0)

    def endless(self) -> bool:
        """Whether the shape holds a reference that leads nowhere but back to itself, so that it has no text."""
        return any(isinstance(part, Ref) and id(part) not in self._sizes for part in self._parts)

    def minimal(self, shape: Shape) -> str | None:
        """Return the text of a part of the shape with the fewest bytes; None when it has no text."""
        if id(shape) not in self._sizes:
            return None
        out: list[str] = []
        todo = [shape]
        while todo:
            part = todo.pop()
            if self._sizes[id(part)] == 0:
                continue
            match part:
                case Text(text):
                    out.append(text)
                case Chars(ranges):
                    out.append(next((c for c in PLEASANT if c in part), chr(ranges[0][0])))
                case Repeat(inner, low, _):
                    todo += [inner] * low
                case Alt() | Both() | Except():
                    chosen = self._shortest[id(part)]
                    if isinstance(chosen, str):
                        out.append(chosen)
                    else:
                        todo.append(chosen)
                case _:
                    todo += reversed(parts_of(part))
        return "".join(out)

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

    def _measure(self, part: Shape) -> bool:
        """Measure a part by what is known of its own parts; return whether it got shorter."""
        known = self._sizes.get(id(part))
        size: int | None = None
        match part:
            case Text(text):
                size = _size(text)
            case Chars(ranges):
                some = [c for c in PLEASANT if c in part] or [chr(low) for low, _ in ranges[:1]]
                size = _size(some[0]) if some else None
            case Alt(parts):
                best = min((p for p in parts if id(p) in self._sizes), key=lambda p: self._sizes[id(p)], default=None)
                if best is not None and (known is None or self._sizes[id(best)] < known):
                    size, self._shortest[id(part)] = self._sizes[id(best)], best
            case Repeat(inner, low, _):
                each = self._sizes.get(id(inner))
                size = 0 if low == 0 else None if each is None else each * low
            case Both() | Except():
                if known is None and (found := self._search(part)) is not None:
                    size, self._shortest[id(part)] = _size(found), found
            case Ref() if not parts_of(part):
                size = None
            case _:
                each_size = [self._sizes.get(id(p)) for p in parts_of(part)]
                size = None if None in each_size else sum(s for s in each_size if s is not None)
        if size is None or (known is not None and size >= known):
            return False
        self._sizes[id(part)] = size
        return True

    def _search(self, item: Both | Except | InBoth | InExcept) -> str | None:
        """Return the shortest text that ends an item that reads several shapes at once."""
        first = opened(item)
        order = itertools.count()
        heap: list[tuple[int, int, State, str]] = [(0, next(order), first, "")]
        seen = {first}
        moved = 0
        while heap and len(seen) < SEARCHED and moved < MOVED:
            size, _, state, text = heapq.heappop(heap)
            if state.may_end:
                return text
            each = weight(state)
            for char in next_chars(state):
                longer = after(state, char)
                moved += each
                if longer and longer not in seen:
                    seen.add(longer)
                    heapq.heappush(heap, (size + _size(char), next(order), longer, text + char))
        if heap:
            raise OpcodeError(f"no text that satisfies all of it is found in {SEARCHED} states; loosen its bounds")
        return None


def _size(text: str) -> int:
    return len(text.encode())
