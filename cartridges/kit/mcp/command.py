"""How a server is started: its command, arguments and environment, as MCP clients write them into their settings."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kernel.errors import UsageError, short


@dataclass(frozen=True)
class Command:
    """The program of a server.

    Attributes:
        name: what its cartridge is called; "" takes the name that the server gives itself.
        words: the program and its arguments.
        env: variables beside PATH, HOME and the like; nothing else of our environment is handed on.
    """

    name: str
    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the command of an entry of `mcpServers`, `{"name", "command", "args", "env"}`, from its JSON text.

        Raises UsageError that names the field which is wrong.
        """
        found: Any = json.loads(text)
        name = found.get("name", "")
        if "command" not in found and "url" in found:
            raise UsageError(f"server {name!r} is reached by a URL; only commands are started")
        words = [found.get("command"), *_listed(found, "args")]
        if not words[0] or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise UsageError(f"server {name!r}: {short(words)} is no command with its arguments")
        env = found.get("env") or {}
        if not isinstance(env, dict) or not all(isinstance(value, str) and "\0" not in value for value in env.values()):
            raise UsageError(f"server {name!r}: env: {short(env)} is no object of strings")
        return cls(name, tuple(words), env)

    @property
    def program(self) -> str:
        """The program; one that is not on the path is looked for beside this Python, where packages put theirs."""
        beside = Path(sys.executable).parent / self.words[0]
        return str(beside) if shutil.which(self.words[0]) is None and beside.is_file() else self.words[0]

    def __str__(self) -> str:
        return self.name or self.words[0]


def _listed(found: dict[str, Any], field: str) -> list[Any]:
    value = found.get(field) or []
    if not isinstance(value, list):
        raise UsageError(f"server {found.get('name', '')!r}: {field}: {short(value)} is no list")
    return value
