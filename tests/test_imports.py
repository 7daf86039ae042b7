"""Imports go to lower ranks only. Each file is read, nothing is imported."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

RANKS = {
    "kernel.errors": 0,
    "kernel.canon": 0,
    "kernel.recent": 0,
    "kernel.shown": 0,
    "kernel.textfile": 1,
    "kernel.prompt": 1,
    "kernel.form": 2,
    "kernel.text": 2,
    "kernel.shape": 2,
    "kernel.models": 2,
    "kernel.trie": 3,
    "kernel.opcode": 3,
    "kernel.backends": 3,
    "kernel.memory": 4,
    "kernel.contract": 4,
    "kernel.casefile": 5,
    "kernel.choose": 5,
    "kernel.write": 5,
    "kernel.tools": 6,
    "kernel.api": 7,
    "kernel.learn": 8,
    "kernel": 8,
    "cartridges.kit": 9,
    "cartridges": 10,
    "dispatch.wire": 9,
    "dispatch.loading": 9,
    "dispatch.log": 10,
    "dispatch.checker": 10,
    "dispatch.session": 11,
    "dispatch.inspector": 12,
    "dispatch.tab": 13,
    "dispatch.serve": 14,
    "dispatch.mcp": 14,
    "dispatch.cli": 15,
    "dispatch": 16,
    "kernel.__main__": 17,
}
"""The rank of each package, and of each module that stands alone in one. A module may import what has a lower rank, and
what is of its own package; two packages of one rank do not know each other. A name that is not listed has the rank of
the package around it."""

MAY_IMPORT = {"kernel": {"kernel"}, "dispatch": {"dispatch", "kernel"}, "cartridges": {"cartridges", "kernel"}}
DOOR = "kernel.__main__"
"""`python -m kernel`: what joins the three, so its rank is the highest."""

HEAVY = {
    "llama_cpp": ("kernel/backends/llama_cpp.py",),
    "mcp": ("cartridges/kit/mcp/", "dispatch/mcp/", "kernel/tools/mcp.py"),
    "anyio": ("cartridges/kit/mcp/", "dispatch/mcp/"),
    "gymnasium": ("cartridges/kit/gymnasium.py", "cartridges/frozenlake.py"),
    "starlette": ("dispatch/serve/",),
    "uvicorn": ("dispatch/serve/",),
    "sse_starlette": ("dispatch/serve/",),
    "sklearn": ("kernel/learn/multinomial.py",),
    "scipy": ("kernel/learn/multinomial.py",),
}
"""Imported there only, so that nothing else needs it installed; the runtime inside a function, as it takes a while."""

FILES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def named(path: str) -> str:
    """Return the dotted name of a module.

    >>> named("kernel/trie/__init__.py"), named("kernel/api.py")
    ('kernel.trie', 'kernel.api')
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {named(path.relative_to(ROOT).as_posix()): path for path in FILES}


def room(module: str) -> str:
    """Return the entry of RANKS that a module belongs to."""
    while module not in RANKS:
        module = module.rpartition(".")[0]
    return module


def parsed(source: str) -> ast.Module:
    """Return the syntax tree, made while no garbage is collected.

    Garbage of earlier tests may print a traceback when it is collected, which parses the line that it shows. A parse
    inside of another makes the outer one fail in CPython 3.11.7: "AST constructor recursion depth mismatch".
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()


def imports(source: str, where: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, module, whether at the top of the file) of every import, those inside functions and strings too."""
    tree = parsed(source)
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            above = where.split("/")[: -node.level] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            for name in node.names:
                inner = f"{module}.{name.name}"
                yield node.lineno, inner if inner in MODULES else module, id(node) in top
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            for name in node.args[:1]:
                if isinstance(name, ast.Constant):
                    yield node.lineno, str(name.value), False


