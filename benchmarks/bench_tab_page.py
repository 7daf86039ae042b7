"""What the page in the tab costs beside its model: bytes, seconds until it plays, the Python of a decision.

A bundle with the model in it is served without headers, each visit is a fresh window of a headless Chromium. What the
model itself costs (a decision, its tokens) is measured by bench_tab.py.

    python benchmarks/bench_tab_page.py --out benchmarks/results/tab-page.json
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from harness import make_parser, publish
from playwright.sync_api import Browser, sync_playwright
from tab_host import chromium

ROOT = Path(__file__).resolve().parent.parent
PARTS = {"python": r"tab/python/", "runtime": r"tab/wllama\.", "assets": r"tab/.*\.(bin|trie)$", "model": r"tab/model/"}
PATIENCE_MS = 300_000
TOLD = re.compile(r"Python in ([\d.]+) s, the model in ([\d.]+) s, all in ([\d.]+) s")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """See BaseHTTPRequestHandler."""


def visit(browser: Browser, address: str, pieces: int, log: Path) -> dict[str, float]:
    """Load everything in a fresh window and play; return the seconds that the page tells, and its log."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.get_by_role("button", name="Load").click()
    note = page.locator(".passing", has_text="Loaded")
    note.wait_for()
    found = TOLD.search(note.inner_text())
    assert found is not None, note.inner_text()
    page.locator(".decisions [role=option], .decisions [role=row]").nth(pieces - 1).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".notes", has_text="stopped in the page").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the log").click()
    download.value.save_as(log)
    context.close()
    return dict(zip(("python_s", "model_s", "all_s"), map(float, found.groups()), strict=True))


def main() -> None:
    """Print the result as one JSON document."""
    parser = make_parser(__doc__)
    parser.add_argument("--visits", type=int, default=5, help="fresh windows (default: %(default)s)")
    parser.add_argument("--pieces", type=int, default=5, help="decisions of each (default: %(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site, log = Path(folder) / "site", Path(folder) / "log.jsonl"
        packing = [sys.executable, "-m", "kernel", "bundle", str(site), "--with-model"]
        subprocess.run(packing, cwd=ROOT, check=True, stdout=sys.stderr)
        sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
        size = {part: sum(n for name, n in sizes.items() if re.match(where, name)) for part, where in PARTS.items()}
        size["page"] = sum(sizes.values()) - sum(size.values())
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False)
        seconds, planner = [], []
        for _ in range(given.visits):
            seconds.append(visit(browser, f"http://127.0.0.1:{server.server_port}/", given.pieces, log))
            lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
            planner += [line["planner_ms"] for line in lines if line["event"] == "decision"]
        version = browser.version
        browser.close()
        server.shutdown()
    times = {name: round(statistics.median(each[name] for each in seconds), 2) for name in seconds[0]}
    found = {"visits": given.visits, "pieces": given.pieces, "browser": version, "model": "smollm2", "bytes": size}
    found |= {**times, "planner_ms": round(statistics.median(planner), 1)}
    for name, value in found.items():
        print(f"{name:12} {value}")
    publish("tab-page", found, given.out, ("playwright",))


if __name__ == "__main__":
    main()
