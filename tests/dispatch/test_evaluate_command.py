"""`eval`: rules over labelled sets, one JSON line at the end; sets that are not there are misuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import cartridges.tetris
from dispatch.cli import app, evaluate
from dispatch.loading.registry import load
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.text.vocabulary import NORMAL, Vocabulary


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a scripted model over bytes know the answer to every labelled request but those that speak of a key."""
    answers = {case.request: case.answer for name in ("robot", "scavenger") for case in load(name).cases()}  # type: ignore[misc]
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.linspace(0, 1, 256, dtype=np.float32)
        asked, _, said = bytes(ids).decode().rpartition("\nCommand:")
        request = asked.rpartition("Request: ")[2]
        wanted = answers.get(request, "")
        if "key" not in request and wanted.startswith(said) and len(said) < len(wanted):
            out[ord(wanted[len(said)])] = 20
        return out

    monkeypatch.setattr(
        evaluate, "load_kernel", lambda *_, **__: Kernel(ScriptedBackend(vocabulary, row, n_ctx=1 << 15))
    )


def test_requests_to_several_cartridges_are_one_set(knowing: None, tmp_path: Path) -> None:
    """18 held-out requests to the robot and 14 to the scavenger, 28 commands: right is all that the model knows."""
    file = tmp_path / "out.json"
    told = CliRunner().invoke(app, ["eval", "robot+scavenger", "--rule", "exact", "-o", str(file)])
    assert told.exit_code == 0, told.stderr
    *table, line = told.stdout.splitlines()
    assert any("robot+scavenger" in row for row in table)
    assert file.read_text() == line + "\n"
    (result,) = json.loads(line)
    held_out = [c for name in ("robot", "scavenger") for c in load(name).cases() if c.split == "test"]  # type: ignore[misc]
    unknown = sum("key" in case.request for case in held_out)
    assert unknown > 0
    assert (result["set"], result["cases"], len(held_out)) == ("robot+scavenger", 32, 32)
    assert 32 - unknown <= result["correct"] < 32
    assert len(result["failed"]) == 32 - result["correct"]
    for case in result["failed"]:
        assert "key" in case["request"]
        assert any(case["request"] in row and case["answer"].strip() in row for row in table)
    assert result["chance"] == pytest.approx(1 / 28)
    assert result["passes"] == 33 / 32  # the first prompt is longer than a batch; later ones share its head


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tetriss"], "no set 'tetriss'; did you mean 'tetris'?"),
        (["home+scavengr"], "no set 'scavengr'"),
        (["home+tetris"], "'tetris' has no labelled requests"),
        (["home", "--split", "train"], "no split 'train'; there is: test, dev, all"),
        (["home", "--rule", "best"], "no rule 'best'"),
    ],
)
def test_what_is_not_there_is_misuse(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any model is loaded."""
    monkeypatch.setattr(cartridges.tetris, "cases", lambda *_: [])  # states, no requests: they take seconds
    told = CliRunner().invoke(app, ["eval", *arguments])
    assert told.exit_code == 2
    assert said in told.stderr
