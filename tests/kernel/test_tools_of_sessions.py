"""`Tools.mcp`: the tools of an MCP session that a program holds, called through its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, ClientSession
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from kernel import Tools
from kernel.errors import ActionFailedError, DeclinedError, OpcodeError, UsageError
from kernel.tools.call import Call

READS = ToolAnnotations(read_only_hint=True)


def server() -> MCPServer:
    made = MCPServer("shelf")

    @made.tool(annotations=READS)
    def count(shelf: int) -> int:
        """Count the books of a shelf."""
        return 10 * shelf

    @made.tool()
    def burn(shelf: int) -> str:
        """Burn a shelf."""
        raise ToolError("it is too wet")

    return made


def said(what: Callable[[Client], Awaitable[Any]], made: MCPServer | None = None) -> Any:
    async def talk() -> Any:
        async with Client(made or server()) as client:
            return await what(client)

    return asyncio.run(talk())


def test_a_session_gives_tools_that_are_called_with_what_their_schemas_allow() -> None:
    """The hook sees the call before the server does."""
    seen: list[Call] = []

    async def both(client: Client) -> Any:
        tools = await Tools.mcp(client, on_call=seen.append)
        return tools, await tools.arun(Call("count", {"shelf": 4}))

    tools, answer = said(both)
    assert [(tool.name, tool.confirm) for tool in tools] == [("count", False), ("burn", True)]
    assert [(argument.name, argument.required) for argument in tools["count"].opcode.arguments()] == [("shelf", True)]
    assert answer == "40"
    assert seen == [Call("count", {"shelf": 4})]
    with pytest.raises(UsageError, match=r"use `await tools\.arun\(call\)`"):
        tools.run(Call("count", {"shelf": 4}))


def test_what_may_destroy_is_not_called_before_somebody_agrees_and_its_failure_is_an_error() -> None:
    """A server that says nothing of it may destroy."""

    async def burnt(client: Client) -> None:
        declined = await Tools.mcp(client)
        with pytest.raises(DeclinedError, match="burn: nobody can be asked"):
            await declined.arun(Call("burn", {"shelf": 1}))
        agreed = await Tools.mcp(client, confirm=lambda call: True)
        with pytest.raises(ActionFailedError, match=r"burn: .*it is too wet"):
            await agreed.arun(Call("burn", {"shelf": 1}))

    said(burnt)


def test_a_client_session_does_as_well_and_no_tool_is_an_error() -> None:
    """The lower of the SDK's two ways."""

    async def names(client: Client) -> list[str]:
        assert isinstance(client.session, ClientSession)
        return [tool.name for tool in await Tools.mcp(client.session)]

    async def empty(client: Client) -> None:
        with pytest.raises(OpcodeError, match="no tool that can be used"):
            await Tools.mcp(client)

    assert said(names) == ["count", "burn"]
    said(empty, MCPServer("empty"))
