"""The view of Tetris: the prompt, and the board with or without colour, in a wide or a narrow window."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from cartridges.kit.phrasing import highest, marked
from cartridges.kit.rules import own
from cartridges.tetris.board import KINDS, WIDTH
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import OPCODES, OpcodeSet
from kernel.contract import Engine, Option
from kernel.form import FORM, SOLVED, Form
from kernel.opcode import words
from kernel.prompt import NOTHING, Part, Prompt

COLOURS = dict(zip(KINDS, ("cyan", "blue", "white", "yellow", "green", "magenta", "red"), strict=True))

LISTS: dict[OpcodeSet, Form] = {
    "moves": FORM,
    "place": Form("Options:\n- {other}: none\n", "Best", "Other"),
    "syllables": Form(SOLVED, "Best", "Other"),
}
"""The form of the options by what they are; `eval tetris --forms` found them. A syllable says nothing, and both models
copy it best after a question that is answered already."""

SIDE = 12
"""Columns that the counts take beside the board."""


class BoardPicture:
    """A board that fits the room it is given.

    Two columns a cell and the counts at the side where there are 22 + 12 columns, the counts below where there are
    22, one column a cell where there are fewer. A locked cell shows its piece's letter, the falling piece is in
    small letters, so nothing depends on colour.
    """

    def __init__(self, engine: TetrisEngine) -> None:
        self.rows = engine.rows()
        self.counts = [f"next   {engine.next_piece}"] + [f"{name:<6} {n}" for name, n in engine.summary().items()]
        if engine.ended():
            self.counts.append("topped out")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = 2 if options.max_width >= 2 * WIDTH + 2 else 1
        beside = options.max_width >= wide * WIDTH + 2 + SIDE
        side, corners, floor = ("|", "++", "-") if options.ascii_only else ("│", "└┘", "─")
        lines = []
        for row in self.rows:
            line = Text().append(side, "dim")
            for letter in row:
                line.append_text(_cell(letter, wide))
            lines.append(line.append(side, "dim"))
        lines.append(Text().append(corners[0] + floor * wide * WIDTH + corners[1], "dim"))
        if beside:
            for line, words in zip(lines, self.counts, strict=False):
                line.append(f"  {words}")
        else:
            lines += [Text(words) for words in self.counts]
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
            yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(WIDTH + 2, 2 * WIDTH + 2 + SIDE).with_maximum(options.max_width)


def _cell(letter: str, wide: int) -> Text:
    if letter == ".":
        return Text(" " * (wide - 1) + ".", "dim")
    colour = COLOURS.get(letter.upper(), "bright_black")
    style = f"bold {colour}" if letter.islower() else f"black on {colour}"
    return Text(letter * wide, style)


def shuffled(options: Sequence[Option], state_hash: str) -> list[int]:
    """Return the places of the options in an order that follows from the state alone."""
    number = int(state_hash.rpartition(":")[2], 16)
    left, order = list(range(len(options))), []
    while left:
        number, pick = divmod(number, len(left))
        order.append(left.pop(pick))
    return order


class TetrisView:
    """The view of the cartridge."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the request, if there is one, and the options in an order that gives nothing away, the best marked."""
        game = own(engine, TetrisEngine)
        order = shuffled(options, game.state_hash())
        asked, nothing = ((Part(f"{text}\n"),) if request else () for text in (request, NOTHING))
        labels = [words(options[n].instruction, [OPCODES[game.opcodes]]) for n in order]
        place = order.index(highest(options)) if options else -1
        return marked(labels, place, question="Best move:", asked=(asked, nothing), form=LISTS[game.opcodes])

    def render(self, engine: Engine) -> BoardPicture:
        """Return the picture of the state as it is now; it stays the same when the game goes on."""
        return BoardPicture(own(engine, TetrisEngine))
