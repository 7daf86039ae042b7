"""Writes the cartridge of an imported tool list: the list itself, and a function to fill in for each tool."""

from __future__ import annotations

import json
import keyword
from pathlib import Path

from dispatch.loading.folder import check_new, filled
from kernel.errors import UsageError
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import Imported, Tool, function_name

INIT = '''"""{count} tools out of {source}. What they do stands in `handlers.py`; what they take, in `tools.json`."""

from __future__ import annotations

from pathlib import Path

from cartridges.kit.toolbox import toolbox
from kernel.contract import Cartridge

from . import handlers


def make() -> Cartridge:
    """Return the cartridge."""
    return toolbox({name!r}, Path(__file__).with_name("tools.json"), handlers)
'''

HANDLERS = '''"""What the tools do: fill the functions in. Arguments have been checked; what is returned is shown.

An argument that was left out of a call is not passed, so its default here is what it means.
"""

from __future__ import annotations

from typing import Any
'''

README = """# {name}

{count} tools, imported from {source}. Fill in `handlers.py`, then:

    python -m kernel call ./{name} "a request in plain words"

The arguments of a call always satisfy the schemas in `tools.json`. What of them is only description is listed by
`python -m kernel import`.
"""

PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list[Any]"}


def write(found: Imported, target: Path, source: str) -> list[Path]:
    """Write the cartridge into a new folder, whose name it gets; return its files.

    Raises:
        UsageError: a folder that is there already, or whose name no cartridge can have; no tool to write.
        CartridgeError: it cannot be written; nothing is left then.
    """
    name = target.name
    check_new(name, target)
    if not found.tools:
        raise UsageError(f"{source}: there is no tool to import")
    texts = {
        "__init__.py": INIT.format(count=len(found.tools), source=source, name=name),
        "handlers.py": HANDLERS + "".join(map(_handler, found.opcodes, found.tools)),
        "tools.json": json.dumps({"tools": list(map(_plain, found.tools))}, ensure_ascii=False, indent=2) + "\n",
        "README.md": README.format(count=len(found.tools), source=source, name=name),
    }
    with filled(target) as fresh:
        for file, text in texts.items():
            (fresh / file).write_text(text, "utf-8")
    return sorted(target.iterdir())


def _plain(tool: Tool) -> dict[str, object]:
    schema = {"type": "object", **(tool.schema or {})}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


def _handler(opcode: type[SchemaOpcode], tool: Tool) -> str:
    """Return a function with the arguments of a tool, or with any where Python cannot spell their names."""
    arguments = opcode.arguments()
    if all(a.name.isidentifier() and not keyword.iskeyword(a.name) for a in arguments):
        typed = [f"{a.name}: {_annotation(tool, a.name)}" for a in arguments if a.required]
        typed += [f"{a.name}: {_annotation(tool, a.name)} | None = None" for a in arguments if not a.required]
        listed = "*, " + ", ".join(typed) if typed else ""
    else:
        listed = "**arguments: Any"
    head = f"def {function_name(opcode.method)}({listed}) -> Any:"
    if len(head) > 120:
        inner = "".join(f"    {part},\n" for part in ["*", *typed])
        head = f"def {function_name(opcode.method)}(\n{inner}) -> Any:"
    return f'\n\n{head}\n    """{_sentence(tool)}"""\n    return {f"{tool.name} is not filled in yet"!r}\n'


def _annotation(tool: Tool, name: str) -> str:
    part = (tool.schema or {}).get("properties", {}).get(name, {})
    kind = part.get("type") if isinstance(part, dict) else None
    return PYTHON.get(kind, "Any") if isinstance(kind, str) else "Any"


def _sentence(tool: Tool) -> str:
    told = " ".join(tool.description.split()).replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
    return told[:100] or tool.name
