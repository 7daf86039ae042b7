"""The Python of a tab as one zip: the modules that `program.py` and a cartridge import, as they stand here.

What a tab has not, such as numpy and the runtime, is imported inside functions only, which are not called there.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernel.errors import CartridgeError

DOOR = "dispatch.tab.program"
GIVEN = frozenset({"annotated_types", "pydantic", "pydantic_core", "rich", "typing_extensions", "typing_inspection"})
"""Packages that a tab has beside the standard library."""
OURS = ("kernel", "dispatch", "cartridges")
WHEN = (1980, 1, 1, 0, 0, 0)
"""Every file's time, so that equal files make an equal zip."""


def zipped(module: str) -> bytes:
    """Return the zip of what a tab needs to play the cartridge that a module makes.

    Raises CartridgeError for a cartridge that imports what a tab has not.
    """
    found = {**reached(DOOR), **reached(module)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(found.items()):
            place = name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
            archive.writestr(zipfile.ZipInfo(place, WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def reached(module: str) -> dict[str, Path]:
    """Return the files of a module and of all that it imports, but for the standard library and `GIVEN`, by name.

    What is imported inside functions only is in it where a tab can have it, and else left out.
    """
    found: dict[str, Path] = {}
    later = _add(module, module, found)
    while later:
        name = later.pop()
        more: dict[str, Path] = {}
        try:
            later += _add(name, module, more, found)
        except CartridgeError:
            continue
        found |= more
    return found


def _add(module: str, first: str, found: dict[str, Path], known: Mapping[str, Path] | None = None) -> list[str]:
    """Add the files of a module and of what it imports; return what these import inside functions."""
    later: list[str] = []
    wanted = [(module, "")]
    while wanted:
        name, whose = wanted.pop()
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            part = ".".join(parts[:count])
            if part in found or part in (known or {}) or (path := _file_of(part)) is None:
                continue
            if count == 1 and part not in (*OURS, first.split(".")[0]):
                raise CartridgeError(f"{whose} imports {part!r}, which a browser's tab has not")
            found[part] = path
            tree = ast.parse(path.read_text("utf-8"))
            wanted += [(each, part) for each in _imports(tree.body)]
            inside = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
            later += [each for node in inside for each in _imports(node.body)]
    return later


def _file_of(module: str) -> Path | None:
    """Return the file of a module; None for the standard library, for `GIVEN`, and for a name inside a module."""
    root = module.split(".")[0]
    if root in sys.stdlib_module_names or root in GIVEN:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a name in a module that is no package
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _imports(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what statements import when they are run, those of functions in them left out."""
    for node in body:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(source), level=0):
                yield source
                yield from (f"{source}.{alias.name}" for alias in node.names)
            case ast.If():
                if "TYPE_CHECKING" not in ast.dump(node.test):
                    yield from _imports(node.body)
                yield from _imports(node.orelse)
            case ast.Try() | ast.ClassDef() | ast.With():
                yield from _imports(node.body)
