"""README, tour and the other pages say what is so: examples run, paths exist, numbers are those that were measured."""

import doctest
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
MEASURED = re.compile(r"\d\s?(?:%|seconds|s|ms|us|MB|GB|tokens|passes|decisions|lines|times)(?!\w)")
"""A number with the unit of something that was measured."""
CONSOLE = re.compile(r"```console\n\$ python (.*)\n((?:.*\n)*?)```")
CLOSE = 3
"""Percentages in the output of an example may differ by so much, from one processor to the next."""


@pytest.fixture(scope="module")
def tables(tools: SimpleNamespace) -> ModuleType:
    """The module that writes the tables."""
    found: ModuleType = tools.program("benchmarks/tables.py")
    return found


@pytest.mark.model
@pytest.mark.parametrize(("page", "least"), [("README.md", 4), ("docs/tour.md", 51), ("docs/python.md", 51)])
def test_examples_do_what_the_page_says(smollm2_path: Path, page: str, least: int) -> None:
    """Each `>>>` line gives what stands below it; `test_package.py` checks the types of those of docs/python.md."""
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried >= least
    assert not failed


def test_the_tour_is_short() -> None:
    """docs/tour.md leads through at most 15 files and 2,500 lines."""
    page = (ROOT / "docs" / "tour.md").read_text("utf-8")
    files = re.findall(r"^\| \d+ \| `(.+?)` \|", page, re.MULTILINE)
    assert 0 < len(files) == len(set(files)) <= 15
    assert sum((ROOT / file).read_text("utf-8").count("\n") for file in files) <= 2500


@pytest.mark.model
@pytest.mark.parametrize(("command", "expected"), CONSOLE.findall(README))
def test_commands_of_readme_print_what_it_shows(smollm2_path: Path, command: str, expected: str) -> None:
    """A command gives the lines below it; `...` stands for any number of lines."""
    done = subprocess.run([sys.executable, *shlex.split(command)], capture_output=True, text=True, check=True, cwd=ROOT)
    found = iter([line.rstrip() for line in done.stdout.splitlines()])
    skip = False
    for line in expected.splitlines():
        if line == "...":
            skip = True
            continue
        rest = itertools.dropwhile(lambda said, line=line: not alike(said, line), found) if skip else found
        said = next(rest, "the end of the output")
        assert alike(said, line), f"README shows {line!r}, the command prints {said!r}"
        skip = False


def alike(said: str, shown: str) -> bool:
    """Return whether two lines are the same but for small differences of percentages."""
    pairs = zip(re.findall(r"(\d+) %", said), re.findall(r"(\d+) %", shown), strict=False)
    same = re.sub(r"\d+ %", "%", said) == re.sub(r"\d+ %", "%", shown)
    return same and all(abs(int(one) - int(other)) <= CLOSE for one, other in pairs)


def test_tables_say_what_the_results_files_say(tables: ModuleType) -> None:
    """Writing the tables anew changes nothing, and each of them stands somewhere."""
    pages = {page: page.read_text("utf-8") for page in tables.PAGES}
    for page, text in pages.items():
        assert tables.filled(text) == text, f"{page.name}: run python benchmarks/tables.py"
    written = {name for text in pages.values() for _, name, _ in tables.BLOCK.findall(text)}
    assert written == set(tables.TABLES)


def test_no_measured_number_is_typed_by_hand(tables: ModuleType) -> None:
    """Outside the tables and the examples no number of README and its pages has the unit of a measurement."""
    for page in tables.PAGES:
        assert not [line for line in prose(page, tables).splitlines() if MEASURED.search(line)], page.name


def test_every_results_file_is_named_and_every_named_one_is_there(tables: ModuleType) -> None:
    """docs/measured.md leaves no results file out; no page names one that is missing."""
    there = {path.name for path in tables.RESULTS.glob("*.json")}
    for page in tables.PAGES:
        named = set(re.findall(r"[\w-]+\.json\b", prose(page, tables)))
        assert named == there if page.name == "measured.md" else named <= there, page.name


def prose(page: Path, tables: ModuleType) -> str:
    """Return a page without its tables, examples and code, and without the words for an interval."""
    return re.sub(
        r"```.*?```|`[^`\n]+`|95 % interval", "", tables.BLOCK.sub("", page.read_text("utf-8")), flags=re.DOTALL
    )


def test_paths_of_readme_are_there() -> None:
    """Links and paths in README lead to files and folders of the repository."""
    paths = re.findall(r"\]\(([\w/.-]+)\)", README)
    paths += re.findall(r"`((?:kernel|dispatch|cartridges|benchmarks|docs|tests)/[\w/.-]*)`", README)
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]
