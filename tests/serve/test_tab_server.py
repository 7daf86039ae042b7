"""What `serve --tab` sends: the files of a page that plays in the visitor's tab, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dispatch.serve.tab import make_app
from dispatch.tab.packing import SETTINGS, Packed, with_policy

MODEL = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def live(running: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of a page, a script, a trie, and a model on the disk."""
    model = tmp_path_factory.mktemp("model") / "toy.gguf"
    model.write_bytes(MODEL)
    files: dict[str, bytes | Path] = {
        "main.js": b"// x",
        "tab/wllama.wasm": b"\0asm",
        "tab/python/pyodide.mjs": b"",
        "tab/tetris.trie": b"abc",
        "tab/model/toy.gguf": model,
    }
    packed = Packed(files, f'<!doctype html><meta charset="utf-8">{SETTINGS}')
    with running(app=partial(make_app, packed=packed)) as made:
        yield made


def test_a_model_is_sent_in_the_ranges_that_are_asked_for(live: Any) -> None:
    """The whole, a part of it, its end; a part that is none is refused."""
    whole = live.ask("GET", "/tab/model/toy.gguf")
    assert (whole.status, whole.body, whole.headers["accept-ranges"]) == (200, MODEL, "bytes")
    part = live.ask("GET", "/tab/model/toy.gguf", range="bytes=256-511")
    assert (part.status, part.body) == (206, MODEL[256:512])
    assert part.headers["content-range"] == f"bytes 256-511/{len(MODEL)}"
    assert live.ask("GET", "/tab/model/toy.gguf", range="bytes=-3").body == MODEL[-3:]
    assert live.ask("GET", "/tab/model/toy.gguf", range=f"bytes={len(MODEL)}-").status == 416


def test_every_answer_has_the_policy_of_a_page_with_a_model_in_it(live: Any) -> None:
    """WebAssembly and workers of blobs, no other host, trusted types, no code out of texts."""
    for path in ("/", "/main.js", "/tab/model/toy.gguf", "/nothing"):
        policy = live.ask("GET", path).headers["content-security-policy"]
        assert "script-src 'self' 'wasm-unsafe-eval';" in policy
        assert "worker-src 'self' blob:;" in policy
        assert "connect-src 'self' blob:;" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe-inline" not in policy
        assert "'unsafe-eval'" not in policy


def test_files_have_their_kinds_and_are_not_sent_twice(live: Any) -> None:
    """Browsers compile what is called WebAssembly only; a tag that is known is answered without a body."""
    for path, kind in (("/tab/wllama.wasm", "application/wasm"), ("/tab/python/pyodide.mjs", "text/javascript"),
                       ("/tab/tetris.trie", "application/octet-stream"), ("/main.js", "text/javascript")):  # fmt: skip
        assert live.ask("GET", path).headers["content-type"].partition(";")[0] == kind
    tag = live.ask("GET", "/tab/tetris.trie").headers["etag"]
    again = live.ask("GET", "/tab/tetris.trie", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/tab/../main.py", 404),
        ("GET", "/tab/model/", 404),
        ("GET", "/api/sessions", 404),
        ("GET", "/v1/models", 404),
    ],
)
def test_nothing_else_is_there(live: Any, method: str, path: str, status: int) -> None:
    """No route decides, and no path leads out of the list of files."""
    assert live.ask(method, path).status == status
    assert live.ask("GET", "/main.js", origin="http://elsewhere.test").status == 403


def test_a_folder_has_its_policy_in_the_page() -> None:
    """A static server sends no headers, so it stands first in the head, before anything is loaded."""
    text = with_policy('<!doctype html>\n<head>\n<meta charset="utf-8">\n<script src="main.js"></script>')
    assert text.index("Content-Security-Policy") < text.index("<script")
    assert "frame-ancestors" not in text, "a policy in a page cannot say that"
