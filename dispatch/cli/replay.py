"""`replay`: plays a log again without the model, shows the board, and says how far the log can be verified."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import list2cmdline
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from dispatch.cli import output
from dispatch.cli.common import MOST, MOST_TOKENS, N_CTX, LogFiles, Threads
from dispatch.cli.frame import Frame
from dispatch.cli.keys import keys
from dispatch.cli.output import failing, note, print_json, say, shown
from dispatch.cli.streams import writing
from dispatch.loading import registry
from dispatch.loading.servers import is_server
from dispatch.log.cursor import Cursor
from dispatch.log.key import Key
from dispatch.log.reader import LogReader
from dispatch.log.replay import MakeCartridge, Replay, replay
from dispatch.log.report import ReplayReport
from dispatch.session.recorded import replayed_cartridge
from kernel.choose.decision import TOLERANCE
from kernel.errors import UsageError

PACE_MS = 50.0
"""A decision is shown at least so long at speed 1; a planner's game would be over in a blink."""
LONGEST_MS = 3000.0
"""A pause of the session is not waited out longer than this."""
FRAMES = 30.0
"""Pictures a second, at most."""

Headless = Annotated[bool, typer.Option("--headless", help="Verify only, show nothing.")]
Speed = Annotated[float, typer.Option(help="Show it so many times as fast as it was played.", max=1e6)]
First = Annotated[
    int, typer.Option("--from", help="Show from this decision on; what is before is verified.", min=1, max=MOST)
]
Last = Annotated[int | None, typer.Option("--to", help="Stop after this decision.", min=0, max=MOST)]
Keys = Annotated[bool, typer.Option("--step", help="Step with the keyboard.")]
Specs = Annotated[
    list[str] | None,
    typer.Option("--cartridge", help="Where the log's cartridge is, if it is not installed.", show_default=False),
]
Again = Annotated[bool, typer.Option("--decide", help="Make every decision again and compare.")]
OtherModel = Annotated[
    str | None, typer.Option("--model", "-m", help="Of --decide: another model.", show_default="the log's")
]
OtherRule = Annotated[str | None, typer.Option("--rule", help="Of --decide: another rule.", show_default="the log's")]
OtherContext = Annotated[
    int | None,
    typer.Option(
        "--n-ctx",
        help="Of --decide: tokens that the model's memory holds.",
        min=8,
        max=MOST_TOKENS,
        show_default=str(N_CTX),
    ),
]
Tolerance = Annotated[
    float, typer.Option(help="Of --decide: choices with a smaller margin may come out differently.", min=0.0, max=1e6)
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", help="Check that this secret file sealed every line.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document (implies --headless).")]


def replay_command(
    files: LogFiles,
    headless: Headless = False,
    speed: Speed = 1.0,
    first: First = 1,
    last: Last = None,
    step: Keys = False,
    decide: Again = False,
    model: OtherModel = None,
    rule: OtherRule = None,
    tolerance: Tolerance = TOLERANCE,
    threads: Threads = None,
    n_ctx: OtherContext = None,
    cartridge: Specs = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Play a session log again without the model and compare every state.

    Exits with 0 when everything verifies, with 1 when a log is damaged, unfinished or differs, and with --key when it
    was not sealed with that key. With --decide also with 1 when the same model and rule choose otherwise, or with
    another margin, by more than the tolerance.
    """
    console = output.console()
    make = partial(replayed_cartridge, specs=cartridge or ())
    with failing():
        if speed <= 0:
            raise UsageError(f"replay: --speed {speed:g} is not above 0")
        if last is not None and last < first and not (headless or as_json):
            raise UsageError(f"replay: --to {last} is before --from {first}")
        if step and (len(files) > 1 or not sys.stdin.isatty() or not console.is_terminal):
            raise UsageError("replay: --step needs one file and a terminal")
        key = None if key_file is None else Key.read(key_file)
        if decide:
            if len(files) > 1 or step:
                raise UsageError("replay: --decide takes one file, without --step")
            from dispatch.cli.decide import decide_file  # the kernel, which nothing else here needs

            decide_file(
                files[0], make, model, rule, tolerance=tolerance, last=last, threads=threads,
                n_ctx=n_ctx, key=key, as_json=as_json,
            )  # fmt: skip
        if any(given is not None for given in (model, rule, threads, n_ctx)):
            raise UsageError("replay: --model, --rule, --threads and --n-ctx need --decide")
        if step:
            reports = [_step(files[0], make, console, first, key)]
        elif headless or as_json or len(files) > 1:
            reports = [replay(file, make, last=last, key=key) for file in files]
        else:
            reports = [_show(files[0], make, console, speed, first, last, key)]
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        _say(reports)
    raise typer.Exit(0 if all(report.good for report in reports) else 1)


def again(path: Path, named: Sequence[str] = (), key: Path | None = None) -> str:
    """Return the command that plays a log again, as a shell reads it.

    Args:
        path: of the log.
        named: cartridges that were named when it was played; those that are not installed are named again, but for
            servers of tools, which no replay starts.
        key: that sealed it.
    """
    installed = registry.Registry()
    command = ["python", "-m", "kernel", "replay", f".{os.sep}{path}" if str(path).startswith("-") else str(path)]
    for spec in dict.fromkeys(named):
        if not is_server(spec) and not installed.find(spec).name:
            command += ["--cartridge", spec]
    command += [] if key is None else ["--key", str(key)]
    return list2cmdline(command) if os.name == "nt" else shlex.join(command)


def _say(reports: list[ReplayReport]) -> None:
    for report in reports:
        name = f"{report.path}: " if len(reports) > 1 else ""
        say(f"{name}{report.sentence}")
        for told in report.notes:
            note(f"note: {name}{told}")


def _show(
    path: Path, make: MakeCartridge, console: Console, speed: float, first: int, last: int | None, key: Key | None
) -> ReplayReport:
    """Show the board as it goes; without a terminal, the last one only."""
    with LogReader(path, key) as reader:
        run = Replay(reader, make, last=last)
        try:
            if console.is_terminal:
                _animate(run, console, speed, first)
            else:
                for latest in deque(run, maxlen=1):
                    with writing():
                        console.print(Frame(latest))
        except KeyboardInterrupt:
            _say([run.report()])
            raise typer.Exit(130) from None
        return run.report()


def _animate(run: Replay, console: Console, speed: float, first: int) -> None:
    clock, latest = _Clock(speed), None
    with Live(console=console, auto_refresh=False) as live:
        for latest in run:
            if latest.record.n >= first and clock.wait(latest.record.at_ms):
                live.update(Frame(latest), refresh=True)
        if latest is not None:
            live.update(Frame(latest), refresh=True)


class _Clock:
    """Waits as long as the session did between decisions, and says when a new picture is worth drawing."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._at_ms: float | None = None
        self._due = time.monotonic()
        self._drawn = 0.0

    def wait(self, at_ms: float | None) -> bool:
        pause = PACE_MS
        if at_ms is not None and self._at_ms is not None:
            pause = min(max(PACE_MS, at_ms - self._at_ms), LONGEST_MS)
        self._at_ms = at_ms
        self._due += pause / 1000 / self._speed
        if (ahead := self._due - time.monotonic()) > 0:
            time.sleep(ahead)
        now = time.monotonic()
        if now - self._drawn < 1 / FRAMES:
            return False
        self._drawn = now
        return True


HELP = "right/space forward, left back, up/down ten back/on, a number and Enter jumps, home, end, q quits"
MOVES: dict[str, Callable[[int], int]] = {
    **dict.fromkeys(("right", "space", "enter", "n"), lambda n: n + 1),
    **dict.fromkeys(("left", "b", "p", "backspace"), lambda n: n - 1),
    "up": lambda n: n - 10,
    "down": lambda n: n + 10,
    "home": lambda n: 1,
    "end": lambda n: sys.maxsize,
}


def _step(path: Path, make: MakeCartridge, console: Console, first: int, secret: Key | None) -> ReplayReport:
    """Let a person go back and forth."""
    with Cursor(path, make, key=secret) as cursor, keys() as pressed:
        cursor.go(first)
        number = ""
        _draw(cursor, console, number)
        try:
            for key in pressed:
                if key in ("q", "escape"):
                    break
                if key.isdecimal():
                    number = (number + key)[:9]
                elif number and key == "enter":
                    cursor.go(int(number))
                    number = ""
                elif key in MOVES:
                    cursor.go(MOVES[key](cursor.n))
                    number = ""
                _draw(cursor, console, number)
        except KeyboardInterrupt:
            pass
        return cursor.report()


def _draw(cursor: Cursor, console: Console, number: str) -> None:
    """Draw where the cursor stands; below it the reason why it cannot go on, a half typed number, the keys."""
    report = cursor.report()
    told = [shown(report.sentence)] if report.difference or report.damage else []
    told += [f"go to {number}"] if number else []
    foot = "\n".join([*told, HELP])
    console.clear()
    if cursor.step is None:
        console.print("at the start, before any decision", foot, sep="\n")
    else:
        console.print(Frame(cursor.step, ledger=True, foot=foot))
