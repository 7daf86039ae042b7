"""The shortest legal completion of a partly written opcode; it is written when the budget of ids runs out.

In a trie the completion is the shortest way to a leaf, counted with what its exit still needs. In a slot the text is
read once more by the recogniser, which knows the shortest rest of it, also when an id ended inside a character.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import OpcodeError
from kernel.shape.lengths import UTF8, longest_rest
from kernel.shape.recogniser import Recogniser
from kernel.shape.states import State, next_chars
from kernel.text.vocabulary import Vocabulary
from kernel.write.slots import Grammar
from kernel.write.stage import Exit, Stage, TriePlace


class Reading:
    """The text of a slot as a recogniser has read it, with the bytes of a character that is not complete yet."""

    __slots__ = ("_ending", "pending", "state")

    def __init__(self, ending: SlotEnding, state: State, pending: bytes = b"") -> None:
        self._ending = ending
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
        return Reading(self._ending, self._ending.recogniser.read(text, self.state), data[whole:])

    def ids(self) -> list[int]:
        """Return ids that end the text; raises OpcodeError when it cannot be ended."""
        return self._ending.ids(self)


class SlotEnding:
    """Ends texts of one grammar, in the ids of the vocabulary."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.recogniser = Recogniser(grammar.shape)
        self.start = Reading(self, self.recogniser.start)
        self._known: dict[State, list[int]] = {}

    @cached_property
    def most(self) -> int | None:
        """At most so many ids end a text from anywhere in it; None where no number is known."""
        return longest_rest(self.recogniser, self.grammar.shape)

    def ids(self, reading: Reading) -> list[int]:
        """Return few ids that end what was read; raises OpcodeError when it cannot be ended."""
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


class Ending:
    """Ends opcodes of a chain of stages from any place."""

    def __init__(self, stages: Sequence[Stage], grammars: Sequence[Grammar], vocabulary: Vocabulary) -> None:
        self.stages = stages
        self.slots = {grammar: SlotEnding(grammar, vocabulary) for grammar in grammars}
        self._costs: dict[int, NDArray[np.int64]] = {}

    def costs(self, number: int) -> NDArray[np.int64]:
        """Return, for each rank of a stage's trie, the ids from its root to the end of the opcode that way."""
        known = self._costs.get(number)
        if known is None:
            stage = self.stages[number]
            beyond = np.array([self._beyond(exit_) for exit_ in stage.exits], np.int64)
            total = np.diff(stage.trie.starts) + beyond[np.asarray(stage.exit_of)]
            known = self._costs[number] = total[stage.trie.order]
        return known

    def _beyond(self, exit_: Exit) -> int:
        """Return how many ids end an opcode behind an exit."""
        match exit_:
            case None:
                return 0
            case Grammar():
                return len(self.slots[exit_].start.ids())
        return int(self.costs(exit_.stage).min())

    def ids(self, place: TriePlace) -> list[int]:
        """Return few ids that end the opcode from a place in a trie."""
        out: list[int] = []
        while True:
            stage = self.stages[place.stage]
            trie = stage.trie
            if place.edge < 0:
                low, high = trie._edge_lo[trie._node_start[place.node]], trie._node_hi[place.node]
                depth = trie._node_depth[place.node]
            else:
                low, high = trie.bounds(place.edge)
                depth = place.at - trie._starts[trie._order[low]]
            rank = low + int(self.costs(place.stage)[low:high].argmin())
            leaf = trie._order[rank]
            out += trie.sequence(leaf)[depth:].tolist()
            match stage.exits[stage.exit_of[leaf]]:
                case None:
                    return out
                case Grammar() as grammar:
                    return out + self.slots[grammar].start.ids()
                case TriePlace() as place:
                    pass
