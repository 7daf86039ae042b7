"""A log in the page: the ledger that `replay --step` prints, every view, keys, themes, small windows, hostile text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from dispatch.cli.frame import Frame
from dispatch.log.cursor import Cursor
from dispatch.session.recorded import make_cartridge
from tests.serve.page.conftest import Server, Visit

pytestmark = pytest.mark.model
Visits = Callable[..., Any]

VIEWS = {
    "ledger": ("#/s/game.jsonl/d/2", ("1",)),
    "pinned opcodes": ("#/s/game.jsonl/d/2/t/1", ("2",)),
    "prompt": ("#/s/game.jsonl/d/2", ("3",)),
    "again": ("#/s/game.jsonl/d/2", ("a",)),
    "keys": ("#/s/game.jsonl/d/2", ("1", "?")),
    "planner's": ("#/s/planner.jsonl/d/30", ("1",)),
    "hostile": ("#/s/hostile.jsonl/d/2", ("1",)),
    "two": ("#/s/game.jsonl/beside/planner.jsonl", ()),
    "bench": ("#/bench", ()),
    "sessions": ("#/s/game.jsonl", ("h",)),
}
"""Every view: its address, and the keys that lead on from there."""
SHOWN_BY_OTHERS = {"ledger", "planner's"}
"""Views with no element that another one lacks: the hostile log shows a ledger too."""


KEYS = (Path(__file__).resolve().parents[3] / "dispatch" / "serve" / "page" / "keys.js").read_text("utf-8")
ALL_RULES = "{resultTypes: ['violations']}"
COLOURS = "{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}"
"""Of axe-core: what else there is to find does not depend on the colours."""


def see(visit: Visit, view: str, *, anew: bool = True) -> Page:
    """Go to a view and wait until it is whole."""
    where, keys = VIEWS[view]
    page = visit.go(where, anew=anew)
    if "/d/" in where:
        expect(page.locator(".panel h2")).to_contain_text("Decision")
    for key in keys:
        page.keyboard.press(key)
    if view in ("ledger", "keys", "hostile"):
        expect(page.locator(".ledger tbody tr").first).to_be_visible()
    if view == "prompt":
        expect(page.locator(".promptbox .sums")).to_contain_text("tokens")
    if view == "sessions":
        expect(page.locator(".sessions [role=option]").first).to_be_visible()
    if view == "bench":
        expect(page.get_by_label("Prompt", exact=True)).not_to_have_value("")
    if view == "two":
        expect(page.locator(".pair .stage:visible").first).to_be_visible()
    return page


def value(text: str) -> float:
    """Return a number that the page shows with a minus sign (U+2212)."""
    return float(text.replace("\u2212", "-"))


def printed(path: Path, n: int) -> list[list[tuple[str, str, str, bool]]]:
    """Return the ledger of a decision as `replay --step` prints it: piece, id, log-probability, legal; by step."""
    with Cursor(path, make_cartridge) as cursor:
        step = cursor.go(n)
        assert step is not None
        out = io.StringIO()
        Console(file=out, width=160, color_system=None).print(Frame(step, ledger=True))
    steps: list[list[tuple[str, str, str, bool]]] = []
    for line in out.getvalue().splitlines():
        text = line.split("   ", 1)[-1] if "│" in line else line
        if re.search(r"token \d+: \d+ legal", text):
            steps.append([])
        elif steps and (row := re.search(r"(\S+) +(\d+) +(-\d+\.\d\d) +(legal|removed)", text)):
            steps[-1].append((row[1], row[2], row[3], row[4] == "legal"))
    return steps


def test_the_ledger_is_the_one_that_replay_prints(visit: Visits, logs: Path) -> None:
    """Row by row: piece, id, log-probability and whether it was legal, of every choosing step of a decision."""
    page = visit().go("#/s/game.jsonl/d/2")
    wanted = printed(logs / "game.jsonl", 2)
    assert wanted
    choices = page.locator(".piece.choice")
    expect(choices).to_have_count(len(wanted))
    for at, rows in enumerate(wanted):
        choices.nth(at).hover()
        assert len(rows) == 11
        expect(page.locator(".ledger tbody tr")).to_have_count(11)
        shown = []
        for row in page.locator(".ledger tbody tr").all():
            piece, id_, logp, state = (row.locator(f".{name}").inner_text() for name in ("tok", "id", "logp", "what"))
            assert state in ("legal", "removed", "chosen")
            shown.append((piece.replace("⏎", r"\n"), id_, f"{value(logp):.2f}", state != "removed"))
        assert shown == rows
        assert page.locator(".ledger tr.chosen").count() == 1
        assert page.locator(".ledger tr.legal").count() >= 2
        assert page.locator(".ledger tr.removed").count() >= 2


def test_a_link_opens_a_pinned_step_and_the_address_follows(visit: Visits) -> None:
    """`#/s/NAME/d/2/t/1`; going on moves the board and leaves the pinned ledger; Escape lets it go."""
    page = visit().go("#/s/game.jsonl/d/2/t/1")
    title = page.locator(".panel h2")
    expect(title).to_have_text("Decision 2, token 1")
    expect(page.locator(".piece[aria-pressed=true]")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Go to decision")).to_have_value("3")
    expect(title).to_have_text("Decision 2, token 1")
    page.keyboard.press("Escape")
    expect(title).to_contain_text("Decision 3, token")
    expect(page).to_have_url(re.compile(r"#/s/game\.jsonl/d/3$"))
    page.keyboard.press("p")
    expect(page).to_have_url(re.compile(r"#/s/game\.jsonl/d/3/t/\d+$"))


def test_the_view_that_is_left_does_not_take_the_address_back(visit: Visits) -> None:
    """Where the browser is slow to say that the address changed, the old view is still there to name its decision."""
    seen = visit()
    seen.page.add_init_script(
        """addEventListener("hashchange", (event) => {
          event.stopImmediatePropagation();
          setTimeout(() => dispatchEvent(new Event("hashchange")), 600);
        }, { once: true })"""
    )
    page = seen.go("#/s/planner.jsonl")
    expect(place_of(page)).to_have_value("1")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("h")
    expect(page.locator(".sessions [role=option]").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/$"))


def test_keys_do_what_the_list_says(visit: Visits) -> None:
    """Moves, tabs, filters, least sure, play to the end, and the list itself."""
    page = visit().go("#/s/planner.jsonl")
    place = page.get_by_label("Go to decision")
    expect(place).to_have_value("1")
    for key, n in (("End", "40"), ("Shift+ArrowLeft", "30"), ("ArrowLeft", "29"), ("Home", "1"), ("ArrowRight", "2")):
        page.keyboard.press(key)
        expect(place).to_have_value(n)
    page.keyboard.press("g")
    page.keyboard.type("17\n")
    expect(page.locator(".panel h2")).to_contain_text("Decision 17")
    page.keyboard.press("Escape")
    page.get_by_label("Decisions a second").select_option("max")
    page.keyboard.press("Escape")
    page.keyboard.press(" ")
    expect(place).to_have_value("40")
    page = visit().go("#/s/game.jsonl")
    for key, tab in (("2", "Whole opcodes"), ("3", "Prompt"), ("1", "Ledger")):
        page.keyboard.press(key)
        expect(page.get_by_role("tab", selected=True)).to_have_text(tab)
    margins = page.evaluate("[...document.querySelectorAll('.decisions [role=option]')].map(e => +e.dataset.margin)")
    page.keyboard.press("n")
    expect(place_of(page)).to_have_value(str(margins.index(min(margins)) + 1))
    page.keyboard.press("n")
    expect(place_of(page)).to_have_value(str(margins.index(sorted(margins)[1]) + 1))
    page.keyboard.press("/")
    expect(page.get_by_label("Filter the decisions")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog kbd")).to_have_count(len(re.findall(r"^    \[\"", KEYS, re.MULTILINE)))
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def place_of(page: Page) -> Any:
    """Return the field with the number of the decision."""
    return page.get_by_label("Go to decision")


def test_dragging_along_the_strip_scrubs(visit: Visits) -> None:
    """The place under the pointer is the decision; the strip is a slider for the keyboard."""
    page = visit().go("#/s/planner.jsonl")
    strip = page.get_by_role("slider")
    expect(strip).to_have_attribute("aria-valuemax", "40")
    box = strip.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 22 * 20 - 5, box["y"] + 20, steps=8)
    page.mouse.up()
    expect(place_of(page)).to_have_value("20")
    strip.focus()
    page.keyboard.press("ArrowRight")
    expect(strip).to_have_attribute("aria-valuenow", "21")
    page.keyboard.press("End")
    expect(place_of(page)).to_have_value("40")


def test_whole_opcodes_and_the_prompt_are_there(visit: Visits) -> None:
    """Raw minus null is the score; the prompt stands as text, its null prompts unfold."""
    page = visit().go("#/s/game.jsonl/d/2")
    page.keyboard.press("2")
    rows = page.locator(".opcodes tbody tr")
    expect(rows).to_have_count(3)
    for row in rows.all():
        raw, null, score = (value(row.locator(f".{name}").inner_text()) for name in ("raw", "null", "score"))
        assert score == pytest.approx(raw - null, abs=0.0015)
    expect(page.locator(".opcodes tr.chosen")).to_have_count(1)
    page.keyboard.press("3")
    expect(page.locator(".prompt").first).to_contain_text("Best move:")
    folded = page.locator(".folds details", has_text="null prompt 1")
    folded.locator("summary").click()
    expect(folded.locator(".prompt")).to_contain_text("Best move:")


@pytest.fixture(scope="module")
def ruled(browser: Browser, server: Server, axe: str) -> Iterator[Visit]:
    """One window for all views, with axe-core in it: to load the page and the rules for each took half of the time."""
    visit = Visit(browser, server.address)
    visit.go("#/").evaluate(axe + ";0")
    yield visit
    visit.context.close()
    assert visit.errors == []


@pytest.mark.parametrize(
    "view", [pytest.param(view, marks=pytest.mark.slow if view in SHOWN_BY_OTHERS else ()) for view in VIEWS]
)
def test_a_view_is_small_fits_and_breaks_no_rule(ruled: Visit, view: str) -> None:
    """At most 400 elements; axe-core finds nothing in light, dark and forced colours; 320 px and 200 % are enough."""
    page = ruled.page
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1280, "height": 800})
    ruled.go("#/", anew=False).locator(".home").wait_for()
    see(ruled, view, anew=False)
    assert page.evaluate("document.getElementsByTagName('*').length") <= 400
    for scheme, rules in (("light", ALL_RULES), ("dark", COLOURS), ("forced", COLOURS)):
        page.emulate_media(
            color_scheme="dark" if scheme == "dark" else "light",
            forced_colors="active" if scheme == "forced" else "none",
        )
        found = page.evaluate(f"axe.run(document, {rules})")["violations"]
        assert [(scheme, each["id"], each["nodes"][0]["html"]) for each in found] == []
    for width, height in ((640, 400), (320, 700)):  # 1280 px at 200 %, a small phone
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_moves_where_less_motion_is_asked_for(visit: Visits) -> None:
    """Buttons change at once there, and elsewhere in a tenth of a second."""
    page = visit().go("#/bench")
    duration = "getComputedStyle(document.querySelector('button')).transitionDuration"
    assert page.evaluate(duration) == "0s"
    page.emulate_media(reduced_motion="no-preference")
    assert "0.12s" in page.evaluate(duration)


def test_hostile_text_is_text_in_every_view(visit: Visits) -> None:
    """No element and no title comes of it, what cannot be seen is escaped, and bytes that are no text stand in hex."""
    seen = visit()
    page = seen.go("#/s/hostile.jsonl/d/2")
    expect(page.locator(".result")).to_contain_text("<img src=x onerror=")
    expect(page.locator(".result")).to_contain_text(r"\u202eevil\u2066\u200b\u2028\ud800 &amp;")
    expect(page.locator(".result")).to_contain_text(r"\x00\x1b[2J")
    expect(page.locator(".asked")).to_contain_text("<img")
    expect(page.locator(".ledger td.tok").first).to_contain_text("<img")
    expect(page.locator(".ledger")).to_contain_text("<f0 9f ff>")
    everything = []
    for key in ("1", "2", "3", "a"):
        page.keyboard.press(key)
        page.wait_for_timeout(100)
        everything.append(page.locator("body").inner_text())
    expect(page.locator(".decisions [role=option]").nth(1)).to_contain_text("<img")
    for other in ("#/s/game.jsonl/beside/hostile.jsonl/d/2", "#/"):
        everything.append(seen.go(other).locator("body").inner_text())
    for text in everything:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert page.locator("img, iframe, body script").count() == 0
    assert page.title() != "run"


def test_the_policy_holds(visit: Visits) -> None:
    """Markup out of a string throws in this page, and nothing in line or from elsewhere would run."""
    seen = visit()
    page = seen.go("#/s/game.jsonl")
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    answer = page.request.get(f"{seen.address}/")
    policy = answer.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "trusted-types 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    seen.errors.clear()  # the report of what was tried above


def test_two_sessions_part_where_diff_says(visit: Visits) -> None:
    """The first difference is named and gone to; one that is shorter says where it ends."""
    page = see(visit(), "two")
    expect(page.locator(".parting")).to_contain_text("They part at")
    page.keyboard.press("End")
    expect(page.locator(".of")).to_have_text("40 of 40")
    expect(page.locator(".pair")).to_contain_text("This session has 3 decisions.")
