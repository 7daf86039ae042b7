"""Writes the files of a tab into a folder that any static server can serve, without headers of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from dispatch.tab.packing import Packed, with_policy
from kernel.errors import UsageError


def place_for(target: Path) -> None:
    """Make room for a new folder; raises UsageError where something stands there already, OSError where none can be."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"bundle: {str(target)!r} is there already and holds something; name a new folder")
    target.parent.mkdir(parents=True, exist_ok=True)


def write(packed: Packed, target: Path) -> int:
    """Write the folder, whole or not at all; return its bytes."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as staging:
        made = Path(staging) / "bundle"
        made.mkdir()
        (made / "index.html").write_text(with_policy(packed.index), "utf-8")
        for place, file in packed.files.items():
            path = made / place
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(file, bytes):
                path.write_bytes(file)
            else:
                shutil.copyfile(file, path)
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        if target.is_dir():
            target.rmdir()
        os.replace(made, target)
    return size
