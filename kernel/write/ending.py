"""How an opcode that was begun can be ended in few ids, so that a budget always suffices. Knows no model and no row."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import OpcodeError
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Alt, Both, Chars, Except, Repeat, Scalar, Seq, Shape, Text
from kernel.shape.states import State, next_chars
from kernel.text.vocabulary import Vocabulary
from kernel.write.slots import Grammar
from kernel.write.stages import END, Place, Stages

UTF8 = 4
"""Bytes of the longest character."""


class Reading:
    """The text of a slot as a recogniser has read it, with the bytes of a character that is not complete yet."""

    __slots__ = ("_closing", "pending", "state")

    def __init__(self, closing: SlotClosing, state: State, pending: bytes = b"") -> None:
        self._closing = closing
        self.state = state
        self.pending = pending

    def after(self, data: bytes) -> Reading:
        """Return the reading after some more bytes."""
        data = self.pending + data
        whole = len(data)
        for back in range(1, min(UTF8, len(data) + 1)):
            if data[-back] >= 0xC0:  # the first byte of a character: is all of it there?
                width = 2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4
                whole = len(data) - back if width > back else whole
                break
        text = data[:whole].decode()
        return Reading(self._closing, self._closing.recogniser.read(text, self.state), data[whole:])

    def ids(self) -> list[int]:
        """Return ids that end the text; raises OpcodeError when it cannot be ended."""
        return self._closing.ids(self)


class SlotClosing:
    """Ends texts of one grammar."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.recogniser = Recogniser(grammar.shape)
        self.start = Reading(self, self.recogniser.start)
        self._known: dict[State, list[int]] = {}

    @cached_property
    def most(self) -> int | None:
        """At most so many ids end a text from anywhere in it; None where no number is known."""
        return ceiling(self.recogniser, self.grammar.shape)

    def ids(self, reading: Reading) -> list[int]:
        """Return few ids that end what was read."""
        if not reading.pending and reading.state in self._known:
            return self._known[reading.state]
        head, state = self._complete(reading)
        rest = self.recogniser.shortest(state)
        if rest is None:
            raise OpcodeError(f"after {reading.pending!r} nothing ends this text: {self.grammar.shape!r:.80}")
        data = head + rest.encode()
        found = tokens_of(self.vocabulary, data)
        if not reading.pending:
            self._known[reading.state] = found
        return found

    def _complete(self, reading: Reading) -> tuple[bytes, State]:
        """Return the bytes that complete the character that was begun, and the state after it."""
        pending = reading.pending
        if not pending:
            return b"", reading.state
        width = 2 if pending[0] < 0xE0 else 3 if pending[0] < 0xF0 else 4
        missing = width - len(pending)
        low = _code(pending + b"\x80" * missing, width)
        high = _code(pending + b"\xbf" * missing, width)
        floor = {2: 0x80, 3: 0x800, 4: 0x10000}[width]
        candidates = [max(low, floor), *map(ord, next_chars(reading.state))]
        for code in candidates:
            if max(low, floor) <= code <= min(high, 0x10FFFF) and not 0xD800 <= code <= 0xDFFF:
                state = self.recogniser.read(chr(code), reading.state)
                if state:
                    return chr(code).encode()[len(pending) :], state
        raise OpcodeError(f"no character begins with {pending!r} here")


def _code(data: bytes, width: int) -> int:
    value = data[0] & (0xFF >> (width + 1))
    for byte in data[1:]:
        value = value << 6 | byte & 0x3F
    return value


