"""Servers of tools as cartridges: what an MCP server offers becomes opcodes, and a decision is a call of it.

`python -m kernel run mcp:"COMMAND ARGS"` comes here. An author who ships a cartridge with a server behind it writes

    def make() -> Cartridge:
        return serving(Command("clock", ("mcp-server-time",)))

A server is a program on this machine that is started when the cartridge is made and ended with the session.
"""

from __future__ import annotations

from cartridges.kit.mcp.command import Command
from cartridges.kit.mcp.made import make, recorded, serving

__all__ = ["Command", "make", "recorded", "serving"]
