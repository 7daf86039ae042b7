"""How often each command calls a handler that answers otherwise every time: `run` once a decision, the others never."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dispatch.cli.check import check_command
from dispatch.cli.import_ import import_command
from dispatch.cli.replay import replay_command
from dispatch.cli.run import run_command
from dispatch.log.reader import LogReader

app = typer.Typer()
for name, command in (
    ("check", check_command),
    ("import", import_command),
    ("replay", replay_command),
    ("run", run_command),
):
    app.command(name)(command)

SEED = "0"  # with it, chance does not halt in three decisions
TOOLS = [{"name": f"ping{n}"} for n in range(3)]


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a toolbox whose functions add a line to `calls` and answer with the time; as its log, two calls."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    run("import", "-", "-o", "counted", text=json.dumps(TOOLS))
    file = tmp_path / "counted" / "handlers.py"
    lines = file.read_text().splitlines()
    act = "    print('x', file=open('calls', 'a')); import time; return str(time.perf_counter_ns())"
    file.write_text("\n".join(act if line.startswith("    return") else line for line in lines) + "\n")
    done = run(
        "run", "./counted", "--player", "random", "--decisions", "2", "--log", "log", "--headless", "--seed", SEED
    )
    assert done.exit_code == 0, done.output
    assert calls(tmp_path) == 2
    yield tmp_path
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "counted"]:
        del sys.modules[loaded]


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=text)


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def test_a_replay_takes_the_answers_of_the_log(counted: Path) -> None:
    """Nothing is called, and a function that would answer otherwise makes no valid log different."""
    done = run("replay", "log", "--cartridge", "./counted", "--headless")
    assert (done.exit_code, "verified" in done.stdout) == (0, True), done.output
    assert calls(counted) == 2


def test_a_session_that_goes_on_calls_for_its_new_decisions_only(counted: Path) -> None:
    """One more decision, one more call; the whole log verifies."""
    done = run("run", "./counted", "--resume", "log", "--decisions", "3", "--headless")
    assert (done.exit_code, calls(counted)) == (0, 3), done.output
    done = run("replay", "log", "--cartridge", "./counted", "--headless")
    assert (done.exit_code, calls(counted)) == (0, 3), done.output
    with LogReader(counted / "log") as reader:
        answers = [record.result for record in reader]
    assert len(set(answers)) == 3


def test_a_check_calls_nothing_in_either_process(counted: Path, vocab_ggufs: dict[str, Path]) -> None:
    """Nor when the seeds are played again elsewhere."""
    done = run("check", "./counted", "--model", str(vocab_ggufs["gpt-2"]), "--steps", "30")
    assert done.exit_code == 0, done.output
    assert "passed   Same seed, same states in another process" in done.stdout
    assert calls(counted) == 2


def test_an_edited_answer_is_found(counted: Path, counter: SimpleNamespace) -> None:
    """Answers are part of the state, so another one leads to another, also where all checksums are made anew."""
    counter.forge(counted / "log", 3, result="5")
    done = run("replay", "log", "--cartridge", "./counted", "--headless")
    assert (done.exit_code, calls(counted)) == (1, 2)
    assert "decision 2" in done.output
    assert "state" in done.output
