"""Text of cartridges, tools, models and logs, shown by every command: literal, and no character that steers."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cartridges.home import make as make_home
from cartridges.home.engine import House
from cartridges.kit.rules import own
from cartridges.kit.toolbox import toolbox
from dispatch.cli.output import console, rows_of
from dispatch.loading.registry import load
from dispatch.session.board import Board
from kernel.contract import Cartridge
from kernel.opcode import Instruction

Forked = Callable[..., Any]

HOSTILE = "see [/b] [bold]x[/bold] \x1b[2J\x1b]0;x\x07\x9b31m\u202eevil\u2066\u200b\u2028\ud800 :smile:"
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
LITERAL = r"[/b] [bold]x[/bold] \x1b[2J\x1b]0;x\x07\x9b31m\u202eevil\u2066\u200b\u2028\ud800 :smile:"

EVIL = f'''
from typing import Literal
from rich.table import Table
from kernel.contract import Cartridge, Option
from kernel.errors import IllegalInstructionError
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Part, Prompt

HOSTILE = {HOSTILE!r}


class Go(Opcode):
    """See [/b]."""

    to: Literal["[/b]", "=1+1", "left"]


class Engine:
    def __init__(self):
        self.reset(0)

    def reset(self, seed):
        self.steps = 0

    def legal(self):
        return [Instruction.of("evil", "go", to=to) for to in ("[/b]", "=1+1", "left")]

    def apply(self, instruction):
        self.steps += 1
        return HOSTILE

    def copy(self):
        twin = Engine()
        twin.steps = self.steps
        return twin

    def state_hash(self):
        return f"s{{self.steps}}"

    def ended(self):
        return None

    def summary(self):
        return {{"said": HOSTILE}}


class View:
    def prompt(self, engine, options, request=""):
        return Prompt((Part("Go:"),), ((Part("Go?"),),))

    def render(self, engine):
        table = Table(HOSTILE, title=HOSTILE)
        table.add_row(HOSTILE)
        return table


class Planner:
    def rank(self, engine):
        return [Option(i, score=1.0, note=HOSTILE) for i in engine.legal()]


def make():
    return Cartridge("evil", "1", HOSTILE, (Go,), Engine, View(), Planner(), offered=2, takes_requests=True)
'''


def drawn(picture: Any, width: int = 100) -> str:
    """What a terminal gets of a picture."""
    out = console(width=width)
    out.file = io.StringIO()
    out.print(picture)
    return out.file.getvalue()


@pytest.mark.parametrize("form", [str, Text, lambda text: Panel(Text(text)), lambda text: Panel(text, title=text)])
def test_a_board_is_text_and_steers_nothing(form: Callable[[str], Any]) -> None:
    """Kind: what a view draws. Strings, texts, panels, and a title that rich cannot read as markup."""
    view: Any = SimpleNamespace(render=lambda engine: form(HOSTILE))
    told = drawn(Board(view, SimpleNamespace()), width=200)  # type: ignore[arg-type]
    assert not STEERS.search(told), told
    bare = LITERAL.replace(r"\x07", "")  # rich drops a bell by itself
    assert LITERAL in told or bare in told or "no picture: MarkupError" in told


def test_links_and_cursor_moves_of_a_view_are_left_out() -> None:
    """What rich draws by control codes of its own."""
    from rich.control import Control

    for made in (Text("x", style="link http://a\x1b]0;y\x07"), Control.home(), Text.from_ansi("\x1b]8;;http://a\x07x")):
        view: Any = SimpleNamespace(render=lambda engine, made=made: made)
        out = console(width=40)
        out.file = io.StringIO()
        out._force_terminal = True
        out.print(Board(view, SimpleNamespace()))  # type: ignore[arg-type]
        told = re.sub(r"\x1b\[[0-9;]*m", "", out.file.getvalue())  # colours are ours
        assert not STEERS.search(told), told


def test_a_view_that_raises_costs_the_picture_only() -> None:
    """Kind: an author's code in the middle of a session."""

    class View:
        def render(self, engine: object) -> str:
            raise ValueError(HOSTILE)

    told = drawn(Board(View(), SimpleNamespace()), width=300)  # type: ignore[arg-type]
    assert told.startswith("no picture: ValueError: see [/b]")
    assert not STEERS.search(told)


def test_the_boards_of_our_cartridges_show_foreign_text_literally() -> None:
    """A reminder that somebody asked for, and what a tool answered."""
    home = make_home(opcodes="typed")
    house = own(home.engine(), House)
    house.reset(0)
    house.state.reminders.append(HOSTILE)
    told = drawn(home.view.render(house), width=200)
    assert LITERAL in told
    assert not STEERS.search(told)


