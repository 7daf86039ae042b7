"""Tools that a model may call: what they are called, what they take, what carries them out, and who has to agree."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kernel.errors import DeclinedError, OpcodeError, UsageError, did_you_mean
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import read_tools
from kernel.tools.call import Call
from kernel.tools.functions import checked, declared
from kernel.tools.mcp import Session, handler, tools_of

Handler = Callable[..., Any]
"""Carries a call out: it is called with the arguments by name, and may return what has to be awaited."""

Hook = Callable[[Call], None]
Agrees = Callable[[Call], bool]


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        opcode: its name, description and arguments, as the model is held to them.
        handler: carries it out; None where somebody else does.
    """

    opcode: type[SchemaOpcode]
    handler: Handler | None = None

    @property
    def name(self) -> str:
        """What its server or its author calls it."""
        return self.opcode.original

    @property
    def confirm(self) -> bool:
        """Whether somebody has to agree before it is carried out."""
        return self.opcode.confirm


class Tools:
    """Some tools, for `Kernel.call`.

    A call is chosen without carrying anything out. `run` carries it out: first `on_call` sees it, and stops it by
    raising; then `confirm` is asked, where the tool wants that.

    >>> def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> tools = Tools.of([add])
    >>> tools.run(Call("add", {"a": 2, "b": 3}))
    5
    """

    def __init__(self, tools: Iterable[Tool], *, on_call: Hook | None = None, confirm: Agrees | None = None) -> None:
        """Take tools.

        Raises:
            UsageError: two have one name.
        """
        self.tools = tuple(tools)
        self.on_call, self.confirm = on_call, confirm
        self._named: dict[str, Tool] = {}
        for tool in self.tools:
            if self._named.setdefault(tool.name, tool) is not tool:
                raise UsageError(f"two tools are called {tool.name!r}; rename one of them")

    @classmethod
    def of(
        cls,
        functions: Iterable[Handler],
        *,
        on_call: Hook | None = None,
        confirm: Agrees | None = None,
        dangerous: Sequence[str] = (),
    ) -> Self:
        """Return Python functions as tools: their signatures and docstrings say what they take.

        Args:
            dangerous: names of those that somebody has to agree to.

        Raises:
            OpcodeError: a signature that cannot be held.
        """
        several = list(functions)
        listed = [declared(function) for function in several]
        if odd := [name for name in dangerous if name not in {entry["name"] for entry in listed}]:
            raise UsageError(f"no tool {odd[0]!r}{did_you_mean(odd[0], [entry['name'] for entry in listed])}")
        for entry in listed:
            entry["annotations"] = {"destructiveHint": entry["name"] in dangerous}
        handlers = {entry["name"]: checked(function) for entry, function in zip(listed, several, strict=True)}
        return cls.openai(listed, handlers, on_call=on_call, confirm=confirm)

    @classmethod
    def openai(
        cls,
        listed: Sequence[Any] | Mapping[str, Any] | str | Path,
        handlers: Mapping[str, Handler] | None = None,
        *,
        on_call: Hook | None = None,
        confirm: Agrees | None = None,
    ) -> Self:
        """Return the tools of a list as OpenAI's API and MCP's `tools/list` write it: a list, its JSON text or a file.

        Args:
            handlers: what carries them out, by name; tools that have none can be chosen, but not run.

        Raises:
            OpcodeError: a tool that cannot be held exactly.
        """
        found = read_tools(listed)
        if found.refusals:
            raise OpcodeError(found.refusals[0].reason)
        known = handlers or {}
        names = [opcode.original for opcode in found.opcodes]
        if odd := [name for name in known if name not in names]:
            raise UsageError(f"no tool {odd[0]!r}{did_you_mean(odd[0], names)}")
        tools = [Tool(opcode, known.get(opcode.original)) for opcode in found.opcodes]
        return cls(tools, on_call=on_call, confirm=confirm)

    @classmethod
    async def mcp(cls, session: Session, *, on_call: Hook | None = None, confirm: Agrees | None = None) -> Self:
        """Return the tools of an MCP session that is open; `await tools.arun(call)` calls one and gives its text.

        Somebody has to agree to every tool that does not say that it only reads or destroys nothing.

        Args:
            session: of MCP's Python SDK, a `Client` or a `ClientSession`.

        Raises:
            OpcodeError: it has no tool that can be held.
        """
        found = await tools_of(session)
        tools = [Tool(opcode, handler(session, opcode.original)) for opcode in found.opcodes]
        return cls(tools, on_call=on_call, confirm=confirm)

    @property
    def opcodes(self) -> tuple[type[SchemaOpcode], ...]:
        """The opcodes of all tools."""
        return tuple(tool.opcode for tool in self.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of a name; raises UsageError with a suggestion."""
        try:
            return self._named[name]
        except KeyError:
            raise UsageError(f"no tool {name!r}{did_you_mean(name, self._named)}") from None

    def __add__(self, other: Tools) -> Tools:
        """Return both, with the hooks of the first."""
        return Tools([*self.tools, *other.tools], on_call=self.on_call, confirm=self.confirm)

    def run(self, call: Call) -> Any:
        """Carry a call out and return what its function returns.

        Raises:
            DeclinedError: nothing was chosen, nobody agreed, or somebody who is needed cannot be asked.
            UsageError: the tool has nothing that carries it out, or something that has to be awaited.
        """
        answer = self._begin(call)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise UsageError(f"{call.name}: what carries it out has to be awaited; use `await tools.arun(call)`")
        return answer

    async def arun(self, call: Call) -> Any:
        """Do as `run` does; a function that is no coroutine runs in a thread, so that the event loop goes on."""
        handler = self._agreed(call)
        if inspect.iscoroutinefunction(inspect.unwrap(handler)):
            return await handler(**call.arguments)
        import asyncio  # 30 ms, which nobody pays who does not await

        answer = await asyncio.to_thread(handler, **call.arguments)
        return await answer if isinstance(answer, Awaitable) else answer

    def _begin(self, call: Call) -> Any:
        return self._agreed(call)(**call.arguments)

    def _agreed(self, call: Call) -> Handler:
        """Return what carries a call out, when the hooks have seen it."""
        if not call:
            raise DeclinedError(f"nothing to carry out: the outcome is {call.outcome.value!r}")
        tool = self[call.name]
        if tool.handler is None:
            raise UsageError(f"{call.name}: nothing carries it out; give `handlers` a function of that name")
        if self.on_call is not None:
            self.on_call(call)
        if tool.confirm and (self.confirm is None or not self.confirm(call)):
            how = "nobody can be asked; give `confirm`" if self.confirm is None else "declined"
            raise DeclinedError(f"{call.name}: {how}")
        return tool.handler
