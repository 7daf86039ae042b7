"""`new` writes a cartridge that works at once, and docs/cartridges.md makes another one out of it."""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from dispatch.checker import CHECKS
from dispatch.checker.run import name_of
from dispatch.cli import app, check
from dispatch.loading.scaffold import write
from kernel.errors import CartridgeError, UsageError
from kernel.text.vocabulary import Vocabulary

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cartridges.md"

FILES = [
    "README.md",
    "__init__.py",
    "cases.jsonl",
    "engine.py",
    "guide.py",
    "opcodes.py",
    "planner.py",
    "pyproject.toml",
    "test_robot2.py",
    "view.py",
]


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in a folder: this Python for `python`, a folder beside for `pip install`."""
    site = folder / ".site"
    words = shlex.split(command)
    if words[:2] == ["pip", "install"]:
        offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site))
        words = ["python", "-m", "pip", "install", *offline, *words[2:]]
    assert words[:2] == ["python", "-m"], command
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


# -- new -----------------------------------------------------------------------------------------------------------


def test_a_new_cartridge_is_complete_and_says_its_name_everywhere(tmp_path: Path) -> None:
    """Ten files; the name of the template is in none of them, in no file name either."""
    files = write("robot2", tmp_path)
    assert [str(path.relative_to(tmp_path / "robot2")) for path in files] == FILES
    assert [path for path in files if "template" in path.name or "template" in path.read_text("utf-8").lower()] == []
    assert 'NAME = "robot2"' in (tmp_path / "robot2" / "opcodes.py").read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["robot2"]


@pytest.mark.slow
def test_it_runs_and_passes_at_once(tmp_path: Path) -> None:
    """Written, checked, tested and played, each by the command that a person types."""
    made = run(tmp_path, "python -m kernel new robot2 --into mine")
    assert made.returncode == 0, made.stderr
    assert made.stdout.split() == [str(Path("mine", "robot2", name)) for name in FILES]
    assert "python -m kernel check ./mine/robot2" in made.stderr
    for command in ("python -m kernel check ./mine/robot2", "python -m pytest -q mine/robot2"):
        done = run(tmp_path, command)
        assert done.returncode == 0, done.stdout + done.stderr
    played = run(tmp_path, "python -m kernel run ./mine/robot2 --player planner --headless --json")
    assert '"detail": "everyone has arrived"' in played.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-robot", r"'my-robot' cannot name a cartridge: .*; 'my_robot' would do"),
        ("Robot", r"'Robot' cannot name a cartridge: .*; 'robot' would do"),
        ("2nd", r"'2nd' cannot name a cartridge"),
        ("class", r"'class' cannot name a cartridge"),
        ("../up", r"'\.\./up' cannot name a cartridge: .*; 'up' would do"),
        ("", r"'' cannot name a cartridge"),
        ("json", r"Python has a module 'json' already.*'json2' would do"),
        ("numpy", r"Python has a module 'numpy' already"),
        ("cartridges", r"Python has a module 'cartridges' already"),
    ],
)
def test_a_bad_name_is_misuse_and_writes_nothing(name: str, message: str, tmp_path: Path) -> None:
    """No package could be called that, or one is."""
    with pytest.raises(UsageError, match=message):
        write(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    """A folder, a file, a link to nowhere."""
    (tmp_path / "robot2").mkdir()
    (tmp_path / "robot3").write_text("mine", encoding="utf-8")
    (tmp_path / "robot4").symlink_to(tmp_path / "nowhere")
    for name in ("robot2", "robot3", "robot4"):
        with pytest.raises(UsageError, match=f"{name}' is there already; nothing was changed"):
            write(name, tmp_path)
    assert list((tmp_path / "robot2").iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    """Where a folder should be, there is a file."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CartridgeError, match=r"'.*file/robot2' cannot be written: "):
        write("robot2", tmp_path / "file")
    done = run(tmp_path, "python -m kernel new my-robot")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_the_name_of_an_installed_cartridge_can_be_taken_with_a_note(tmp_path: Path) -> None:
    """By folder the two are told apart; as installed packages they would clash."""
    done = run(tmp_path, "python -m kernel new robot")
    assert done.returncode == 0
    assert "note: robot of cartridge-kernel" in done.stderr
    assert "rename yours before you install it" in done.stderr


# -- the page ------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A fenced block: its language, the word behind it, its text, its line on the page."""

    language: str
    word: str
    text: str
    line: int


def blocks() -> Iterator[Block]:
    """Yield the fenced blocks of the page in order."""
    page = PAGE.read_text("utf-8")
    for found in re.finditer(r"^```(\w+) ?(\S*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        yield Block(found[1], found[2], found[3], page.count("\n", 0, found.start()) + 1)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that the page shows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def as_shown(shown: str, output: str) -> bool:
    """Return whether an output is the one on the page: `...` stands for anything, and so does no output."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return not shown or doctest.OutputChecker().check_output(shown, output, flags)


def in_process(folder: Path, command: str) -> SimpleNamespace | None:
    """Run a command of ours in this process; of others, which take a process of their own, none."""
    words = shlex.split(command)
    if words[:3] != ["python", "-m", "kernel"] or words[3] == "list":  # which shows what pip has installed
        return None
    before = set(sys.modules)
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, words[3:])
    for name in set(sys.modules) - before:  # what stands in the folder is written anew before the next command
        if str(folder) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def follow(folder: Path, *, model: bool, run: Callable[[Path, str], Any] = run) -> int:
    """Do what the page says, from its first line on; return how many commands ran."""
    ran = 0
    for block in blocks():
        if block.word and block.language != "console":
            target = folder / block.word
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "console" and (model or block.word != "model"):
            for command, shown in commands(block.text):
                if (done := run(folder, command)) is None:
                    continue
                where = f"{PAGE.name}:{block.line}: {command}"
                assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"
                assert as_shown(shown, done.stdout), f"{where}\nshown:\n{shown}\ngot:\n{done.stdout}"
                ran += 1
    return ran


def test_the_page_makes_a_working_cartridge_exactly_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[[str], Vocabulary]
) -> None:
    """Every file is written, and made, checked and played by our commands; outputs are those on the page."""
    monkeypatch.setattr(check, "vocabularies", lambda _: {"gpt-2": load("gpt-2")})
    assert follow(tmp_path, model=False, run=in_process) == 5


@pytest.mark.slow
def test_every_command_of_the_page_does_what_it_shows(tmp_path: Path) -> None:
    """Each in a process of its own, pytest and pip too, but for the one that needs a model."""
    assert follow(tmp_path, model=False) == 8
    assert "template" not in (tmp_path / "garden" / "engine.py").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.model
def test_the_page_ends_in_a_ratified_decision(tmp_path: Path, smollm2_path: Path) -> None:
    """The same with the default model; it waters the garden until the rules end it."""
    assert follow(tmp_path, model=True) == 9


def test_the_page_names_every_check_in_its_order() -> None:
    """So that nobody has to read the code to know what is looked at."""
    section = PAGE.read_text("utf-8").partition("## What the checker looks at")[2].partition("\n## ")[0]
    assert re.findall(r"^- (.*)$", section, re.MULTILINE) == [name_of(check) for check in CHECKS]
