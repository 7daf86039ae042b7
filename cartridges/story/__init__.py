"""Writes a JSON value that satisfies a schema, whatever the model: give it a schema and a prompt.

Not a game: there is one decision, and it is the whole text. `python -m kernel run story` reaches it.
"""

from __future__ import annotations

from cartridges.story.writer import SCHEMA, Story, write

__all__ = ["SCHEMA", "Story", "write"]
