"""A server of this checkout on the real model, and one browser that is driven against it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[3]
SWITCHES = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
PATIENCE_MS = 20_000


def browser_script() -> ModuleType:
    """Return `scripts/browser.py`, which finds a browser."""
    spec = importlib.util.spec_from_file_location("browser", ROOT / "scripts" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium, Chrome or Edge of this machine."""
    path = browser_script().found()
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


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Start servers by their arguments; returns the address of each."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> str:
        command = [sys.executable, "-m", "kernel", "serve", *map(str, arguments), "--port", "0", "--threads", "1"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving http://127.0.0.1:"), line
        return line.split()[1].rstrip("/")

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(10)


class Visit:
    """A page in a window of its own, and what it said that it should not have."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.address = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def go(self, where: str = "") -> Page:
        """Open a place of the page, such as `#/bench`."""
        self.page.goto(f"{self.address}/{where}")
        self.page.wait_for_selector("main > *")
        return self.page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a window at an address; what the page complained of fails the test at its end."""
    visits: list[Visit] = []

    def make(address: str, **options: object) -> Visit:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)  # type: ignore[arg-type]
        visits.append(Visit(context, address))
        return visits[-1]

    yield make
    errors = [error for made in visits for error in made.errors]
    for made in visits:
        made.context.close()
    assert errors == []


@pytest.fixture(scope="session")
def axe_script() -> str:
    """axe-core, as its Python package carries it."""
    import axe_playwright_python

    found = sorted(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
    assert found
    return found[0].read_text("utf-8")
