"""Builds llama-cpp-python from its source archive: for any processor, without the parts we never call, with progress.

The build of an interrupted run is continued. The finished wheel is kept, so that switching back costs nothing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from line import Line, SetupError, run
from packages import CACHE, PIP, PYTHON, ROOT, install, requirements

WORK = CACHE / "llama"
VOCABS = CACHE / "vocabs"
LEAN = ROOT / "scripts" / "lean.cmake"

PACKAGE = "llama-cpp-python"
TOOLS = ("cmake", "ninja")
BUILD_CPU_SECONDS = 155  # lean and portable, all of it, one core of a 2.6 GHz EPYC; see docs/setup.md


def flavour_wanted(built: str) -> str:
    """Return portable or native: what NATIVE says, else what was `built` last (its key), else portable."""
    choice = os.environ.get("NATIVE", "")
    if choice not in ("", "0", "1"):
        raise SetupError(f"NATIVE={choice!r} is neither 1 (native) nor 0 (portable)")
    if choice:
        return "native" if choice == "1" else "portable"
    return built.partition(" ")[0] or "portable"


def settings(flavour: str) -> list[str]:
    """Return what llama-cpp-python is built with; CMAKE_ARGS of the environment comes on top of it."""
    native = f"GGML_NATIVE={'ON' if flavour == 'native' else 'OFF'}"
    options = (native, "LLAVA_BUILD=OFF", "LLAMA_OPENSSL=OFF", f"CMAKE_PROJECT_INCLUDE={LEAN}")  # LLAVA: images, sound
    return [f"cmake.define.{option}" for option in options]


def key_of(flavour: str) -> str:
    """Return a mark that changes with whatever would change the build."""
    parts = (requirements()[PACKAGE], LEAN.read_text("utf-8"), *settings(flavour)[:3], platform.machine(), sys.platform)
    return f"{flavour} {hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def wheel(key: str) -> Path:
    """Return the wheel of llama-cpp-python, built now if it was not built before."""
    flavour = key.partition(" ")[0]
    folder = WORK / key.replace(" ", "-")
    for found in folder.glob("*.whl"):
        return found
    WORK.mkdir(parents=True, exist_ok=True)
    for left in WORK.glob("tmp*"):  # of a run that was killed
        shutil.rmtree(left, ignore_errors=True)
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
    for language, variable, names, file, program in (
        ("C", "CC", ("cc", "gcc", "clang"), "try.c", "int main(void) { return 0; }\n"),
        ("C++", "CXX", ("c++", "g++", "clang++"), "try.cpp", "#include <vector>\nint main() {}\n"),
    ):
        asked = os.environ.get(variable)
        compiler = next((name for name in ((asked.split()[0],) if asked else names) if shutil.which(name)), None)
        with tempfile.TemporaryDirectory() as folder:
            code = Path(folder, file)
            code.write_text(program)
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
        "from importlib.util import find_spec as here; from scikit_build_core.build import *;"
        "wanted = ' '.join(get_requires_for_build_wheel({'ninja.make-fallback': 'false'}));"
        f"print(*(name for name in {TOOLS} if name in wanted and not here(name)))"
    )
    missing = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    if missing:
        install(missing, f"installing {' and '.join(missing)}")


def sdist() -> Path:
    """Return the source archive of llama-cpp-python, downloaded by pip and checked against its hash."""
    version = requirements()[PACKAGE].partition("==")[2].split()[0]
    archive = WORK / f"llama_cpp_python-{version}.tar.gz"
    if archive.exists():
        return archive
    line = Line(f"downloading the source of llama.cpp ({PACKAGE} {version}, 77 MB)")
    with tempfile.TemporaryDirectory(dir=WORK) as name:
        folder = Path(name)
        (folder / "lock.txt").write_text(requirements()[PACKAGE] + "\n", "utf-8")
        command = [*PIP, "download", "--no-deps", "--no-build-isolation", "--no-binary", PACKAGE, "--require-hashes"]
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
                # The way to ask for the safe filter where Python has it, from 3.11.4 on.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(folder)
            os.replace(Path(folder) / source.name, source)
    return source


def extract_vocabs() -> None:
    """Take the vocabulary-only GGUF files, real tokenizers for the tests, out of the source archive."""
    line = Line("taking the vocabularies for the tests out of the source")
    fresh = VOCABS.with_name("vocabs.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with tarfile.open(sdist()) as tar:
        for member in tar:
            if re.search(r"/vendor/llama\.cpp/models/ggml-vocab-[^/]+\.gguf$", member.name):
                stream = tar.extractfile(member)
                if stream:
                    (fresh / Path(member.name).name).write_bytes(stream.read())
    shutil.rmtree(VOCABS, ignore_errors=True)
    os.replace(fresh, VOCABS)
    line.end(f"done, {len(list(VOCABS.iterdir()))} of them")
