"""What `make setup` decides and says; the set-up itself is run by every `make test`."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules of scripts/, imported as `make setup` does, and forgotten afterwards."""
    names = ("line", "packages", "llama")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    modules = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    return modules


def pins() -> set[str]:
    """Return `name==version` of all that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"].values()
    return {pin.replace("_", "-") for pins in (project["project"]["dependencies"], *groups) for pin in pins}


def test_both_lock_files_hold_the_pins_of_pyproject(script: dict[str, ModuleType]) -> None:
    """After a change of pyproject.toml: make lock."""
    locked = {re.split(r"[ ;\\]", entry)[0] for entry in script["packages"].requirements().values()}
    assert pins() - locked == set()
    entries = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    assert pins() - {f"{entry['name']}=={entry['version']}" for entry in entries} == set()


def test_the_lock_names_the_public_index_only() -> None:
    """A lock made behind a mirror would be of no use elsewhere."""
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


@pytest.mark.parametrize(
    ("native", "built", "wanted"),
    [
        ("", "", "portable"),
        ("", "native 12ab", "native"),
        ("", "portable 12ab", "portable"),
        ("1", "portable 12ab", "native"),
        ("0", "native 12ab", "portable"),
    ],
)
def test_the_build_is_portable_unless_asked_and_a_choice_is_kept(
    script: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, native: str, built: str, wanted: str
) -> None:
    """NATIVE decides; without it, what was built last stays."""
    monkeypatch.setenv("NATIVE", native)
    llama = script["llama"]
    assert llama.flavour_wanted(built) == wanted
    assert ("cmake.define.GGML_NATIVE=OFF" in llama.settings(wanted)) == (wanted == "portable")
    assert llama.key_of(wanted).startswith(f"{wanted} ")


def test_a_native_that_is_neither_is_refused(script: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """`NATIVE=yes` builds nothing by guess."""
    monkeypatch.setenv("NATIVE", "yes")
    with pytest.raises(script["line"].SetupError, match=r"NATIVE='yes' is neither 1 \(native\) nor 0 \(portable\)"):
        script["llama"].flavour_wanted("")


def test_a_compiler_that_does_not_compile_is_no_compiler(
    script: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names it and how to get one."""
    monkeypatch.setenv("CXX", "false -O2")
    with pytest.raises(script["line"].SetupError, match=r"no working C\+\+ compiler \(CXX=false -O2\).*\n.*install g"):
        script["llama"].need_compiler()


def test_a_failed_command_shows_its_errors_and_where_the_rest_is(script: dict[str, ModuleType], tmp_path: Path) -> None:
    """The lines that speak of errors, not the last ones by place."""
    code = "print('x.cpp:1: error: what?'); print('ninja: stopped'); exit(3)"
    line, log = script["line"], tmp_path / "log"
    with pytest.raises(line.SetupError, match=r"(?s)x\.cpp:1: error: what\?\nbuilding failed \(exit 3\); .*log"):
        line.run([sys.executable, "-c", code], line.Line("building"), lambda text: None, log)


def test_no_connection_is_named_as_such(script: dict[str, ModuleType], tmp_path: Path) -> None:
    """pip's own last words would speak of a version that cannot be found."""
    code = "print('WARNING: Retrying ... [Errno 111] Connection refused'); print('ERROR: No matching'); exit(1)"
    line = script["line"]
    with pytest.raises(line.SetupError, match=r"ERROR: No matching\nThe package index cannot be reached; check"):
        line.run([sys.executable, "-c", code], line.Line("installing"), lambda text: None, tmp_path / "log")


def test_progress_is_printed_in_a_pipe(
    script: dict[str, ModuleType], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the step function makes of the output is what appears."""
    line = script["line"]
    moving = line.Line("building")
    moving.every = 0.0
    line.run([sys.executable, "-c", "print('[3/9] cc')"], moving, lambda text: text.split()[0], tmp_path / "log")
    moving.end("done")
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "setup: building ..."
    assert "setup: building [3/9]" in said
    assert said[-1] == "setup: building done"


@pytest.mark.parametrize(("version", "works"), [("3.10", False), ("3.9", False), ("3.11", True), ("3.13", True)])
def test_make_refuses_an_older_python_by_its_version(tmp_path: Path, version: str, works: bool) -> None:
    """Asked before any file of ours is parsed."""
    python = tmp_path / "python"
    minor = version.split(".")[1]
    python.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo "Python {version}" && exit\n[ {minor} -ge 11 ]\n')
    python.chmod(0o755)
    command = ["make", "--silent", ".python-is-fine", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode == 0) == works
    if not works:
        assert f"says Python {version}, and 3.11 or later is needed; name one: make PYTHON=" in done.stderr


def test_make_names_a_python_that_is_not_there() -> None:
    """And says how to name another."""
    command = ["make", "--silent", ".python-is-fine", "PYTHON=python-of-nobody"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "there is no 'python-of-nobody'; install Python 3.11 or later, or name one" in done.stderr


def test_ci_runs_what_the_readme_says() -> None:
    """No step of its own."""
    assert (ROOT / ".ci" / "run").read_text("utf-8").rstrip().endswith("exec make test")
