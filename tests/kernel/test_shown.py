"""Foreign text as a person sees it."""

from __future__ import annotations

import ast
import sys
import unicodedata

import pytest

from kernel.shown import shown

STEERING = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""65 controls and the marks that change the direction of writing."""
HIDDEN = [0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xAD, 0x2028, 0x2029, 0xD800, 0xDFFF, 0xE0041, 0xE000, 0xFFF9, 0x180E]


@pytest.mark.parametrize("code", [*STEERING, *HIDDEN], ids=lambda code: f"U+{code:04X}")
def test_what_steers_or_hides_becomes_an_escape(code: int) -> None:
    """Kind: text that drives a terminal. The escape is ASCII, and Python reads it back."""
    told = shown(f"a{chr(code)}b")
    assert told.isascii()
    assert told.isprintable()
    assert len(told) > 3
    assert ast.literal_eval(f"'{told}'") == f"a{chr(code)}b"


def test_every_other_character_stays_or_is_a_space() -> None:
    """All of Unicode: what is left can be printed, nothing that can be read is escaped, markup is text."""
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    readable = "".join(char for char in every if char.isprintable())
    assert shown(readable) == readable
    others = [char for char in every if not char.isprintable()]
    spaces = [char for char in others if unicodedata.category(char) == "Zs"]
    assert shown("".join(spaces)) == " " * len(spaces)
    assert shown("".join(others)).isprintable()
    assert shown("[bold]x[/b] :smile: \\n") == "[bold]x[/b] :smile: \\n"