def tokens_of(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """Return text ids that join to these bytes, whole characters or not: the longest piece first where need be."""
    try:
        return vocabulary.plain(data.decode())
    except UnicodeDecodeError:
        pass
    pieces = _pieces(vocabulary)
    longest = max(map(len, pieces))
    out: list[int] = []
    at = 0
    while at < len(data):
        for width in range(min(longest, len(data) - at), 0, -1):
            token = pieces.get(data[at : at + width])
            if token is not None:
                out.append(token)
                at += width
                break
        else:
            raise OpcodeError(f"{vocabulary.name}: no token is {data[at : at + 1]!r}")
    return out


_known_pieces: weakref.WeakKeyDictionary[Vocabulary, dict[bytes, int]] = weakref.WeakKeyDictionary()


def _pieces(vocabulary: Vocabulary) -> dict[bytes, int]:
    known = _known_pieces.get(vocabulary)
    if known is None:
        text = np.flatnonzero(vocabulary.is_text).tolist()
        known = _known_pieces[vocabulary] = {vocabulary.pieces[i]: i for i in reversed(text)}
    return known


class Closing:
    """Ends opcodes of a chain of stages from any place."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.slots = [SlotClosing(grammar, stages.vocabulary) for grammar in stages.grammars]
        self._costs: dict[int, NDArray[np.int64]] = {}

    def costs(self, stage: int) -> NDArray[np.int64]:
        """Return, for each rank of a stage's trie, the ids from its root to the end of the opcode that way."""
        known = self._costs.get(stage)
        if known is None:
            trie, targets = self.stages.stages[stage].trie, np.asarray(self.stages.stages[stage].targets)
            beyond = {int(t): self._beyond(int(t)) for t in np.unique(targets)}
            total = np.diff(trie.starts) + np.vectorize(beyond.__getitem__, otypes=[np.int64])(targets)
            known = self._costs[stage] = total[trie.order]
        return known

    def _beyond(self, target: int) -> int:
        if target == END:
            return 0
        if target < END:
            return len(self.slots[-2 - target].start.ids())
        return int(self.costs(target).min())

    def ids(self, place: Place) -> list[int]:
        """Return few ids that end the opcode from a place in a trie."""
        out: list[int] = []
        while place.stage >= 0:
            stage = self.stages.stages[place.stage]
            trie = stage.trie
            if place.edge < 0:
                low, high = trie._edge_lo[trie._node_start[place.node]], trie._node_hi[place.node]
                depth = trie._node_depth[place.node]
            else:
                low, high = trie.bounds(place.edge)
                depth = trie._node_depth[place.node] + place.at - self._edge_start(place)
            rank = low + int(self.costs(place.stage)[low:high].argmin())
            leaf = trie._order[rank]
            out += trie.sequence(leaf)[depth:].tolist()
            target = stage.targets[leaf]
            if target < END:
                return out + self.slots[-2 - target].start.ids()
            place = Place(target)
        return out

    def _edge_start(self, place: Place) -> int:
        trie = self.stages.stages[place.stage].trie
        leaf = trie._order[trie._edge_lo[place.edge]]
        return int(trie._starts[leaf] + trie._node_depth[place.node])


def ceiling(recogniser: Recogniser, shape: Shape) -> int | None:
    """Return how many bytes at most end a text of the shape from anywhere in it; None where no number is known."""

    def least(part: Shape) -> int:
        text = recogniser.minimal(part)
        return 0 if text is None else len(text.encode())

    def most(parts: Sequence[int | None]) -> int | None:
        known = [part for part in parts if part is not None]
        return max(known, default=0) if len(known) == len(parts) else None

    memo: dict[int, int | None] = {}

    def of(part: Shape) -> int | None:
        if id(part) not in memo:
            memo[id(part)] = measure(part)
        return memo[id(part)]

    def measure(part: Shape) -> int | None:
        match part:
            case Text(text):
                return len(text.encode())
            case Chars():
                return UTF8
            case Seq(parts):
                after = 0
                ends: list[int | None] = []
                for each in reversed(parts):
                    end = of(each)
                    ends.append(None if end is None else end + after)
                    after += least(each)
                return most(ends)
            case Alt(parts):
                return most([of(each) for each in parts])
            case Scalar(inner):
                return of(inner)
            case Repeat(inner, low, _):
                end = of(inner)
                return None if end is None else end + max(0, low - 1) * least(inner)
            case Both() | Except():
                return longest(part)
        return None

    return of(shape)


def longest(shape: Shape) -> int | None:
    """Return the bytes of the longest text of a shape, or more; None when there is no longest."""
    match shape:
        case Text(text):
            return len(text.encode())
        case Chars(ranges):
            return len(chr(ranges[-1][1]).encode()) if ranges else 0
        case Seq(parts):
            sizes = [longest(part) for part in parts]
            return None if None in sizes else sum(size for size in sizes if size is not None)
        case Alt(parts):
            sizes = [longest(part) for part in parts]
            return None if None in sizes else max((size for size in sizes if size is not None), default=0)
        case Scalar(part) | Except(part):
            return longest(part)
        case Repeat(part, _, high):
            size = longest(part)
            return None if size is None or high is None else size * high
        case Both(parts):
            return min((size for part in parts if (size := longest(part)) is not None), default=None)
    return None
