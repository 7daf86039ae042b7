"""Writes what cannot be copied: the value of one field, or all arguments, held to their shape.

A value that repeats itself is ended: small models fall into loops.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tool_prompt import ToolPrompt
from kernel.recent import keep, recall
from kernel.shape.shape import Shape, seq
from kernel.tools.evidence import Reads
from kernel.tools.fields import Field
from kernel.tools.filled import Filled
from kernel.tools.heads import line_of
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages
from kernel.write.writer import write

KEPT = 128
"""Fields whose compiled shapes are kept."""

SHORT = 48
"""Ids of a value that is written."""

LONG = 256
"""Ids of all arguments together."""


class SlotWriter:
    """Writes values with one kernel."""

    def __init__(self, kernel: Reads) -> None:
        self.kernel = kernel
        self._stages: OrderedDict[Any, Stages] = OrderedDict()

    def write(self, opcode: type[SchemaOpcode], request: str, field: Field) -> tuple[str, int]:
        """Return the value of a field as JSON, and how many ids closed it because its budget had run out."""
        stages = self._compiled((opcode, field.path), seq(" ", field.argument.shape, "\n"))
        ids = self.kernel.vocabulary.prompt(line_of(opcode, request, field))
        least = len(Matcher(stages).ending())
        written = write(self.kernel.memory, stages, ids, max_tokens=max(SHORT, least))
        return written.text.strip(), written.closed

    def whole(self, opcode: type[SchemaOpcode], request: str) -> Filled:
        """Return all arguments of a tool as the model writes them."""
        stages = self._compiled((opcode, ()), seq(f" {opcode.method} ", opcode.arguments_shape(), "\n"))
        ids = self.kernel.vocabulary.prompt(ToolPrompt([opcode]).asked(request).parts)
        written = write(self.kernel.memory, stages, ids, max_tokens=LONG)
        arguments = json.loads(written.text.strip().partition(" ")[2])
        return Filled(arguments, chosen=written.chosen, closed=written.closed, margin=written.margin)

    def _compiled(self, key: Any, shape: Shape) -> Stages:
        known = recall(self._stages, key)
        if known is None:
            known = Stages([shape], self.kernel.vocabulary)
            keep(self._stages, key, known, KEPT)
        return known
