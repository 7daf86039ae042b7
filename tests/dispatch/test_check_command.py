"""`check` on the command line: what it prints, how it exits, which vocabularies it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dispatch.checker import CHECKS
from dispatch.cli import check as command
from dispatch.cli.check import check_command, vocabularies
from dispatch.cli.common import name_values
from kernel.errors import UsageError
from kernel.models import catalogue as models

app = typer.Typer()
app.command()(check_command)

FAULTY = """
from dataclasses import replace
from cartridges.template import make as lift
from cartridges.template.engine import Lift

class Careless(Lift):
    def copy(self):
        return self

def make():
    return replace(lift(), engine=Careless)
"""


@pytest.fixture
def vocab(vocab_ggufs: dict[str, Path]) -> str:
    """A vocabulary that is quick to read."""
    return str(vocab_ggufs["gpt-2"])


def test_a_sound_cartridge_exits_with_0_and_a_line_for_each_check(vocab: str) -> None:
    """Then the counts."""
    done = CliRunner().invoke(app, ["cartridges.template", "--model", vocab, "--steps", "100"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) == len(CHECKS) + 1
    assert [line.split()[0] for line in lines[:-1]] == ["passed"] * len(CHECKS)
    assert lines[-1] == "template@1: 19 passed, 0 failed, 0 skipped"


def test_a_faulty_one_exits_with_1_and_says_where(tmp_path: Path, vocab: str) -> None:
    """Its copies are the engine itself."""
    (tmp_path / "faulty_lift.py").write_text(FAULTY, encoding="utf-8")
    done = CliRunner().invoke(app, [str(tmp_path / "faulty_lift.py"), "--model", vocab, "--json"])
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert (document["cartridge"], document["version"], document["ok"]) == ("template", "1", False)
    assert document["vocabularies"] == ["gpt-2"]
    (detail,) = [f["detail"] for f in document["findings"] if f["check"] == "Copies are independent"]
    assert detail == "seed 0, step 0: three steps of a copy changed the engine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tetriss"], "no cartridge 'tetriss'; did you mean 'tetris'?"),
        (["home", "--option", "colour"], "--option 'colour': give name=value"),
        (["home", "--option", "colour=red"], "has no option 'colour'"),
        (["home", "--model", "no-such-model"], "no model 'no-such-model'"),
        (["home", "--model", "./none.gguf"], "there is no file './none.gguf'"),
    ],
)
def test_misuse_exits_with_2_and_one_line(words: list[str], message: str) -> None:
    """On stderr; nothing on stdout."""
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [done.stderr.splitlines()[-1]]


def test_options_are_names_and_values_each_once() -> None:
    """A value may hold an equals sign or be empty."""
    assert name_values(["a=1=2", "b="], "--option") == {"a": "1=2", "b": ""}
    for wrong in (["a"], ["=1"], ["a b=1"], ["a=1", "a=2"]):
        with pytest.raises(UsageError, match="give name=value, each name once"):
            name_values(wrong, "--option")


def test_few_vocabularies_are_noted(monkeypatch: pytest.MonkeyPatch, vocab: str) -> None:
    """Where set-up did not run, one model may be all there is."""
    only = vocabularies([vocab])
    monkeypatch.setattr(command, "vocabularies", lambda given=(): only)
    done = CliRunner().invoke(app, ["cartridges.template", "--steps", "20"])
    assert done.exit_code == 0
    assert "note: 1 of the 3 vocabularies wanted are here" in done.stderr


def test_what_is_here_is_the_default_model_and_files_of_other_kinds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocab_ggufs: dict[str, Path]
) -> None:
    """Without the model, three files that set-up has kept."""
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path))
    assert not models.catalogue()[models.DEFAULT].pulled
    monkeypatch.setattr("kernel.backends.llama_cpp.read_vocabulary", lambda path: path.name)
    assert list(vocabularies()) == ["llama-spm", "qwen2", "gpt-2"]
