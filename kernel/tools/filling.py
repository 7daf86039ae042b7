"""Finds the arguments of a call: candidates of every field, what the model says of them, and which field gets which.

Fields of one kind are read in one pass. A field without candidates, and one that has to be there and fits none, is
written by the model, held to its shape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernel.choose.rule import Floats
from kernel.errors import OpcodeError
from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.assigning import assign
from kernel.tools.candidates import Candidate, Reader
from kernel.tools.evidence import Evidence, EvidenceReader, Kind, Member, Reads, kind_of
from kernel.tools.fields import Field, fields_of, put
from kernel.tools.filled import Chosen, Filled
from kernel.tools.signs import scores, speaks_of, stems
from kernel.tools.slots import SlotWriter


class Filler:
    """Finds arguments with one kernel."""

    def __init__(self, kernel: Reads) -> None:
        self.kernel = kernel
        self.evidence = EvidenceReader(kernel)
        self.slots = SlotWriter(kernel)

    def fill(self, opcode: type[SchemaOpcode], request: str) -> Filled:
        """Return the arguments that a request gives a tool.

        Raises:
            ContextError, LogitsError.
        """
        with self.kernel.memory.lock:
            before = self.kernel.memory.cost
            filled = self._fill(opcode, request)
            try:
                opcode.from_arguments(json.dumps(filled.arguments))
            except OpcodeError:  # values that do not go together, by `anyOf` or a number of properties
                filled = self.slots.whole(opcode, request)
            cost = self.kernel.memory.cost - before
            return Filled(filled.arguments, filled.fields, filled.chosen, filled.closed, filled.margin, cost)

    def _fill(self, opcode: type[SchemaOpcode], request: str) -> Filled:
        fields = fields_of(opcode)
        known: list[tuple[int, list[Candidate | None], Floats]] = []
        for each, evidence in self.read(opcode, request):
            values = scores(request, each, evidence)
            listed: list[Candidate | None] = [*evidence.candidates, None]
            if each.required:
                listed, values = listed[:-1], values[:-1]
            number = next(n for n, field in enumerate(fields) if field.path == each.path)
            known.append((number, listed, values - np.logaddexp.reduce(values)))
        places = assign([listed for _, listed, _ in known], [values for *_, values in known])
        settled: dict[int, Chosen] = {}
        for (number, listed, values), place in zip(known, places, strict=True):
            taken = listed[place]
            settled[number] = Chosen(fields[number], None if taken is None else taken.text, _shares(listed, values))
        closed = 0
        for number, each in enumerate(fields):
            if number not in settled or (settled[number].text is None and each.required):
                if not each.required:
                    settled[number] = Chosen(each, None)
                    continue
                written, closed_here = self.slots.write(opcode, request, each)
                closed += closed_here
                settled[number] = Chosen(each, written)
        arguments: dict[str, Any] = {}
        for number, each in enumerate(fields):
            if (text := settled[number].text) is not None:
                put(arguments, each.path, json.loads(text))
        found = tuple(settled[number] for number in range(len(fields)))
        margins = [_margin(each) for each in found if len(each.shares) > 1]
        return Filled(arguments, found, len(margins), closed, min(margins, default=math.inf))

    def read(self, opcode: type[SchemaOpcode], request: str) -> list[tuple[Field, Evidence]]:
        """Return the fields of a tool for which the request or the schema has candidates, with what is read of them."""
        reader = Reader(request)
        groups: dict[tuple[str, ...], list[Member]] = {}
        spoken = set(stems(request))
        for each in fields_of(opcode):
            kind = kind_of(each)
            if kind is Kind.LISTED and not each.required and not speaks_of(each, spoken):
                continue  # it is left out
            if candidates := tuple(reader.candidates(each)):
                shared = kind in (Kind.NUMBER, Kind.STRING)
                groups.setdefault((kind.value, *(() if shared else each.path)), []).append((each, candidates))
        return [
            (member[0], evidence)
            for members in groups.values()
            for member, evidence in zip(members, self.evidence.read(opcode, request, members), strict=True)
            if evidence.candidates
        ]


def _shares(candidates: Sequence[Candidate | None], values: Floats) -> tuple[tuple[str | None, float], ...]:
    order = np.argsort(-values, kind="stable")
    return tuple(
        (None if (each := candidates[at]) is None else each.text, float(np.exp(values[at]))) for at in order.tolist()
    )


def _margin(chosen: Chosen) -> float:
    shares = dict(chosen.shares)
    own = shares.pop(chosen.text, 0.0)
    return math.log(own / max(shares.values())) if own and any(shares.values()) else math.inf if own else 0.0
