"""What the page needs to run a model in the visitor's tab: files out of pinned packages, in the cache folder.

Nobody needs them who does not ask for the tab, so they are fetched on request: `python -m kernel models browser`, or
`make browser`. Knows no page and no server.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from kernel.errors import PackageError, did_you_mean
from kernel.models import fetch
from kernel.models.archives import Archive, fetched, unpacked
from kernel.models.catalogue import cache_dir, locked
from kernel.models.fetch import Progress

PARTS: dict[str, tuple[Archive, ...]] = {
    # llama.cpp in WebAssembly. 2.4.0 on purpose: 3.x shows no whole row of probabilities any more.
    "wllama": (
        Archive(
            registry="npm",
            name="@wllama/wllama",
            version="2.4.0",
            file="wllama-2.4.0.tgz",
            size=3_953_638,
            hash=(
                "sha512:2ae54779351772a1c5d3577ce6ade759a45254ba6ccd42cd1a33be9f1e1cc99f"
                "2c06366f2923158963427dcb3fd70d9baa3c9e804449cd6b2b750487484a1295"
            ),
            members={
                "package/esm/index.js": "wllama.js",
                "package/esm/single-thread/wllama.wasm": "wllama.wasm",
                "package/LICENCE": "wllama-LICENCE.txt",
            },
        ),
    ),
}
"""What each part of the tab is made of."""


def folder(part: str) -> Path:
    """Return where the files of a part lie; what they are made of is in the name, so old ones pass for no new ones."""
    digest = hashlib.sha256("\n".join(map(repr, _archives(part))).encode()).hexdigest()
    return cache_dir() / "browser" / f"{part}-{digest[:8]}"


def files(part: str) -> dict[str, Path]:
    """Return the files of a part by name.

    Raises:
        PackageError: they are not here yet; the text says how to get them.
    """
    where, names = folder(part), [name for archive in _archives(part) for name in _names(archive)]
    if not all((where / name).is_file() for name in names):
        raise PackageError(
            f"the files of {part!r} for the tab are not here yet; fetch them: python -m kernel models browser"
        )
    return {name: where / name for name in names}


def pull(part: str, progress: Progress | None = None) -> Path:
    """Fetch the files of a part, unless they are here, and return their folder.

    Raises:
        PackageError: they are not to be had, or are not what was pinned; nothing is kept then.
    """
    where, report = folder(part), progress or (lambda what, done, total: None)
    with fetch.disk_errors(where):
        where.parent.mkdir(parents=True, exist_ok=True)
    with locked(where.parent, where.name, report) as staging:
        if where.is_dir():
            return where
        made = staging / where.name
        with fetch.disk_errors(where):
            made.mkdir()
            for archive in _archives(part):
                fetch.need_space(staging, 4 * archive.size)
                path = fetched(archive, staging, report)
                for name, content in unpacked(archive, path):
                    (made / name).write_bytes(content)
                shutil.rmtree(path.parent)
            os.replace(made, where)
    return where


def _archives(part: str) -> tuple[Archive, ...]:
    if part not in PARTS:
        raise PackageError(f"the tab has no part {part!r}{did_you_mean(part, PARTS)}")
    return PARTS[part]


def _names(archive: Archive) -> Iterable[str]:
    return archive.members.values() if archive.members else (archive.file,)
