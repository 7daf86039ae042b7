"""Installs the MCP servers that the tests start and that others wrote: `make setup-mcp`.

They come from npm, pinned with hashes by tests/data/mcp/package-lock.json, into .cache/mcp; no script of theirs runs.
Where there is no npm, apt is asked for it. The script needs nothing but Python's standard library.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from browser import root

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ROOT / "tests" / "data" / "mcp"
PLACE = ROOT / ".cache" / "mcp"
FILES = ("package.json", "package-lock.json")
MARK = PLACE / "installed"
PACKAGES = ("nodejs", "npm")
"""Of Debian."""


def wanted() -> str:
    """Return what stands for the servers that are wanted."""
    return hashlib.sha256(b"".join((LOCKED / name).read_bytes() for name in FILES)).hexdigest()


def install_npm() -> None:
    """Install Node and npm by apt."""
    rights = [] if root() else ["sudo"]
    for again in (False, True):
        if again and subprocess.run([*rights, "apt-get", "update", "-q"], stdout=sys.stderr).returncode:
            return
        command = [*rights, "apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES]
        print(f"setup: {' '.join(command)}", file=sys.stderr, flush=True)
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0:
            return


def main() -> int:
    """Install what is not there yet; return the exit code."""
    if MARK.is_file() and MARK.read_text() == wanted():
        print(f"setup: the MCP servers are in {PLACE}", file=sys.stderr)
        return 0
    if not shutil.which("npm") and shutil.which("apt-get") and (root() or shutil.which("sudo")):
        install_npm()
    if not (npm := shutil.which("npm")):
        print(
            "setup: there is no npm here, and apt-get cannot get it: install Node.js as usual on your system. "
            "Everything but the tests with MCP servers that are written in it works without.",
            file=sys.stderr,
        )
        return 1
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    for name in FILES:
        shutil.copy(LOCKED / name, PLACE)
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"], cwd=PLACE, stdout=sys.stderr
    )
    if done.returncode:
        print(f"setup: npm ci failed (exit {done.returncode})", file=sys.stderr)
        return 1
    MARK.write_text(wanted())
    print(f"setup: the MCP servers are in {PLACE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
