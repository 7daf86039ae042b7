"""The files of the tab: a registry on this machine gives packages, and every way to fail is tried."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kernel.errors import PackageError
from kernel.models import archives, browser
from kernel.models.archives import Archive


def packed(**members: bytes) -> bytes:
    """Return the bytes of a package of npm."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


PACKAGE = packed(index=b"export {};", wasm=b"\0asm", other=b"x")


class Registry:
    """A registry of npm on a free port; `body` is what it gives, `asked` the paths that it was asked for."""

    def __init__(self) -> None:
        self.body = PACKAGE
        self.asked: list[str] = []
        this = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                this.asked.append(self.path)
                if this.body:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(this.body)))
                    self.end_headers()
                    self.wfile.write(this.body)
                else:
                    self.send_error(404)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    """A registry that a machine without npm asks, and a part `toy` that is made of one package."""
    made = Registry()
    archive = Archive(
        registry="npm",
        name="@some/toy",
        version="1.0.0",
        file="toy-1.0.0.tgz",
        size=len(PACKAGE),
        hash=f"sha512:{hashlib.sha512(PACKAGE).hexdigest()}",
        members={"package/index": "toy.js", "package/wasm": "toy.wasm"},
    )
    monkeypatch.setattr(browser, "PARTS", {"toy": (archive,)})
    monkeypatch.setattr(archives.shutil, "which", lambda name: None)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", made.url)
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path / "cache"))
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_part_is_fetched_once_and_holds_what_is_wanted(registry: Registry) -> None:
    """Two members become two files under their names; the second pull asks nobody."""
    told: list[tuple[str, int, int | None]] = []
    where = browser.pull("toy", lambda *what: told.append(what))
    assert browser.pull("toy") == where
    assert registry.asked == ["/@some/toy/-/toy-1.0.0.tgz"]
    assert {name: path.read_bytes() for name, path in browser.files("toy").items()} == {
        "toy.js": b"export {};",
        "toy.wasm": b"\0asm",
    }
    assert sorted(path.name for path in where.iterdir()) == ["toy.js", "toy.wasm"]
    assert told[-1] == ("downloading @some/toy 1.0.0", len(PACKAGE), len(PACKAGE))


def test_what_is_not_here_says_how_to_get_it(registry: Registry) -> None:
    """Files are asked for before they were fetched; a part is asked for that there is not."""
    with pytest.raises(PackageError, match=r"'toy' .* not here yet; fetch them: python -m kernel models browser"):
        browser.files("toy")
    with pytest.raises(PackageError, match="no part 'toi'; did you mean 'toy'"):
        browser.files("toi")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (PACKAGE[:-1], "has sha512 '.*', not '.*'; nothing was kept"),
        (packed(index=b"other"), "has sha512"),
        (b"", "the registry answers 404 for 'toy-1.0.0.tgz'"),
    ],
    ids=["cut", "another", "missing"],
)
def test_another_file_than_was_pinned_is_refused_and_nothing_is_kept(
    registry: Registry, body: bytes, said: str
) -> None:
    """A cut package, another one, none: an error in a sentence, and no files."""
    registry.body = body
    with pytest.raises(PackageError, match=said):
        browser.pull("toy")
    assert not browser.folder("toy").exists()
    assert [path.name for path in browser.folder("toy").parent.iterdir() if not path.name.endswith(".lock")] == []


def test_a_registry_out_of_reach_and_a_member_that_is_missing(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers at the address; the package holds no such member."""
    archive = browser.PARTS["toy"][0]
    monkeypatch.setitem(browser.PARTS, "toy", (replace(archive, members={"package/gone": "gone.js"}),))
    with pytest.raises(PackageError, match="does not hold 'package/gone'"):
        browser.pull("toy")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    with pytest.raises(PackageError, match="cannot be reached; check connection and proxy, or set NPM_CONFIG_REGISTRY"):
        browser.pull("toy")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "file:///etc")
    with pytest.raises(PackageError, match="'file:///etc' is no address of a registry"):
        browser.pull("toy")


def test_every_part_is_pinned_by_version_and_hash() -> None:
    """No row of the table says `latest`, and each has the hash of its kind in full."""
    for part in browser.PARTS.values():
        for archive in part:
            method, _, digits = archive.hash.partition(":")
            assert archive.registry in ("npm", "pypi")
            assert {"sha256": 64, "sha512": 128}[method] == len(digits)
            assert archive.version in archive.file
            assert archive.size > 0
