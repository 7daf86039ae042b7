"""A running MCP server: started by a command, spoken to by MCP's own SDK on a thread of its own, ended for certain.

The SDK is asyncio and sessions are not, so each connection has a thread with a loop. Whoever asks waits for an answer,
a time-out or the end of the server, whichever comes first; Ctrl-C breaks into the waiting.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import importlib.metadata
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cartridges.kit.mcp.command import Command
from cartridges.kit.mcp.stderr import Tail
from kernel.errors import ActionFailedError, CartridgeError, UsageError, short
from kernel.opcode.mcp import failed, listed, result_words

if TYPE_CHECKING:
    import anyio
    from mcp import Client

T = TypeVar("T")

START_SECONDS = 60.0
"""A server has so long until it has answered and listed its tools; `npx` may have to fetch it first."""
CALL_SECONDS = 60.0
CLOSE_SECONDS = 10.0
"""The SDK ends a server in steps (its stdin is closed, SIGTERM, SIGKILL), two seconds each at most."""
MOST_PAGES = 100
"""Of a list of tools; a server may give it in pages."""
MOST_TOOLS = 10_000

_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@dataclass(frozen=True)
class Patience:
    """How long a server is waited for, in seconds."""

    start: float = START_SECONDS
    call: float = CALL_SECONDS


class Connection:
    """One server and what it says.

    Attributes:
        name: that the server gives itself, "" where it gives none; `version` likewise.
        tools: its list of tools as `read_tools` takes it.
        changed: is set when the server says that its list is another one.
    """

    def __init__(self, command: Command, patience: Patience) -> None:
        """Start the server; raises CartridgeError where it does not start, answer in time or list its tools."""
        _needs_sdk()
        self.command, self.patience = command, patience
        self.name = self.version = ""
        self.tools: list[dict[str, Any]] = []
        self.changed = threading.Event()
        self._stderr, self._rubbish = Tail(), ""
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"MCP server {command}", daemon=True)
        _open.add(self)
        self._thread.start()
        try:
            self._ready.result(patience.start)
        except TimeoutError:
            self.close()
            why = f"has not answered in {patience.start:g} s{self._said()}"
            raise CartridgeError(f"server {str(command)!r} {why}") from None
        except BaseException:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether the server is gone."""
        return self._over.is_set()

    def why(self) -> str:
        """Return that it has ended, and what it said last."""
        return f"the server has ended{self._said()}"

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool by the server's own name for it and return what it gave as text.

        Raises ActionFailedError where the call fails: the server says so, takes too long, ends, or breaks the protocol.
        """
        if self._client is None or self.ended:
            raise ActionFailedError(self.why())
        try:
            answer = self._wait(self._client.call_tool(tool, arguments), self.patience.call)
        except TimeoutError:
            raise ActionFailedError(f"no answer in {self.patience.call:g} s") from None
        except Exception as error:  # its end is told to whoever waits for an answer first
            raise ActionFailedError(self.why() if self._over.wait(0.5) else _one_line(error)) from error
        found = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        said = result_words(found)
        if failed(found):
            raise ActionFailedError(said or "the server says that it failed")
        return said

    def list_again(self) -> bool:
        """Ask for the list of tools again and return whether it is another one; raises CartridgeError."""
        self.changed.clear()
        assert self._client is not None, "a connection that is made has one"
        try:
            tools = self._wait(self._listed(self._client), self.patience.call)
        except Exception as error:
            raise CartridgeError(f"server {str(self.command)!r} does not list its tools: {_one_line(error)}") from error
        different, self.tools = tools != self.tools, tools
        return different

    def close(self) -> None:
        """End the server and wait for its end; nothing happens where it has ended."""
        if self._loop is not None and self._scope is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._scope.cancel)
        self._thread.join(CLOSE_SECONDS)
        self._stderr.close()

    def _wait(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Do something on the loop and wait for it; whatever breaks into the waiting gives it up there as well."""
        assert self._loop is not None, "a connection that is made has one"
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop has ended
            work.close()
            raise
        try:
            return future.result(seconds)
        finally:
            future.cancel()

    def _run(self) -> None:
        """Be the thread: serve until the server ends or is ended, and tell who waits for its start how that went."""
        why: BaseException | None = None
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            why = error
        self._over.set()
        self._stderr.close()
        if not self._ready.done():
            self._ready.set_exception(self._not_started(why))

    async def _serve(self) -> None:
        """Hold the connection open until it is closed or the server ends."""
        import anyio
        from mcp import Client, Implementation
        from mcp.types import ToolListChangedNotification

        async def heard(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self.changed.set()

        us = Implementation(name="cartridge-kernel", version=importlib.metadata.version("cartridge-kernel"))
        self._loop, gone = asyncio.get_running_loop(), anyio.Event()
        with anyio.CancelScope() as self._scope:
            async with Client(self._streams(gone), message_handler=heard, client_info=us, cache=None) as client:
                self.tools = await self._listed(client)
                if client.server_info is not None:
                    self.name, self.version = client.server_info.name, client.server_info.version
                self._client = client
                following = asyncio.ensure_future(self._follow(client))
                self._ready.set_result(None)
                try:
                    await gone.wait()
                finally:
                    following.cancel()

    @contextlib.asynccontextmanager
    async def _streams(self, gone: anyio.Event) -> AsyncIterator[Any]:
        """Start the server and yield the two streams; what is no message is left out, and `gone` tells of the end."""
        import anyio
        from mcp import StdioServerParameters, stdio_client

        words = [self.command.program, *self.command.words[1:]]
        started = StdioServerParameters(command=words[0], args=words[1:], env=self.command.env)
        async with stdio_client(started, errlog=self._stderr.file) as (read, write):
            self._stderr.close()  # from here on it is the server's alone, and ends with it
            send, receive = anyio.create_memory_object_stream[Any](0)

            async def forward() -> None:
                with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    async with send:
                        async for message in read:
                            if isinstance(message, Exception):
                                self._rubbish = self._rubbish or _written(message)
                            else:
                                await send.send(message)
                gone.set()

            async with anyio.create_task_group() as group:
                group.start_soon(forward)
                yield receive, write
                group.cancel_scope.cancel()

    async def _listed(self, client: Client) -> list[dict[str, Any]]:
        """Return the whole list of tools, page by page."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += listed(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools)
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_TOOLS:
                return found[:MOST_TOOLS]
        return found

    async def _follow(self, client: Client) -> None:
        """Hear of changes of the list where the protocol (2026-07-28 and later) wants that asked for."""
        from mcp.client.subscriptions import ListenNotSupportedError

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with contextlib.suppress(ListenNotSupportedError):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self.changed.set()

    def _not_started(self, why: BaseException | None) -> CartridgeError:
        program = self.command.words[0]
        error = _first(why)
        if isinstance(error, OSError) and self._client is None and not self._rubbish and error.filename is not None:
            return CartridgeError(f"server {str(self.command)!r} cannot be started: {program!r}: {error.strerror}")
        told = "has ended before it answered" if _is_end(error) else f"does not answer as MCP says: {_one_line(error)}"
        return CartridgeError(f"server {str(self.command)!r} {told}{self._said()}")

    def _said(self) -> str:
        """Return what the server wrote where nobody reads it, to end an error."""
        told = ""
        if self._rubbish and self._client is None:
            told += f"; it wrote {self._rubbish} to stdout, which is no message of MCP"
        if self.ended:
            self._stderr.finish()
        if last := self._stderr.last:
            told += f"; it said: {last}"
        return told


def _needs_sdk() -> None:
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            "servers of tools need 'mcp', which is not installed: pip install 'cartridge-kernel[mcp]'"
        ) from error
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # its notes are no business of the terminal


def _first(error: BaseException | None) -> BaseException | None:
    """Return the first error of a group, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_end(error: BaseException | None) -> bool:
    return error is None or "Connection closed" in str(error)


def _one_line(error: BaseException | None) -> str:
    error = _first(error)
    text = " ".join(str(error).split())[:300] if error is not None else ""
    return text or type(error).__name__


def _written(error: Exception) -> str:
    """Return what a server wrote in place of a message, as much of it as fits."""
    inputs = [each["input"] for each in error.errors()] if hasattr(error, "errors") else []
    return short(inputs[0]) if inputs else "something"


@atexit.register
def _end_all() -> None:
    for connection in list(_open):
        connection.close()
