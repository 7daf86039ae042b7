"""The page with the model in the tab: a click loads it, it plays, its log is verified, and nothing leaves the origin.

The quick tests let a tiny model with random weights choose, which has a real tokenizer; the slow ones take smollm2. All
else is what a visitor has: Pyodide, wllama, the policy of the page, a plain static server.
"""

from __future__ import annotations

import functools
import http.client
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from dispatch.log.replay import replay
from dispatch.log.report import Verdict
from dispatch.session.recorded import replayed_cartridge
from kernel.errors import PackageError
from kernel.models import browser as parts

ROOT = Path(__file__).resolve().parents[3]
LOADING_MS = 120_000
"""Python and a model take seconds, and on a machine that is busy many."""


@pytest.fixture(scope="module")
def fetched() -> None:
    """What a tab needs, which `make browser` fetches."""
    try:
        for part in ("python", "wllama"):
            parts.files(part)
    except PackageError as error:
        if os.environ.get("KERNEL_NEEDS_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def kernel(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this checkout."""
    command = [sys.executable, "-m", "kernel", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def bundle(fetched: None, tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a static server, without the model."""
    folder = tmp_path_factory.mktemp("site") / "out"
    done = kernel("bundle", folder, "--model", tiny_models["llama"])
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def static() -> Iterator[Callable[[Path], str]]:
    """Serve folders as `python -m http.server` does, without a header of their own."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    servers: list[http.server.ThreadingHTTPServer] = []

    def start(folder: Path) -> str:
        made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
        servers.append(made)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{made.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def watched(page: Page) -> list[str]:
    """Return the list of what the window asks for, workers included, as it grows."""
    found: list[str] = []
    page.context.on("request", lambda request: found.append(request.url))
    return found


def pick(page: Page, *files: Path) -> None:
    """Pick a model's file."""
    page.locator("#tab-file").set_input_files([str(file) for file in files])


def wait_for_decisions(page: Page, many: int) -> None:
    expect(page.locator(".session")).to_be_visible(timeout=LOADING_MS)
    page.locator(".decisions [role=option], .decisions [role=row]").nth(many - 1).wait_for(timeout=LOADING_MS)


def saved(page: Page, target: Path) -> Path:
    """Save the log as a visitor does."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the log").click()
    download.value.save_as(target)
    return target


def stopped(page: Page) -> None:
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".notes")).to_contain_text("interrupted, stopped in the page", timeout=LOADING_MS)


def of_one_origin(requests: list[str], address: str) -> bool:
    return all(url.startswith((f"{address}/", "blob:", "data:")) for url in requests)


def test_a_bundle_plays_a_picked_model_and_keeps_its_log(
    bundle: Path,
    static: Callable[[Path], str],
    window: Callable[..., Any],
    tiny_models: dict[str, Path],
    tmp_path: Path,
) -> None:
    """From a plain static server: nothing is asked for before a file is picked, a cut one is told in a sentence; the
    right one plays five pieces, and the saved log verifies. A worker that ends, and a reload, leave the log."""
    address = static(bundle)
    visit = window(address)
    requests = watched(visit.page)
    page = visit.go()
    assert not [url for url in requests if urlsplit(url).path.startswith(("/tab/python/", "/tab/model", "/tab/wllama"))]
    right = tiny_models["llama"]
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(right.read_bytes()[: right.stat().st_size // 2])
    pick(page, cut)
    expect(page.locator(".tabstart [role=alert]")).to_contain_text("cut", timeout=LOADING_MS)
    pick(page, right)
    wait_for_decisions(page, 5)
    stopped(page)
    log = saved(page, tmp_path / "tab.jsonl")
    report = replay(log, replayed_cartridge)
    assert report.verdict is Verdict.VERIFIED, report.sentence
    assert report.decisions >= 5
    header = json.loads(log.read_text().splitlines()[0])
    assert header["versions"].keys() >= {"pyodide", "@wllama/wllama", "cartridge-kernel"}
    assert of_one_origin(requests, address)
    bench_runs(page)
    page.get_by_role("link", name="Sessions").click()
    page.get_by_role("button", name="Start").click()
    wait_for_decisions(page, 1)
    kept = page.locator(".kept li")
    page.workers[0].evaluate("() => { setTimeout(() => { throw new Error('no memory is left'); }); }")
    expect(page.locator(".tabstart [role=alert]")).to_contain_text("has ended. Load it again")
    expect(kept.nth(0)).to_contain_text("broken off")
    visit.errors[:] = [error for error in visit.errors if "no memory is left" not in error]
    page.reload()
    expect(kept.nth(0)).to_contain_text("broken off")
    expect(kept.nth(1)).to_contain_text("ended")
    with page.expect_download() as download:
        kept.nth(0).get_by_role("button", name="Save the log").click()
    download.value.save_as(tmp_path / "kept.jsonl")
    assert replay(tmp_path / "kept.jsonl", replayed_cartridge).verdict is Verdict.UNFINISHED
    assert of_one_origin(requests, address)


def bench_runs(page: Page) -> None:
    """Run a preset of the bench; what was not packed is refused with a sentence that names what was."""
    page.get_by_role("link", name="Bench").click()
    page.get_by_label("Preset").select_option("opposite")
    page.get_by_role("button", name="Run").click()
    exact = page.locator(".mode-exact")
    expect(exact.locator(".verdict")).to_contain_text("valid", timeout=LOADING_MS)
    expect(exact.locator(".shares li")).to_have_count(3)
    expect(exact.locator(".ledger [role=row], .ledger tbody tr").first).to_be_visible()
    expect(page.locator(".mode-raw .verdict")).to_contain_text("tokens")
    page.get_by_label("Options, one a line").fill("shut\nclosed")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#bench-options-fault")).to_contain_text("'The opposite of open'")


def test_without_webassembly_the_page_says_what_to_do(
    bundle: Path, static: Callable[[Path], str], window: Callable[..., Any], tiny_models: dict[str, Path]
) -> None:
    """A sentence stands there, and the page is not blank."""
    visit = window(static(bundle))
    visit.page.add_init_script("delete globalThis.WebAssembly")
    page = visit.go()
    pick(page, tiny_models["llama"])
    expect(page.locator(".tabstart [role=alert]")).to_contain_text("no WebAssembly")
    expect(page.locator("h1")).to_have_text("Play in this tab")


def test_the_first_view_is_fit_for_everybody(
    bundle: Path, static: Callable[[Path], str], window: Callable[..., Any], axe: str
) -> None:
    """At three widths, light and dark: nothing is wider than the window, and axe finds nothing."""
    page = window(static(bundle)).go()
    page.evaluate(axe + ";0")
    for scheme in ("light", "dark"):
        for width in (320, 768, 1280):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("axe.run(document)")["violations"] == []


@pytest.mark.slow
@pytest.mark.model
def test_a_click_loads_smollm2_and_plays_in_the_tab(
    fetched: None,
    serve: Callable[..., Any],
    smollm2_path: Path,
    tiny_models: dict[str, Path],
    window: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """`serve --tab`: a file of another vocabulary is told in a sentence; five pieces by the model out of the cache
    folder; the saved log verifies, and the model takes what the planner marked as best."""
    server = serve("--tab", "tetris")
    visit = window(server.address)
    requests = watched(visit.page)
    page = visit.go()
    pick(page, tiny_models["llama"])
    expect(page.locator(".tabstart [role=alert]")).to_contain_text("vocabulary", timeout=LOADING_MS)
    page.get_by_role("button", name="Load smollm2").click()
    wait_for_decisions(page, 5)
    stopped(page)
    log = saved(page, tmp_path / "tab.jsonl")
    report = replay(log, replayed_cartridge)
    assert report.verdict is Verdict.VERIFIED, report.sentence
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    decided = [line for line in lines if line["event"] == "decision"]
    assert len(decided) >= 5
    assert sum(line["instruction"] == line["offered"][0]["instruction"] for line in decided) >= len(decided) - 1
    assert of_one_origin(requests, server.address)
