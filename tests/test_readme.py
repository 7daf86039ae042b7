"""The examples of README run as they stand there."""

import doctest
import re
from pathlib import Path

import pytest


@pytest.mark.model
def test_examples_of_readme_do_what_it_says(smollm2_path: Path) -> None:
    """Each `>>>` line of README gives what stands below it."""
    failed, tried = doctest.testfile(str(Path(__file__).parent.parent / "README.md"), module_relative=False)
    assert tried > 3
    assert not failed


@pytest.mark.model
def test_the_tour_is_true(smollm2_path: Path) -> None:
    """docs/tour.md: every id, batch and score of one decision, in at most 15 files and 2,500 lines."""
    page = Path(__file__).parent.parent / "docs" / "tour.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 50
    assert not failed
    files = re.findall(r"^\| \d+ \| `(.+?)` \|", page.read_text(), re.MULTILINE)
    assert len(files) == len(set(files)) <= 15
    assert sum((page.parents[1] / file).read_text().count("\n") for file in files) <= 2500


@pytest.mark.model
def test_the_examples_of_the_python_page_do_what_it_says(smollm2_path: Path) -> None:
    """docs/python.md; `test_package.py` checks their types."""
    page = Path(__file__).parent.parent / "docs" / "python.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 50
    assert not failed
