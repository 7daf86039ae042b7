"""Python source out of syntax trees: what is read back from the text is the tree that was meant, or nothing is written.

Text from outside is a constant of the tree, so it can end no literal. Names of arguments are checked here, since Python
reads some names as others.
"""

from __future__ import annotations

import ast
import keyword
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from kernel.errors import CartridgeError

WIDTH = 120
"""Columns of a line; the head of a longer function has a line for each argument."""

LONGEST = 200
"""Letters of a name."""


class Parameter(NamedTuple):
    """An argument of a function. `annotation` is source, so never text from outside."""

    name: str
    annotation: str
    required: bool


def spellable(name: str) -> bool:
    """Return whether an argument can have this name, is then called by it, and takes no name that Python gives a sense.

    >>> [spellable(name) for name in ("city", "a-b", "class", "__debug__", "Any", "\\ufb01", "x" * 201)]
    [True, False, False, False, False, False, False]
    """
    return (
        len(name) <= LONGEST
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("__")
        and name not in ("Any", "annotations")
        and unicodedata.normalize("NFKC", name) == name
    )


def function(name: str, parameters: Sequence[Parameter], doc: str, result: str) -> ast.FunctionDef:
    """Return a function that returns a text; it takes keywords, or `**arguments` where one cannot be spelled."""
    (made,) = ast.parse("def made() -> Any: return None").body
    assert isinstance(made, ast.FunctionDef)
    made.name = name
    made.body = [ast.Expr(ast.Constant(doc)), ast.Return(ast.Constant(result))]
    if not all(spellable(parameter.name) for parameter in parameters):
        made.args.kwarg = ast.arg("arguments", ast.Name("Any", ast.Load()))
        return made
    for parameter in sorted(parameters, key=lambda each: not each.required):
        said = parameter.annotation if parameter.required else f"{parameter.annotation} | None"
        made.args.kwonlyargs.append(ast.arg(parameter.name, ast.parse(said, mode="eval").body))
        made.args.kw_defaults.append(None if parameter.required else ast.Constant(None))
    return made


def source(tree: ast.Module) -> str:
    """Return the text of a module.

    Raises CartridgeError when Python reads it as anything but this tree, or does not compile it.
    """
    text = "\n".join(map(_laid_out, tree.body, [None, *tree.body])) + "\n"
    try:
        same = ast.dump(ast.parse(text)) == ast.dump(tree)
        compile(text, "<written>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CartridgeError(f"Python does not read what would be written: {error}") from error
    if not same:
        raise CartridgeError("Python reads what would be written in another way")
    return text


def _laid_out(statement: ast.stmt, before: ast.stmt | None) -> str:
    """Return the text of a statement behind the blank lines that part it from the one before."""
    text = ast.unparse(ast.fix_missing_locations(ast.Module([statement], [])))
    if isinstance(statement, ast.FunctionDef):
        head, _, body = text.partition("\n")
        if len(head) > WIDTH and statement.args.kwonlyargs:
            arguments = zip(statement.args.kwonlyargs, statement.args.kw_defaults, strict=True)
            lines = [f"    {ast.unparse(a)}{'' if default is None else ' = None'},\n" for a, default in arguments]
            text = f"def {statement.name}(\n    *,\n{''.join(lines)}) -> Any:\n{body}"
    if before is None:
        return text
    if isinstance(statement, ast.FunctionDef) or isinstance(before, ast.FunctionDef):
        return f"\n\n{text}"
    return text if isinstance(before, ast.ImportFrom) and before.module != "__future__" else f"\n{text}"
