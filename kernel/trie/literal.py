"""The text of one opcode, before it is tokenized."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """The text of one opcode.

    The `closer` ends it and tells nothing about which opcode it is, so it is not scored; `label` is what people see.
    """

    body: str
    closer: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        """Body and closer."""
        return self.body + self.closer
