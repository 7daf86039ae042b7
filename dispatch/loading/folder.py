"""Writes the folder of a new cartridge: all of it or nothing."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel.errors import CartridgeError, UsageError
from kernel.opcode import NAME

LONGEST = 100
"""Letters of a name: file systems take 255 bytes, and the folder has a longer name while it is filled."""


def check_new(name: str, target: Path) -> None:
    """Raise UsageError for a name that no cartridge can have or that Python knows, and for what is there already."""
    if not _usable(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        hint = f"{better!r} would do" if _usable(better) else "a name such as 'robot2' would do"
        said = f"{name[:LONGEST]!r}..." if len(name) > LONGEST else repr(name)
        raise UsageError(
            f"{said} cannot name a cartridge: up to {LONGEST} lower case letters, digits and _, a letter first; {hint}"
        )
    try:
        there = os.path.lexists(target)
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(target)!r} is no path: {error}") from error
    if there:
        raise UsageError(f"{str(target)!r} is there already; nothing was changed")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise UsageError(
            f"Python has a module {name!r} already, which could not be told apart; a name such as '{name}2' would do"
        )


@contextmanager
def filled(target: Path) -> Iterator[Path]:
    """Give an empty folder to write into, which becomes `target` at the end.

    Raises CartridgeError when it cannot be written; whatever is raised, nothing is left then, not even folders around
    it that were made for it.
    """
    made: list[Path] = []
    try:
        try:
            for parent in reversed(target.absolute().parents):
                with suppress(FileExistsError):
                    parent.mkdir()
                    made.append(parent)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as staging:
                fresh = Path(staging) / target.name
                fresh.mkdir()
                yield fresh
                if os.path.lexists(target):
                    raise FileExistsError(17, "it is there by now")
                os.rename(fresh, target)
        except BaseException:
            for parent in reversed(made):
                with suppress(OSError):
                    parent.rmdir()
            raise
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise CartridgeError(f"{str(target)!r} cannot be written: {said}") from error


def _usable(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and name.isidentifier() and not keyword.iskeyword(name) and len(name) <= LONGEST
