"""What acts: a live session, the bench, deciding again, and a server that goes away, on the real model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.model
Visits = Callable[..., Any]


def number(page: Page) -> int:
    """Return how many decisions the page knows of."""
    text = page.locator(".transport .of").inner_text()
    return int(text.removeprefix("of ").replace(",", ""))


def start(page: Page, *, paused: bool = False) -> None:
    """Start a live game of Tetris that the model plays by the rule `exact`."""
    page.get_by_label("Rule").select_option("exact")
    if paused:
        page.get_by_label("begin paused").check()
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".verdict")).to_contain_text("live")


def test_a_live_session_is_played_pinned_slowed_stepped_and_stopped(visit: Visits) -> None:
    """What is pinned stays while more is decided; paused means that nothing is."""
    page = visit().go("#/")
    start(page, paused=True)
    page.get_by_label("Decisions a second").select_option("2")  # a whole game takes seconds
    page.keyboard.press("Escape")
    page.keyboard.press(" ")
    choice = page.locator(".piece.choice").first
    choice.click()
    title = page.locator(".panel.pinned h2")
    expect(title).to_contain_text("Decision")
    pinned, rows, before = title.inner_text(), page.locator(".ledger").inner_text(), number(page)
    expect(page.locator(".transport .of")).not_to_have_text(f"of {before}")
    assert (title.inner_text(), page.locator(".ledger").inner_text()) == (pinned, rows)
    page.keyboard.press("Escape")
    page.keyboard.press(" ")
    expect(page.locator(".verdict")).to_have_text("live, paused")
    rested = 0
    while rested != number(page):  # a pass that was under way is finished
        rested = number(page)
        page.wait_for_timeout(800)
    assert page.locator(".verdict").inner_text() == "live, paused"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".transport .of")).to_have_text(f"of {rested + 1}")
    page.keyboard.press("s")
    expect(page.locator(".notes")).to_contain_text("Ended")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.locator(".ledger tbody tr")).to_have_count(11)


def test_the_stream_is_closed_while_the_tab_is_hidden(visit: Visits) -> None:
    """One EventSource a tab; hidden there is none, and coming back nothing is missing."""
    seen = visit()
    seen.context.add_init_script(
        """window.streams = new Set(); const Real = EventSource;
        window.EventSource = class extends Real {
          constructor(url) { super(url); streams.add(this); }
          close() { streams.delete(this); super.close(); }
        };"""
    )
    page = seen.go("#/")
    start(page, paused=True)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".transport .of")).to_have_text("of 1")
    assert page.evaluate("streams.size") == 1
    hide = "hidden => { Object.defineProperty(document, 'hidden', {configurable: true, value: hidden});"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    assert page.evaluate("streams.size") == 0
    name = page.locator("h1").inner_text()
    token = page.get_attribute("meta[name=kernel-token]", "content")
    answer = page.request.post(
        f"{seen.address}/api/live/step",
        data={"session": name, "count": 2},
        headers={"X-Kernel-Token": token or "", "Origin": seen.address},
    )
    assert answer.ok, answer.text()
    for _ in range(300):  # until the server has made both
        if page.request.get(f"{seen.address}/api/s/{name}").json()["decisions"] == 3:
            break
        page.wait_for_timeout(50)
    assert page.locator(".transport .of").inner_text() == "of 1"
    page.evaluate(hide, False)
    expect(page.locator(".transport .of")).to_have_text("of 3")
    assert page.evaluate("streams.size") == 1
    page.keyboard.press("s")
    for _ in range(100):  # until the page has heard of the outcome
        if page.evaluate("streams.size") == 0:
            break
        page.wait_for_timeout(50)
    assert page.evaluate("streams.size") == 0


def test_the_bench_runs_raw_and_exact_beside_each_other(visit: Visits) -> None:
    """An edit turns the preset to custom; exact is valid and has ledgers; a schema that cannot be held says so."""
    seen = visit()
    page = seen.go("#/bench")
    preset = page.get_by_label("Preset")
    schema = page.get_by_label("JSON Schema")
    expect(preset).not_to_have_value("custom")
    page.get_by_label("Legal is").select_option("schema")
    schema.fill('{"type": "object", "properties": {"brave": {"type": "boolean"}}, "required": ["brave"]}')
    expect(preset).to_have_value("custom")
    page.get_by_label("Tokens at most").fill("12")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Run").click()
    exact = page.get_by_role("region", name="Exact", exact=True)
    raw = page.get_by_role("region", name="Raw", exact=True)
    expect(exact.locator(".verdict")).to_contain_text("valid")
    assert re.fullmatch(r'\{"brave": ?(true|false)\}', exact.locator(".written").inner_text().strip())
    expect(raw.locator(".verdict")).to_contain_text("tokens")
    exact.locator(".piece.choice").first.click()
    expect(exact.locator(".ledger tbody tr")).to_have_count(11)
    expect(page.get_by_role("button", name="Run")).to_be_visible()
    for width in (320, 768, 1280, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        for side in (raw, exact):
            assert side.evaluate("e => e.scrollWidth - e.clientWidth") <= 0, width
    schema.fill('{"type": "nothing"}')
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#bench-schema-fault")).not_to_be_empty()
    expect(schema).to_have_attribute("aria-invalid", "true")
    assert all("422" in error for error in seen.errors)
    seen.errors.clear()


def test_the_bench_keeps_a_rate_and_stops(visit: Visits) -> None:
    """Two tokens a second are two tokens a second; stop ends both sides."""
    page = visit().go("#/bench")
    page.get_by_label("Rate").select_option("2")
    page.get_by_role("button", name="Run").click()
    pieces = page.get_by_role("region", name="Raw", exact=True).locator(".piece")
    expect(pieces.first).to_be_visible()
    first = pieces.count()
    page.wait_for_timeout(700)
    assert pieces.count() - first <= 3
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Run")).to_be_visible()


def test_a_decision_is_made_again_beside_the_logged_one(visit: Visits) -> None:
    """By another rule, and with an edited prompt; the logged scores stay beside the new ones."""
    page = visit().go("#/s/game.jsonl/d/2")
    expect(page.locator(".panel h2")).to_contain_text("Decision 2")
    page.keyboard.press("a")
    page.locator(".againform").get_by_label("Rule").select_option("exact")
    page.get_by_role("button", name="Decide again", exact=True).click()
    table = page.locator(".versus")
    expect(table.locator("tbody tr")).to_have_count(3)
    expect(table).to_contain_text("exact")
    expect(page.locator(".outcome")).to_contain_text(re.compile("The same choice|Another choice"))
    page.get_by_label("edit the prompt").check()
    prompt = page.get_by_label("Edited prompt")
    expect(prompt).not_to_have_value("")
    prompt.fill(prompt.input_value() + " ")
    page.get_by_role("button", name="Decide again", exact=True).click()
    expect(page.locator(".outcome")).to_contain_text("prompt")


@pytest.mark.slow
def test_a_decision_is_made_again_by_another_model(visit: Visits, gemma_path: Path) -> None:
    """The counterfactual of `replay --decide --model`, for one step."""
    page = visit().go("#/s/game.jsonl/d/2")
    expect(page.locator(".panel h2")).to_contain_text("Decision 2")
    page.keyboard.press("a")
    page.locator(".againform").get_by_label("Model").select_option("gemma3-270m")
    page.get_by_role("button", name="Decide again", exact=True).click()
    expect(page.locator(".versus")).to_contain_text("gemma3-270m", timeout=120_000)


@pytest.mark.parametrize("tabs", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_a_server_that_goes_away_is_told_and_found_again(
    visit: Visits, serve: Callable[..., Any], logs: Path, tmp_path: Path, tabs: int
) -> None:
    """Tabs that listen do not hold Ctrl-C up; the page says that nobody answers, and finds the next server."""
    log = tmp_path / "unfinished.jsonl"
    log.write_bytes(b"".join((logs / "game.jsonl").read_bytes().splitlines(keepends=True)[:-1]))
    server = serve(log)
    seen = visit(server.address)
    pages = [seen.page, *(seen.open() for _ in range(tabs - 1))]
    for page in pages:
        page.goto(f"{server.address}/#/s/unfinished.jsonl")
        expect(page.locator(".panel h2")).to_contain_text("Decision 1")
    assert server.interrupt() < 2  # a third of a second where nothing else runs, with one tab and with seven
    banner = pages[-1].get_by_role("alert").filter(has_text="does not answer")
    pages[-1].keyboard.press("End")
    expect(banner).to_be_visible()
    serve(log, port=int(server.address.rpartition(":")[2]))
    expect(banner).to_be_hidden()
    pages[-1].get_by_role("button", name="Decide again").click()
    expect(pages[-1].get_by_label("Model")).to_be_visible()
    seen.errors.clear()  # what was asked while nobody answered
