"""The moving line that shows the progress of the set-up, and a function that runs a program behind it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


class SetupError(Exception):
    """What went wrong and what would do, in a sentence or two."""


class Line:
    """One line that moves: rewritten in a terminal, printed now and then in a pipe."""

    def __init__(self, label: str) -> None:
        self.label, self.start, self.shown, self.terminal = label, time.monotonic(), 0.0, sys.stderr.isatty()
        self.every = 0.2 if self.terminal else 15.0
        self.say("...", force=True)

    def say(self, what: str, force: bool = False) -> None:
        """Show `what` after the label, with the time since the start, unless it is too soon."""
        now = time.monotonic()
        if not force and now - self.shown < self.every:
            return
        self.shown = now
        text = f"setup: {self.label} {what}"
        if now - self.start >= 1:
            text += f" ({now - self.start:.0f} s)"
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self, what: str) -> None:
        """Show the last word and leave the line."""
        self.say(what, force=True)
        if self.terminal:
            print(file=sys.stderr, flush=True)


def run(command: list[str], line: Line, step: Callable[[str], str | None], log: Path) -> None:
    """Run a command with its output in `log`; `step` turns a line of it into what the moving line shows."""
    shown = "..."
    # A file for the output and a second reader, not a pipe: the moving line must tick while the command says nothing.
    with (
        log.open("w+", encoding="utf-8", errors="replace") as said,
        log.open(encoding="utf-8", errors="replace") as new,
    ):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        try:
            while True:
                ended = process.poll() is not None
                for text in new:
                    shown = step(text) or shown
                line.say(shown)
                if ended:
                    break
                time.sleep(0.1)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        line.end("failed")
        raise SetupError(f"{_tail(log)}\n{line.label} failed (exit {process.returncode}); the whole output is in {log}")


def _tail(log: Path) -> str:
    lines = [text.rstrip()[:300] for text in log.read_text("utf-8", "replace").splitlines() if text.strip()]
    wrong = [text for text in lines if re.search(r"(?i)\berror\b|killed|no space left|cannot", text)]
    hint = ""
    if any(re.search(r"Killed|signal terminated", text) for text in wrong):
        hint = "\nThe compiler was killed, most likely for want of memory: CMAKE_BUILD_PARALLEL_LEVEL=1 make setup"
    if any(re.search(r"NewConnectionError|Connection refused|name resolution|Name or service", text) for text in lines):
        hint = "\nThe package index cannot be reached; check connection and proxy (the settings of pip hold here)"
    return "\n".join((wrong or lines)[-12:]) + hint
