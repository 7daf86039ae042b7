"""The Python of a tab as one zip: the modules that `program.py` and a cartridge import, as they stand here.

What a tab has not, such as numpy and the runtime, is imported inside functions only, which are not called there.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
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
    found = reached(DOOR, module)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(found.items()):
            place = name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
            archive.writestr(zipfile.ZipInfo(place, WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def reached(*modules: str) -> dict[str, Path]:
    """Return the files of modules and of all that they import, but for the standard library and `GIVEN`, by name.

    What is imported inside functions only is in it where a tab can have it, and else left out.
    """
    roots = frozenset((*OURS, *(module.split(".")[0] for module in modules)))
    found: dict[str, Path] = {}
    later = [name for module in modules for name in _add(module, roots, found)]
    while later:
        name = later.pop()
        more: dict[str, Path] = {}
        try:
            later += _add(name, roots, more, found)
        except CartridgeError:
            continue
        found |= more
    return found


def _add(
    module: str, roots: Collection[str], found: dict[str, Path], known: Mapping[str, Path] | None = None
) -> list[str]:
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
            if parts[0] not in roots:
                raise CartridgeError(f"{whose} imports {part!r}, which a browser's tab has not")
            found[part] = path
            at_once, inside = _imported(path, path.stat().st_mtime_ns)
            wanted += [(each, part) for each in at_once]
            later += inside
    return later


@cache
def _imported(path: Path, _changed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a file imports when it is imported itself, and what its functions import."""
    body = ast.parse(path.read_text("utf-8")).body
    return tuple(_imports(body)), tuple(each for function in _functions(body) for each in _imports(function.body))


def _functions(body: Sequence[ast.AST]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions in some statements, and those inside of them."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from _functions(getattr(node, name, ()))


def _file_of(module: str) -> Path | None:
    """Return the file of a module; None for the standard library, for `GIVEN`, and for a name inside a module."""
    root, *inner = module.split(".")
    if root in sys.stdlib_module_names or root in GIVEN or (folder := _folder_of(root)) is None:
        return None
    path = folder.joinpath(*inner)
    return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)


@cache
def _folder_of(root: str) -> Path | None:
    """Return the folder of a package, or the file of a module without its suffix."""
    spec = importlib.util.find_spec(root)
    if spec is None or not spec.origin:
        return None
    path = Path(spec.origin)
    return path.parent if path.name == "__init__.py" else path.with_suffix("")


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
