"""Imports the module of a cartridge, by its dotted name or from a folder."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import reprlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from dispatch.loading.error_line import error_line
from kernel.errors import CartridgeError, UnknownCartridgeError, did_you_mean

MAKE = "make"
"""The function that returns the cartridge, unless another one is named."""


def function(module: ModuleType, name: str, where: str) -> Callable[..., Any]:
    """Return what makes the cartridge; `where` begins the error."""
    try:
        found: Any = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        callables = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        hint = did_you_mean(name, callables)
        raise CartridgeError(f"{where}: {module.__name__} has no {name!r}; a cartridge has make(){hint}") from None
    if not callable(found):
        shown = reprlib.repr(found)  # bounded, and never an error of its own
        raise CartridgeError(f"{where}: {module.__name__}.{name} is {shown}, no function that makes a cartridge")
    made: Callable[..., Any] = found
    return made


def by_name(module: str, where: str) -> ModuleType:
    """Import a module by its dotted name; whatever it raises becomes a CartridgeError that begins with `where`.

    One that is not there is an UnknownCartridgeError.
    """
    try:
        return importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of the author's code; SystemExit among them
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (module == missing or module.startswith(f"{missing}.")):
            raise UnknownCartridgeError(f"{where}: there is no module {missing!r}") from error
        raise CartridgeError(f"{where} cannot be imported: {error_line(error)}") from error


def by_path(path: Path, where: str) -> ModuleType:
    """Import the package in a folder, or one file, under the name that its folders give it.

    A folder inside another package is imported as part of that, so its imports mean what they mean elsewhere.
    Raises UnknownCartridgeError when there is nothing to import, CartridgeError when Python knows another module by
    that name or the import fails.
    """
    try:
        file = _file(path, where)
    except (OSError, RuntimeError, ValueError) as error:  # too long a name, a loop of links, `~` of nobody
        said = getattr(error, "strerror", None) or error
        raise UnknownCartridgeError(f"{where[:200]}: there is no such folder or file: {said}") from error
    names, folder = ([] if file.name == "__init__.py" else [file.stem]), file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    for name in names:
        if not name.isidentifier():
            raise CartridgeError(f"{where}: {name!r} is no name that Python can import; rename it")
    top = folder / names[0] / "__init__.py" if len(names) > 1 or file.name == "__init__.py" else file
    if (known := _known(names[0])) is None:
        _load(names[0], top, where)
    elif known != top:
        origin = known or "a module without a file"
        raise CartridgeError(f"{where}: Python knows another module {names[0]!r}, {origin}; rename {top.parent}")
    return by_name(".".join(names), where)


def _file(path: Path, where: str) -> Path:
    path = path.expanduser().resolve()
    if path.is_dir():
        file = path / "__init__.py"
        if not file.is_file():
            inside = sorted(str(p.parent.name) for p in path.glob("*/__init__.py"))
            hint = f"; did you mean {str(path / inside[0])!r}?" if len(inside) == 1 else ""
            raise UnknownCartridgeError(f"{where}: there is no __init__.py in {str(path)!r}{hint}")
        return file
    if not path.is_file():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, near, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""  # a whole directory listing would help nobody
        raise UnknownCartridgeError(f"{where}: there is no folder or file {str(path)!r}{hint}")
    if path.suffix != ".py":
        raise CartridgeError(f"{where}: {str(path)!r} is neither a folder nor a .py file")
    return path


def _known(name: str) -> Path | str | None:
    """Return the file of the module that Python finds under a top-level name, "" if it has none, None if none is."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that says nothing of where it is from
        return ""
    if spec is None:
        return None
    return Path(spec.origin).resolve() if spec.origin and spec.has_location else ""


def _load(name: str, file: Path, where: str) -> None:
    locations = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=locations)
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        for loaded in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
            del sys.modules[loaded]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise CartridgeError(f"{where} cannot be imported: {error_line(error)}") from error
