"""The cases of the Berkeley Function Calling Leaderboard, and its own checker, out of the PyPI package `bfcl-eval`.

The package is read where it lies, as a wheel in .cache/bfcl; nothing of it is installed. Its AST checker imports the
table of the models that it knows and converters for Java and JavaScript, which need much else: these three modules
are stood in for. None of them decides about Python.

A seed draws the published cases of each category; what it leaves is for development.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "bfcl-eval==2026.3.23"
ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bfcl"
CATEGORIES = ("simple_python", "multiple", "live_simple", "live_multiple", "irrelevance", "live_irrelevance")
SEED = 16

Row = dict[str, Any]
Judge = Callable[["Case", str, Mapping[str, Any]], str]
"""Returns why a call is wrong, "" where it is right."""


@dataclass(frozen=True)
class Case:
    """One request of the leaderboard.

    Attributes:
        functions: as the leaderboard lists them.
        answer: the accepted values of each argument, by the name of the right function; none where no function fits.
    """

    id: str
    category: str
    request: str
    functions: tuple[Row, ...]
    answer: tuple[Row, ...]

    @property
    def wanted(self) -> str:
        """The name of the right function, "" where none fits."""
        return next(iter(self.answer[0])) if self.answer else ""


def wheel() -> Path:
    """Return the package, fetched when it is not here."""
    if not list(CACHE.glob("bfcl_eval-*.whl")):
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE), PACKAGE]
        subprocess.run(command, check=True)
    return next(CACHE.glob("bfcl_eval-*.whl"))


def cases(category: str, *, seed: int = SEED, most: int = 200, dev: bool = False) -> list[Case]:
    """Return cases of a category in the order of the package: the drawn ones, or those that were left."""
    with zipfile.ZipFile(wheel()) as archive:
        rows = [json.loads(line) for line in archive.read(f"bfcl_eval/data/BFCL_v4_{category}.json").splitlines()]
        answers: dict[str, list[Row]] = {}
        if "irrelevance" not in category:
            path = f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json"
            answers = {row["id"]: row["ground_truth"] for row in map(json.loads, archive.read(path).splitlines())}
    drawn = set(random.Random(f"{seed} {category}").sample([row["id"] for row in rows], min(most, len(rows))))
    return [
        Case(row["id"], category, request(row), tuple(row["function"]), tuple(answers.get(row["id"], ())))
        for row in rows
        if (row["id"] in drawn) is not dev
    ]


def request(row: Row) -> str:
    """Return what the user says last."""
    said = [message["content"] for message in row["question"][0] if message.get("role") == "user"]
    return str(said[-1]) if said else ""


def checker() -> Judge:
    """Return the leaderboard's own checker of Python calls."""
    prefix = "bfcl_eval.eval_checker.ast_eval.type_convertor"
    for name, has in (
        ("bfcl_eval.constants.model_config", {"MODEL_CONFIG_MAPPING": _Models()}),
        (f"{prefix}.java_type_converter", {"java_type_converter": None}),
        (f"{prefix}.js_type_converter", {"js_type_converter": None}),
    ):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(has)
    sys.path.insert(0, str(wheel()))
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def judge(case: Case, name: str, arguments: Mapping[str, Any]) -> str:
        call = [{name: dict(arguments)}]
        found = ast_checker(list(case.functions), call, list(case.answer), Language.PYTHON, case.category, "any")
        return "" if found["valid"] else f"{found.get('error_type')}: {' '.join(map(str, found['error']))}"

    return judge


class _Models(dict[str, Any]):
    """A table that knows every model, and that none of them writes `_` for `.` in names."""

    def __missing__(self, name: str) -> Any:
        return types.SimpleNamespace(underscore_to_dot=False)
