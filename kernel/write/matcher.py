"""Where in its opcode a decision stands: legal ids, the step forward, the way back. Knows no model and no rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernel.errors import ContextError, NoLegalOpcodeError
from kernel.write.ending import Closing, Reading
from kernel.write.stages import FINISHED, Place, Stages


class Matcher:
    """A cursor over compiled opcodes, at the start when made.

    Args:
        budget: ids that the opcode may have in all; None is no limit. With one, `closing_instead` says when it is
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
        if "closing" not in stages.memo:
            stages.memo["closing"] = Closing(stages)
        self._closing: Closing = stages.memo["closing"]
        if budget is not None and (needed := len(self.closing())) > budget:
            raise ContextError(f"the shortest opcode has {needed} ids, but there is room for {budget}")

    @property
    def place(self) -> Place:
        """The state of the walk; `Stages.legal`, `advance` and `is_end` work on it."""
        return self._places[-1]

    @property
    def ended(self) -> bool:
        """Whether the opcode is complete."""
        return self.stages.is_end(self.place)

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
        slot = place.slot
        if slot is not None:  # one slot object moves along, what a copy would cost is as much as the move itself
            if not slot.take(token):
                self._places[-1] = self._again(place)
                raise self._illegal(token)
            if slot.ended:
                place = FINISHED
        else:
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

    def _again(self, place: Place) -> Place:
        """Return a place in a slot anew; one that met an illegal id is of no more use to its engine."""
        first = self._slot_begin(len(self.ids))
        slot = self.stages.grammars[-2 - place.stage].start()
        for token in self.ids[first:]:
            slot.take(token)
        for at in range(first, len(self._places)):
            self._places[at] = Place(place.stage, slot=slot)
        return self._places[-1]

    def _slot_begin(self, position: int) -> int:
        """Return after how many ids the slot at a position was entered."""
        while position > 0 and self._places[position - 1].slot is not None:
            position -= 1
        return position

    def forced(self) -> list[int]:
        """Return the ids that follow without a choice, up to the next choice or the end; moves nothing.

        In a slot they stand for bytes without alternative, which could be cut into other ids as well.
        """
        out: list[int] = []
        place = self.place
        while not self.stages.is_end(place):
            if place.slot is not None:
                return out + place.slot.forced()
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
            slot = self._places[left].slot
            if slot is not None:  # what was taken since is taken back; the end is a step of the same slot
                slot.back(count)
            del self._places[-count:], self._readings[-count:], self.ids[-count:]

    # -- the budget ----------------------------------------------------------------------------------------------

    def closing(self) -> list[int]:
        """Return few ids that end the opcode from here; none when it has ended."""
        if self.place.slot is None:
            return self._closing.ids(self.place)
        reading = self._reading(len(self.ids))
        assert reading is not None
        return list(reading.ids())

    def closing_instead(self, token: int) -> list[int] | None:
        """Return ids that end the opcode now, if after this (legal) id the budget might not suffice to do so."""
        if self.budget is None:
            return None
        left = self.budget - len(self.ids) - 1
        place = self.place
        if place.slot is not None:
            most = self._closing.slots[-2 - place.stage].most
            if most is not None and most <= left:
                return None
        self.consume(token)
        needed = len(self.closing())
        self.rollback(1)
        return None if needed <= left else self.closing()

    def _reading(self, position: int) -> Reading | None:
        """Return how the text of the slot has been read after so many ids; read on from where it was last."""
        start, first = position, self._slot_begin(position)
        while self._readings[start] is None and start > first:
            start -= 1
        reading = self._readings[start]
        if reading is None:
            stage = self._places[start].stage
            reading = self._readings[start] = self._closing.slots[-2 - stage].start
        pieces = self.stages.vocabulary.pieces
        for at in range(start, position):
            reading = self._readings[at + 1] = reading.after(pieces[self.ids[at]])
        return reading
