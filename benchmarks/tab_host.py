"""What `bench_tab.py` serves and drives: the page's modules and a model on a port of this machine, and a Chromium."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from dispatch.serve.page import FOLDER
from kernel.models import browser as parts

ROOT = Path(__file__).resolve().parents[1]
POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self' blob:"
KINDS = {".js": "text/javascript", ".wasm": "application/wasm"}
CHUNK = 1 << 20


@dataclass
class Host:
    """A server of files by name, with ranges, as static servers have them; counts what it gives."""

    files: dict[str, Path | bytes]
    sent: dict[str, int] = field(default_factory=dict)
    ranges: int = 0
    address: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a GET: a file, a part of it, or the empty page."""
        name = request.path.lstrip("/")
        found = self.files.get(name, b"" if name else b"<!doctype html><title>tab</title>")
        size = found.stat().st_size if isinstance(found, Path) else len(found)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        begin, end = (int(asked[1]), min(int(asked[2]) + 1, size)) if asked else (0, size)
        request.send_response(206 if asked else 200 if size else 404)
        request.send_header("content-type", KINDS.get(Path(name).suffix, "text/html"))
        request.send_header("content-length", str(end - begin))
        request.send_header("content-security-policy", POLICY)
        if asked:
            self.ranges += 1
            request.send_header("content-range", f"bytes {begin}-{end - 1}/{size}")
        request.end_headers()
        self.sent[name] = self.sent.get(name, 0) + end - begin
        if isinstance(found, bytes):
            request.wfile.write(found[begin:end])
            return
        with found.open("rb") as file:
            file.seek(begin)
            for at in range(begin, end, CHUNK):
                request.wfile.write(file.read(min(CHUNK, end - at)))


@contextlib.contextmanager
def hosting(files: dict[str, Path | bytes]) -> Iterator[Host]:
    """Serve files, the modules of the tab and its runtime, until the body ends."""
    modules: dict[str, Path | bytes] = {path.name: path for path in (FOLDER / "tab").glob("*.js")}
    host = Host({**modules, **parts.files("wllama"), **files})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host.answer(self)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()


def chromium() -> Path:
    """Return the browser that scripts/browser.py finds."""
    found: Path | None = runpy.run_path(str(ROOT / "scripts" / "browser.py"))["found"]()
    if found is None:
        raise SystemExit("no Chromium, Chrome or Edge is here: make setup-browser")
    return found


@contextlib.contextmanager
def browsing(address: str) -> Iterator[tuple[Page, list[str]]]:
    """Open an address in the Chromium of this machine; yield the page, and what it asked of others."""
    path, foreign = chromium(), list[str]()
    with sync_playwright() as playwright:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        made = playwright.chromium.launch(executable_path=path, chromium_sandbox=not root)
        page = made.new_page()
        page.set_default_timeout(0)
        page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else foreign.append(r.url))
        page.goto(f"{address}/")
        yield page, foreign
        made.close()
