"""The queue to the kernel: who comes first, who shares, who is sent away, and whose place is free again."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dispatch.serve.errors import RequestError
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.question import Question

Wait = Callable[..., None]


def asked(number: int, options: tuple[str, ...] = ("shut", "opener", "green")) -> dict[str, Any]:
    return {"prompt": f"Number {number} is", "options": list(options), "null": "Nothing is"}


def posted(live: Any, body: dict[str, Any], path: str = "/v1/choose") -> socket.socket:
    """Send a request and do not wait for its answer."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection: socket.socket = live.raw(head.encode() + f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


def test_a_full_queue_sends_away_with_a_time_to_come_again(running: Any, wait_until: Wait) -> None:
    """And takes again as soon as a place is free."""
    with running(waiting=3) as live:
        live.gate.is_open.clear()
        with ThreadPoolExecutor(3) as threads:
            inside = [threads.submit(live.ask, "POST", "/v1/choose", asked(n)) for n in range(3)]
            wait_until(lambda: live.services.queue.waiting == 3)
            refused = live.ask("POST", "/v1/choose", asked(9))
            assert refused.fault == (429, None, "queue_full")
            assert refused.json["error"]["type"] == "rate_limit_error"
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert live.ask("GET", "/healthz").json["waiting"] == 3
            live.gate.is_open.set()
            assert [each.result().status for each in inside] == [200, 200, 200]
        assert live.ask("POST", "/v1/choose", asked(9)).status == 200
        said = live.ask("GET", "/metrics").body.decode()
        assert "kernel_queue_refused_total 1\n" in said
        assert 'kernel_requests_total{route="/v1/choose",status="429"} 1\n' in said
        assert 'kernel_requests_total{route="/v1/choose",status="200"} 4\n' in said


def test_a_client_that_goes_away_frees_its_place(running: Any, wait_until: Wait, weather_tools: Any) -> None:
    """While it waits: nothing is evaluated for it. While its answer is written: the writing ends."""
    with running(waiting=2) as live:
        live.gate.is_open.clear()
        long = {"type": "object", "properties": {"text": {"type": "string", "minLength": 900}}, "required": ["text"]}
        form = {"type": "json_schema", "json_schema": {"name": "long", "schema": long}}
        writes = live.chat(response_format=form, max_tokens=1000, stream=True)
        with posted(live, writes, "/v1/chat/completions"), posted(live, asked(1)):
            wait_until(lambda: live.services.queue.waiting == 2)
            assert live.ask("POST", "/v1/choose", asked(2)).status == 429
        wait_until(lambda: live.services.queue.waiting == 0)
        live.gate.is_open.set()
        assert live.ask("POST", "/v1/choose", asked(3)).status == 200
        assert live.gate.passes < 20, "the text of a thousand tokens was given up"
        assert live.services.queue.left == 1


def test_decisions_that_wait_share_passes_and_say_the_same(running: Any, wait_until: Wait) -> None:
    """Eight clients ask while the kernel is busy: their decisions take fewer passes than alone, and nobody notices."""
    with running() as live:
        alone = [live.ask("POST", "/v1/choose", asked(n)).json for n in range(8)]
        cost = live.services.queue.passes
        assert cost >= 8
        live.gate.is_open.clear()
        with ThreadPoolExecutor(9) as threads:
            first = threads.submit(live.ask, "POST", "/v1/choose", asked(99))
            wait_until(lambda: live.gate.passes == cost + 1)
            others = [threads.submit(live.ask, "POST", "/v1/choose", asked(n)) for n in range(8)]
            wait_until(lambda: live.services.queue.waiting == 9)
            live.gate.is_open.set()
            together = [each.result().json for each in others]
            assert first.result().status == 200
        for one, other in zip(alone, together, strict=True):
            assert [o["text"] for o in one["options"]] == [o["text"] for o in other["options"]]
            assert one["margin"] == pytest.approx(other["margin"], abs=1e-4)
        assert live.services.queue.shared == 7
        assert live.gate.passes - cost < 1 + 8


