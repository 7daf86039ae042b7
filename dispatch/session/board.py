"""Draws the boards of cartridges: their text literally, and so that it cannot steer a terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from dispatch.loading.error_line import error_line
from kernel.contract import Engine, View
from kernel.shown import shown


class Board:
    """The picture of an engine, as it was when this was made; one that cannot be drawn says why in its place.

    A string is text and no markup. Of anything else that rich can draw the characters go through `shown`, and what
    would move the cursor or link to somewhere is left out.
    """

    def __init__(self, view: View, engine: Engine) -> None:
        try:
            made = view.render(engine)
            self.made: RenderableType = Text(_clean(made)) if isinstance(made, str) else made
        except Exception as error:  # the view is an author's, and a session is worth more than a picture
            self.made = _failed(error)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        try:
            found = list(console.render(self.made, options))
        except Exception as error:  # the same
            found = list(console.render(_failed(error), options))
        for text, style, control in found:
            if not control:
                yield Segment(_clean(text), style.update_link(None) if style is not None and style.link else style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        try:
            return Measurement.get(console, options, self.made)
        except Exception:  # it is told when it is drawn
            return Measurement(1, options.max_width)


def _clean(text: str) -> str:
    return "\n".join(map(shown, text.split("\n")))


def _failed(error: Exception) -> Text:
    return Text(shown(f"no picture: {error_line(error)}"), Style(color="red"))
