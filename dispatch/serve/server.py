"""Runs the application: one socket, one event loop, signals that end it within a second."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dispatch.serve.limits import Limits
from dispatch.serve.services import Services
from kernel.errors import UsageError

HEAD_BYTES = 32 << 10
"""Of a request's line and headers."""
IDLE_SECONDS = 20
"""So long a connection stays open without a request."""
GRACE_SECONDS = 1
"""What still runs then is cancelled; streams and waiting requests end at once."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises UsageError where that cannot be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: no such address: {_said(error)}") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        hint = "; another program has it: name another --port, or 0 for any that is free" if port else ""
        raise UsageError(f"port {port} of {host!r} cannot be had: {_said(error)}{hint}") from error
    return made


def address_of(listening: socket.socket) -> str:
    """Return the address that a browser opens, such as `http://127.0.0.1:8117/`."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """Answers requests until a signal comes, or `stop`, or for so many seconds.

    The streams and the queue end as soon as it is told to end itself. A signal is raised again when everything has
    ended, so that whoever called finds it.
    """

    def __init__(self, app: ASGIApp, services: Services, seconds: float | None = None) -> None:
        config = uvicorn.Config(
            app,
            http=_protocol(services.limits),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEAD_BYTES,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            limit_concurrency=services.limits.connections,
        )
        super().__init__(config)
        self._services = services
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """End, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        self._loop = asyncio.get_running_loop()
        if self._seconds is not None:
            self._loop.call_later(self._seconds, self._end)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn."""
        super().handle_exit(sig, frame)
        self.stop()

    def _end(self) -> None:
        self.should_exit = True
        self._services.ending.set()
        self._services.queue.end()


def _protocol(limits: Limits) -> type[H11Protocol]:
    """Return the protocol of a connection, which gives a request's head so many seconds to come."""

    class Impatient(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            if self._late is None and (before is None or before.response_complete):
                self._wait()
            super().data_received(data)
            if self.cycle is not before:  # a head is whole, and the body has limits of its own
                self._hear()

        def connection_lost(self, exc: Exception | None) -> None:
            self._hear()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(limits.head_seconds, self._close)

        def _hear(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _close(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Impatient


def _said(error: Any) -> str:
    return getattr(error, "strerror", None) or str(error)
