"""A server of this checkout on the real model, and one browser that is driven against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect, sync_playwright

from dispatch.log.encoding import START, decode, encode_data, seal, unseal

ROOT = Path(__file__).resolve().parents[3]
SWITCHES = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--liftoff-only",  # WebAssembly is compiled once: a visit is over before a second time would pay
)
PATIENCE_MS = 30_000
"""A page of a machine that is busy is waited for; what is there is seen at once."""
expect.set_options(timeout=PATIENCE_MS)

HOSTILE = (
    "<img src=x onerror=document.title='run'></script><script>document.title='run'</script>"
    "\x00\x1b[2J\u202eevil\u2066\u200b\u2028\ud800 &amp; {{x}} ${x}"
)
"""Markup, a NUL, a terminal's escape, marks of writing direction, a lone surrogate."""
LONG = HOSTILE + "<b>x</b>" * 12_500
"""The same with 100 kB."""


@pytest.fixture(scope="module")
def browser(tools: SimpleNamespace) -> Iterator[Browser]:
    """The Chromium, Chrome or Edge of this machine; ended with the module, for its event loop runs in this thread until
    then, and tests elsewhere could start none."""
    path = tools.program("scripts/browser.py").found()
    if path is None:
        said = "no Chromium, Chrome or Edge is here: make setup-browser"
        if os.environ.get("KERNEL_NEEDS_BROWSER"):
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        made = playwright.chromium.launch(executable_path=path, args=SWITCHES, chromium_sandbox=not root)
        yield made
        made.close()


@dataclass
class Server:
    """A server that runs: where it answers, and how to end it."""

    address: str
    process: subprocess.Popen[str]

    def interrupt(self) -> float:
        """Press Ctrl-C; returns the seconds until it had ended."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        return time.monotonic() - begun


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., Server]]:
    """Start servers by their arguments."""
    running: list[Server] = []

    def start(*arguments: str | Path, port: int = 0) -> Server:
        command = [sys.executable, "-m", "kernel", "serve", *map(str, arguments), "--port", str(port), "--threads", "1"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving http://127.0.0.1:"), line
        running.append(Server(line.split()[1].rstrip("/"), process))
        return running[-1]

    yield start
    for server in running:
        server.process.kill()
        server.process.wait()


def change(path: Path, line: int, fields: dict[str, Any]) -> None:
    """Change fields of one line (from 1) of a log and compute every checksum again, as a forger would."""
    lines, chain = [], START
    for at, old in enumerate(path.read_bytes().splitlines(), 1):
        parts = unseal(old)
        assert parts is not None
        new, chain = seal(encode_data(decode(parts[0]) | (fields if at == line else {})), chain)
        lines.append(new)
    path.write_bytes(b"".join(lines))


def make_hostile(path: Path) -> None:
    """Give the second decision of a log a hostile text wherever a text may stand."""
    parts = unseal(path.read_bytes().splitlines()[2])
    assert parts is not None
    decision = decode(parts[0])
    ledger = decision["ledger"]
    ledger[0]["rows"][0] |= {"text": HOSTILE}
    ledger[0]["rows"][1] |= {"text": LONG}
    ledger[0]["rows"][2] = {k: v for k, v in ledger[0]["rows"][2].items() if k != "text"} | {"hex": "f09fff"}
    fields = {
        "result": HOSTILE,
        "request": LONG,
        "preferred": HOSTILE,
        "preferred_by": 3.0,
        "rule": HOSTILE,
        "legal": [row | {"text": f" {HOSTILE} {at}\n@x\n"} for at, row in enumerate(decision["legal"])],
        "offered": [offer | {"note": LONG} for offer in decision["offered"]],
        "instruction": decision["instruction"] | {"method": HOSTILE},
        "ledger": ledger,
        "mood": HOSTILE,
    }
    change(path, 3, fields)


@pytest.fixture(scope="session")
def logs(smollm2_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a game of the real model, another game, a hostile log and a file that is none.

    Workers of one run share it, so that the model plays once.
    """
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "page-logs"
    with FileLock(base / "page-logs.lock"):
        if not folder.exists():
            made = base / "page-logs.new"
            made.mkdir()
            make_logs(made)
            made.rename(folder)
    return folder


def make_logs(folder: Path) -> None:
    """Play the games and make the other files."""
    play = [sys.executable, "-m", "kernel", "run", "tetris", "--headless", "--threads", "1", "--seed", "7"]
    subprocess.run([*play, "--pieces", "3", "--log", str(folder / "game.jsonl")], cwd=ROOT, check=True, stdout=-3)
    planner = ["--player", "planner", "--pieces", "40", "--log", str(folder / "planner.jsonl")]
    subprocess.run([*play, *planner], cwd=ROOT, check=True, stdout=-3)
    (folder / "hostile.jsonl").write_bytes((folder / "game.jsonl").read_bytes())
    make_hostile(folder / "hostile.jsonl")
    (folder / "notes.jsonl").write_text(HOSTILE.replace("\ud800", ""), "utf-8")


@pytest.fixture(scope="session")
def server(serve: Callable[..., Server], logs: Path) -> Server:
    """A server of those logs, of tetris, and of the default model."""
    return serve(logs, "tetris")


TAB_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self' blob:"
FOLDER = ROOT / "dispatch" / "serve" / "page" / "tab"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Callable[..., Any]]:
    """Run JavaScript beside the modules of the tab: `tab(script, argument)`, where the script is an async function.

    There is no server: what the page asks for comes from the folder of the modules, or from `tab.files`, by name.
    """
    context, files = browser.new_context(), dict[str, Path | bytes]()

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        found = files.get(name) or (FOLDER / name if name and (FOLDER / name).is_file() else b"")
        kind = {"js": "text/javascript", "wasm": "application/wasm"}.get(name.rpartition(".")[2], "text/html")
        body = found.read_bytes() if isinstance(found, Path) else found
        headers = {"content-security-policy": TAB_POLICY, "content-type": kind}
        route.fulfill(status=200 if body or not name else 404, body=body, headers=headers)

    context.route("**/*", answer)
    page = context.new_page()
    page.goto("http://tab.test/")
    page.set_default_timeout(PATIENCE_MS)

    def run(script: str, argument: Any = None) -> Any:
        return page.evaluate(script, argument)

    run.files = files  # type: ignore[attr-defined]
    yield run
    context.close()


class Visit:
    """A window of its own, and what its page said that it should not have."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | options
        self.context = browser.new_context(**options)
        self.address = address
        self.errors: list[str] = []
        self.page = self.open()

    def open(self) -> Page:
        """Return another tab."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def go(self, where: str = "", *, anew: bool = True) -> Page:
        """Open a place of the page, such as `#/bench`, anew or as a link of the page would."""
        if anew:
            self.page.goto("about:blank")
        self.page.goto(f"{self.address}/{where}")
        self.page.wait_for_selector("main > :not(.loading)")
        return self.page


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a window on an address; what its page complained of fails the test at its end."""
    visits: list[Visit] = []

    def make(address: str, **options: Any) -> Visit:
        visits.append(Visit(browser, address, **options))
        return visits[-1]

    yield make
    errors = [error for made in visits for error in made.errors]
    for made in visits:
        made.context.close()
    assert errors == []


@pytest.fixture
def visit(window: Callable[..., Visit], server: Server) -> Callable[..., Visit]:
    """Open a window on the server of the logs, or on another address."""
    return lambda address=None, **options: window(address or server.address, **options)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script axe-core, as its Python package carries it."""
    import axe_playwright_python

    found = sorted(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
    assert found
    return found[0].read_text("utf-8")
