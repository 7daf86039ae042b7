"""The examples of README run as they stand there."""

import doctest
from pathlib import Path

import pytest


@pytest.mark.model
def test_examples_of_readme_do_what_it_says(smollm2_path: Path) -> None:
    """Each `>>>` line of README gives what stands below it."""
    failed, tried = doctest.testfile(str(Path(__file__).parent.parent / "README.md"), module_relative=False)
    assert tried > 3
    assert not failed
