"""One decision made again is what `replay --decide` makes of it, with the ledger that the session logged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from starlette.testclient import TestClient

from dispatch.cli.frame import Frame
from dispatch.log.cursor import Cursor
from dispatch.log.reader import LogReader
from dispatch.serve.app import make_app
from dispatch.serve.inspector import Inspector
from dispatch.serve.limits import Limits
from dispatch.serve.playing import LiveSession, Wish
from dispatch.serve.queue import KernelQueue
from dispatch.serve.services import Services
from kernel.choose.rule import Rule, RuleName
from tests.dispatch.conftest import COUNTER, make_cartridge, write
from tests.dispatch.test_replay_decide import again as decided_again
from tests.dispatch.test_replay_decide import kernel, played

counter = SimpleNamespace(cartridge=COUNTER, make=make_cartridge)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log without ledgers, one with, one that chance played."""
    played(tmp_path / "plain.jsonl", counter)
    wish = Wish([COUNTER], 7, "model", "one", Rule(RuleName.CALIBRATED), "compact", {"decisions": 6})
    session = LiveSession(wish, tmp_path / "ledgers.jsonl", kernel(), paused=False, speed=None)
    while not session.ended:
        session.turns()
    session.close("")
    write(tmp_path / "chance.jsonl", 4)
    return tmp_path


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server with two models, `one` and `two`."""
    monkeypatch.setattr(Inspector, "models", lambda self: ["one", "two"])
    queue = KernelQueue(kernel, Limits())
    services = Services(queue=queue, model="one", load=lambda name: kernel(2), cartridges=(COUNTER,), folder=folder)
    with TestClient(make_app(services), base_url="http://127.0.0.1") as made:
        made.headers["x-kernel-token"] = services.access.token
        yield made
    queue.close(1.0)


def again(client: TestClient, log: str, n: int, status: int = 200, **body: Any) -> Any:
    for _ in range(200):
        answer = client.post(f"/api/s/{log}/d/{n}/again", json=body)
        if not (answer.status_code == 409 and "so far" in answer.text):
            break
    assert answer.status_code == status, answer.text
    return answer.json()


def test_the_same_model_agrees_to_the_last_digit(client: TestClient) -> None:
    """Nothing changed but the version of a package: choice, scores and the whole ledger are the logged ones."""
    for n in (1, 4, 6):
        found = again(client, "ledgers.jsonl", n)
        then, now = found["then"], found["now"]
        assert found["agrees"] is True
        assert found["behind"] == 0
        assert (now["said"], now["text"]) == (then["said"], then["text"])
        assert then["ledger"] == now["ledger"] != []
        assert then["tokens"] == now["tokens"]
        for old, new in zip(then["options"], now["options"], strict=True):
            for name in ("raw", "null", "score", "probability"):
                assert new[name] == pytest.approx(old[name], abs=1e-6)


def test_a_log_without_ledgers_gets_them(client: TestClient) -> None:
    """They are evaluated anew: eleven rows, the logged token chosen."""
    assert client.get("/api/s/plain.jsonl/d/3").json()["ledger"] == []
    ledger = again(client, "plain.jsonl", 3)["now"]["ledger"]
    assert all(len(step["rows"]) == 11 for step in ledger)
    tokens = client.get("/api/s/plain.jsonl/d/3").json()["tokens"]
    for step in ledger:
        assert [row["id"] for row in step["rows"] if row["state"] == "chosen"] == [tokens[step["at"]]["id"]]


def test_another_model_parts_where_decide_says(client: TestClient, folder: Path) -> None:
    """The first decision that comes out otherwise is the one that the whole log decided again finds first."""
    first = decided_again(folder / "plain.jsonl", counter, kernel(2)).first
    assert first is not None
    for n in range(1, first.n):
        assert again(client, "plain.jsonl", n, model="two")["agrees"] is True
    found = again(client, "plain.jsonl", first.n, model="two")
    assert (found["then"]["said"], found["now"]["said"], found["agrees"]) == (first.then, first.now, False)
    assert found["behind"] == pytest.approx(first.behind)
    assert any(text.startswith("model: ") for text in found["changed"])


def test_another_rule_decides_by_itself(client: TestClient, folder: Path) -> None:
    """Greedy scores one opcode; a rule that needs null prompts has those of the log."""
    found = again(client, "plain.jsonl", 2, rule="greedy")
    assert found["now"]["rule"] == "greedy"
    assert sum(option["score"] != "nan" for option in found["now"]["options"]) == 1
    assert again(client, "plain.jsonl", 2, rule="calibrated")["now"]["options"][0]["null"] is not None
    assert again(client, "plain.jsonl", 2, 422, rule="best")["error"]["param"] == "rule"


def test_an_edited_prompt_is_read_in_its_place(client: TestClient) -> None:
    """Equal to the text that was there it gives the same; another one gives other scores, and is told."""
    read = client.get("/api/s/plain.jsonl/d/2/prompt").json()["orders"][0]["parts"]
    text = "".join(part["text"] for part in read)
    same = again(client, "plain.jsonl", 2, prompt=text)
    assert [o["raw"] for o in same["now"]["options"]] == pytest.approx(
        [o["raw"] for o in same["then"]["options"]], abs=1e-6
    )
    other = again(client, "plain.jsonl", 2, prompt="something else\n")
    assert [o["raw"] for o in other["now"]["options"]] != [o["raw"] for o in same["now"]["options"]]
    assert "prompt: edited" in other["changed"]


def test_what_chance_played_is_decided_by_the_model(client: TestClient) -> None:
    """There are no logged ids of this model: the view writes the prompt again."""
    found = again(client, "chance.jsonl", 2)
    assert found["then"]["model"] is None
    assert found["now"]["model"] == "one"
    assert any("by the view" in note for note in found["notes"])


def test_what_is_not_there_is_an_error(client: TestClient, folder: Path) -> None:
    """No such decision, no such model, no such field; a log whose engines differ."""
    assert again(client, "plain.jsonl", 99, 404)["error"]["code"] == "not_found"
    assert again(client, "plain.jsonl", 1, 404, model="/etc/passwd")["error"]["param"] == "model"
    assert again(client, "plain.jsonl", 1, 400, path="x")["error"]["param"] == "path"
    lines = (folder / "plain.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "broken.jsonl").write_bytes(b"".join(lines[:5]) + lines[5].replace(b"now", b"NOW") + b"".join(lines[6:]))
    assert again(client, "broken.jsonl", 4)["agrees"] is True
    with LogReader(folder / "broken.jsonl") as reader:
        assert len(list(reader)) == 4


def test_the_ledger_is_the_one_that_replay_step_prints(client: TestClient, folder: Path) -> None:
    """Row by row: rank, id, log-probability and whether the mask let it through, in the same order."""
    with Cursor(folder / "ledgers.jsonl", make_cartridge) as cursor:
        for n in (1, 3, 6):
            step = cursor.go(n)
            assert step is not None
            out = io.StringIO()
            Console(file=out, width=200).print(Frame(step, ledger=True))
            printed = out.getvalue()
            found = client.get(f"/api/s/ledgers.jsonl/d/{n}").json()["ledger"]
            lines = [line.split() for line in printed.splitlines() if line.split()[-1:] in (["legal"], ["removed"])]
            rows = [row for each in found for row in each["rows"]]
            assert len(rows) == len(lines) > 0
            for row, line in zip(rows, lines, strict=True):
                assert line[-3:] == [
                    str(row["id"]),
                    f"{row['logprob']:.2f}",
                    "removed" if row["state"] == "removed" else "legal",
                ]
                assert str(row["rank"]) in line
            for each in found:
                assert f"token {each['at']}: {each['legal']} legal, mass {each['mass']:.4f}" in printed
