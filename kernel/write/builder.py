"""Builds the stages of a chain: what each trie holds, and where the fixed text between two arguments is cut.

A stage holds the values of one argument with the fixed text around them, tokenized as one, so that tokens which fuse a
value with its surroundings are there. Fixed text between two arguments is cut where the tokenizer cuts it whatever
stands left and right, so that the ids of a path are those of the whole text. Small products are not cut at all: they
are written out, in one trie.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernel.errors import BuildError
from kernel.shape.listing import LISTED, Counter, texts
from kernel.shape.shape import Alt, Seq, Shape, Text, inside_out, seq
from kernel.shape.states import Stack
from kernel.text.bulk import tokenize_bulk
from kernel.text.vocabulary import Vocabulary
from kernel.trie.trie import Trie
from kernel.write.slots import Grammar
from kernel.write.stage import Exit, Stage, TriePlace

Rest = Stack[Shape] | None
"""The shapes that are still to come."""
Begun = tuple[str, Rest]
"""Fixed text that was cut off, and the shapes that are still to come after it."""

WHOLE = 4096
"""Texts up to which what is to come is written out instead of cut into stages."""
WIDEST = 1 << 19
"""Texts of one stage; more of them means that alternatives are too entangled to be a trie."""
STAGES = 32
"""Arguments up to which each has a stage of its own; a grammar holds those of a wider object."""
CHOICES = 512
"""Alternatives up to which stages offer them, as arrays without repeated items have a set of them for each item."""
SAMPLE = 24
"""Values that are tried to see where the tokenizer cuts."""
OPENERS = ("0", "1", "-1", "12.5", '"', '"a', '"The', '" ', '"\\n', "[", '["', "[1", "{", '{"', "true", "false", "null")
"""How the values of an open argument may begin."""


@dataclass
class _Item:
    """A text of a stage under construction.

    Attributes:
        rest: what is still to come.
        fixed: how many characters at the end of the text no argument wrote.
        chose: whether the text has a value of an argument.
    """

    text: str
    rest: Rest
    fixed: int
    chose: bool

    @property
    def key(self) -> Begun:
        """The fixed text at the end, and what comes then."""
        return self.text[len(self.text) - self.fixed :], self.rest


class _Facts(NamedTuple):
    """What is known of a shape, which is kept so that its id stays its own.

    Attributes:
        is_open: whether it is, or offers, something that is too much to list.
        fixed: whether it begins with fixed text whatever is chosen, as a key that may be left out does.
        arguments: how many values it has at most.
    """

    shape: Shape
    is_open: bool
    fixed: bool
    arguments: int


class Builder:
    """Makes the stages of opcodes one after the other; equal rests share a stage."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.stages: list[Stage] = []
        self.grammars: list[Grammar] = []
        self.count = Counter()
        self._exits: dict[Begun, Exit] = {}
        self._facts: dict[int, _Facts] = {}
        self._wide: dict[Rest, bool] = {}
        self._offered: dict[int, tuple[Shape, int]] = {}
        self._todo: list[list[Begun]] = []

    def build(self, shapes: Sequence[Shape]) -> TriePlace | Grammar:
        """Make the stages of some shapes and all that they lead to; return where they begin.

        That is the first stage, or the grammar of a single shape that begins with an open value and no fixed text.
        """
        first = Stack(shapes[0], None)
        if len(shapes) == 1 and not self._shape(shapes[0]).fixed and self._opens(first):
            self.grammars.append(Grammar(shapes[0], self.vocabulary))
            return self.grammars[0]
        self._todo.append([("", Stack(shape, None)) for shape in shapes])
        while len(self.stages) < len(self._todo):
            self._stage(self._todo[len(self.stages)])
        return TriePlace(0)

    def _stage(self, begins: list[Begun]) -> None:
        items = [item for text, rest in begins for item in self._expand(_Item(text, rest, len(text), False))]
        found = self._apart(items)
        carry = self._carry(found.values())
        texts_: list[str] = []
        leads_to: list[Exit] = []
        for text, item in found.items():
            cut = len(text) - carry.get(item.key, 0)
            texts_.append(text[:cut])
            leads_to.append(self._exit(text[cut:], item.rest))
        if len(set(texts_)) < len(texts_) or _begins_another(texts_):
            texts_ = list(found)  # what was carried told them apart
            leads_to = [self._exit("", item.rest) for item in found.values()]
        ids, offsets = tokenize_bulk(self.vocabulary, texts_)
        self.stages.append(Stage(Trie.build(ids, offsets), leads_to))

    def _exit(self, carried: str, rest: Rest) -> Exit:
        """Return where a text leads that is followed by carried text and the rest."""
        if rest is None:
            return None
        key = (carried, rest)
        if key not in self._exits:
            if self._opens(rest):
                grammar = Grammar(seq(carried, *_parts(rest)), self.vocabulary)
                self.grammars.append(grammar)
                self._exits[key] = grammar
            else:
                self._todo.append([key])
                self._exits[key] = TriePlace(len(self._todo) - 1)
        return self._exits[key]

    def _shape(self, shape: Shape) -> _Facts:
        """Return what is asked of a shape again and again; found from the inside out, once for each part."""
        if id(shape) not in self._facts:
            for part in inside_out(shape, _in_rules):
                if id(part) not in self._facts:
                    self._facts[id(part)] = self._inspect(part, [self._facts[id(p)] for p in _in_rules(part)])
        return self._facts[id(shape)]

    def _inspect(self, shape: Shape, parts: list[_Facts]) -> _Facts:
        match shape:
            case Text():
                return _Facts(shape, False, True, 0)
            case Seq():
                return _Facts(shape, any(p.is_open for p in parts), parts[0].fixed, sum(p.arguments for p in parts))
            case Alt():
                arguments = max((p.arguments for p in parts), default=0)
                return _Facts(shape, any(p.is_open for p in parts), all(p.fixed for p in parts), arguments)
        return _Facts(shape, self.count(shape) > LISTED, False, 1)

    def _opens(self, rest: Rest) -> bool:
        """Whether a grammar has to hold all from here on.

        What is next is open, or has no fixed end before it is; or there are too many arguments for a stage each.
        """
        if rest is None or isinstance(rest.top, Text):
            return False
        if self._shape(rest.top).is_open or self._is_wide(rest):
            return True
        then = rest.rest
        return then is not None and not self._shape(then.top).fixed and self._shape(then.top).is_open

    def _choices(self, shape: Shape) -> int:
        """Return how many alternatives a shape offers in all, those that it shares counted once."""
        if id(shape) not in self._offered:
            found = sum(len(part.parts) for part in inside_out(shape, _in_rules) if isinstance(part, Alt))
            self._offered[id(shape)] = self._shape(shape).shape, found
        return self._offered[id(shape)][1]

    def _is_wide(self, rest: Rest) -> bool:
        """Whether more arguments are to come than have a stage each; few texts are written out whatever they say."""
        if rest not in self._wide:
            arguments, choices, each = 0, 0, rest
            while each is not None and arguments <= STAGES and choices <= CHOICES:
                arguments += self._shape(each.top).arguments
                choices += self._choices(each.top)
                each = each.rest
            self._wide[rest] = (arguments > STAGES or choices > CHOICES) and self._size(rest) > WHOLE
        return self._wide[rest]

    def _size(self, rest: Rest) -> int:
        size = 1
        while rest is not None and size <= WHOLE:
            size *= self.count(rest.top)
            rest = rest.rest
        return size

    def _expand(self, first: _Item) -> Iterator[_Item]:
        """Write an item out up to the next argument that is to have a stage of its own."""
        whole = self._size(first.rest) <= WHOLE
        todo = [first]
        made = 0
        while todo:
            item = todo.pop()
            if item.rest is None:
                yield item
            else:
                shape, then = item.rest.top, item.rest.rest
                if isinstance(shape, Text):
                    todo.append(_Item(item.text + shape.text, then, item.fixed + len(shape.text), item.chose))
                    continue
                if isinstance(shape, Seq):
                    for part in reversed(shape.parts):
                        then = Stack(part, then)
                    todo.append(_Item(item.text, then, item.fixed, item.chose))
                    continue
                open_here = self._opens(item.rest) or (item.chose and not whole)
                if self._is_wide(item.rest) or (not self._shape(shape).fixed and open_here):
                    yield item
                elif isinstance(shape, Alt):
                    parts = reversed(shape.parts)
                    todo += [_Item(item.text, Stack(part, then), item.fixed, item.chose) for part in parts]
                    continue
                else:
                    values = list(dict.fromkeys(texts(shape)))
                    todo += [_Item(item.text + value, then, 0, True) for value in reversed(values)]
                    continue
            made += 1
            if made > WIDEST:
                raise BuildError(f"{first.text!r}: more than {WIDEST} texts hang together; name the arguments apart")

    def _apart(self, items: list[_Item]) -> dict[str, _Item]:
        """Return items by text, none of which begins another; what does is written out further."""
        found: dict[str, _Item] = {}
        while items:
            for item in items:
                known = found.get(item.text)
                if known is not None and known.rest != item.rest:
                    if known.rest is None or item.rest is None:
                        raise BuildError(f"opcode {item.text!r} is the beginning of another one")
                    both = Alt((seq(*_parts(known.rest)), seq(*_parts(item.rest))))
                    item = _Item(item.text, Stack(both, None), min(known.fixed, item.fixed), True)
                found[item.text] = item
            items = []
            for text, after in itertools.pairwise(sorted(found)):
                if after.startswith(text) and text in found and after in found:
                    item = found.pop(text)
                    if item.rest is None:
                        raise BuildError(f"{text!r} is complete, or goes on freely, where {after!r} begins too")
                    if self._opens(item.rest):  # a grammar holds it from here on, so it holds the others as well
                        longer = {other: found.pop(other) for other in list(found) if other.startswith(text)}
                        ways = [seq(other[len(text) :], *_parts(each.rest)) for other, each in longer.items()]
                        rest = Stack[Shape](Alt((seq(*_parts(item.rest)), *ways)), None)
                        found[text] = _Item(text, rest, item.fixed, item.chose)
                    else:
                        items += self._expand(_Item(item.text, item.rest, item.fixed, False))
        return found

    def _carry(self, items: Iterable[_Item]) -> dict[Begun, int]:
        """Return how much of the fixed text at the end of items belongs to the next stage, for the tokenizer's sake."""
        lefts: dict[Begun, list[str]] = {}
        for item in items:
            if item.rest is not None and item.fixed:
                lefts.setdefault(item.key, []).append(item.text[: len(item.text) - item.fixed])
        return {key: len(key[0]) - self._cut(_sample(left), *key) for key, left in lefts.items()}

    def _cut(self, lefts: list[str], fixed: str, rest: Rest) -> int:
        """Return where in the fixed text every sample of what may follow has a boundary of tokens; at least 1."""
        if self._opens(rest):
            rights = list(OPENERS)
        else:
            rights = _sample(list(dict.fromkeys(item.text for item in self._expand(_Item("", rest, 0, False)))))
        common = set(range(1, len(fixed) + 1))
        for left in lefts:
            at = np.cumsum([len(c.encode()) for c in left + fixed])[len(left) :]  # where each character ends, in bytes
            for right in rights:
                ids = self.vocabulary.plain(left + fixed + right)
                ends = np.cumsum([len(self.vocabulary.pieces[i]) for i in ids])
                common &= set((np.flatnonzero(np.isin(at, ends)) + 1).tolist())
        # where there is none, a grammar may well have it all: there every way to cut is legal
        return max(common, default=1 if self._opens(rest) else len(fixed))


def _in_rules(shape: Shape) -> tuple[Shape, ...]:
    return shape.parts if isinstance(shape, Seq | Alt) else ()


def _sample(some: list[str]) -> list[str]:
    return some[:: max(1, len(some) // SAMPLE)][:SAMPLE] + some[-1:]


def _parts(rest: Rest) -> Iterator[Shape]:
    while rest is not None:
        yield rest.top
        rest = rest.rest


def _begins_another(some: list[str]) -> bool:
    ordered = sorted(some)
    return any(b.startswith(a) for a, b in itertools.pairwise(ordered))
