"""Signals and streams of real processes: the exit code that a shell expects, no traceback, a log with its outcome."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

KERNEL = [sys.executable, "-m", "kernel"]

WAITING = """
import sys, time
import kernel.__main__
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "dispatch.cli":
            print("loading", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
kernel.__main__.main()
"""
"""The command line, whose modules take for ever to load."""


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_while_modules_load_says_nothing(number: str, code: int) -> None:
    """Kind: Ctrl-C at a time that the author did not think of."""
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"loading\n"
    process.send_signal(getattr(signal, number))
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, b"", b"")


@pytest.mark.parametrize(
    ("numbers", "code"),
    [("SIGHUP SIGHUP", 129), ("SIGTERM SIGTERM", 143), ("SIGINT SIGINT SIGINT SIGINT", 130)],
)
def test_a_second_signal_ends_at_once_with_its_own_code(tmp_path: Path, numbers: str, code: int) -> None:
    """Kind: a signal while the first one is being handled. The log still gets its outcome, or can be gone on with."""
    log = tmp_path / "log"
    command = [*KERNEL, "run", "tetris", "--player", "planner", "--headless", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_bytes().count(b"\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    for number in numbers.split():
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(getattr(signal, number))
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert b"Traceback" not in err
    last = json.loads(log.read_bytes().splitlines()[-1])
    assert last.get("ending") == "interrupted" or last["event"] == "decision", last


def test_a_signal_that_the_parent_ignores_is_ignored(tmp_path: Path) -> None:
    """Kind: nohup. SIGHUP does nothing, and SIGTERM ends it."""
    log = tmp_path / "log"
    command = [*KERNEL, "run", "tetris", "--player", "planner", "--headless", "--log", str(log)]
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, old)
    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_bytes().count(b"\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("list >&-", 1, "error: stdout cannot be written: Bad file descriptor\n"),
        ("list >/dev/full", 1, "error: stdout cannot be written: No space left on device\n"),
        ("log schema | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("run tetris --player planner --pieces 2 --headless --json --log log <&- 2>&-", 0, ""),
        ("nothing 2>/dev/full", 2, ""),
    ],
)
def test_streams_of_a_real_process(tmp_path: Path, command: str, code: int, said: str) -> None:
    """The forks of the other tests, held against Python's own start and end."""
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    python = " ".join(KERNEL)
    done = subprocess.run(["bash", "-c", f"{python} {command}"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, said), done
    if (tmp_path / "log").exists():
        for line in (tmp_path / "log").read_text().splitlines():
            json.loads(line)  # nothing else was written into the file that could have had the place of stderr


def test_hostile_lines_that_are_typed_are_told_and_the_session_goes_on(tmp_path: Path) -> None:
    """Kind: what comes from a keyboard. Bytes that are no text and names that are none cost one line each."""
    pty = pytest.importorskip("pty")
    log = tmp_path / "log"
    ours, theirs = pty.openpty()
    command = [*KERNEL, "run", "home", "--player", "random", "--requests", "-", "--log", str(log)]
    variables = {**os.environ, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=variables)
    os.close(theirs)
    watch = threading.Timer(60, process.kill)
    watch.start()
    typed = [b"I am \xff cold\n", b"/join [/b]\n", b"/leave \xe2\x80\xae\n", b"/nothing\n", b"I am cold\n", b"\x04"]
    said = b""
    with contextlib.suppress(OSError):  # the terminal ends with the process
        while data := os.read(ours, 4096):
            said += data
            if typed and said.endswith(b"> "):
                os.write(ours, typed.pop(0))
                said = b""
    assert process.stderr is not None
    err = process.stderr.read().decode()
    assert process.wait(timeout=30) == 0, err
    watch.cancel()
    os.close(ours)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 4, err
    assert "Traceback" not in err
    assert "\u202e" not in err
    assert "[/b]" in errors[1]
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["header", "decision", "outcome"]