def test_others_do_not_pay_for_one_that_is_wrong(running: Any, wait_until: Wait) -> None:
    """A prompt that does not fit, among others that would share its passes."""
    with running() as live:
        live.gate.is_open.clear()
        with ThreadPoolExecutor(5) as threads:
            first = threads.submit(live.ask, "POST", "/v1/choose", asked(99))
            wait_until(lambda: live.gate.passes == 1)
            wrong = threads.submit(live.ask, "POST", "/v1/choose", {**asked(0), "prompt": "so long " * 5000})
            wait_until(lambda: live.services.queue.waiting == 2)
            right = [threads.submit(live.ask, "POST", "/v1/choose", asked(n)) for n in range(3)]
            wait_until(lambda: live.services.queue.waiting == 5)
            live.gate.is_open.set()
            assert [each.result().status for each in (first, *right)] == [200] * 4
            assert wrong.result().json["error"]["code"] == "context_length_exceeded"


def test_an_answer_that_takes_too_long_is_given_up(running: Any) -> None:
    """After the seconds that a request may take, its time in the queue included."""
    with running(answer_seconds=0.2) as live:
        live.gate.is_open.clear()
        assert live.ask("POST", "/v1/choose", asked(1)).fault == (504, None, "timeout")
        assert live.services.queue.waiting == 0
        live.gate.is_open.set()
        assert live.ask("POST", "/v1/choose", asked(1)).status == 200


@pytest.fixture
def queue(tools: Any) -> Any:
    vocabulary = tools.toy_vocabulary()
    backend = ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)))
    made = KernelQueue(lambda: Kernel(backend), Limits())
    yield made
    assert made.close(5)


def test_who_came_first_goes_on_first(queue: Any) -> None:
    """A request that asks for a second thing does not stand behind those who came after it."""
    order: list[str] = []
    busy, go = threading.Event(), threading.Event()

    def hold(kernel: Kernel) -> None:
        busy.set()
        assert go.wait(10)

    early, late, holder = queue.place(), queue.place(), queue.place()
    with early, late, holder:
        held = holder.submit(hold)
        assert busy.wait(10)
        second = late.submit(lambda kernel: order.append("late"))
        first = early.submit(lambda kernel: order.append("early"))
        go.set()
        for each in (held, first, second):
            each.result(10)
    assert order == ["early", "late"]


def test_nothing_comes_between_a_decision_and_what_follows_it(queue: Any) -> None:
    """Not even a request that came before, and not for longer than a moment when nothing follows."""
    order: list[str] = []

    def asks(kernel: Kernel) -> Question:
        order.append("decided")
        return kernel.question("The opposite of open is", ["shut", "green"])

    async def play() -> None:
        with queue.place() as early, queue.place() as late:
            await late.decide(asks, followed=True)
            before = early.submit(lambda kernel: order.append("early"))
            await late.run(lambda kernel: order.append("followed"))
            await asyncio.wrap_future(before)
            await late.decide(asks, followed=True)
            await early.run(lambda kernel: order.append("nothing followed"))

    asyncio.run(play())
    assert order == ["decided", "followed", "early", "decided", "nothing followed"]


def test_nobody_waits_for_a_queue_that_has_ended(queue: Any) -> None:
    """What waits is told so, what runs as well, and what comes finds it closed."""
    busy, go = threading.Event(), threading.Event()
    with queue.place() as place, queue.place() as behind:

        def hold(kernel: Kernel) -> None:
            busy.set()
            assert go.wait(10)
            place.check()

        running = place.submit(hold)
        waiting = behind.submit(lambda kernel: None)
        assert busy.wait(10)
        queue.end()
        for each in (running, waiting):
            with pytest.raises(RequestError, match="the server ends"):
                each.result(1)
        with pytest.raises(RequestError, match="the server ends"):
            queue.place()
        assert not queue.close(0.05), "a pass still runs"
        go.set()


def test_a_model_that_cannot_be_loaded_is_an_error_of_each_request() -> None:
    """And the next request tries again."""
    tries: list[int] = []

    def load() -> Kernel:
        tries.append(1)
        raise RequestError("no such model")

    made = KernelQueue(load, Limits())
    for _ in range(2):
        with made.place() as place, pytest.raises(RequestError, match="no such model"):
            place.submit(lambda kernel: None).result(5)
    assert len(tries) == 2
    assert made.close(5)
