"""Installs the packages of requirements.txt, each checked against its hashes."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from line import Line, SetupError, run

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.txt"
CACHE = ROOT / ".cache"
PIP = (str(PYTHON), "-P", "-m", "pip", "--disable-pip-version-check", "--no-input")


def requirements() -> dict[str, str]:
    """Return the entries of requirements.txt, hashes included, by package; versions for different Pythons together."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", LOCK.read_text("utf-8").strip()):
        name = re.split(r"[=<>;@ ]", entry, maxsplit=1)[0]
        if not entry.startswith("#"):
            found[name] = f"{found[name]}\n{entry}" if name in found else entry
    return found


def install(names: list[str], what: str) -> None:
    """Install entries of requirements.txt, each checked against its hashes."""
    entries, done = requirements(), 0
    line = Line(what)

    def step(text: str) -> str | None:
        nonlocal done
        if re.match(r"(Collecting|Processing|Requirement already|Ignoring) ", text):
            done += 1
            return f"{min(done, len(names))}/{len(names)}"
        return "putting them in place" if text.startswith("Installing ") else None

    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=CACHE) as file:
        file.write("\n".join(entries[name] for name in names) + "\n")
        file.flush()
        options = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--root-user-action", "ignore"]
        run([*PIP, "install", *options, "--requirement", file.name], line, step, CACHE / "packages.log")
    line.end("done")


def pip_quietly(*arguments: str) -> None:
    """Run a short pip command; its output is shown when it fails."""
    done = subprocess.run([*PIP, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SetupError(f"{done.stdout}{done.stderr}\npip {' '.join(arguments)} failed (exit {done.returncode})")
