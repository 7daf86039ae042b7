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

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""Files of Pyodide that a tab loads."""
WASM = ("cp314-cp314-pyemscripten_2026_0_wasm32", "pyemscripten_2026_0_wasm32")
"""Tag and platform of wheels with machine code for this Pyodide."""


def _wheel(name: str, version: str, size: int, sha256: str, tag: str = "py3-none-any", platform: str = "") -> Archive:
    """Return a wheel of PyPI, which is kept as it is; its version is the one that is pinned for every machine."""
    options = ("--python-version", "314", "--implementation", "cp", "--abi", "cp314", "--platform", platform)
    return Archive(
        registry="pypi",
        name=name,
        version=version,
        file=f"{name.replace('-', '_')}-{version}-{tag}.whl",
        size=size,
        hash=f"sha256:{sha256}",
        options=options if platform else (),
    )


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
    # Python in WebAssembly, and what the session and the log import. There is no numpy for it in a registry.
    "python": (
        Archive(
            registry="npm",
            name="pyodide",
            version="314.0.7",
            file="pyodide-314.0.7.tgz",
            size=6_488_647,
            hash=(
                "sha512:d18bd7c4485f11da4b7dbfd790cd8114078c44eab488c517d9bcf31fda4eb6dc"
                "8c716930abe1db139bb2b860fcd8b37bcb6abe48dbe2ffa579244b0e943d91d4"
            ),
            members={f"package/{name}": name for name in PYODIDE},
        ),
        _wheel("annotated-types", "0.8.0", 13_427, "f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0"),
        _wheel("pydantic", "2.14.4", 494_865, "653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc"),
        _wheel(
            "pydantic-core",
            "2.50.5",
            1_496_394,
            "b2910ec0fa5aeb9bef70156f2b79f4783978fdcfaa7b2f1b5d1814458d2e79a1",
            *WASM,
        ),
        _wheel("rich", "15.0.0", 310_654, "33bd4ef74232fb73fe9279a257718407f169c09b78a87ad3d296f548e27de0bb"),
        _wheel(
            "typing-extensions", "4.16.0", 45_571, "481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8"
        ),
        _wheel(
            "typing-inspection", "0.4.5", 14_874, "bc210535442b39e1bf2805e0c7a17dfd6a4ace760c84c7f7d16245d23a6b1c39"
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
