"""Writes the cartridge of an imported tool list: the list itself, and a function to fill in for each tool.

Everything that comes out of the list enters the Python files as a constant of a syntax tree (`pycode`), and tools.json
as JSON that is read back before it is written.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from dispatch.loading import pycode
from dispatch.loading.folder import check_new, filled
from kernel.errors import CartridgeError, KernelError
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import Imported, Refusal, Tool, function_name, read_tools
from kernel.shown import shown

INIT = '''"doc"
from __future__ import annotations
from pathlib import Path
from cartridges.kit.toolbox import toolbox
from kernel.contract import Cartridge
from . import handlers
def make() -> Cartridge:
    """Return the cartridge."""
    return toolbox("name", Path(__file__).with_name("tools.json"), handlers)
'''

HANDLERS = '''"""What the tools do: fill the functions in. Arguments have been checked; what is returned is shown.

An argument that was left out of a call is not passed, so its default here is what it means. What a function raises is
shown as a failure, and the session remembers no such call.
"""
from __future__ import annotations
from typing import Any
'''

README = """# {name}

{count} tools, imported from `{source}`. Fill in `handlers.py`, then:

    python -m kernel call ./{name} "a request in plain words"

The arguments of a call always satisfy the schemas in `tools.json`. What of them is only description is listed by
`python -m kernel import`.
"""

PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list[Any]"}

LONGEST = 100
"""Characters of a description that stand below a function, and of the name of the file that was imported."""


def writable(found: Imported) -> Imported:
    """Return what of a tool list can be written: a tool that would not be read back as it is becomes a refusal."""
    kept: list[tuple[Tool, type[SchemaOpcode]]] = []
    refusals = list(found.refusals)
    for tool, opcode in zip(found.tools, found.opcodes, strict=True):
        try:
            pycode.source(ast.Module([_handler(opcode, tool)], []))
            again = read_tools(json.loads(_json([tool])))
        except (KernelError, ValueError, TypeError, RecursionError) as error:
            reason = f"{tool.name}: cannot be written: {error}"
        else:
            if [each.method for each in again.opcodes] == [opcode.method]:
                kept.append((tool, opcode))
                continue
            reason = f"{tool.name}: is read back in another way"
        refusals.append(Refusal(tool.name, reason))
    tools, opcodes = tuple(tool for tool, _ in kept), tuple(opcode for _, opcode in kept)
    notes = tuple(note for note in found.notes if note.tool not in {r.tool for r in refusals[len(found.refusals) :]})
    return replace(found, tools=tools, opcodes=opcodes, refusals=tuple(refusals), notes=notes)


def write(found: Imported, target: Path, source: str) -> list[Path]:
    """Write the cartridge into a new folder, whose name it gets; return its files.

    Args:
        found: as `writable` returns it.
        source: the name of what was imported.
    Raises:
        UsageError: a folder that is there already, or whose name no cartridge can have.
        CartridgeError: no tool to write, or it cannot be written; nothing is left then.
    """
    name, count = target.name, len(found.tools)
    check_new(name, target)
    if not found.tools:
        raise CartridgeError(f"{source}: there is no tool to import")
    handlers = ast.parse(HANDLERS)
    handlers.body += map(_handler, found.opcodes, found.tools)
    texts = {
        "__init__.py": pycode.source(_init(name, count, source)),
        "handlers.py": pycode.source(handlers),
        "tools.json": _json(found.tools),
        "README.md": README.format(count=count, source=shown(source[:LONGEST]).replace("`", "\\x60"), name=name),
    }
    with filled(target) as fresh:
        for file, text in texts.items():
            (fresh / file).write_text(text, "utf-8", newline="\n")
    return sorted(target.iterdir())


def _init(name: str, count: int, source: str) -> ast.Module:
    what = f"{count} tools out of {shown(source[:LONGEST])}"
    texts: dict[object, str] = {
        "doc": f"{what}. What they do stands in `handlers.py`; what they take, in `tools.json`.",
        "name": name,
    }
    tree = ast.parse(INIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = texts.get(node.value, node.value)
    return tree


def _json(tools: tuple[Tool, ...] | list[Tool]) -> str:
    """Return a tool list as JSON, in which characters that do not show are escapes.

    Raises ValueError or TypeError for what would be read back as something else.
    """
    plain = {"tools": [_plain(tool) for tool in tools]}
    text = json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    text = re.sub(r"[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)
    if json.loads(text) != plain:
        raise ValueError("its JSON is read back as something else")
    return text


def _plain(tool: Tool) -> dict[str, object]:
    schema = {"type": "object", **(tool.schema or {})}
    hints = {"annotations": {"destructiveHint": True}} if tool.destructive else {}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema, **hints}


def _handler(opcode: type[SchemaOpcode], tool: Tool) -> ast.FunctionDef:
    parameters = [pycode.Parameter(a.name, _annotation(tool, a.name), a.required) for a in opcode.arguments()]
    doc = _cut(tool.description) or _cut(tool.name) or opcode.method
    return pycode.function(function_name(opcode.method), parameters, doc, f"{tool.name} is not filled in yet")


def _cut(text: str) -> str:
    return " ".join(text.split())[:LONGEST]


def _annotation(tool: Tool, name: str) -> str:
    part: Any = (tool.schema or {}).get("properties", {}).get(name, {})
    kind = part.get("type") if isinstance(part, dict) else None
    return PYTHON.get(kind, "Any") if isinstance(kind, str) else "Any"
