"""Finds a Chromium for the tests of the page, or installs Debian's where apt is at hand: `make setup-browser`.

The script needs nothing but Python's standard library. The tests drive the first that is found of: the program that
KERNEL_BROWSER names, Debian's chromium-headless-shell, and the Chromium, Chrome or Edge that a person has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMED = "KERNEL_BROWSER"
PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
PACKAGES = ("chromium-headless-shell", "chromium")
"""Of Debian; the first is in bookworm and later, the second everywhere."""


def found() -> Path | None:
    """Return the browser that the tests drive, or None where there is none."""
    if named := os.environ.get(NAMED):
        return Path(named) if os.access(named, os.X_OK) else None
    for program in PROGRAMS:
        if path := shutil.which(program):
            return Path(path)
    return next((Path(place) for place in PLACES if os.access(place, os.X_OK)), None)


def root() -> bool:
    """Return whether packages may be installed without asking for rights."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def install() -> bool:
    """Install a Chromium by apt; returns whether one is there afterwards."""
    rights = [] if root() else ["sudo"]
    for again in (False, True):
        if again and subprocess.run([*rights, "apt-get", "update", "-q"], stdout=sys.stderr).returncode:
            return False
        for package in PACKAGES:
            command = [*rights, "apt-get", "install", "-y", "-q", "--no-install-recommends", package]
            print(f"setup: {' '.join(command)}", file=sys.stderr, flush=True)
            if subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0 and found():
                return True
    return False


def main() -> int:
    """Say which browser there is, installing one first if need be; return the exit code."""
    if os.environ.get(NAMED) and found() is None:
        print(f"setup: {NAMED}={os.environ[NAMED]!r} is no program", file=sys.stderr)
        return 1
    if found() is None and shutil.which("apt-get") and (root() or shutil.which("sudo")):
        install()
    if (path := found()) is None:
        print(
            "setup: there is no Chromium, Chrome or Edge here, and apt-get cannot get one: install one as usual "
            f"on your system, or name its program in {NAMED}. Everything but the tests of the page works without it.",
            file=sys.stderr,
        )
        return 1
    print(f"setup: the tests of the page drive {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
