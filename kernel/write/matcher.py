"""A cursor over compiled opcodes: the legal next ids, the step forward, the steps back, the end within a budget.

It walks the tries of `stages.py` and the slots of `slots.py` alike. A place in a trie is a value, so a step back is the
place before; a slot is one object that moves, so it is told to move back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernel.errors import ContextError, NoLegalOpcodeError
from kernel.write.ending import Reading
from kernel.write.slots import Grammar, Slot
from kernel.write.stage import Place
from kernel.write.stages import Stages


class Matcher:
    """A cursor over compiled opcodes, at the start when made.

    Args:
        budget: ids that the opcode may have in all; None is no limit. With one, `ending_instead` says when it is
            time to end.
    Raises:
        ContextError: not even the shortest opcode fits into the budget.
    """

    def __init__(self, stages: Stages, budget: int | None = None) -> None:
        self.stages = stages
        self.budget = budget
        self.ids: list[int] = []
        self._places: list[Place] = [stages.start]
        self._readings: list[Reading | None] = [None]
        if budget is not None and (needed := len(self.ending())) > budget:
            raise ContextError(f"the shortest opcode has {needed} ids, but there is room for {budget}")

    @property
    def place(self) -> Place:
        """The place that the walk has reached."""
        return self._places[-1]

    @property
    def ended(self) -> bool:
        """Whether the opcode is complete."""
        return self._places[-1] is None

    @property
    def text(self) -> bytes:
        """The bytes so far; between two ids of one character they are not UTF-8."""
        return self.stages.vocabulary.join(self.ids)

    def legal(self) -> NDArray[np.int32]:
        """Return the legal next ids, int32, ascending; a view where a trie holds them, empty when ended."""
        return self.stages.legal(self._places[-1])

    def consume(self, token: int) -> None:
        """Take one id; raises NoLegalOpcodeError, and moves nothing, when it is not legal here."""
        place = self._places[-1]
        match place:
            case None:
                raise self._illegal(token)
            case Slot():
                if not place.take(token):
                    self._renew(place)
                    raise self._illegal(token)
                if place.ended:
                    place = None
            case _:
                try:
                    place = self.stages.advance(place, token)
                except KeyError:
                    raise self._illegal(token) from None
        self._places.append(place)
        self._readings.append(None)
        self.ids.append(token)

    def _illegal(self, token: int) -> NoLegalOpcodeError:
        piece = self.stages.vocabulary.pieces[token]
        return NoLegalOpcodeError(f"id {token} ({piece!r}) is not legal after {self.text!r}")

    def _renew(self, broken: Slot) -> None:
        """Put a new slot where one met an illegal id, which makes it useless to its engine."""
        first = self._slot_begin(len(self.ids))
        slot = broken.grammar.start()
        for token in self.ids[first:]:
            slot.take(token)
        self._places[first:] = [slot] * (len(self._places) - first)

    def _slot_begin(self, position: int) -> int:
        """Return after how many ids the slot at a position was entered."""
        while position > 0 and isinstance(self._places[position - 1], Slot):
            position -= 1
        return position

    def forced(self) -> list[int]:
        """Return the ids that follow without a choice, up to the next choice or the end; moves nothing.

        In a slot they stand for bytes without alternative, which could be cut into other ids as well.
        """
        out: list[int] = []
        place = self.place
        while place is not None:
            if isinstance(place, Slot):
                return out + place.forced()
            ids = self.stages.legal(place)
            if len(ids) != 1:
                break
            out.append(int(ids[0]))
            place = self.stages.advance(place, out[-1])
        return out

    def rollback(self, count: int) -> None:
        """Take back the last ids."""
        if not 0 <= count <= len(self.ids):
            raise ValueError(f"cannot take back {count} of {len(self.ids)} ids")
        if count:
            left = len(self.ids) - count
            place = self._places[left]
            if isinstance(place, Slot):  # all ids since were its own; the one that ended the opcode as well
                place.back(count)
            del self._places[-count:], self._readings[-count:], self.ids[-count:]

    # -- the budget ----------------------------------------------------------------------------------------------

    def ending(self) -> list[int]:
        """Return few ids that end the opcode from here; none when it has ended."""
        match self.place:
            case None:
                return []
            case Slot(grammar=grammar):
                return list(self._reading(grammar, len(self.ids)).ids())
            case place:
                return self.stages.ending.ids(place)

    def ending_instead(self, token: int) -> list[int] | None:
        """Return ids that end the opcode now, if after this (legal) id the budget might not suffice to do so."""
        if self.budget is None:
            return None
        left = self.budget - len(self.ids) - 1
        place = self.place
        if isinstance(place, Slot):
            most = self.stages.ending.slots[place.grammar].most
            if most is not None and most <= left:
                return None
        self.consume(token)
        needed = len(self.ending())
        self.rollback(1)
        return None if needed <= left else self.ending()

    def _reading(self, grammar: Grammar, position: int) -> Reading:
        """Return how the text of the slot has been read after so many ids; read on from where it was last."""
        start, first = position, self._slot_begin(position)
        while self._readings[start] is None and start > first:
            start -= 1
        reading = self._readings[start]
        if reading is None:
            reading = self._readings[start] = self.stages.ending.slots[grammar].start
        pieces = self.stages.vocabulary.pieces
        for at in range(start, position):
            reading = self._readings[at + 1] = reading.after(pieces[self.ids[at]])
        return reading
