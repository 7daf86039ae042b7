"""Opcodes as a chain of tries: products of arguments are factored, open arguments end in a grammar. Knows no model.

    place {"x": 0..9999, "y": 0..9999}

    stage 0 -- ` place {"x":0,"y` .. ` place {"x":9999,"y` --> stage 1 -- `":0}` .. `":9999}` --> end

A stage is a trie of texts: the values of one argument with the fixed text around them, tokenized as one, so that tokens
which fuse a value with its surroundings are there. Every leaf leads to a stage, into a grammar, or to the end. Fixed
text between two arguments is cut where the tokenizer cuts it whatever stands left and right, so that the ids of a path
are those of the whole text. Small products are not cut at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError
from kernel.shape.listing import Counter, texts
from kernel.shape.shape import Alt, Ref, Scalar, Seq, Shape, Text, seq
from kernel.text.bulk import tokenize_bulk
from kernel.text.vocabulary import Vocabulary
from kernel.trie.trie import Trie
from kernel.write.slots import Grammar, Slot

Stack = tuple[Shape, "Stack"] | None
"""The shapes that are still to come."""

WHOLE = 4096
"""Texts up to which what is to come is written out instead of cut into stages."""
LISTED = 1 << 17
"""Values of one argument up to which they are listed; a grammar holds more."""
WIDEST = 1 << 19
"""Texts of one stage; more of them means that alternatives are too entangled to be a trie."""
SAMPLE = 24
"""Values that are tried to see where the tokenizer cuts."""
END = -1
OPENERS = ("0", "1", "-1", "12.5", '"', '"a', '"The', '" ', '"\\n', "[", '["', "[1", "{", '{"', "true", "false", "null")
"""How the values of an open argument may begin."""


class Stage:
    """A trie and, for each leaf, where it leads: a stage (>= 0), END, or a grammar as -2 - number."""

    def __init__(self, trie: Trie, targets: Sequence[int]) -> None:
        self.trie = trie
        self.targets = np.asarray(targets, np.int32).data


class Place(NamedTuple):
    """A state of the walk: at a node of a stage's trie, inside an edge, in a grammar, or at the end.

    `at` and `until` are places in the trie's `ids` when inside an edge; `edge` is -1 at a node.
    """

    stage: int
    node: int = 0
    edge: int = -1
    at: int = 0
    until: int = 0
    slot: Slot | None = None


FINISHED = Place(END)


@dataclass
class _Item:
    """A text of a stage under construction. `fixed` counts the characters at its end that no argument wrote."""

    text: str
    stack: Stack
    fixed: int
    chose: bool

    @property
    def key(self) -> tuple[str, Stack]:
        """The fixed text at the end, and what comes then."""
        return self.text[len(self.text) - self.fixed :], self.stack


class Stages:
    """The compiled opcodes of one vocabulary.

    Args:
        shapes: one for each opcode, the closing mark of the wire form included.
    Raises:
        BuildError: nothing to compile; a text that does not round-trip; opcodes that cannot be told apart.
    """

    def __init__(self, shapes: Sequence[Shape], vocabulary: Vocabulary) -> None:
        if not shapes:
            raise BuildError("no opcodes to compile; a cartridge declares at least one")
        self.vocabulary = vocabulary
        self.stages: list[Stage] = []
        self.grammars: list[Grammar] = []
        self.memo: dict[str, Any] = {}
        """What others have worked out of these stages."""
        builder = _Builder(self, vocabulary)
        builder.build([(shape, None) for shape in shapes])
        self.start = Place(0)

    def legal(self, place: Place) -> NDArray[np.int32]:
        """Return the legal next ids, int32, ascending; a view where a trie holds them, empty at the end."""
        if place.slot is not None:
            return place.slot.legal()
        if place.stage < 0:
            return _NONE
        trie = self.stages[place.stage].trie
        if place.edge < 0:
            return trie.children(place.node)
        return trie.ids[place.at : place.at + 1]

    def advance(self, place: Place, token: int) -> Place:
        """Return the place after one more id of a trie; raises KeyError when it is not legal. A slot moves itself."""
        if place.stage < 0:
            raise KeyError(token)
        stage = self.stages[place.stage]
        trie = stage.trie
        if place.edge < 0:
            edge = trie.find(place.node, token)
            if edge < 0:
                raise KeyError(token)
            leaf = trie._order[trie._edge_lo[edge]]
            start = trie._starts[leaf]
            child = trie._edge_child[edge]
            until = trie._starts[leaf + 1] if child < 0 else start + trie._node_depth[child]
            at = start + trie._node_depth[place.node] + 1
        else:
            edge, until = place.edge, place.until
            if trie.ids[place.at] != token:
                raise KeyError(token)
            at = place.at + 1
        if at < until:
            return Place(place.stage, place.node, edge, at, until)
        child = trie._edge_child[edge]
        if child >= 0:
            return Place(place.stage, child)
        return self._enter(stage.targets[trie._order[trie._edge_lo[edge]]])

    def is_end(self, place: Place) -> bool:
        """Whether the opcode is complete."""
        return place.stage == END and place.slot is None

    def _enter(self, target: int) -> Place:
        if target >= 0:
            return Place(target)
        return FINISHED if target == END else Place(target, slot=self.grammars[-2 - target].start())


_NONE = np.empty(0, np.int32)


class _Builder:
    """Makes the stages one after the other; equal rests share a stage."""

    def __init__(self, owner: Stages, vocabulary: Vocabulary) -> None:
        self.owner = owner
        self.vocabulary = vocabulary
        self.count = Counter()
        self._numbers: dict[tuple[str, Stack], int] = {}
        self._todo: list[list[tuple[str, Stack]]] = []

    def build(self, roots: list[Stack]) -> None:
        self._todo.append([("", stack) for stack in roots])
        while len(self.owner.stages) < len(self._todo):
            self._stage(self._todo[len(self.owner.stages)])

    def _stage(self, begins: list[tuple[str, Stack]]) -> None:
        items = [item for text, stack in begins for item in self._expand(_Item(text, stack, len(text), False))]
        found = self._apart(items)
        carry = self._carry(found.values())
        texts_, targets = [], []
        for text, item in found.items():
            cut = len(text) - carry.get(item.key, 0)
            texts_.append(text[:cut])
            targets.append(self._target(text[cut:], item.stack))
        if len(set(texts_)) < len(texts_) or _begins_another(texts_):
            texts_ = list(found)  # what was carried told them apart
            targets = [self._target("", item.stack) for item in found.values()]
        ids, offsets = tokenize_bulk(self.vocabulary, texts_)
        self.owner.stages.append(Stage(Trie.build(ids, offsets), targets))

    def _target(self, carried: str, stack: Stack) -> int:
        if stack is None:
            return END
        key = (carried, stack)
        number = self._numbers.get(key)
        if number is None:
            if self._opens(stack):
                rest: list[Shape | str] = [carried]
                while stack is not None:
                    rest.append(stack[0])
                    stack = stack[1]
                self.owner.grammars.append(Grammar(seq(*rest), self.vocabulary))
                number = -1 - len(self.owner.grammars)
            else:
                self._todo.append([key])
                number = len(self._todo) - 1
            self._numbers[key] = number
        return number

    def _is_open(self, shape: Shape) -> bool:
        """Whether a shape is, or offers, something that is too much to list."""
        match shape:
            case Text():
                return False
            case Seq(parts) | Alt(parts):
                return any(map(self._is_open, parts))
            case Scalar(part, listed):
                return (len(listed) or self.count(part)) > LISTED
            case Ref():
                return self.count(shape) > LISTED
        return self.count(shape) > LISTED

    def _opens(self, stack: Stack) -> bool:
        """Whether a grammar has to hold all from here on: what is next is open, or has no fixed end before it is."""
        if stack is None or isinstance(stack[0], Text):
            return False
        if self._is_open(stack[0]):
            return True
        rest = stack[1]
        return rest is not None and not _begins_fixed(rest[0]) and self._is_open(rest[0])

    def _size(self, stack: Stack) -> int:
        size = 1
        while stack is not None and size <= WHOLE:
            size *= self.count(stack[0])
            stack = stack[1]
        return size

    def _expand(self, first: _Item) -> Iterator[_Item]:
        """Write an item out up to the next argument that is to have a stage of its own."""
        whole = self._size(first.stack) <= WHOLE
        todo = [first]
        made = 0
        while todo:
            item = todo.pop()
            stack = item.stack
            if stack is None:
                yield item
            elif isinstance(stack[0], Text):
                text = stack[0].text
                todo.append(_Item(item.text + text, stack[1], item.fixed + len(text), item.chose))
                continue
            elif isinstance(stack[0], Seq):
                rest = stack[1]
                for part in reversed(stack[0].parts):
                    rest = (part, rest)
                todo.append(_Item(item.text, rest, item.fixed, item.chose))
                continue
            elif not _begins_fixed(stack[0]) and (self._opens(stack) or (item.chose and not whole)):
                yield item
            elif isinstance(stack[0], Alt):
                parts = reversed(stack[0].parts)
                todo += [_Item(item.text, (part, stack[1]), item.fixed, item.chose) for part in parts]
                continue
            else:
                values = list(dict.fromkeys(texts(stack[0])))
                todo += [_Item(item.text + value, stack[1], 0, True) for value in reversed(values)]
                continue
            made += 1
            if made > WIDEST:
                raise BuildError(f"{first.text!r}: more than {WIDEST} texts hang together; name the arguments apart")

    def _apart(self, items: list[_Item]) -> dict[str, _Item]:
        """Return items by text, none of which begins another; what does is written out further."""
        found: dict[str, _Item] = {}
        todo = items
        while todo:
            for item in todo:
                known = found.get(item.text)
                if known is not None and known.stack != item.stack:
                    if known.stack is None or item.stack is None:
                        raise BuildError(f"opcode {item.text!r} is the beginning of another one")
                    merged: Stack = (Alt((_joined(known.stack), _joined(item.stack))), None)
                    item = _Item(item.text, merged, min(known.fixed, item.fixed), True)
                found[item.text] = item
            todo = []
            for text, after in itertools.pairwise(sorted(found)):
                if after.startswith(text):
                    item = found.pop(text)
                    if item.stack is None or self._opens(item.stack):
                        raise BuildError(f"{text!r} is complete, or goes on freely, where {after!r} begins too")
                    todo += self._expand(_Item(item.text, item.stack, item.fixed, False))
        return found

    def _carry(self, items: Iterable[_Item]) -> dict[tuple[str, Stack], int]:
        """Return how much of the fixed text at the end of items belongs to the next stage, for the tokenizer's sake."""
        lefts: dict[tuple[str, Stack], list[str]] = {}
        for item in items:
            if item.stack is not None and item.fixed:
                lefts.setdefault(item.key, []).append(item.text[: len(item.text) - item.fixed])
        return {key: len(key[0]) - self._cut(_sample(left), *key) for key, left in lefts.items()}

    def _cut(self, lefts: list[str], fixed: str, stack: Stack) -> int:
        """Return where in the fixed text every sample of what may follow has a boundary of tokens; at least 1."""
        assert stack is not None
        if self._opens(stack):
            rights = list(OPENERS)
        else:
            rights = _sample(list(dict.fromkeys(item.text for item in self._expand(_Item("", stack, 0, False)))))
        common = set(range(1, len(fixed) + 1))
        for left in lefts:
            at = np.cumsum([len(c.encode()) for c in left + fixed])[len(left) :]  # where each character ends, in bytes
            for right in rights:
                ids = self.vocabulary.plain(left + fixed + right)
                ends = np.cumsum([len(self.vocabulary.pieces[i]) for i in ids])
                common &= set((np.flatnonzero(np.isin(at, ends)) + 1).tolist())
        # where there is none, a grammar may well have it all: there every way to cut is legal
        return max(common, default=1 if self._opens(stack) else len(fixed))


def _begins_fixed(shape: Shape) -> bool:
    """Whether a shape begins with fixed text whatever is chosen, as a key that may be left out does."""
    match shape:
        case Text():
            return True
        case Seq(parts):
            return _begins_fixed(parts[0])
        case Alt(parts):
            return all(map(_begins_fixed, parts))
    return False


def _sample(some: list[str]) -> list[str]:
    return some[:: max(1, len(some) // SAMPLE)][:SAMPLE] + some[-1:]


def _joined(stack: Stack) -> Shape:
    parts: list[Shape] = []
    while stack is not None:
        parts.append(stack[0])
        stack = stack[1]
    return seq(*parts)


def _begins_another(some: list[str]) -> bool:
    ordered = sorted(some)
    return any(b.startswith(a) for a, b in itertools.pairwise(ordered))