def faults(source: str, where: str) -> list[str]:
    """Return the imports that the tables do not allow."""
    importer = named(where)
    package = where.split("/")[0]
    own, found = room(importer), []
    for line, module, at_top in imports(source, where):
        root = module.split(".")[0]
        if root in MAY_IMPORT:
            if root not in MAY_IMPORT[package] and importer != DOOR:
                found.append(f"{where}:{line} imports {module}; {package} may import {sorted(MAY_IMPORT[package])}")
            elif room(module) != own and RANKS[room(module)] >= RANKS[own]:
                found.append(
                    f"{where}:{line} imports {module} of rank {RANKS[room(module)]}, itself of rank {RANKS[own]}"
                )
        if root in HEAVY and (not where.startswith(HEAVY[root]) or (at_top and root == "llama_cpp")):
            found.append(f"{where}:{line} imports {module}; only {', '.join(HEAVY[root])} does, on use")
        if root == "tests":
            found.append(f"{where}:{line} imports {module}; tests are not installed")
    return found


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the modules that reach themselves, those of one circle together."""
    reach = {name: set(others) for name, others in graph.items()}
    for middle in graph:
        for name in graph:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    looped = [name for name in graph if name in reach[name]]
    groups = {
        tuple(sorted(other for other in looped if other in reach[name] and name in reach[other])) for name in looped
    }
    return [list(group) for group in sorted(groups)]


@pytest.mark.parametrize("package", list(MAY_IMPORT))
def test_imports_go_to_lower_ranks(package: str) -> None:
    """Every file of a package against the ranks."""
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == package]
    assert len(files) > 5
    found = []
    for path in files:
        found += faults(path.read_text(), path.relative_to(ROOT).as_posix())
    assert found == []


def test_no_module_reaches_itself() -> None:
    """Those imports count as well that stand in a function or only help the type checker."""
    graph = {
        name: {
            module
            for _, module, _ in imports(path.read_text(), path.relative_to(ROOT).as_posix())
            if module in MODULES and module != name
        }
        for name, path in MODULES.items()
    }
    assert circles(graph) == []


def test_a_planted_circle_is_found() -> None:
    """Of two circles and a module that only leads into one."""
    graph: dict[str, set[str]] = {"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": {"e"}, "e": {"f"}, "f": {"d"}}
    assert circles(graph) == [["a", "b"], ["d", "e", "f"]]


def test_an_author_of_opcodes_loads_little() -> None:
    """At most 15 of our modules, and no model runtime."""
    code = "import sys, kernel.opcode; print(*[n for n in sys.modules if n.split('.')[0] in ('kernel', 'llama_cpp')])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    names = loaded.stdout.split()
    assert "llama_cpp" not in names
    assert len(names) <= 15, names


@pytest.mark.parametrize(
    ("where", "source", "fault"),
    [
        ("kernel/trie/trie.py", "from cartridges import tetris\n", "kernel/trie/trie.py:1 imports cartridges"),
        ("kernel/trie/trie.py", "import dispatch.wire as w\n", "imports dispatch.wire; kernel may import ['kernel']"),
        ("kernel/trie/trie.py", "def f():\n    from dispatch import wire\n", "kernel/trie/trie.py:2 imports dispatch"),
        ("kernel/api.py", "import importlib\nimportlib.import_module('cartridges.home')\n", "imports cartridges.home"),
        ("kernel/backends/llama_cpp.py", "from ...dispatch import log\n", "imports dispatch"),
        ("dispatch/log/writer.py", "from cartridges.home import make\n", "dispatch may import ['dispatch', 'kernel']"),
        (
            "cartridges/home/view.py",
            "from dispatch.wire import wire\n",
            "cartridges may import ['cartridges', 'kernel']",
        ),
        ("dispatch/log/writer.py", "from dispatch.cli.output import failing\n", "of rank 15, itself of rank 10"),
        ("dispatch/wire/wire.py", "from dispatch.loading import options\n", "of rank 9, itself of rank 9"),
        ("kernel/trie/trie.py", "from kernel.opcode import Opcode\n", "kernel.opcode of rank 3, itself of rank 3"),
        ("kernel/trie/trie.py", "from kernel.memory import rows\n", "kernel.memory.rows of rank 4, itself of rank 3"),
        ("kernel/errors.py", "from kernel import canon\n", "kernel.canon of rank 0, itself of rank 0"),
        ("kernel/text/cuts.py", "def f():\n    import llama_cpp\n", "only kernel/backends/llama_cpp.py does"),
        ("kernel/backends/llama_cpp.py", "import llama_cpp\n", "on use"),
        ("kernel/api.py", "from tests.kernel import conftest\n", "tests are not installed"),
    ],
)
def test_a_planted_import_is_found(where: str, source: str, fault: str) -> None:
    """The check itself is checked, with each kind of import that would break it."""
    (found,) = faults(source, where)
    assert fault in found


def test_every_module_says_what_it_does() -> None:
    """A docstring of its own on each file that has code."""
    without = [
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if path.read_text().strip() and not ast.get_docstring(parsed(path.read_text()))
    ]
    assert without == []


def test_no_module_is_longer_than_300_lines() -> None:
    """Split before adding."""
    long = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in FILES}
    assert {name: lines for name, lines in long.items() if lines > 300} == {}
