"""Sets up everything below this folder: .venv, pinned packages, llama.cpp, the default model. Run it by `make setup`.

Each finished step leaves a mark in .venv/setup.json. So a second run is quick, and an interrupted one goes on where it
stopped. The script needs nothing but Python's standard library.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import llama
from line import Line, SetupError
from packages import LOCK, PIP, PYTHON, ROOT, VENV, install, pip_quietly, requirements

MARKS = VENV / "setup.json"
MODEL = "smollm2"


def make_venv() -> None:
    """Make .venv, or mend one that was interrupted; one that works is kept, whoever made it."""
    if PYTHON.exists():
        found = subprocess.run([*PIP, "--version"], capture_output=True, text=True)
        if found.returncode:  # uv makes environments without pip
            subprocess.run([str(PYTHON), "-m", "ensurepip"], capture_output=True)
            found = subprocess.run([*PIP, "--version"], capture_output=True, text=True)
        if found.returncode == 0:
            version = ".".join(map(str, sys.version_info[:2]))
            if not found.stdout.rstrip().endswith(f"(python {version})"):
                print(f"setup: keeping .venv: {found.stdout.strip()}; for Python {version} run make clean first")
            return
    line = Line(f"making .venv with Python {platform.python_version()}")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        line.end("failed")
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetupError(
            f"{sys.executable} comes without ensurepip, so it can make no virtual environment.\n"
            f"On Debian and Ubuntu: sudo apt install {package}; or name another one: make PYTHON=/path/to/python3"
        ) from None
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        line.end("failed")
        raise SetupError(f"cannot make {VENV}: {error}") from error
    line.end("done")


def steps(flavour: str) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield name, mark and action of each step; the action runs when the mark is not the recorded one."""
    names = [name for name in requirements() if name not in (llama.PACKAGE, *llama.TOOLS)]
    yield "packages", _sha256(LOCK), lambda: install(names, "installing packages")
    key = llama.key_of(flavour)
    yield "runtime", key, lambda: _install_runtime(key)
    own = ("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    yield "project", _sha256(ROOT / "pyproject.toml"), lambda: pip_quietly(*own)
    yield "vocabs", requirements()[llama.PACKAGE].split()[-1], llama.extract_vocabs


def _install_runtime(key: str) -> None:
    wheel = llama.wheel(key)
    # By name out of a folder, not by path: a path is recorded, and uv would not take what came from one.
    source = ("--no-index", "--find-links", str(wheel.parent), llama.PACKAGE)
    pip_quietly("install", "--force-reinstall", "--no-deps", "--root-user-action", "ignore", *source)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def read_marks() -> dict[str, str]:
    """Return the marks of the finished steps."""
    try:
        return dict(json.loads(MARKS.read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def write_mark(name: str, mark: str) -> None:
    """Record a finished step, whole or not at all."""
    fresh = MARKS.with_suffix(".new")
    fresh.write_text(json.dumps({**read_marks(), name: mark}, indent=1) + "\n", "utf-8")
    os.replace(fresh, MARKS)


def main() -> int:
    """Do what is not done yet; return the exit code."""
    try:
        flavour = llama.flavour_wanted(read_marks().get("runtime", ""))
        if read_marks().get("runtime") != llama.key_of(flavour):
            llama.need_compiler()  # before anything is downloaded
        make_venv()
        for name, mark, act in steps(flavour):
            if read_marks().get(name) != mark or (name == "vocabs" and not llama.VOCABS.is_dir()):
                act()
                write_mark(name, mark)
        pull = (str(PYTHON), "-m", "kernel", "models", "pull", MODEL)
        if subprocess.run(pull, cwd=ROOT, stdout=subprocess.DEVNULL).returncode:
            raise SetupError(f"the model {MODEL} is not here; the rest is, and make setup goes on from there")
    except KeyboardInterrupt:
        print("\nsetup: interrupted; make setup goes on from here", file=sys.stderr)
        return 130
    except (SetupError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    print("setup: everything is in place", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
