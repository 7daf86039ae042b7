"""What MCP servers write, as their JSON has it: lists of tools, and results of calls. Knows no SDK and no server.

The names are those of MCP's schema (2025-06-18 and later, schema.ts): Tool, ToolAnnotations, CallToolResult,
ContentBlock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kernel.canon import canonical
from kernel.shown import shown

KEPT = ("name", "description", "inputSchema")
"""What of a tool is read; titles, icons, schemas of results and fields of later versions are not."""


def listed(tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools of a server as `read_tools` takes them, each with a hint that says whether to ask before a call.

    By the schema a tool that says neither `readOnlyHint` nor `destructiveHint` may destroy something.

    >>> listed([{"name": "look", "annotations": {"readOnlyHint": True}, "icons": []}])
    [{'name': 'look', 'annotations': {'destructiveHint': False}}]
    >>> listed([{"name": "act"}])
    [{'name': 'act', 'annotations': {'destructiveHint': True}}]
    """
    found = []
    for tool in tools:
        hints = tool.get("annotations")
        hints = hints if isinstance(hints, Mapping) else {}
        said = hints.get("destructiveHint")
        destructive = hints.get("readOnlyHint") is not True and said is not False
        found.append(
            {name: tool[name] for name in KEPT if name in tool} | {"annotations": {"destructiveHint": destructive}}
        )
    return found


def result_words(result: Mapping[str, Any]) -> str:
    """Return what a call gave as text: its text blocks, a line for what is no text, or its structured content as JSON.

    >>> result_words({"content": [{"type": "text", "text": "21.5"}], "structuredContent": {"degrees": 21.5}})
    '21.5'
    >>> result_words({"content": [], "structuredContent": {"degrees": 21.5}})
    '{"degrees":21.5}'
    """
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if structured is not None and (not texts or (len(blocks) == 1 and _same(texts[0], structured))):
        return canonical(structured)
    return "\n".join(map(_block, blocks))


def failed(result: Mapping[str, Any]) -> bool:
    """Return whether a server says that a call failed (`isError`)."""
    return result.get("isError") is True


def _same(text: object, structured: object) -> bool:
    """Return whether a text is the JSON of a value: servers give the same twice, for readers of either."""
    try:
        return isinstance(text, str) and json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def _block(block: Mapping[str, Any]) -> str:
    """Return a content block as text; of pictures, sounds and files what they are, not their bytes."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    inner = block.get("resource")
    if kind == "resource" and isinstance(inner, Mapping):
        if isinstance(inner.get("text"), str):
            return str(inner["text"])
        block = inner
    where = block.get("uri") or block.get("mimeType") or ""
    return f"[{shown(str(kind))[:40]}{f' {shown(str(where))[:200]}' if where else ''}]"
