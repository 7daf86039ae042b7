"""How far a text has been read against a shape, character by character.

A stack holds what is still to come, the next part on top. The text may fit in several ways at once, so a state is a set
of stacks; each character moves all of them and drops those that cannot take it. The texts `{"n":1}` and `{"n":12}`, as
the shape Seq('{"n":', Alt('1', '12'), '}'):

    read so far      stacks, the top first                           may end
    nothing          '{"n":' > Alt > '}'                             no
    {"n              InText('{"n":', 3) > Alt > '}'                  no
    {"n":            '1' > '}'      and   '12' > '}'                 no
    {"n":1           '}'            and   InText('12', 1) > '}'      no
    {"n":1}          none                                            yes

A stack shares its rest with the stacks that it came from and keeps its hash, so a step costs the parts that it touches
and not the depth of the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Scalar, Seq, Shape, Text

Top = TypeVar("Top")
PLEASANT = "a0A_- "
"""What is written where any of these characters will do, the first of them soonest."""
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Characters that are tried to get away from every text that an Except leaves out."""


class Stack(Generic[Top]):
    """A part on top of the parts that come after it; `rest` None is the end of the text. It never changes."""

    __slots__ = ("_hash", "rest", "top")

    def __init__(self, top: Top, rest: Stack[Top] | None) -> None:
        self.top = top
        self.rest = rest
        self._hash: int = hash((top, rest))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare part by part, down to where both go on with the same object."""
        one: Stack[Top] | None = self
        while one is not other:
            if one is None or not isinstance(other, Stack) or one._hash != other._hash or one.top != other.top:
                return False
            one, other = one.rest, other.rest
        return True


class State(NamedTuple):
    """All the ways in which what was read fits the shape; falsy when there is none.

    Attributes:
        stacks: those whose top takes a character.
        may_end: whether the text may end here.
    """

    stacks: frozenset[Stack[Item]]
    may_end: bool

    def __bool__(self) -> bool:
        return self.may_end or bool(self.stacks)


class InText(NamedTuple):
    """A text of which `at` characters have been read: at least one, and not all."""

    text: Text
    at: int


class InRepeat(NamedTuple):
    """A repetition of which `done` parts have been read; without an upper bound it counts to the lower one only."""

    repeat: Repeat
    done: int


class InBoth(NamedTuple):
    """The states of all parts of a Both, which read the same characters."""

    both: Both
    states: tuple[State, ...]


class InExcept(NamedTuple):
    """The state of the part of an Except, and what was read as long as it begins a text that is left out."""

    shape: Except
    state: State
    prefix: str | None


Item = Shape | InText | InRepeat | InBoth | InExcept
"""What can stand on a stack: a shape that is yet to come, or one that was begun."""


def opened(item: Item) -> State:
    """Return the state in front of an item."""
    return _settled([Stack(item, None)])


def after(state: State, char: str) -> State:
    """Return the state after one more character."""
    todo: list[Stack[Item] | None] = []
    for stack in state.stacks:
        rest = stack.rest
        match stack.top:
            case Chars() as chars:
                if char in chars:
                    todo.append(rest)
            case Text(text) as whole:
                if text[0] == char:
                    todo.append(rest if len(text) == 1 else Stack(InText(whole, 1), rest))
            case InText(text, at):
                if text.text[at] == char:
                    todo.append(rest if at + 1 == len(text.text) else Stack(InText(text, at + 1), rest))
            case InBoth(both, states):
                moved = tuple(after(each, char) for each in states)
                if all(moved):
                    todo.append(Stack(InBoth(both, moved), rest))
            case InExcept(shape, inner, prefix):
                inner = after(inner, char)
                if prefix is not None:
                    prefix += char
                    if not any(text.startswith(prefix) for text in shape.texts):
                        prefix = None
                if inner:
                    todo.append(Stack(InExcept(shape, inner, prefix), rest))
    return _settled(todo)


def _settled(todo: list[Stack[Item] | None]) -> State:
    """Follow what takes no character until each stack has a top that takes one, or is at its end."""
    stacks: set[Stack[Item]] = set()
    seen: set[Stack[Item]] = set()
    may_end = False
    while todo:
        stack = todo.pop()
        if stack is None:
            may_end = True
            continue
        if stack in seen:
            continue
        seen.add(stack)
        rest = stack.rest
        match stack.top:
            case Chars() | InText():
                stacks.add(stack)
            case Text(text):
                if text:
                    stacks.add(stack)
                else:
                    todo.append(rest)
            case Seq(parts):
                for part in reversed(parts):
                    rest = Stack(part, rest)
                todo.append(rest)
            case Alt(parts):
                todo += [Stack(part, rest) for part in parts]
            case Scalar(part):
                todo.append(Stack(part, rest))
            case Ref() as ref:
                todo.append(Stack(ref.target, rest))
            case Repeat() as repeat:
                todo.append(Stack(InRepeat(repeat, 0), rest))
            case InRepeat(repeat, done):
                if done >= repeat.low:
                    todo.append(rest)
                if repeat.high is None or done < repeat.high:
                    more = done if repeat.high is None and done >= repeat.low else done + 1
                    todo.append(Stack(repeat.part, Stack(InRepeat(repeat, more), rest)))
            case Both(parts) as both:
                todo.append(Stack(InBoth(both, tuple(map(opened, parts))), rest))
            case InBoth(_, states):
                if all(state.may_end for state in states):
                    todo.append(rest)
                if all(state.stacks for state in states):
                    stacks.add(stack)
            case Except(part) as barred:
                todo.append(Stack(InExcept(barred, opened(part), ""), rest))
            case InExcept(shape, state, prefix):
                if state.may_end and prefix not in shape.texts:
                    todo.append(rest)
                if state.stacks:
                    stacks.add(stack)
            case unknown:
                raise TypeError(f"{unknown!r} is not a shape")
    return State(frozenset(stacks), may_end)


def weight(state: State) -> int:
    """Return how many stacks a state has, those of the states that they hold included."""
    count = len(state.stacks)
    for stack in state.stacks:
        match stack.top:
            case InBoth(_, states):
                count += sum(map(weight, states))
            case InExcept(_, inner, _):
                count += weight(inner)
    return count


def next_chars(state: State) -> list[str]:
    """Return characters, some of each range, of which at least one goes on if any does; the pleasant ones first."""
    rank = {char: n for n, char in enumerate(PLEASANT)}
    return sorted(set(_chars(state.stacks)), key=lambda char: (rank.get(char, len(rank)), char))


def _chars(stacks: Iterable[Stack[Item]]) -> Iterator[str]:
    for stack in stacks:
        match stack.top:
            case Chars(ranges) as chars:
                yield from (c for c in PLEASANT if c in chars)
                yield from (chr(low) for low, _ in ranges)
            case Text(text):
                yield text[0]
            case InText(text, at):
                yield text.text[at]
            case InBoth(_, states):
                for each in states:
                    yield from _chars(each.stacks)
            case InExcept(shape, state, prefix):
                yield from _chars(state.stacks)
                if prefix is not None:  # a character that leads away from every text that is left out
                    begun = {text[: len(prefix) + 1] for text in shape.texts}
                    yield from (c for c in LETTERS if prefix + c not in begun)
