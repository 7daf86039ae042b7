"""Hostile tool lists: each loads whole or is refused with a sentence, and importing what is written only defines.

The lists are others in each run. The seed is printed; FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import shutil
import types
from pathlib import Path
from typing import Any

import pytest

from cartridges.kit.toolbox import toolbox
from dispatch.loading.toolwriter import LONGEST, writable, write
from kernel.errors import KernelError
from kernel.opcode.tools import function_name, read_tools
from tests.fuzz.tool_cases import text, tools

SEED = os.environ.get("FUZZ_SEED", str(random.SystemRandom().randrange(1 << 32)))
HARMLESS = {"__import__": builtins.__import__}
"""All that the written modules may use of Python: another name in them, called or read, is a NameError."""


def run(source: str) -> dict[str, Any]:
    """Return the names that a module defines when it is run."""
    namespace: dict[str, Any] = {"__builtins__": HARMLESS, "__name__": "written"}
    exec(compile(source, "written", "exec", dont_inherit=True), namespace)
    return {name: value for name, value in namespace.items() if not name.startswith("__")}


def hold(listed: list[dict[str, Any]], file_name: str, folder: Path) -> int:
    """Import a list and hold what is written; return how many tools there are."""
    found = writable(read_tools(listed))
    assert len(found.tools) + len(found.refusals) == len(listed)
    assert "fine" in [tool.name for tool in found.tools], [refusal.reason for refusal in found.refusals]
    assert all(refusal.reason for refusal in found.refusals)
    files = write(found, folder, file_name)
    assert [file.name for file in files] == ["README.md", "__init__.py", "handlers.py", "tools.json"]
    defined = run((folder / "handlers.py").read_text("utf-8"))
    functions = [function_name(opcode.method) for opcode in found.opcodes]
    assert set(defined) == {"annotations", "Any", *functions}
    for tool, opcode, name in zip(found.tools, found.opcodes, functions, strict=True):
        function = defined[name]
        assert isinstance(function, types.FunctionType)
        cut = [" ".join(said.split())[:LONGEST] for said in (tool.description, tool.name)]
        assert function.__doc__ == (cut[0] or cut[1] or opcode.method)
        required = {a.name: None for a in opcode.arguments() if a.required}
        assert function(**required) == f"{tool.name} is not filled in yet"
        assert function(**dict.fromkeys(a.name for a in opcode.arguments())) == f"{tool.name} is not filled in yet"
    init = (folder / "__init__.py").read_text("utf-8")
    assert sorted(run(init.replace("from . import", "import string as"))) == [
        "Cartridge", "Path", "annotations", "handlers", "make", "toolbox"
    ]  # fmt: skip
    assert len((folder / "README.md").read_text("utf-8").splitlines()) == 8
    for file in files:
        assert all(c.isprintable() or c == "\n" for c in file.read_text("utf-8")), file
    handlers = types.ModuleType("handlers")
    vars(handlers).update(defined)
    cartridge = toolbox(folder.name, folder / "tools.json", handlers)
    assert [opcode.method for opcode in cartridge.opcodes[:-1]] == [opcode.method for opcode in found.opcodes]
    assert cartridge.engine().summary() == {"calls": 0}
    return len(found.tools)


def held(count: int, folder: Path) -> None:
    """Hold so many lists; the error says which one it was."""
    print(f"FUZZ_SEED={SEED}")
    kept = 0
    for number in range(count):
        rng = random.Random(f"{SEED} tools {number}")
        listed, source = tools(rng), text(rng)
        target = folder / "mytools"
        try:
            kept += hold(listed, source, target)
        except (Exception, SystemExit) as error:
            where = f"FUZZ_SEED={SEED}, list {number}, from {source!r}: {listed!r}"
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
        shutil.rmtree(target)
    assert kept > 1.2 * count  # the harmless one of each list, and many a hostile one


def test_sixty_hostile_lists_only_define(tmp_path: Path) -> None:
    """The slice that every run takes."""
    held(60, tmp_path)


@pytest.mark.slow
def test_five_thousand_hostile_lists_only_define(tmp_path: Path) -> None:
    """All of them."""
    held(5000, tmp_path)


def test_the_lists_read_from_text_are_those_read_as_values(tmp_path: Path) -> None:
    """What a file holds goes the same way: read, refused or written."""
    del tmp_path
    for number in range(20):
        listed = tools(random.Random(f"{SEED} text {number}"))
        as_text = json.dumps(listed)
        try:
            found = read_tools(as_text)
        except KernelError:
            continue  # NaN and half of a surrogate pair are no JSON
        assert [o.method for o in found.opcodes] == [o.method for o in read_tools(json.loads(as_text)).opcodes]
