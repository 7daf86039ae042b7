"""`hf:` models against a hub on this machine that speaks as much of the protocol as a download needs."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kernel.errors import ModelError, UnknownModelError
from kernel.models import catalogue as models
from kernel.models import hub

WEIGHTS = b"GGUF" + bytes(range(256)) * 2000
NAME = "hf:owner/some-model-GGUF/some-model-Q4_K_M.gguf"
REFUSALS = {"no-repo": (404, "RepoNotFound"), "no-file": (404, "EntryNotFound"), "gated": (403, "GatedRepo")}


class Hub:
    """A hub with one file. `fault` makes it answer wrongly; `requests` lists what it was asked."""

    def __init__(self) -> None:
        self.fault = ""
        self.requests: list[str] = []
        this = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                this.answer(self)

            def do_HEAD(self) -> None:
                this.answer(self)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one HEAD or GET of the one file."""
        self.requests.append(f"{request.command} {request.path}")
        status, code = REFUSALS.get(self.fault, (500, "") if self.fault == "ill" else (200, ""))
        body = b"" if code or status == 500 else WEIGHTS
        request.send_response(status)
        if code:
            request.send_header("X-Error-Code", code)
        request.send_header("X-Repo-Commit", "c" * 40)
        request.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.fault == "corrupt":
            body = body[:-1] + b"x"
        if request.command == "GET":
            request.wfile.write(body[: len(body) // 2] if self.fault == "short" else body)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, and an empty cache for what comes from it."""
    from huggingface_hub import constants

    server = Hub()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the library waits a second before each of its retries
    yield server
    server.server.shutdown()
    server.server.server_close()


def blobs(tmp_path: Path) -> list[str]:
    """Return the names of the files of which the hub's cache holds the bytes."""
    return sorted(path.name for path in (tmp_path / "hub").glob("models--*/blobs/*"))


def test_a_hub_file_comes_once_and_is_counted(server: Hub) -> None:
    """The endpoint is the one of HF_ENDPOINT; the second question asks nobody; progress ends at the size."""
    seen: list[tuple[str, int, int | None]] = []
    path = models.resolve(NAME, progress=lambda *args: seen.append(args))
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == ("downloading", len(WEIGHTS), len(WEIGHTS))
    asked = list(server.requests)
    assert set(asked) == {
        "HEAD /owner/some-model-GGUF/resolve/main/some-model-Q4_K_M.gguf",
        "GET /owner/some-model-GGUF/resolve/main/some-model-Q4_K_M.gguf",
    }
    assert models.resolve(NAME) == path
    assert server.requests == asked


def test_pulled_hub_files_are_listed_by_the_name_that_pulls_them(server: Hub) -> None:
    """What `models list` shows can be typed."""
    assert hub.listed() == []
    path = models.pull(NAME)
    assert hub.listed() == [(NAME, path)]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("no-repo", r"hf:owner/.*: the hub shows no repository 'owner/some-model-GGUF'"),
        ("no-file", r"'owner/some-model-GGUF' has no file 'some-model-Q4_K_M.gguf'"),
        ("gated", r"its owner asks for a yes to the terms; give it on the hub, then run: hf auth login"),
        ("ill", r"the hub answered 500; try again later"),
        ("short", r"the download broke off; nothing of it was kept, try again"),
        ("corrupt", r"has sha256 '[0-9a-f]{64}', the hub promised '[0-9a-f]{64}'; nothing was kept, try again"),
    ],
)
def test_what_the_hub_refuses_or_breaks_is_said_and_not_kept(
    server: Hub, tmp_path: Path, fault: str, text: str
) -> None:
    """Each error names its cause, no half file stays, and the pull works once the hub does."""
    server.fault = fault
    with pytest.raises(ModelError, match=text):
        models.pull(NAME)
    assert blobs(tmp_path) == []
    server.fault = ""
    assert models.pull(NAME).read_bytes() == WEIGHTS


def test_a_hub_out_of_reach_is_named_at_once(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens on the port."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match=r"the hub cannot be reached; check connection, proxy and HF_ENDPOINT"):
        models.resolve(NAME)


def test_too_little_space_is_found_before_the_hub_is_asked_for_the_file(
    server: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte too little."""
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=len(WEIGHTS) - 1))
    with pytest.raises(ModelError, match=r"\d+ MB are needed, \d+ MB are free"):
        models.resolve(NAME)
    assert not [line for line in server.requests if line.startswith("GET")]


def test_a_hub_file_that_is_no_gguf_is_refused(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name says GGUF, the bytes do not."""
    monkeypatch.setattr(f"{__name__}.WEIGHTS", b"version https://git-lfs")
    with pytest.raises(ModelError, match=r"is not a GGUF file: it begins with b'vers'"):
        models.resolve(NAME)


@pytest.mark.parametrize(
    "name",
    ["hf:", "hf:owner/file.gguf", "hf:owner/repo/file.bin", "hf:owner/repo/../x.gguf", "hf:https://h/o/r/f.gguf"],
)
def test_a_malformed_hub_name_is_shown_the_form(name: str) -> None:
    """Owner, repository and a GGUF file, no more and no less."""
    with pytest.raises(UnknownModelError, match=r"does not read hf:OWNER/REPO/FILE\.gguf"):
        models.resolve(name)


def test_a_part_of_a_split_model_is_refused() -> None:
    """A part alone is no model."""
    with pytest.raises(UnknownModelError, match=r"is one part of a split model; join the parts"):
        models.resolve("hf:owner/repo/big-00001-of-00003.gguf")


def test_without_leave_to_pull_the_hub_is_not_asked(server: Hub) -> None:
    """`pull=False` gives the command instead."""
    with pytest.raises(ModelError, match=rf"not pulled yet; run: python -m kernel models pull {NAME}"):
        models.resolve(NAME, pull=False)
    assert server.requests == []
    assert os.environ["HF_ENDPOINT"] == server.url
