"""A log in one file: it opens from disk in a real browser, shows what the page shows, and asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from playwright.sync_api import Browser, expect

from dispatch.inspector.exported import html
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.vocabularies import Vocabularies
from tests.dispatch.conftest import COUNTER, make_cartridge, write
from tests.dispatch.test_inspector_index import hostile_log
from tests.dispatch.test_replay_decide import played


def exported(log: Path, target: Path) -> str:
    opened = OpenedLog(log.name, log, make_cartridge, Vocabularies(), until=0)
    text, _ = html(opened, 100)
    opened.close()
    target.write_text(text, "utf-8")
    return target.as_uri()


def test_a_file_shows_its_log_and_asks_nobody(browser: Browser, tmp_path: Path) -> None:
    """A decision by a deep link, its board, its options; no request leaves the file, nothing is complained of."""
    log = played(tmp_path / "game.jsonl", SimpleNamespace(cartridge=COUNTER, make=make_cartridge))
    address = exported(log, tmp_path / "game.html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}#/s/game.jsonl/d/7")
    expect(page.locator("body")).to_contain_text("counter.add(by=")
    expect(page.locator("body")).to_contain_text("value ")
    expect(page.locator("body")).to_contain_text("verified")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_hostile_texts_stay_text_in_a_file(browser: Browser, tmp_path: Path) -> None:
    """Markup of a log makes no element and opens no dialog."""
    log = hostile_log(tmp_path / "hostile.jsonl", write(tmp_path / "plain", 1), 1)
    address = exported(log, tmp_path / "hostile.html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    opened: list[str] = []
    page.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}#/s/hostile.jsonl/d/1")
    expect(page.locator("body")).to_contain_text("onerror=alert(1)")
    assert page.locator("img").count() == 0
    assert opened == []
    context.close()
