"""How a server ends: by a signal, within a second, with streams open and an answer being written."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.serve.conftest import drained

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio
from types import SimpleNamespace
from starlette.applications import Starlette
from starlette.routing import Route
from dispatch.cli import interrupts
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from dispatch.serve.security import Guard
from dispatch.serve.server import Server, bind
from dispatch.serve.services import Services
from dispatch.serve.streams import events

def busy(kernel):
    import time
    print("busy", flush=True)
    for _ in range(1000):  # a text that is written, which looks up between two tokens
        time.sleep(0.02)
        place.check()

services = Services(KernelQueue(lambda: SimpleNamespace(close=lambda: None), Limits()), "none", lambda name: None)
place = services.queue.place()

async def ticks():
    try:
        yield {"data": "here"}
        await asyncio.sleep(1000)
    finally:
        print("closed", flush=True)

async def stream(request):
    return events(services, ticks())

async def work(request):
    await place.run(busy)

interrupts.catch()
app = Starlette(routes=[Route("/stream", stream), Route("/work", work)])
with bind("127.0.0.1", 0) as listening:
    print(listening.getsockname()[1], flush=True)
    try:
        Server(Guard(app, services.access, services.limits), services).run([listening])
    except KeyboardInterrupt:
        print("ended", services.queue.close(0.3), flush=True)
"""


def test_ctrl_c_ends_it_within_a_second_with_seven_tabs_open() -> None:
    """Seven tabs that listen, one answer that is being written. Each stream is closed, what it held is given back."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        tabs = [opened(port, "/stream") for _ in range(7)]
        for tab in tabs:
            said = b""
            while b"data: here" not in said:
                said += tab.recv(4096)
        working = opened(port, "/work")
        assert process.stdout.readline() == "busy\n"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said_last = [process.stdout.readline() for _ in range(8)]
        assert time.monotonic() - began < 1, "what follows is the interpreter's own end"
        assert said_last == ["closed\n"] * 7 + ["ended True\n"]
        assert process.wait(10) == 0
        assert b"Internal Server Error" in drained(working)
        for tab in tabs:
            assert drained(tab) in (b"", b"0\r\n\r\n")


def opened(port: int, path: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection
