"""`serve` as a command: its exit codes, and what is missing or wrong as one sentence."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.serve.conftest import drained


def test_the_command_ends_with_the_exit_code_of_the_signal(place: Path, forked: Callable[..., Any]) -> None:
    """Also while an answer is being written, and its client reads on."""
    answers: list[bytes] = []

    def interrupt(process: int) -> None:
        port = free_port
        for _ in range(400):
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=10)
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        schema = {"type": "string", "minLength": 3000}
        form = {"type": "json_schema", "json_schema": {"name": "long", "schema": schema}}
        asked = {"model": "smollm2", "messages": [{"role": "user", "content": "x"}], "response_format": form}
        data = json.dumps({**asked, "stream": True, "max_tokens": 5000}).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answers.append(connection.recv(4096))
        os.kill(process, signal.SIGINT)
        answers.append(drained(connection))

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    began = time.monotonic()
    done = forked(["serve", "--port", free_port, "--rule", "exact"], meanwhile=interrupt)
    assert (done.code, done.lines) == (130, []), done
    assert b"200 OK" in answers[0]
    assert b"[DONE]" not in answers[1]
    assert time.monotonic() - began < 10


def test_a_port_that_is_taken_is_a_sentence(place: Path, forked: Callable[..., Any]) -> None:
    """Before a model is loaded."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = forked(["serve", "home", "--port", port])
    assert (done.code, done.out) == (2, "")
    assert done.lines == [
        f"error: port {port} of '127.0.0.1' cannot be had: Address already in use; another program has it: name "
        "another --port, or 0 for any that is free"
    ]


def test_what_is_missing_or_wrong_is_a_sentence(place: Path, forked: Callable[..., Any]) -> None:
    """An extra that is not installed, a host that is none, one beyond this machine without a token, two folders."""

    def without() -> None:
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("starlette", "uvicorn", "sse_starlette")
        ]:
            del sys.modules[name]
        for name in [name for name in sys.modules if name.startswith("dispatch.serve")]:
            del sys.modules[name]
        sys.modules["starlette"] = None  # type: ignore[assignment]

    done = forked(["serve", "home"], before=without)
    assert (done.code, done.out) == (2, "")
    assert done.lines == [
        "error: serve needs 'starlette', which is not installed: pip install 'cartridge-kernel[serve]'"
    ]
    for arguments, said in (
        (["--host", "no such host", "--token-file", "schema.json"], "no such address"),
        (["--host", "0.0.0.0"], "give --token-file FILE"),
        (["--host", "0.0.0.0", "--token-file", "schema.json"], ""),
        (["."], ""),
        ([".", ".."], "is the second"),
        (["home", "home"], "named twice"),
        (["nowhere"], "no cartridge 'nowhere'"),
        (["./nowhere"], "there is no folder or file"),
    ):
        done = forked(["serve", *arguments, "--port", "0", "--for", "0.01"])
        if said:
            assert (done.code, len(done.lines)) == (2, 1), done
            assert said in done.err
        else:
            assert done.code == 0, done
            assert done.out.startswith("serving http://")
