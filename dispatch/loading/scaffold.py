"""Writes a new cartridge: a copy of `cartridges/template` under another name."""

from __future__ import annotations

import importlib.resources
import re
import shutil
from pathlib import Path

from dispatch.loading.folder import check_new, filled

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
    target = into / name
    check_new(name, target)
    named = re.compile(rf"\b{WORD}\b|(?<=test_){WORD}\b")
    with filled(target) as fresh:
        shutil.copytree(TEMPLATE, fresh, ignore=SKIPPED, dirs_exist_ok=True)
        for path in list(fresh.rglob("*")):
            if path.is_file():
                path.write_text(named.sub(name, path.read_text("utf-8")), "utf-8")
                path.rename(path.with_name(path.name.replace(WORD, name)))
    return sorted(path for path in target.rglob("*") if path.is_file())
