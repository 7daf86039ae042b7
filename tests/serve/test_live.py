"""Sessions that are played in the server: paced, stopped, asked, and not one decision lost on the way to the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cartridges.home import make as make_home
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.log.reader import LogReader
from dispatch.log.replay import replay
from dispatch.log.writer import LogWriter
from dispatch.serve import following
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.playing import LiveSession, Wish
from dispatch.serve.queue import KernelQueue
from dispatch.serve.services import Services
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from tests.dispatch.conftest import COUNTER, CounterEngine, decision, header, make_cartridge, scripted, write
from tests.dispatch.test_replay_decide import kernel


@contextlib.contextmanager
def serving(*cartridges: Cartridge, by: Callable[[], Any] = kernel) -> Iterator[TestClient]:
    queue = KernelQueue(by, Limits())
    specs = tuple(cartridge.name for cartridge in cartridges)
    services = Services(
        queue=queue, model="one", load=lambda name: by(), rule=Rule(RuleName.EXACT), cartridges=cartridges, specs=specs
    )
    with TestClient(make_app(services), base_url="http://127.0.0.1") as client:
        client.headers["x-kernel-token"] = services.access.token
        yield client
    queue.close(1.0)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with serving(COUNTER) as made:
        yield made


def post(client: TestClient, what: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/api/live/{what}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
    return found


def live(client: TestClient, name: str) -> Any:
    return client.get(f"/api/s/{name}").json()["live"]


def test_what_is_served_is_ready_and_waits(client: TestClient) -> None:
    """`serve CARTRIDGE` has a session that is paused; it plays when asked, and is the one that is shown."""
    found = until(lambda: (o := client.get("/api/sessions").json())["default"] and o)
    assert found["default"] == "live:1"
    assert found["sessions"][0]["kind"] == "live"
    assert live(client, "live:1")["state"] == "paused"
    post(client, "step", session="live:1", count=3)
    until(lambda: client.get("/api/s/live:1").json()["decisions"] == 3)
    assert live(client, "live:1")["state"] == "paused"
    decision = client.get("/api/s/live:1/d/3").json()
    assert decision["options"]
    assert decision["ledger"], "live decisions have a ledger"


def test_a_session_plays_to_its_limit_and_its_log_verifies(client: TestClient) -> None:
    """By chance, 200 decisions: the log is that of a whole session."""
    name = post(client, "start", cartridges=["counter"], player="random", limits={"decisions": 200}, seed=5)["name"]
    until(lambda: live(client, name)["state"] == "ended")
    summary = until(lambda: (s := client.get(f"/api/s/{name}").json())["verified"]["state"] == "verified" and s)
    assert (summary["decisions"], summary["live"]["ending"], summary["kind"]) == (200, "limit", "live")
    assert post(client, "play", 409, session=name)["error"]["code"] == "conflict"
    assert post(client, "stop", session=name)["live"]["state"] == "ended"


def test_a_session_is_paced_and_stopped(client: TestClient) -> None:
    """At ten decisions a second it makes few; stopped it ends with an outcome, and plays no more."""
    name = post(client, "start", cartridges=["counter"], player="planner", speed=10.0)["name"]
    time.sleep(0.35)
    made = live(client, name)["decisions"]
    assert 1 <= made <= 6
    assert post(client, "pause", session=name)["live"]["state"] == "paused"
    time.sleep(0.15)
    paused = live(client, name)["decisions"]
    assert paused <= made + 2
    time.sleep(0.3)
    assert live(client, name)["decisions"] == paused
    assert post(client, "stop", session=name)["live"]["stopping"] in (True, False)
    found = until(lambda: (now := live(client, name))["state"] == "ended" and now)
    assert (found["ending"], found["detail"], found["error"]) == ("interrupted", "stopped in the page", None)


def test_requests_are_answered_in_their_order_and_refused_where_they_make_no_sense() -> None:
    """`home` waits for requests: two are typed, two decisions are made, and the log has their words."""
    with serving(make_home(), by=scripted) as client:
        until(lambda: client.get("/api/sessions").json()["default"])
        name = "live:1"
        assert live(client, name)["asks"] is True
        post(client, "play", session=name)
        assert post(client, "request", session=name, request="I am cold")["waiting"] == 1
        post(client, "request", session=name, request="lights, please")
        until(lambda: client.get(f"/api/s/{name}").json()["decisions"] == 2, 60)
        rows = client.get(f"/api/s/{name}/d").json()["rows"]
        assert [row["request"] for row in rows] == ["I am cold", "lights, please"]
        assert post(client, "request", 400, session=name, request=" ")["error"]
        assert live(client, name)["state"] == "playing"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"cartridges": ["tetris"]}, 422, "cartridges"),
        ({"cartridges": []}, 400, "cartridges"),
        ({"cartridges": ["counter"], "rule": "best"}, 422, "rule"),
        ({"cartridges": ["counter"], "player": "me"}, 400, "player"),
        ({"cartridges": ["counter"], "speed": 0}, 400, "speed"),
        ({"cartridges": ["counter"], "path": "/etc"}, 400, "path"),
        ({"cartridges": ["counter"], "limits": {"apples": 3}}, 422, None),
    ],
)
def test_what_cannot_be_played_is_an_error_in_place(
    client: TestClient, body: Any, status: int, param: str | None
) -> None:
    """Only what is served, by a player, a rule and limits that there are."""
    assert post(client, "start", status, **body)["error"]["param"] == param


def test_sessions_that_ended_are_let_go(client: TestClient) -> None:
    """After twenty short ones the first are gone, the last are there, and none is left playing."""
    until(lambda: client.get("/api/sessions").json()["default"])
    names = []
    for _ in range(20):
        body = {"cartridges": ["counter"], "player": "random", "limits": {"decisions": 2}}
        names.append(post(client, "start", **body)["name"])
        until(lambda: live(client, names[-1])["state"] == "ended")
    kept = [each["name"] for each in client.get("/api/sessions").json()["sessions"]]
    assert len(kept) == 16
    assert names[-1] in kept
    assert client.get(f"/api/s/{names[0]}").status_code == 404
    assert post(client, "stop", 404, session=names[0])["error"]["param"] == "session"


def test_acting_needs_the_token_of_this_run(client: TestClient) -> None:
    """Without it, with another one, or by GET nothing happens."""
    del client.headers["x-kernel-token"]
    assert client.post("/api/live/start", json={"cartridges": ["counter"]}).status_code == 403
    assert client.post("/api/live/stop", json={"session": "live:1"}, headers={"x-kernel-token": "x"}).status_code == 403
    assert client.get("/api/live/start").status_code in (404, 405)


def test_a_thousand_decisions_a_second_lose_no_event(tmp_path: Path) -> None:
    """A client that breaks off after every few events, and comes back with the last id, is told each decision once."""
    with LogWriter(tmp_path / "log", header()) as log:
        opened = OpenedLog("log", tmp_path / "log", make_cartridge, Vocabularies())
        engine = CounterEngine()
        engine.reset(7)
        written = 0

        async def client() -> list[int]:
            told: list[int] = []
            last = "0"
            while len(told) < 900:
                stream = following.events(opened, last)
                for _ in range(3):
                    event = await anext(stream)
                    last = event["id"]
                    if event["event"] == "decisions":
                        data = json.loads(event["data"])
                        assert len(data["flags"]) == len(data["margin"]) == data["count"]
                        told += range(data["from"], data["from"] + data["count"])
                await stream.aclose()
            return told

        async def session() -> None:
            nonlocal written
            while written < 900:
                for _ in range(10):
                    written += 1
                    log.decision(decision(written, engine, 1), prompt=range(20))
                opened.keeper.poke()
                await asyncio.sleep(0.01)

        async def both() -> list[int]:
            playing = asyncio.create_task(session())
            found = await asyncio.wait_for(client(), 60)
            await playing
            return found

        assert asyncio.run(both()) == list(range(1, 901))
        opened.close()


def test_an_id_of_another_generation_begins_anew(tmp_path: Path) -> None:
    """The file was replaced since: the client is told to forget what it has."""
    opened = OpenedLog("log", write(tmp_path / "log", 5), make_cartridge, Vocabularies())

    async def first(told: str) -> list[tuple[str, str]]:
        stream = following.events(opened, told)
        found = [await anext(stream), await anext(stream)]
        await stream.aclose()
        return [(event["event"], event["id"]) for event in found]

    assert asyncio.run(first("9-3")) == [("reset", "1-0"), ("decisions", "1-5")]
    assert asyncio.run(first("1-3")) == [("decisions", "1-5"), ("state", "1-5")]
    assert asyncio.run(first("3"))[0] == ("decisions", "1-5")
    opened.close()


def test_an_end_waits_for_no_decision(tmp_path: Path) -> None:
    """A decision that is being made holds the session; closing gives up after a moment, and leaves the log as it is."""
    wish = Wish([COUNTER], 7, "random", "one", Rule(RuleName.EXACT), "compact", {})
    session = LiveSession(wish, tmp_path / "log", None, paused=True, speed=None)
    with session._lock:
        started = time.monotonic()
        done = threading.Thread(target=session.close, args=("the server ended",))
        done.start()
        done.join(5)
        assert time.monotonic() - started < 2
    assert not session.ended
    session.close("later")
    assert session.ended


def test_a_live_session_writes_what_replay_verifies(tmp_path: Path) -> None:
    """Played without a server: halted, resumed, stopped; the log on disk verifies to its end."""
    wish = Wish([COUNTER], 7, "model", "one", Rule(RuleName.EXACT), "compact", {})
    session = LiveSession(wish, tmp_path / "log", kernel(), paused=True, speed=None)
    assert session.wait_seconds() is None
    session.step(4)
    while session.wait_seconds() == 0.0:
        session.turns()
    assert session.told()["decisions"] == 4
    session.stop()
    session.turns()
    session.close("")
    assert session.told()["state"] == "ended"
    report = replay(tmp_path / "log", make_cartridge)
    assert report.verdict == "verified", report.sentence
    with LogReader(tmp_path / "log") as reader:
        assert [record.n for record in reader if record.ledger] == [1, 2, 3, 4]
