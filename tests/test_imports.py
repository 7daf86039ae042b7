"""Dependencies run one way: cartridges -> kernel <- dispatch. Each file is read, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT = {
    "kernel": {"kernel"},
    "dispatch": {"dispatch", "kernel"},
    "cartridges": {"cartridges", "kernel"},
}
COMMANDS = "kernel/cli/"
"""What brings the three together; nothing but the command line may be reached from there."""

HEAVY = {
    "llama_cpp": ("kernel/backends/llama_cpp.py",),
    "gymnasium": ("cartridges/gymnasium.py", "cartridges/frozenlake.py"),
}
"""Imported there only, so that nothing else needs it installed; the runtime inside a function, as it takes a while."""

FILES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def imports(source: str, where: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, module, whether at the top of the file) of every import, those inside functions and strings too."""
    tree = ast.parse(source)
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            above = where.split("/")[: -node.level] if node.level else []
            yield node.lineno, ".".join([*above, *filter(None, [node.module])]), id(node) in top
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            for name in node.args[:1]:
                if isinstance(name, ast.Constant):
                    yield node.lineno, str(name.value), False


def faults(source: str, where: str) -> list[str]:
    """Return the imports that the table does not allow."""
    package = where.split("/")[0]
    allowed = set(MAY_IMPORT) if where.startswith(COMMANDS) else MAY_IMPORT[package]
    found = []
    for line, module, at_top in imports(source, where):
        root = module.split(".")[0]
        if root in MAY_IMPORT and root not in allowed:
            found.append(f"{where}:{line} imports {module}; {package} may import {', '.join(sorted(allowed))}")
        if module.startswith("kernel.cli") and not where.startswith(COMMANDS) and where != "kernel/__main__.py":
            found.append(f"{where}:{line} imports {module}; the command line is not for use by others")
        if root in HEAVY and (where not in HEAVY[root] or (at_top and root == "llama_cpp")):
            found.append(f"{where}:{line} imports {module}; only {', '.join(HEAVY[root])} does, on use")
        if root == "tests":
            found.append(f"{where}:{line} imports {module}; tests are not installed")
    return found


@pytest.mark.parametrize("package", list(MAY_IMPORT))
def test_dependencies_run_one_way(package: str) -> None:
    """Every file of a package against its row of the table."""
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == package]
    assert len(files) > 5
    found = []
    for path in files:
        found += faults(path.read_text(), path.relative_to(ROOT).as_posix())
    assert found == []


@pytest.mark.parametrize(
    ("where", "source", "fault"),
    [
        ("kernel/trie.py", "from cartridges import tetris\n", "kernel/trie.py:1 imports cartridges"),
        ("kernel/trie.py", "import dispatch.wire as w\n", "imports dispatch.wire; kernel may import kernel"),
        ("kernel/trie.py", "def f():\n    from dispatch import wire\n", "kernel/trie.py:2 imports dispatch"),
        ("kernel/trie.py", "import importlib\nimportlib.import_module('cartridges.home')\n", "imports cartridges.home"),
        ("kernel/backends/llama_cpp.py", "from ...dispatch import log\n", "imports dispatch"),
        ("dispatch/log.py", "from cartridges.registry import load\n", "dispatch may import dispatch, kernel"),
        ("cartridges/home/view.py", "from dispatch.wire import Wire\n", "cartridges may import cartridges, kernel"),
        ("dispatch/log.py", "from kernel.cli.common import failing\n", "the command line is not for use by others"),
        ("kernel/vocab.py", "def f():\n    import llama_cpp\n", "only kernel/backends/llama_cpp.py does"),
        ("kernel/backends/llama_cpp.py", "import llama_cpp\n", "on use"),
        ("kernel/api.py", "from tests.kernel import conftest\n", "tests are not installed"),
    ],
)
def test_a_planted_import_is_found(where: str, source: str, fault: str) -> None:
    """The check itself is checked, with each kind of import that would break it."""
    (found,) = faults(source, where)
    assert fault in found


def test_commands_may_import_all_three() -> None:
    """That is what they are for."""
    assert faults("import cartridges\nimport dispatch\nimport kernel\n", "kernel/cli/run.py") == []


def test_every_module_says_what_it_does() -> None:
    """A docstring of its own on each file that has code."""
    without = [
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert without == []


def test_no_module_is_longer_than_400_lines() -> None:
    """Split before adding."""
    long = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in FILES}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}
