"""A handler that raises, on the command line: the exit code, the JSON document, the log, the counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dispatch.cli import call
from dispatch.cli.call import call_command
from dispatch.cli.import_ import import_command
from dispatch.cli.logs import stats_command
from dispatch.cli.run import run_command
from dispatch.log.reader import LogReader
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from tests.conftest import toy_vocabulary

app = typer.Typer()
app.command("import")(import_command)
app.command("call")(call_command)
app.command("run")(run_command)
app.command("stats")(stats_command)

TOLD = "bridge.ping: ConnectionError: bridge is off"


def run(*arguments: object, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), input=text)


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a toolbox whose `ping` counts in a file and then fails; `call` has a model that knows no better."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    run("import", "-", "-o", "bridge", text=json.dumps([{"name": "ping"}]))
    file = tmp_path / "bridge" / "handlers.py"
    fails = "open('calls', 'a').write('x'); raise ConnectionError('bridge is off')"
    file.write_text(file.read_text().replace("return 'ping is not filled in yet'", fails))
    vocabulary = toy_vocabulary()
    kernel = Kernel(ScriptedBackend(vocabulary, lambda before: np.arange(len(vocabulary), dtype=np.float32)))
    monkeypatch.setattr(call, "load_kernel", lambda *_, **__: kernel)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "bridge"]:
        del sys.modules[name]


def test_call_exits_with_1_and_shows_no_result(bridge: Path) -> None:
    """The instruction on stdout, the failure on stderr; it was tried once."""
    done = run("call", "./bridge", "ping it")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "bridge.ping()\n", f"error: {TOLD}\n")
    assert (bridge / "calls").read_text() == "x"


def test_call_prints_the_failure_in_its_document(bridge: Path) -> None:
    """`error` stands where `result` would."""
    done = run("call", "./bridge", "ping it", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["error"], "result" in found, found["method"]) == (1, TOLD, False, "ping")
    dry = run("call", "./bridge", "ping it", "--json", "--dry")
    assert (dry.exit_code, json.loads(dry.stdout)["result"]) == (0, None)
    assert (bridge / "calls").read_text() == "x"


def test_run_goes_on_logs_it_counts_it_and_exits_with_1(bridge: Path) -> None:
    """Each failed decision is one line on stderr, one record with `failed`, one in summary and stats."""
    done = run("run", "./bridge", "--player", "random", "--seed", "5", "--decisions", "3", "--log", "log", "--json")
    found = json.loads(done.stdout)
    failed = len((bridge / "calls").read_text())
    assert failed
    assert (done.exit_code, found["failed"], found["refused"], found["calls"]) == (1, failed, failed, 0)
    assert done.stderr.splitlines()[0] == f"error: decision 1: {TOLD}"
    with LogReader(bridge / "log") as reader:
        records = [record for record in reader if record.failed is not None]
    assert [(r.failed, r.refused, r.result) for r in records] == [(TOLD, True, "")] * failed
    (group,) = json.loads(run("stats", "log", "--json").stdout)["groups"]
    assert (group["failed"], group["refused"]) == (failed, failed)


def test_a_goal_ends_when_its_action_fails(bridge: Path) -> None:
    """Nobody is there to say what now: one call, an ending of its own, exit 1."""
    done = run("run", "./bridge", "--player", "random", "--seed", "5", "--goal", "ping it", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["ending"], found["detail"], found["decisions"]) == (1, "failed", TOLD, 1)
    assert (bridge / "calls").read_text() == "x"
