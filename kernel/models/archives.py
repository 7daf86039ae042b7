"""Archives of packages, as npm and PyPI give them: fetched by the user's own client, checked against a pinned hash.

Nothing of a package is installed or run. Knows no cache and no page.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernel.errors import PackageError
from kernel.models.fetch import CHUNK, Progress

REGISTRY = "https://registry.npmjs.org"
"""Where npm's packages are asked for where no npm is here and NPM_CONFIG_REGISTRY names no other place."""

PATIENCE = 60
"""Seconds without a byte after which a download has broken off."""


@dataclass(frozen=True, slots=True)
class Archive:
    """One version of a package, and what is wanted of it.

    Attributes:
        registry: `npm` or `pypi`.
        file: name of the archive, as the registry gives it.
        size: bytes of the archive.
        hash: of the archive, `sha512:` or `sha256:` and hexadecimal digits.
        members: names of files in the archive, and the names that they get; empty keeps the archive as it is.
        options: of `pip download`, such as the platform that a wheel is for.
    """

    registry: str
    name: str
    version: str
    file: str
    size: int
    hash: str
    members: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def fetched(archive: Archive, staging: Path, progress: Progress) -> Path:
    """Fetch an archive into a folder and return its file.

    Raises:
        PackageError: no client, a registry out of reach, a broken download, another file than was pinned.
    """
    folder = staging / "archive"
    folder.mkdir()
    progress(f"downloading {archive}", 0, archive.size)
    if archive.registry == "pypi":
        _run(archive, [*_pip(), "download", *_quiet(folder), *archive.options, f"{archive.name}=={archive.version}"])
    elif npm := shutil.which("npm"):
        _run(archive, [npm, "pack", "--silent", f"--pack-destination={folder}", f"{archive.name}@{archive.version}"])
    else:
        _load(archive, folder / archive.file, progress)
    there = list(folder.iterdir())
    if len(there) != 1:
        names = sorted(each.name for each in there)
        raise PackageError(f"{archive}: the client left {names}, not one archive; remove 'dry-run' or the like from it")
    path = there[0]  # npm has a name of its own for it
    method, _, wanted = archive.hash.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, method).hexdigest()
    if found != wanted:
        raise PackageError(
            f"{archive}: the file has {method} {found!r}, not {wanted!r}; nothing was kept, and the registry that "
            "served it deserves a look"
        )
    progress(f"downloading {archive}", archive.size, archive.size)
    return path


def unpacked(archive: Archive, path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each wanted member; raises PackageError where one is missing."""
    if not archive.members:
        yield archive.file, path.read_bytes()
        return
    try:
        for member, name in archive.members.items():
            yield name, _member(path, member)
    except (KeyError, AttributeError, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise PackageError(f"{archive}: {path.name} does not hold {member!r}: {error}") from error


def _member(path: Path, member: str) -> bytes:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    with tarfile.open(path) as tar:
        file = tar.extractfile(member)
        if file is None:
            raise KeyError(member)
        return file.read()


def _pip() -> Sequence[str]:
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-P", "-m", "pip")
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv:
        return (uv, "tool", "run", "pip")
    raise PackageError(f"no pip and no uv to fetch packages with; run {sys.executable} -m ensurepip")


def _quiet(folder: Path) -> Sequence[str]:
    options = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--no-cache-dir")
    return ("--no-deps", "--only-binary", ":all:", *options, "--dest", str(folder))


def _run(archive: Archive, command: Sequence[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PIP_REQUIRE_HASHES": "0"}  # the pinned hash is checked by the caller
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        said = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said[-1:] or ["it said nothing"]
        raise PackageError(
            f"{archive}: {Path(command[0]).name} cannot fetch it; check connection and proxy ({errors[0][:200]})"
        )


def _load(archive: Archive, path: Path, progress: Progress) -> None:
    """Fetch an npm package without npm."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY") or REGISTRY
    address = f"{registry.rstrip('/')}/{archive.name}/-/{archive.file}"
    if not address.startswith(("https://", "http://")):
        raise PackageError(f"{archive}: NPM_CONFIG_REGISTRY={registry!r} is no address of a registry")
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer, path.open("wb") as file:
            done = 0
            while chunk := answer.read(CHUNK):
                done += file.write(chunk)
                progress(f"downloading {archive}", min(done, archive.size), archive.size)
    except urllib.error.HTTPError as error:
        raise PackageError(f"{archive}: the registry answers {error.code} for {archive.file!r}; check it") from error
    except OSError as error:  # URLError, timeouts and broken connections are such
        raise PackageError(
            f"{archive}: the registry cannot be reached; check connection and proxy, or set NPM_CONFIG_REGISTRY "
            f"({error})"
        ) from error
