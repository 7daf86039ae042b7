"""Serves tools to one MCP client over stdin and stdout, by MCP's own SDK: nothing but its messages is on stdout.

While it serves, what anything else writes to stdout goes to stderr (`mcp.server.stdio`). Calls run one after the other
on a thread, so that the loop answers a client that asks whether anybody is there.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from dispatch.loading.error_line import error_line
from dispatch.mcp.tools import Tools
from kernel.canon import canonical
from kernel.errors import KernelError
from kernel.opcode import Instruction

ASK_SECONDS = 300.0
"""A person behind the client has so long to agree."""


def serve(name: str, tools: Tools) -> None:
    """Serve until the client closes stdin.

    Args:
        name: of the server.
        tools: what answers, on a thread of its own.
    """
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # its notes are no business of the terminal
    anyio.run(_serve, name, tools)


async def _serve(name: str, tools: Tools) -> None:
    server = made(name, tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def made(name: str, tools: Tools) -> Server[Any]:
    """Return the server, on no stream yet."""
    one = anyio.CapacityLimiter(1)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools.listed()])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        def agrees(instruction: Instruction) -> bool | None:
            return anyio.from_thread.run(_ask, ctx, instruction)

        def call() -> tuple[dict[str, Any] | None, str]:
            try:
                found = tools.call(params.name, params.arguments or {}, agrees)
            except KernelError as error:
                return None, str(error)
            except Exception as error:  # of an author's engine or view
                return None, error_line(error)
            return found, canonical(found)

        found, text = await anyio.to_thread.run_sync(call, limiter=one)
        said = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[said], structured_content=found, is_error=found is None)

    about = "Requests in plain words become instructions; a small local model chooses among those that are legal."
    return Server(
        name,
        version=version("cartridge-kernel"),
        instructions=about,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _ask(ctx: Any, instruction: Instruction) -> bool | None:
    """Ask the person behind the client, where the client can ask; None where nobody has answered."""
    schema = {"type": "object", "properties": {}}
    try:
        with anyio.fail_after(ASK_SECONDS):
            answer = await ctx.session.elicit_form(f"{instruction!r}: shall it be done?", schema, ctx.request_id)
    except Exception:  # it cannot, it will not, or it takes too long
        return None
    return {"accept": True, "decline": False}.get(answer.action)
