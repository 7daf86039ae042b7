"""Reads a text character by character against a shape, and says how what was begun can be ended soonest.

The slow and plain reading of a shape: it knows no tokens and no grammar engine, so that it can check both, and it alone
can tell how much is missing. A state is a set of stacks; the top of each stack takes the next character.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any

from kernel.errors import OpcodeError
from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Scalar, Seq, Shape, Text

Stack = tuple[Any, Any] | None
"""(item, rest); None is the end of the text. An item is a shape, or a shape with how far it has come."""
State = frozenset[Stack]

AT, DONE, LOCKSTEP, BARRED = "at", "done", "lockstep", "barred"
SEARCHED = 20_000
"""States that are tried for the shortest text that several shapes have in common."""
PLEASANT = "a0A_- "
"""What is written where any of them will do."""


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
        self._rules: dict[tuple[int, str], list[Any]] = {}  # [the Ref, the shortest text known by now]
        self._settle()
        self.start = self._closure([(shape, None)])

    def accepts(self, text: str) -> bool:
        """Whether this is a text of the shape."""
        return None in self.read(text)

    def read(self, text: str, state: State | None = None) -> State:
        """Return the state after some more text; an empty one when the text cannot begin so."""
        state = self.start if state is None else state
        for char in text:
            state = self._step(state, char)
        return state

    def shortest(self, state: State) -> str | None:
        """Return the text of fewest bytes that ends what was begun; None when nothing does."""
        best: str | None = None
        for stack in state:
            text = self._rest(stack)
            if text is not None and (best is None or _size(text) < _size(best)):
                best = text
        return best

    def minimal(self, shape: Shape) -> str | None:
        """Return the text of a part of the shape with the fewest bytes; None when it has no text."""
        known = self._minimal.get(id(shape))
        if known is None:
            known = self._minimal[id(shape)] = (shape, self._measure(shape))
        return known[1]

    def next_chars(self, state: State) -> list[str]:
        """Return characters, some of each range, of which at least one goes on if any does."""
        return list(dict.fromkeys(self._chars(state)))

    # -- reading -------------------------------------------------------------------------------------------------

    def _closure(self, todo: list[Stack]) -> State:
        """Follow what takes no character; return the stacks whose top takes one, and None if the text may end."""
        out: set[Stack] = set()
        seen: set[Stack] = set()
        while todo:
            stack = todo.pop()
            if stack in seen:
                continue
            seen.add(stack)
            if stack is None:
                out.add(None)
                continue
            item, rest = stack
            match item:
                case Text(text):
                    if text:
                        out.add(((AT, item, 0), rest))
                    else:
                        todo.append(rest)
                case Chars() | (str("at"), _, _):
                    out.add(stack)
                case Seq(parts):
                    for part in reversed(parts):
                        rest = (part, rest)
                    todo.append(rest)
                case Alt(parts):
                    todo += [(part, rest) for part in parts]
                case Scalar(part):
                    todo.append((part, rest))
                case Ref():
                    todo.append((item.target, rest))
                case Repeat():
                    todo.append(((DONE, item, 0), rest))
                case Both(parts):
                    todo.append(((LOCKSTEP, item, tuple(self._closure([(part, None)]) for part in parts)), rest))
                case Except(part):
                    todo.append(((BARRED, item, self._closure([(part, None)]), ""), rest))
                case (str("done"), repeat, count):
                    if count >= repeat.low:
                        todo.append(rest)
                    if repeat.high is None or count < repeat.high:
                        # without an upper bound only the way to the lower one is counted
                        more = count if repeat.high is None and count >= repeat.low else count + 1
                        todo.append((repeat.part, ((DONE, repeat, more), rest)))
                case (str("lockstep"), _, states):
                    if all(None in state for state in states):
                        todo.append(rest)
                    if all(state != {None} and state for state in states):
                        out.add(stack)
                case (str("barred"), shape, state, prefix):
                    if None in state and prefix not in shape.texts:
                        todo.append(rest)
                    if state and state != {None}:
                        out.add(stack)
                case _:
                    raise TypeError(f"{item!r} is not a shape")
        return frozenset(out)

    def _step(self, state: State, char: str) -> State:
        todo: list[Stack] = []
        for stack in state:
            if stack is None:
                continue
            item, rest = stack
            if isinstance(item, Chars):
                if char in item:
                    todo.append(rest)
                continue
            kind, shape = item[0], item[1]
            if kind == AT:
                if shape.text[item[2]] == char:
                    at = item[2] + 1
                    todo.append(rest if at == len(shape.text) else ((AT, shape, at), rest))
            elif kind == LOCKSTEP:
                states = tuple(self._step(each, char) for each in item[2])
                if all(states):
                    todo.append(((LOCKSTEP, shape, states), rest))
            else:
                inner = self._step(item[2], char)
                prefix = item[3] + char if item[3] is not None else None
                if prefix is not None and not any(text.startswith(prefix) for text in shape.texts):
                    prefix = None
                if inner:
                    todo.append(((BARRED, shape, inner, prefix), rest))
        return self._closure(todo)

    # -- ending --------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Measure all parts. Rules may lead to each other, so it is done again until nothing gets shorter."""
        changed = True
        while changed:
            changed = False
            self._minimal.clear()
            self.minimal(self.shape)
            for entry in list(self._rules.values()):
                found = self.minimal(entry[0].target)
                if found is not None and (entry[1] is None or _size(found) < _size(entry[1])):
                    entry[1] = found
                    changed = True

    def _rest(self, stack: Stack) -> str | None:
        out = ""
        text: str | None
        while stack is not None:
            item, stack = stack
            if isinstance(item, Shape):
                text = self.minimal(item)
            elif item[0] == AT:
                text = item[1].text[item[2] :]
            elif item[0] == DONE:
                missing = max(0, item[1].low - item[2])
                each = self.minimal(item[1].part) if missing else ""
                text = None if each is None else each * missing
            else:
                text = self._search(item)
            if text is None:
                return None
            out += text
        return out

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
                state = self._closure([(shape, None)])
                if None in state:
                    return ""
                return next((self._search(stack[0]) for stack in state if stack is not None), None)
            case Ref(name, rules):
                found: str | None = self._rules.setdefault((id(rules), name), [shape, None])[1]
                return found
        raise TypeError(f"{shape!r} is not a shape")

    def _search(self, item: Any) -> str | None:
        """Return the shortest text that ends an item that reads several shapes at once."""
        begin: Stack = (item, None)
        first = self._closure([begin])
        order = itertools.count()
        heap: list[tuple[int, int, State, str]] = [(0, next(order), first, "")]
        seen = {first}
        while heap and len(seen) < SEARCHED:
            size, _, state, text = heapq.heappop(heap)
            if None in state:
                return text
            for char in self.next_chars(state):
                after = self._step(state, char)
                if after and after not in seen:
                    seen.add(after)
                    heapq.heappush(heap, (size + _size(char), next(order), after, text + char))
        if heap:
            raise OpcodeError(f"what {item[1]!r:.80} has in common is too far to search; loosen its bounds")
        return None

    def _chars(self, state: State) -> Iterator[str]:
        for stack in state:
            if stack is None:
                continue
            item = stack[0]
            if isinstance(item, Chars):
                yield from (c for c in PLEASANT if c in item)
                yield from (chr(low) for low, _ in item.ranges)
            elif item[0] == AT:
                yield item[1].text[item[2]]
            elif item[0] == LOCKSTEP:
                for each in item[2]:
                    yield from self._chars(each)
            else:
                yield from self._chars(item[2])
                if item[3] is not None:  # a character that leads away from every barred text
                    yield from (
                        c for c in "abcdefghijklmnopqrstuvwxyz0123456789" if item[3] + c not in _beginnings(item[1])
                    )


def _beginnings(shape: Except) -> set[str]:
    return {text[:end] for text in shape.texts for end in range(len(text) + 1)}


def _size(text: str) -> int:
    return len(text.encode())
