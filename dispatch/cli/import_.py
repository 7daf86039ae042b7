"""`import`: writes a cartridge out of a tool list, and says what of the tools' schemas cannot be held."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from dispatch.cli.common import AsJson
from dispatch.cli.output import failing, note, print_json, say
from dispatch.cli.streams import stdin_text
from dispatch.loading.toolwriter import writable, write
from kernel.errors import UsageError
from kernel.opcode.tools import Imported, read_tools

Source = Annotated[str, typer.Argument(help="A file in the form of the OpenAI API or of MCP's tools/list; - is stdin.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder to write; its name becomes the cartridge's.")]
Strict = Annotated[bool, typer.Option("--strict", help="Write nothing when a tool is refused.")]


def import_command(source: Source, output: Output, strict: Strict = False, as_json: AsJson = False) -> None:
    """Write a cartridge out of a tool list, with a function to fill in for each tool.

    A tool whose schema cannot be held exactly is left out, with tool, path and keyword; the others are written.
    What in a schema only describes is listed.

    Example: import tools.json -o cartridges/mytools
    """
    with failing():
        found = writable(read_tools(stdin_text() if source == "-" else Path(source)))
        if strict and found.refusals:
            raise UsageError(f"{len(found.refusals)} refused, the first: {found.refusals[0].reason}")
        for refusal in found.refusals:
            note(f"refused: {refusal.reason}")
        files = write(found, output, "stdin" if source == "-" else Path(source).name)
    if as_json:
        print_json(_report(found, files))
        return
    for file in files:
        say(str(file))
    for told in found.notes:
        note(f"note: {told}")
    where = output if output.is_absolute() else f".{os.sep}{output}"
    note(
        f"{len(found.tools)} tools written, {len(found.refusals)} refused; "
        f'fill in handlers.py, then: python -m kernel call {where} "a request"'
    )


def _report(found: Imported, files: list[Path]) -> dict[str, Any]:
    return {
        "files": [str(file) for file in files],
        "tools": {opcode.original: opcode.method for opcode in found.opcodes},
        "refused": [{"tool": r.tool, "reason": r.reason} for r in found.refusals],
        "notes": [{"tool": n.tool, "path": n.path, "keyword": n.keyword, "text": n.text} for n in found.notes],
    }
