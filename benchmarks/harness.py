"""What every benchmark shares: its options, the machine that it ran on, and where its results go."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that every benchmark has, and its docstring as help."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the JSON to this file as well")
    return parser


def machine(packages: Iterable[str]) -> dict[str, Any]:
    """Return what a reader needs to compare: processor, cores, memory, versions of these packages, commit."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    versions = {"python": platform.python_version(), "numpy": importlib.metadata.version("numpy")}
    for name in ("llama-cpp-python", *packages):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e6, 1),
        "load": [round(value, 2) for value in os.getloadavg()],
        "versions": versions,
        "commit": commit.stdout.strip(),
    }


def publish(
    benchmark: str, found: dict[str, Any], out: Path | None, packages: Iterable[str] = (), *, told: bool = True
) -> None:
    """Print what was found as one JSON line, the last; write it to a file as well where one is named.

    Args:
        told: whether it is printed; what is only written so far is not.
        packages: whose versions matter beside those of Python, numpy and llama-cpp-python.
    """
    result = {"benchmark": benchmark, "machine": machine(packages), "arguments": sys.argv[1:], **found}
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n")
    if told:
        print(json.dumps(result))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
