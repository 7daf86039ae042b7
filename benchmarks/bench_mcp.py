"""What does a small model make of a live MCP server? Requests to one of files, and the next step of goals.

Starts the filesystem server of npm (`make setup-mcp`) in a temporary folder and plays as `run --yes` does. A request is
done when what it asks for has come true: a file is there, a text was read. A step of a goal is right when it is the
tool that comes next, or, where all is done, when the session ends: by `halt`, or since nothing more seems to be meant.

    python benchmarks/bench_mcp.py --threads 2 -m smollm2 -m gemma3-270m

The cases were written before anything was measured on them. The form of a goal's prompt was chosen on twelve others.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from cartridges.kit.mcp import Command, serving
from dispatch.session.judging import judge_for
from dispatch.session.model_player import ModelPlayer
from dispatch.session.session import Session
from dispatch.session.situation import situation
from dispatch.session.turn import Turn
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.outcome import Outcome
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.opcode import HALT

SERVER = Path(__file__).resolve().parents[1] / ".cache/mcp/node_modules/@modelcontextprotocol/server-filesystem"
RULE = Rule(RuleName.CALIBRATED)

Holds = Callable[[Path, Turn], bool]


class Request(NamedTuple):
    """A request, in which DIR stands for the folder, and what has to hold afterwards."""

    text: str
    holds: Holds


def says(text: str) -> Holds:
    return lambda folder, turn: text in turn.result and not turn.refused


REQUESTS = (
    Request("list the directory DIR", says("milk.txt")),
    Request("read the text file DIR/milk.txt", says("two bottles")),
    Request("create the directory DIR/shopping", lambda folder, turn: (folder / "shopping").is_dir()),
    Request(
        'write "a dozen" to the file DIR/eggs.txt',
        lambda folder, turn: (folder / "eggs.txt").is_file() and (folder / "eggs.txt").read_text().strip() == "a dozen",
    ),
    Request("move the file DIR/milk.txt to DIR/cream.txt", lambda folder, turn: (folder / "cream.txt").is_file()),
    Request("search DIR for files that match *.txt", says("milk.txt")),
    Request("which directories may I use?", says("Allowed directories")),
    Request("when was DIR/milk.txt changed? get its file info", says("modified")),
    Request("show the directory tree of DIR", says("milk.txt")),
    Request("what is in the file DIR/milk.txt?", says("two bottles")),
)

SEARCH = ("search_files(path='DIR', pattern='*.txt')", "DIR/milk.txt")
INFO = ("get_file_info(path='DIR/milk.txt')", "size: 12\nmodified: Tue Dec 01 2026\nisFile: true")
TREE = ("directory_tree(path='DIR')", '[{"name":"milk.txt","type":"file"}]')
READ = ("read_text_file(path='DIR/milk.txt')", "two bottles")
WRITE = ("write_file(path='DIR/list.txt', content='butter')", "Successfully wrote to DIR/list.txt")
MAKE = ("create_directory(path='DIR/old')", "Successfully created directory DIR/old")

GOALS = (
    ("search DIR for *.txt", (SEARCH,), HALT),
    ("get the file info of DIR/milk.txt", (INFO,), HALT),
    ("show me the directory tree of DIR", (TREE,), HALT),
    ("write butter to DIR/list.txt", (WRITE,), HALT),
    ("make a directory DIR/old", (MAKE,), HALT),
    ("search DIR for *.txt and read DIR/milk.txt", (SEARCH, READ), HALT),
    ("search DIR for *.txt and read DIR/milk.txt", (SEARCH,), "read_text_file"),
    ("get the file info of DIR/milk.txt, then show the directory tree of DIR", (INFO,), "directory_tree"),
    ("show the directory tree of DIR, then create the directory DIR/old", (TREE,), "create_directory"),
    ("make a directory DIR/old and move DIR/milk.txt to DIR/old/milk.txt", (MAKE,), "move_file"),
    ("read DIR/milk.txt, then write butter to DIR/list.txt", (READ,), "write_file"),
    ("write butter to DIR/list.txt, then list the directory DIR", (WRITE,), "list_directory"),
)


@contextmanager
def served() -> Iterator[tuple[Cartridge, Path]]:
    """Give the cartridge of a server that may use a folder with one file, and that folder."""
    node = shutil.which("node")
    assert node is not None and SERVER.is_dir(), "run make setup-mcp first"  # noqa: PT018
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        (folder / "milk.txt").write_text("two bottles\n")
        cartridge = serving(Command("files", (node, str(SERVER / "dist/index.js"), str(folder))))
        try:
            yield cartridge, folder
        finally:
            assert cartridge.live is not None
            cartridge.live.close()


def player(kernel: Kernel, cartridge: Cartridge) -> ModelPlayer:
    """Return what chooses, as `run` has it."""
    made = ModelPlayer(kernel, Wire([cartridge], form("compact")), [cartridge], RULE)
    made.judge = judge_for(kernel, [cartridge], RULE)
    return made


def requests(kernel: Kernel) -> list[dict[str, Any]]:
    """Make each request of a server of its own."""
    found = []
    for request in REQUESTS:
        with served() as (cartridge, folder):
            session = Session([cartridge], player(kernel, cartridge))
            session.yes = True
            turn = session.turn(request.text.replace("DIR", str(folder)))
            said = repr(turn.instruction).replace(str(folder), "DIR")
            found.append(
                {
                    "request": request.text,
                    "done": request.holds(folder, turn),
                    "outcome": turn.outcome.value,
                    "instruction": said,
                    "passes": 0 if turn.decision is None else turn.decision.passes,
                }
            )
    return found


def goals(kernel: Kernel) -> list[dict[str, Any]]:
    """Ask for the next step of each goal; arguments are not written."""
    found = []
    with served() as (cartridge, folder):
        chooser, engine = player(kernel, cartridge), cartridge.engine()
        for goal, steps, right in GOALS:
            told = [f"Call: files.{call}\nResult: {result}" for call, result in steps]
            request = "\n".join([goal, *told]).replace("DIR", str(folder))
            seen, _ = situation({"files": cartridge}, {"files": engine}, len(steps) + 1, request)
            decision = kernel.decide(chooser.question(seen, kernel.ids(seen.prompt)))
            method = HALT if decision.outcome is Outcome.NONE else chooser.named(decision.index).method
            found.append({"goal": goal, "steps": len(steps), "right": right, "next": method, "hit": method == right})
    return found


def main() -> None:
    """Measure each model, print a table and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("-m", "--model", action="append", help="may be given again (default: smollm2)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args()
    table, rows = Table("model", "requests done", "next steps right", box=None), []
    for model in options.model or ["smollm2"]:
        kernel = Kernel.load(model, n_ctx=4096, threads=options.threads)
        row = {"model": model, "requests": requests(kernel), "goals": goals(kernel)}
        rows.append(row)
        done, hit = sum(each["done"] for each in row["requests"]), sum(each["hit"] for each in row["goals"])
        table.add_row(model, f"{done} of {len(REQUESTS)}", f"{hit} of {len(GOALS)}")
        kernel.close()
    Console(width=100).print(table)
    publish("mcp", {"results": rows}, options.out, ("mcp",))


if __name__ == "__main__":
    main()
