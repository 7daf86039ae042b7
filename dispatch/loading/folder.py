"""Writes the folder of a new cartridge: all of it or nothing."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel.errors import CartridgeError, UsageError
from kernel.opcode import NAME


def check_new(name: str, target: Path) -> None:
    """Raise UsageError for a name that no cartridge can have, and for a folder that is there already."""
    if not _usable(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        hint = f"{better!r} would do" if _usable(better) else "a name such as 'robot2' would do"
        raise UsageError(f"{name!r} cannot name a cartridge: lower case letters, digits and _, a letter first; {hint}")
    if target.exists() or target.is_symlink():
        raise UsageError(f"{str(target)!r} is there already; nothing was changed")


@contextmanager
def filled(target: Path) -> Iterator[Path]:
    """Give an empty folder to write into, which becomes `target` at the end.

    Raises CartridgeError when it cannot be written; whatever is raised, nothing is left then.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as staging:
            fresh = Path(staging) / target.name
            fresh.mkdir()
            yield fresh
            os.rename(fresh, target)
    except OSError as error:
        raise CartridgeError(f"{str(target)!r} cannot be written: {error.strerror or error}") from error


def _usable(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and name.isidentifier() and not keyword.iskeyword(name)
