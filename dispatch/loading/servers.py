"""Names of MCP servers as they are typed: `mcp:COMMAND ARGS`, `mcp:FILE.json`, `mcp:FILE.json#NAME`.

The file is what MCP clients share: `{"mcpServers": {name: {"command": ..., "args": [...], "env": {...}}}}`. Nothing is
started here.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from kernel.errors import UnknownCartridgeError, UsageError, did_you_mean, short
from kernel.textfile import read_text

PREFIX = "mcp:"
MAKER = "cartridges.kit.mcp:make"
"""Makes the cartridge of a server; its option `server` is the entry as JSON."""
RECORDED = "cartridges.kit.mcp:recorded"
"""Makes it again out of a log, without the server."""
LISTED = "mcp"
"""The option of such a cartridge that holds its list of tools."""


def is_server(spec: str) -> bool:
    """Return whether a name stands for a server, or several."""
    return spec.startswith(PREFIX)


def each(spec: str) -> list[str]:
    """Return the names of the single servers that a name stands for; any other name stands for itself.

    Raises UsageError for a file that is none or has no servers.
    """
    file = _file(spec)
    if file is None or file[1]:
        return [spec]
    return [f"{spec}#{name}" for name in _servers(file[0])]


def entry(spec: str) -> str:
    """Return the entry of one server as JSON, its name in it.

    Raises UsageError for a file that is none, several servers, a server that is not there, a command that is none.

    >>> entry("mcp:uvx mcp-server-time --local-timezone 'Europe/Paris'")
    '{"name": "", "command": "uvx", "args": ["mcp-server-time", "--local-timezone", "Europe/Paris"]}'
    """
    file = _file(spec)
    if file is None:
        try:
            words = shlex.split(spec.removeprefix(PREFIX))
        except ValueError as error:
            raise UsageError(f"{spec!r} is no command: {error}") from None
        if not words:
            raise UsageError(f'{spec!r} names no server; give mcp:"COMMAND ARGS" or mcp:FILE.json')
        return json.dumps({"name": "", "command": words[0], "args": words[1:]})
    path, name = file
    servers = _servers(path)
    if not name and len(servers) == 1:
        name = next(iter(servers))
    if not name:
        raise UsageError(f"{spec!r} has {len(servers)} servers; name one, such as '{spec}#{next(iter(servers))}'")
    if name not in servers:
        raise UnknownCartridgeError(f"{spec!r}: there is no server {name!r}{did_you_mean(name, servers)}")
    found = servers[name]
    if not isinstance(found, dict):
        raise UsageError(f"{str(path)!r}: mcpServers.{name}: {short(found)} is no object")
    return json.dumps({**found, "name": name})


def _file(spec: str) -> tuple[Path, str] | None:
    """Return the file and the server of it that a name asks for; None where it is a command."""
    if not is_server(spec):
        return None
    text = spec.removeprefix(PREFIX)
    path, mark, name = text.rpartition("#") if "#" in text else (text, "", "")
    if not path.strip().endswith(".json") or (any(c.isspace() for c in path) and not Path(path).is_file()):
        return None
    return Path(path.strip()).expanduser(), name if mark else ""


def _servers(path: Path) -> dict[str, Any]:
    where = repr(str(path))
    try:
        found = json.loads(read_text(path, UsageError, where))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}") from error
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise UsageError(f'{where} has no servers; it should be {{"mcpServers": {{NAME: {{"command": ...}}}}}}')
    return servers
