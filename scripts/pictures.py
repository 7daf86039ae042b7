"""Takes the pictures of the inspector in docs/pictures: 320, 768 and 1280 pixels, light and dark.

    python scripts/pictures.py            # plays a game on the default model first; a few minutes
    python scripts/pictures.py LOG        # of a log that is there

It needs the packages of `make setup`, a browser (`make setup-browser`) and the program pngquant.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from browser import found
from packages import ROOT
from playwright.sync_api import Page, sync_playwright

PICTURES = ROOT / "docs" / "pictures"
PIECES = 60
COLOURS = "128"
TOKENS = "48"
"""Of the bench, so that the picture is taken within minutes on any machine."""
SIZES = {320: 640, 768: 1024, 1280: 800}
"""Width and height of the window, in CSS pixels; of the narrow one the whole page is taken, which scrolls."""


def play(folder: Path) -> Path:
    """Let the default model play Tetris and return the log."""
    log = folder / "tetris.jsonl"
    command = [sys.executable, "-m", "kernel", "run", "tetris", "--headless", "--seed", "7"]
    subprocess.run([*command, "--pieces", str(PIECES), "--log", str(log)], check=True, cwd=ROOT)
    return log


def settle(page: Page) -> None:
    """Wait until nothing is read and painted any more."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)


def take(page: Page, name: str) -> None:
    """Take a picture and make it small."""
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path, full_page=page.viewport_size is not None and page.viewport_size["width"] == 320)
    command = ["pngquant", "--force", "--strip", "--speed", "1", "--output", str(path), COLOURS, str(path)]
    subprocess.run(command, check=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def session(page: Page, address: str, log: str) -> None:
    """Go to the least sure decision of the log, and pin its first choice."""
    page.goto(f"{address}/#/s/{log}")
    page.wait_for_selector(".panel .piece.choice")
    page.keyboard.press("n")
    page.locator(".panel h2").filter(has_not_text="Decision 1,").wait_for()
    page.keyboard.press("p")


def bench(page: Page, address: str, log: str) -> None:
    """Run the first preset of the bench to its end, with few tokens."""
    page.goto(f"{address}/#/bench")
    page.get_by_label("Tokens at most").fill(TOKENS)
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Stop").wait_for()
    page.get_by_role("button", name="Run").wait_for(timeout=180_000)


def main() -> int:
    """Take all pictures; return the exit code."""
    browser = found()
    if browser is None:
        print("pictures: no browser is here: make setup-browser", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else play(Path(folder))
        command = [sys.executable, "-m", "kernel", "serve", str(log), "tetris", "--port", "0"]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[1].rstrip("/")
            chromium = playwright.chromium.launch(executable_path=browser, chromium_sandbox=False)
            for width, height in SIZES.items():
                for scheme in ("light", "dark"):
                    window = {"width": width, "height": height}
                    page = chromium.new_page(viewport=window, color_scheme=scheme, reduced_motion="reduce")
                    session(page, address, log.name)
                    settle(page)
                    take(page, f"inspector-{width}-{scheme}")
                    page.close()
            page = chromium.new_page(
                viewport={"width": 1280, "height": 800}, color_scheme="dark", reduced_motion="reduce"
            )
            bench(page, address, log.name)
            settle(page)
            take(page, "bench-1280-dark")
            chromium.close()
        finally:
            server.terminate()
            server.wait(10)
    return 0


if __name__ == "__main__":
    sys.exit(main())
