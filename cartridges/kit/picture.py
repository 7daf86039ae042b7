"""Draws a grid of cells in characters, for the views of games on a floor or a map."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text


def grid(signs: Mapping[tuple[int, int], tuple[str, str]], width: int, height: int) -> Text:
    """Return a line for each row, the top row first, two characters a cell; an empty cell is a dim dot.

    Args:
        signs: the character and the rich style of a cell, by its column from the left and its row from the top.

    >>> grid({(1, 0): ("@", "bold")}, 3, 2).plain
    '· @ · \\n· · · \\n'
    """
    text = Text(no_wrap=True)
    for y in range(height):
        for x in range(width):
            sign, style = signs.get((x, y), ("·", "dim"))
            text.append(sign + " ", style=style)
        text.append("\n")
    return text