@pytest.mark.parametrize(
    "spec", ["tetris", "home", "robot", "scavenger", "cartridges.template", "cartridges.frozenlake"]
)
def test_no_board_of_ours_steers_the_terminal(spec: str) -> None:
    """Every `render()`, over thirty random steps of three seeds, as the commands draw it."""
    cartridge = load(spec)
    for seed in range(3):
        engine, draw = cartridge.engine(), random.Random(seed)
        engine.reset(seed)
        for _ in range(30):
            told = drawn(Board(cartridge.view, engine), width=100)
            assert told.strip()
            assert not STEERS.search(told)
            if engine.ended() is not None:
                break
            engine.apply(draw.choice(engine.legal()))


def test_cells_of_tables_are_literal() -> None:
    """Every table of every command is made by this function."""
    told = drawn(rows_of(["a", "b"], [(HOSTILE, Text("x"))], more=2), width=300)
    assert LITERAL in told
    assert not STEERS.search(told)


@pytest.fixture
def evil(place: Path) -> Path:
    """A cartridge whose every text is hostile, and a log of it."""
    (place / "evil").mkdir()
    (place / "evil" / "__init__.py").write_text(EVIL, encoding="utf-8")
    return place


def test_every_command_shows_foreign_text_literally(evil: Path, forked: Forked) -> None:
    """Kind: a renderer that was forgotten. Names, results, enum values, notes, log fields, errors, JSON, CSV."""
    play = ["run", "./evil", "--player", "random", "--decisions", "2"]
    for arguments, wanted in [
        ([*play, "--log", "a.jsonl"], LITERAL),
        ([*play, "--log", "b.jsonl", "--seed", "1", "--headless"], ""),
        ([*play, "--json"], "\\u202eevil"),
        (["run", "./evil", "--decisions", "2", "--rule", "exact"], LITERAL),
        (["replay", "a.jsonl", "--cartridge", "./evil"], "see [/b] [bold]x[/bold]"),
        (["replay", "a.jsonl", "--cartridge", "./evil", "--json"], ""),
        (["stats", "a.jsonl"], ""),
        (["stats", "a.jsonl", "--format", "csv"], LITERAL),
        (["diff", "a.jsonl", "b.jsonl"], ""),
        (["inspect", "./evil"], "[/b]"),
        (["inspect", "./evil", "--json"], "[/b]"),
        (["call", "./evil", HOSTILE.replace("\ud800", ""), "--rule", "exact"], LITERAL),
        (["choose", "-p", "x\x1b[2J", "-o", "[/b]\x1b[2J\u202e", "-o", "[bold]x[/bold]"], "[/b]\\x1b[2J\\u202e"),
        (["choose", "-p", "x", "-o", "[/b]\x9b\u202e", "-o", "y", "--json"], "[/b]\\u009b\\u202e"),
        (["check", "./evil", "--model", "any"], "evil"),
        (["new", "a\x1b[2J[/b]"], "a\\x1b[2J[/b]"),
        (["models", "pull", "a\x1b[2J[/b]"], "a\\x1b[2J[/b]"),
        (["replay", "\x1b[2J[/b]"], "\\x1b[2J[/b]"),
        (["\x1b[2J[/b]"], "\\x1b[2J[/b]"),
        (["run", "\x1b[2J[/b]"], "\\x1b[2J[/b]"),
        (["run", "home", "--option", "\x1b[2J[/b]=1"], "\\x1b[2J[/b]"),
        (["eval", "\x1b[2J[/b]"], "\\x1b[2J[/b]"),
        (["import", "\x1b[2J[/b]", "-o", "x"], "\\x1b[2J[/b]"),
    ]:
        done = forked(arguments)
        assert "Traceback" not in done.err, (arguments, done)
        assert "MarkupError" not in done.err + done.out, (arguments, done)
        assert not STEERS.search(done.out), (arguments, STEERS.search(done.out), done)
        assert not STEERS.search(done.err), (arguments, STEERS.search(done.err), done)
        assert wanted in done.out + done.err, (arguments, done)


def test_cells_of_csv_are_no_formulas(evil: Path, forked: Forked) -> None:
    """Kind: a cell that a spreadsheet computes."""
    name = "=cmd.jsonl"
    done = forked(["run", "./evil", "--player", "planner", "--decisions", "3", "--headless", "--log", name])
    assert done.code == 0, done
    done = forked(["stats", name, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 3
    assert {row["file"] for row in rows} == {"'=cmd.jsonl"}
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())


def test_what_a_tool_answers_is_text(tmp_path: Path) -> None:
    """On the board of an imported tool list."""
    (tmp_path / "tools.json").write_text('[{"name":"ping"}]')
    handlers: Any = SimpleNamespace(ping=lambda: HOSTILE, __name__="handlers")
    cartridge: Cartridge = toolbox("box", tmp_path / "tools.json", handlers)
    engine = cartridge.engine()
    engine.reset(0)
    engine.apply(Instruction.of("box", "ping"))
    table = cartridge.view.render(engine)
    assert isinstance(table, Table)
    told = drawn(Board(cartridge.view, engine), width=200)
    assert LITERAL in told
    assert not STEERS.search(told)
