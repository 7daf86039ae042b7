"""The tools of an MCP session that a program holds, for `Tools.mcp`. Imports no SDK: the session is asked as it is.

Sessions of MCP's Python SDK are meant, of its first version (`ClientSession`) and its second (`Client`, too): they list
tools page by page and call them, and what they give is dumped as the protocol's JSON.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from kernel.errors import ActionFailedError, OpcodeError
from kernel.opcode.mcp import failed, listed, result_words
from kernel.opcode.tools import Imported, read_tools

_notes = logging.getLogger(__name__)

MOST_PAGES = 100
"""Of a list of tools."""


class Session(Protocol):
    """As much of an SDK's session as is asked."""

    def list_tools(self, **which: Any) -> Awaitable[Any]:
        """Return a page of the list of tools."""

    def call_tool(self, name: str, arguments: dict[str, Any]) -> Awaitable[Any]:
        """Return what a call of a tool gave."""


async def tools_of(session: Session) -> Imported:
    """Return the tools of a session; one that cannot be held is left out with a note.

    Raises OpcodeError where none can.
    """
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(**_which(session, cursor))
        entries += listed(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools)
        cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if cursor is None:
            break
    found = read_tools(entries)
    for refusal in found.refusals:
        _notes.warning("a tool is left out: %s", refusal.reason)
    if not found.opcodes:
        raise OpcodeError("the MCP session has no tool that can be used")
    return found


def handler(session: Session, name: str) -> Callable[..., Awaitable[str]]:
    """Return what calls a tool of a session and gives its result as text.

    It raises ActionFailedError where the server says that the call failed.
    """

    async def called(**arguments: Any) -> str:
        answer = await session.call_tool(name, arguments)
        found = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        said = result_words(found)
        if failed(found):
            raise ActionFailedError(f"{name}: {said or 'the server says that it failed'}")
        return said

    return called


def _which(session: Session, cursor: str | None) -> dict[str, Any]:
    """Return what asks for a page: by `cursor`, or where a session takes only parameters, by those."""
    if cursor is None or "cursor" in inspect.signature(session.list_tools).parameters:
        return {} if cursor is None else {"cursor": cursor}
    from mcp.types import PaginatedRequestParams  # of the SDK whose session it is

    return {"params": PaginatedRequestParams(cursor=cursor)}
