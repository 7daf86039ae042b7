"""Cartridges of MCP servers: made of a running server, and made again without one out of a log.

The cartridge's option `mcp` is the server's list of tools as JSON, so that a log has it and a replay needs no server.
Neither command nor environment get into a log: both may hold secrets.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from cartridges.kit.mcp.command import Command
from cartridges.kit.mcp.connection import CALL_SECONDS, START_SECONDS, Connection, Patience
from cartridges.kit.toolbox import tooled
from kernel.canon import canonical
from kernel.contract import Cartridge
from kernel.errors import ActionFailedError, CartridgeError, UsageError
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import Imported, method_of, read_tools

_notes = logging.getLogger(__name__)

Call = Callable[[str, dict[str, Any]], str]


def make(server: str, start_seconds: float = START_SECONDS, call_seconds: float = CALL_SECONDS) -> Cartridge:
    """Start a server and return its cartridge.

    Args:
        server: an entry of `mcpServers` with its name, as JSON; see `Command.read`.
        start_seconds: how long it is waited for until it has listed its tools.
        call_seconds: how long a call may take.
    Raises:
        UsageError: no such entry, or the SDK is not installed.
        CartridgeError: the server does not start, answer, or have a tool that can be held.
    """
    if start_seconds <= 0 or call_seconds <= 0:
        raise UsageError(f"a server is waited for more than 0 s, not {min(start_seconds, call_seconds):g} s")
    return serving(Command.read(server), start_seconds, call_seconds)


def serving(command: Command, start_seconds: float = START_SECONDS, call_seconds: float = CALL_SECONDS) -> Cartridge:
    """Start a server and return its cartridge; see `make`."""
    return Live(Connection(command, Patience(start_seconds, call_seconds))).cartridge


def recorded(name: str, version: str, mcp: str, **others: object) -> Cartridge:
    """Return the cartridge of a log: the same opcodes, and no server behind them.

    Raises OpcodeError where the list of tools in the log is none.
    """
    return _cartridge(name, version, read_tools(mcp), _nobody)


class Live:
    """A server that runs, and the cartridge that it is now; see `kernel.contract.Live`."""

    def __init__(self, connection: Connection) -> None:
        """Make the cartridge; raises CartridgeError, and ends the server, where it cannot be made."""
        self._connection = connection
        try:
            self.cartridge = self._made()
        except BaseException:
            connection.close()
            raise

    def now(self) -> Cartridge | None:
        """Return the cartridge, another one where the list of tools has changed; None when the server has ended.

        A new list that cannot be had or used leaves the cartridge as it was, and says so.
        """
        if self._connection.ended:
            return None
        if self._connection.changed.is_set():
            try:
                if self._connection.list_again():
                    self.cartridge = self._made()
            except CartridgeError as error:
                if self._connection.ended:
                    return None
                _notes.warning("%s; its tools stay as they were", error)
        return self.cartridge

    def why(self) -> str:
        """Return why it has ended."""
        return self._connection.why()

    def close(self) -> None:
        """End the server."""
        self._connection.close()

    def _made(self) -> Cartridge:
        connection = self._connection
        name, found = cartridge_name(connection), read_tools(connection.tools)
        for refusal in found.refusals:
            _notes.warning("%s: a tool is left out: %s", name, refusal.reason)
        if not found.opcodes:
            raise CartridgeError(f"server {name!r} has no tool that can be used")
        version = re.sub(r"[^A-Za-z0-9.+-]", "-", connection.version).lstrip(".+-")[:40] or "0"
        return _cartridge(name, version, found, connection.call, self)


def cartridge_name(connection: Connection) -> str:
    """Return what a server's cartridge is called: as it was asked for, or as the server calls itself."""
    wanted = connection.command.name or connection.name or connection.command.words[0].rpartition("/")[2]
    return method_of(wanted)[:60]


def _cartridge(name: str, version: str, found: Imported, call: Call, live: Live | None = None) -> Cartridge:
    functions = {opcode.method: _function(opcode, call) for opcode in found.opcodes}
    kept = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": {"type": "object", **(tool.schema or {})},
            "annotations": {"destructiveHint": tool.destructive},
        }
        for tool in found.tools
    ]
    return tooled(
        name,
        found.opcodes,
        functions,
        version=version,
        origin=f"the MCP server {name}",
        options={"mcp": canonical(kept)},
        live=live,
    )


def _function(opcode: type[SchemaOpcode], call: Call) -> Callable[..., str]:
    return partial(_called, call, opcode.original)


def _called(call: Call, tool: str, /, **arguments: Any) -> str:
    return call(tool, arguments)


def _nobody(tool: str, arguments: dict[str, Any]) -> str:
    raise ActionFailedError("there is no server behind a log")
