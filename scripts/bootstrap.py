"""Set everything up below this folder: .venv, pinned packages, llama.cpp, the default model. Run by `make setup`.

Each step leaves a mark in .venv/setup.json when it is done, so a second run is quick and an interrupted one goes on.
Needs the standard library only. Knows nothing of the kernel but its command `models pull`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
MARKS = VENV / "setup.json"
LOCK = ROOT / "requirements.txt"
WORK = ROOT / ".cache" / "llama"
VOCABS = ROOT / ".cache" / "vocabs"
LEAN = ROOT / "scripts" / "lean.cmake"

RUNTIME = "llama-cpp-python"
ON_DEMAND = (RUNTIME, "cmake", "ninja")
BUILD_CPU_SECONDS = 155  # lean portable build, all of it; measured at 2 x 2.6 GHz (EPYC), see docs/setup.md
PIP = (str(PYTHON), "-P", "-m", "pip", "--disable-pip-version-check", "--no-input")


class SetupError(Exception):
    """What went wrong and what would do, in a sentence or two."""


class Line:
    """One line that moves: rewritten in a terminal, printed now and then in a pipe."""

    def __init__(self, label: str) -> None:
        self.label, self.start, self.shown, self.terminal = label, time.monotonic(), 0.0, sys.stderr.isatty()
        self.every = 0.2 if self.terminal else 15.0
        self.say("...", force=True)

    def say(self, what: str, force: bool = False) -> None:
        """Show `what` after the label, with the time since the start, unless it is too soon."""
        now = time.monotonic()
        if not force and now - self.shown < self.every:
            return
        self.shown = now
        text = f"setup: {self.label} {what}"
        if now - self.start >= 1:
            text += f" ({now - self.start:.0f} s)"
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self, what: str) -> None:
        """Show the last word and leave the line."""
        self.say(what, force=True)
        if self.terminal:
            print(file=sys.stderr, flush=True)


def run(command: list[str], line: Line, step: Callable[[str], str | None], log: Path) -> None:
    """Run a command with its output in `log`; `step` turns a line of it into what the moving line shows."""
    shown = "..."
    # A file for the output and a second reader, not a pipe: the moving line must tick while the command says nothing.
    with (
        log.open("w+", encoding="utf-8", errors="replace") as said,
        log.open(encoding="utf-8", errors="replace") as new,
    ):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, cwd=ROOT)
        try:
            while True:
                ended = process.poll() is not None
                for text in new:
                    shown = step(text) or shown
                line.say(shown)
                if ended:
                    break
                time.sleep(0.1)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        line.end("failed")
        raise SetupError(f"{_tail(log)}\n{line.label} failed (exit {process.returncode}); the whole output is in {log}")


def _tail(log: Path) -> str:
    lines = [text.rstrip()[:300] for text in log.read_text("utf-8", "replace").splitlines() if text.strip()]
    wrong = [text for text in lines if re.search(r"(?i)\berror\b|killed|no space left|cannot", text)]
    hint = ""
    if any("Killed" in text or "signal terminated" in text for text in wrong):
        hint = "\nThe compiler was killed, most likely for want of memory: CMAKE_BUILD_PARALLEL_LEVEL=1 make setup"
    return "\n".join((wrong or lines)[-12:]) + hint


def make_venv() -> None:
    """Make .venv, or mend one that was interrupted; one that works is kept, whoever made it."""
    if PYTHON.exists():
        found = subprocess.run([*PIP, "--version"], capture_output=True, text=True)
        if found.returncode == 0:
            version = ".".join(map(str, sys.version_info[:2]))
            if not found.stdout.rstrip().endswith(f"(python {version})"):
                print(f"setup: keeping .venv: {found.stdout.strip()}; for Python {version} run make clean first")
            return
    line = Line(f"making .venv with Python {platform.python_version()}")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        line.end("failed")
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetupError(
            f"{sys.executable} comes without ensurepip, so it can make no virtual environment.\n"
            f"On Debian and Ubuntu: sudo apt install {package}; or name another one: make PYTHON=/path/to/python3"
        ) from None
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        line.end("failed")
        raise SetupError(f"cannot make {VENV}: {error}") from error
    line.end("done")


def requirements() -> dict[str, str]:
    """Return the entries of requirements.txt, hashes included, by package."""
    entries = re.split(r"\n(?=\S)", LOCK.read_text("utf-8").strip())
    return {re.split(r"[=<>;@ ]", entry, maxsplit=1)[0]: entry for entry in entries if not entry.startswith("#")}


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

    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=WORK) as file:
        file.write("\n".join(entries[name] for name in names) + "\n")
        file.flush()
        options = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--root-user-action", "ignore"]
        run([*PIP, "install", *options, "--requirement", file.name], line, step, WORK / "packages.log")
    line.end("done")


def flavour_wanted(marks: dict[str, str]) -> str:
    """Return portable or native: what NATIVE says, else what was built last, else portable."""
    choice = os.environ.get("NATIVE", "")
    if choice not in ("", "0", "1"):
        raise SetupError(f"NATIVE={choice!r} is neither 1 (native) nor 0 (portable)")
    if choice:
        return "native" if choice == "1" else "portable"
    return marks.get("runtime", "portable").partition(" ")[0]


def settings(flavour: str) -> list[str]:
    """Return what llama-cpp-python is built with; CMAKE_ARGS of the environment comes on top of it."""
    options = {
        "GGML_NATIVE": "ON" if flavour == "native" else "OFF",
        "LLAVA_BUILD": "OFF",  # images and sound
        "LLAMA_OPENSSL": "OFF",
        "CMAKE_PROJECT_INCLUDE": str(LEAN),
    }
    return [f"cmake.define.{name}={value}" for name, value in options.items()]


def runtime_key(flavour: str) -> str:
    """Return a mark that changes with whatever would change the build."""
    parts = (requirements()[RUNTIME], LEAN.read_text("utf-8"), *settings(flavour)[:3], platform.machine(), sys.platform)
    return f"{flavour} {hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def runtime_wheel(key: str) -> Path:
    """Return the wheel of llama-cpp-python, built now if it was not built before."""
    flavour = key.partition(" ")[0]
    folder = WORK / key.replace(" ", "-")
    for found in folder.glob("*.whl"):
        return found
    need_compiler()
    need_build_tools()
    source = unpacked_source()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    minutes = (15 + BUILD_CPU_SECONDS / cores) / 60
    print(
        f"setup: building llama.cpp from source, once: about {max(minutes, 0.5):.1f} minutes on {cores} idle cores "
        f"({flavour}; {'only for this processor' if flavour == 'native' else 'NATIVE=1 builds for this processor'})",
        file=sys.stderr,
        flush=True,
    )
    line = Line("building llama.cpp")

    def step(text: str) -> str | None:
        if found := re.match(r"\s*\[(\d+)/(\d+)\]", text):
            done, total = int(found[1]), int(found[2])
            return f"[{'#' * (20 * done // total):20}] {done}/{total}"
        return "configuring" if "Configuring CMake" in text else None

    out = WORK / "out"
    shutil.rmtree(out, ignore_errors=True)
    # The cache is off because pip would take a wheel from there that was built with other settings.
    command = [*PIP, "wheel", "-v", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", str(out)]
    for setting in (*settings(flavour), f"build-dir={WORK / f'build-{flavour}'}"):
        command += ["--config-settings", setting]
    run([*command, str(source)], line, step, WORK / "build.log")
    (wheel,) = out.glob("*.whl")
    folder.mkdir(parents=True, exist_ok=True)
    os.replace(wheel, folder / wheel.name)
    for left in (out, source, *WORK.glob("build-*")):
        shutil.rmtree(left, ignore_errors=True)
    line.end("done")
    return folder / wheel.name


def need_compiler() -> None:
    """Raise SetupError unless a C and a C++ compiler make something that runs."""
    for language, variable, names, suffix in (
        ("C", "CC", ("cc", "gcc", "clang"), ".c"),
        ("C++", "CXX", ("c++", "g++", "clang++"), ".cpp"),
    ):
        asked = os.environ.get(variable)
        compiler = next((name for name in ((asked.split()[0],) if asked else names) if shutil.which(name)), None)
        with tempfile.TemporaryDirectory() as folder:
            code = Path(folder, "try" + suffix)
            code.write_text(
                "int main(void) { return 0; }\n" if suffix == ".c" else "#include <vector>\nint main() {}\n"
            )
            command = [str(compiler), str(code), "-o", str(code.with_suffix(""))]
            works = compiler and subprocess.run(command, capture_output=True).returncode == 0
        if not works:
            looked = f"{variable}={asked}" if asked else ", ".join(names)
            raise SetupError(
                f"no working {language} compiler ({looked}); llama.cpp is built from source and needs one.\n"
                "On Debian and Ubuntu: sudo apt install g++; on Fedora: sudo dnf install gcc-c++; "
                "on macOS: xcode-select --install"
            )


def need_build_tools() -> None:
    """Install cmake and ninja into .venv where the system has none, or too old ones."""
    ask = (
        "import scikit_build_core.build as b; print(*b.get_requires_for_build_wheel({'ninja.make-fallback': 'false'}))"
    )
    found = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True, check=True).stdout
    missing = [name for name in ("cmake", "ninja") if re.search(rf"\b{name}\b", found)]
    if missing:
        install(missing, f"installing {' and '.join(missing)}")


def sdist() -> Path:
    """Return the source archive of llama-cpp-python, downloaded by pip and checked against its hash."""
    version = re.search(r"==(\S+)", requirements()[RUNTIME])[1]
    archive = WORK / f"llama_cpp_python-{version}.tar.gz"
    if archive.exists():
        return archive
    line = Line(f"downloading the source of llama.cpp ({RUNTIME} {version}, 77 MB)")
    with tempfile.TemporaryDirectory(dir=WORK) as name:
        folder = Path(name)
        (folder / "lock.txt").write_text(requirements()[RUNTIME] + "\n", "utf-8")
        command = [*PIP, "download", "--no-deps", "--no-build-isolation", "--no-binary", RUNTIME, "--require-hashes"]
        options = ["--progress-bar", "off", "--dest", str(folder / "out"), "--requirement", str(folder / "lock.txt")]
        run([*command, *options], line, lambda text: None, WORK / "download.log")
        os.replace(folder / "out" / archive.name, archive)
    line.end("done")
    return archive


def unpacked_source() -> Path:
    """Return the unpacked source; a half-built one of an interrupted run is used again."""
    archive = sdist()
    source = WORK / archive.name.removesuffix(".tar.gz")
    if not source.exists():
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            os.replace(Path(folder) / source.name, source)
    return source


def extract_vocabs() -> None:
    """Take the vocabulary-only GGUF files, real tokenizers for the tests, out of the source archive."""
    line = Line("taking the vocabularies for the tests out of it")
    fresh = VOCABS.with_name("vocabs.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with tarfile.open(sdist()) as tar:
        for member in tar:
            if re.search(r"/vendor/llama\.cpp/models/ggml-vocab-[^/]+\.gguf$", member.name):
                with tar.extractfile(member) as stream, (fresh / Path(member.name).name).open("wb") as target:
                    shutil.copyfileobj(stream, target)
    shutil.rmtree(VOCABS, ignore_errors=True)
    os.replace(fresh, VOCABS)
    line.end(f"done, {len(list(VOCABS.iterdir()))} of them")


def steps() -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield name, mark and action of each step; the action runs when the mark is not the recorded one."""
    marks = read_marks()
    names = [name for name in requirements() if name not in ON_DEMAND]
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    yield "packages", lock, lambda: install(names, "installing packages")
    key = runtime_key(flavour_wanted(marks))
    again = ["--force-reinstall", "--no-deps", "--no-index", "--root-user-action", "ignore"]
    yield "runtime", key, lambda: pip_quietly("install", *again, str(runtime_wheel(key)))
    own = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()[:16]
    yield "project", own, lambda: pip_quietly("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    vocabs = key.partition(" ")[2] if VOCABS.is_dir() else "missing"
    yield "vocabs", vocabs, extract_vocabs


def pip_quietly(*arguments: str) -> None:
    """Run a short pip command; its output is shown when it fails."""
    done = subprocess.run([*PIP, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SetupError(f"{done.stdout}{done.stderr}\npip {' '.join(arguments)} failed (exit {done.returncode})")


def read_marks() -> dict[str, str]:
    """Return the marks of the finished steps."""
    try:
        return dict(json.loads(MARKS.read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def write_mark(name: str, mark: str) -> None:
    """Record a finished step, whole or not at all."""
    fresh = MARKS.with_suffix(".new")
    fresh.write_text(json.dumps({**read_marks(), name: mark}, indent=1) + "\n", "utf-8")
    os.replace(fresh, MARKS)


def main() -> int:
    """Do what is not done yet; return the exit code."""
    try:
        make_venv()
        for name, mark, act in steps():
            if read_marks().get(name) != mark:
                act()
                write_mark(name, mark)
        return subprocess.run([str(PYTHON), "-m", "kernel", "models", "pull", "smollm2"], cwd=ROOT).returncode
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nsetup: interrupted; make setup goes on from here", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"setup: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
