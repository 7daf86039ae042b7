"""Servers to ask: one in a thread with a scripted kernel, one in a process with the real model."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.serve.access import Access
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from dispatch.serve.server import Server, bind
from dispatch.serve.services import Services
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "the-token-of-this-run"

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "getWeather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "maxLength": 12},
                    "days": {"type": "integer", "minimum": 1, "maximum": 7},
                },
                "required": ["city", "days"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "set_alarm",
            "description": "Wake somebody.",
            "parameters": {
                "type": "object",
                "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}},
                "required": ["hour"],
            },
        },
    },
]


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def fault(self) -> tuple[int, str | None, str | None]:
        """Status, field and code of an error."""
        error = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"]
        return self.status, error["param"], error["code"]


@dataclass
class Gate:
    """Holds the model's passes up while it is shut; `passes` counts them."""

    is_open: threading.Event = field(default_factory=threading.Event)
    passes: int = 0

    def __post_init__(self) -> None:
        self.is_open.set()


@dataclass
class Live:
    """A server that runs."""

    port: int
    services: Services
    gate: Gate

    @property
    def base(self) -> str:
        """The address, without a slash behind it."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, /, **headers: str) -> Reply:
        """Send one request; `_` in the name of a header is `-`. A body that is no bytes is sent as JSON."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="host" in sent)
            for name, value in sent.items():
                connection.putheader(name, value)
            if data is not None and "content-length" not in sent:
                connection.putheader("content-length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def chat(self, request: str = "warm?", **fields: Any) -> dict[str, Any]:
        """Return a body for /v1/chat/completions."""
        given = {"model": "toy", "messages": [{"role": "user", "content": request}], **fields}
        return {name: value for name, value in given.items() if value is not ...}

    def raw(self, text: bytes) -> socket.socket:
        """Return a connection on which this was sent."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.sendall(text)
        return made


Running = Callable[..., contextlib.AbstractContextManager[Live]]


@pytest.fixture(scope="session")
def running(tools: SimpleNamespace) -> Running:
    """Give a server in a thread: a scripted model called `toy`, limits by name, further fields of Services, and what
    makes another application."""

    @contextlib.contextmanager
    def run(
        access: Access | None = None, services: dict[str, Any] | None = None, app: Any = make_app, **limits: Any
    ) -> Iterator[Live]:
        vocabulary, gate = tools.toy_vocabulary(), Gate()
        said = tools.hashed_row(len(vocabulary))

        class Gated(ScriptedBackend):
            def decode(self, *given: Any) -> None:
                gate.passes += 1
                assert gate.is_open.wait(20)
                super().decode(*given)

        def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
            found: NDArray[np.float32] = said(ids)
            return found

        bounds = Limits(**limits)
        kernel = Kernel(Gated(vocabulary, row, n_ctx=4096))
        queue = KernelQueue(lambda: kernel, bounds)
        made = Services(
            queue, "toy", lambda name: kernel, access=access or Access(token=TOKEN), limits=bounds, **(services or {})
        )
        with bind("127.0.0.1", 0) as listening:
            server = Server(app(made), made)
            thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
            thread.start()
            until(lambda: server.started)
            try:
                yield Live(listening.getsockname()[1], made, gate)
            finally:
                gate.is_open.set()
                server.stop()
                thread.join(5)
                assert not thread.is_alive()
                assert queue.close(5)

    return run


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)


def drained(connection: socket.socket) -> bytes:
    """Read a connection to its end, and close it."""
    said = b""
    with connection:
        while part := connection.recv(4096):
            said += part
    return said


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Give what waits until something is true."""
    return until


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[SimpleNamespace]:
    """Run `serve` in a process of its own; gives its process, port and address."""
    command = [sys.executable, "-m", "kernel", "serve", *arguments, "--port", "0", "--threads", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as started:
        try:
            assert started.stdout is not None
            said = started.stdout.readline()
            assert said.startswith("serving http://127.0.0.1:"), said
            address = said.split()[1]
            yield SimpleNamespace(process=started, address=address, port=int(address.rstrip("/").rpartition(":")[2]))
        finally:
            started.send_signal(signal.SIGINT)
            started.wait(20)


@pytest.fixture(scope="session")
def served_process() -> Callable[..., contextlib.AbstractContextManager[SimpleNamespace]]:
    """Give what runs `serve` in a process of its own."""
    return process


@pytest.fixture(scope="session")
def weather_tools() -> list[dict[str, Any]]:
    """A small tool list, as OpenAI's clients send it."""
    return TOOLS
