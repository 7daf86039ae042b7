"""A log of 100,000 decisions and a session as fast as it goes: the page stays small and quick, and misses nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

ROOT = Path(__file__).resolve().parents[3]
DECISIONS = 100_000
MEGABYTE = 1 << 20

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(tools: SimpleNamespace, monkeypatch_module: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark that writes long logs."""
    monkeypatch_module.syspath_prepend(ROOT / "benchmarks")
    found: ModuleType = tools.program("benchmarks/bench_inspector.py")
    return found


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    """A monkeypatch for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    for name in ("bench_log", "harness"):
        sys.modules.pop(name, None)


def heap_mb(page: Page) -> float:
    """Return what the page holds after a collection: its own objects, those of the browser for it, and buffers."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")
    names = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")
    return sum(float(used.get(name, 0)) for name in names) / MEGABYTE


def test_a_log_of_a_hundred_thousand_decisions_is_looked_at(
    visit: Callable[..., Any], serve: Callable[..., Any], bench: ModuleType, tmp_path: Path
) -> None:
    """Under 30 MB and 400 elements after jumps, scrolling and every tab; a jump shows its decision at once."""
    log = tmp_path / "long.jsonl"
    bench.write(log, DECISIONS)
    seen = visit(serve(log).address)
    page = seen.go("#/s/long.jsonl")
    title = page.locator(".panel h2")
    expect(page.get_by_label("Go to decision")).to_have_attribute("max", str(DECISIONS), timeout=120_000)
    for n in (99_999, 3, 50_000, 77_777, 12_345):
        begun = time.monotonic()
        page.get_by_label("Go to decision").fill(str(n))
        page.keyboard.press("Enter")
        expect(title).to_contain_text(f"Decision {n:,}")
        assert time.monotonic() - begun < 2  # the tests may not be alone on their processor
    page.keyboard.press("Escape")
    page.evaluate("document.querySelector('.virtual').scrollTop = 1e6")
    for key in ("2", "3", "1", "End", "n", "n"):
        page.keyboard.press(key)
        page.wait_for_timeout(200)
    assert page.evaluate("document.getElementsByTagName('*').length") <= 400
    assert heap_mb(page) < 30


def test_a_session_as_fast_as_it_goes_is_followed_whole(visit: Callable[..., Any]) -> None:
    """Every decision arrives, in order, while it is followed; the page answers a key meanwhile."""
    seen = visit()
    page = seen.go("#/")
    page.get_by_label("Player").select_option("planner")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".verdict")).to_contain_text("live")
    page.wait_for_timeout(3000)
    begun = time.monotonic()
    page.keyboard.press("2")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Whole opcodes")
    assert time.monotonic() - begun < 1
    page.keyboard.press("s")
    expect(page.locator(".verdict")).to_contain_text("verified", timeout=60_000)
    name = page.locator("h1").inner_text()
    told = page.request.get(f"{seen.address}/api/s/{name.replace(':', '%3A')}").json()
    expect(page.locator(".transport .of")).to_have_text(f"of {told['decisions']:,}")
    assert page.get_by_label("Go to decision").input_value() == str(told["decisions"])
    assert told["decisions"] > 20
