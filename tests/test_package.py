"""What a user installs: a wheel built from this tree, whole and typed."""

from __future__ import annotations

import doctest
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kernel", "dispatch", "cartridges")

OPENED = {
    "cartridges/home/cases.jsonl",
    "cartridges/home/hints.jsonl",
    "cartridges/robot/cases.jsonl",
    "cartridges/scavenger/cases.jsonl",
    "cartridges/template/README.md",
    "cartridges/template/cases.jsonl",
    "cartridges/template/pyproject.toml",
    "cartridges/template/test_template.py",
    "dispatch/session/completions.jsonl",
    "dispatch/wire/character.schema.json",
    *(f"{package}/py.typed" for package in PACKAGES),
}
"""Files beside the modules that the code opens, or that `new` copies, and the marks of typed packages."""

PROGRAM = '''
from collections.abc import Sequence
from typing import Literal

from kernel import Decision, Kernel
from kernel.contract import Cartridge, Engine, Option, Planner, View
from kernel.errors import IllegalInstructionError, KernelError
from kernel.opcode import Instruction, Opcode


class Light(Opcode):
    """Switch a light."""

    room: Literal["kitchen", "hall"]
    on: bool


class First:
    def rank(self, engine: Engine) -> Sequence[Option]:
        return [Option(instruction, score=1.0) for instruction in engine.legal()]


def play(cartridge: Cartridge) -> str | None:
    engine = cartridge.engine()
    engine.reset(7)
    planner: Planner = cartridge.planner or First()
    instruction: Instruction = planner.rank(engine)[0].instruction
    try:
        engine.apply(instruction)
    except IllegalInstructionError as error:
        return str(error)
    return engine.ended()


def said(model: str) -> tuple[str, float]:
    with Kernel.load(model) as kernel:
        decision: Decision = kernel.choose("The opposite of open is", [" shut", " opener"], rule="exact")
    return decision.text, decision.probability


light = Light(room="kitchen", on=True).instruction("home")
'''

MISTAKEN = '''
from kernel.contract import Option
from kernel.opcode import Opcode


class Light(Opcode):
    """Switch a light."""

    on: bool

Light(on=None)
Option(Light)
'''


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from a copy of the tree, so that nothing is left in it."""
    folder = tmp_path_factory.mktemp("package")
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    done = subprocess.run([*command, str(tree)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_a_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """All modules and all data, nothing else; the files that the code opens are among them."""
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == there
    assert OPENED - held == set()


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and beside it what this environment has but not this tree."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home / "env", with_pip=False, symlinks=True)
    (site,) = (home / "env").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    # The packages of a folder that a .pth file names are found; the .pth files in that folder are not read again, so
    # an editable installation of this tree stays out.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the layout of an environment is another one")
def test_the_installed_packages_are_typed_for_a_users_program(environment: Path) -> None:
    """mypy --strict accepts a program and the examples of docs/python.md, and finds both mistakes of another."""
    page = doctest.DocTestParser().get_examples((ROOT / "docs" / "python.md").read_text("utf-8"))
    programs = {"program.py": PROGRAM, "page.py": "".join(each.source for each in page), "mistaken.py": MISTAKEN}
    for name, text in programs.items():
        (environment / name).write_text(text, encoding="utf-8")
    if (known := ROOT / ".mypy_cache").is_dir():  # what `make check` knows of other packages; ours are held by content
        shutil.copytree(known, environment / ".mypy_cache")
    python = environment / "env" / "bin" / "python"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--python-executable", str(python)]
    done = subprocess.run([*command, *programs], cwd=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == [
        'mistaken.py:11: error: Argument "on" to "Light" has incompatible type "None"; expected "bool"  [arg-type]',
        'mistaken.py:12: error: Argument 1 to "Option" has incompatible type "type[Light]"; expected "Instruction"'
        "  [arg-type]",
        "Found 2 errors in 1 file (checked 3 source files)",
    ]
