"""Writes a new cartridge: a copy of `cartridges/template` under another name. Knows nothing of what it copies."""

from __future__ import annotations

import importlib.resources
import importlib.util
import keyword
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from kernel.errors import CartridgeError, UsageError
from kernel.opcode import NAME

TEMPLATE = Path(str(importlib.resources.files("cartridges"))) / "template"
WORD = "template"
"""The name of the template; wherever it stands in its files and file names, the new name comes in its place."""

SKIPPED = shutil.ignore_patterns("__pycache__", ".*", "build", "*.egg-info")


def write(name: str, into: Path) -> list[Path]:
    """Write the cartridge `name` as a folder of that name; return its files.

    Raises:
        UsageError: a name that a package or a cartridge cannot have, or there is such a folder or module already.
        CartridgeError: it cannot be written; nothing is left then.
    """
    if not NAME.fullmatch(name) or not name.isidentifier() or keyword.iskeyword(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        usable = NAME.fullmatch(better) and not keyword.iskeyword(better)
        hint = f"{better!r} would do" if usable else "a name such as 'robot2' would do"
        raise UsageError(f"{name!r} cannot name a cartridge: lower case letters, digits and _, a letter first; {hint}")
    target = into / name
    if target.exists() or target.is_symlink():
        raise UsageError(f"{str(target)!r} is there already; nothing was changed")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise UsageError(
            f"Python has a module {name!r} already, which could not be told apart; a name such as '{name}2' would do"
        )
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into, prefix=f".{name}-") as staging:
            fresh = Path(staging) / name
            shutil.copytree(TEMPLATE, fresh, ignore=SKIPPED)
            for path in list(fresh.rglob("*")):
                if path.is_file():
                    path.write_text(_renamed(path.read_text("utf-8"), name), "utf-8")
                    path.rename(path.with_name(path.name.replace(WORD, name)))
            os.rename(fresh, target)
    except OSError as error:
        raise CartridgeError(f"{str(target)!r} cannot be written: {error.strerror or error}") from error
    return sorted(path for path in target.rglob("*") if path.is_file())


def _renamed(text: str, name: str) -> str:
    return re.sub(rf"\b{WORD}\b|(?<=test_){WORD}\b", name, text)
