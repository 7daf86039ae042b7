"""What the page is told of sessions, over HTTP: logs in a folder, any decision, hostile texts, errors in place."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from dispatch.inspector.index import LogIndex
from dispatch.inspector.reading import reading
from dispatch.log.encoding import encode, seal, unseal
from dispatch.log.reader import LogReader
from dispatch.log.writer import LogWriter
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from dispatch.serve.services import Services
from kernel.memory.listed import Listed
from kernel.shown import shown
from tests.dispatch.conftest import COUNTER, CounterEngine, decision, header, make_cartridge, write
from tests.dispatch.test_inspector_index import HOSTILE, hostile_log, hostile_record
from tests.dispatch.test_replay_decide import kernel, played


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of logs: a whole one, another, and what is none."""
    found = tmp_path / "logs"
    found.mkdir()
    counter = SimpleNamespace(cartridge=COUNTER, make=make_cartridge)
    played(found / "whole.jsonl", counter)
    write(found / "random.jsonl", 12)
    (found / "text.log").write_text("hello\n")
    (tmp_path / "secret.jsonl").write_bytes((found / "random.jsonl").read_bytes())
    (found / "out.jsonl").symlink_to(tmp_path / "secret.jsonl")
    return found


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    """The server of that folder, with a scripted model, in this process."""
    queue = KernelQueue(lambda: kernel(), Limits())
    services = Services(queue=queue, model="one", load=lambda name: kernel(), cartridges=(COUNTER,), folder=folder)
    with TestClient(make_app(services), base_url="http://127.0.0.1") as made:
        made.services = services  # type: ignore[attr-defined]
        yield made
    queue.close(1.0)


def got(client: TestClient, path: str, status: int = 200) -> Any:
    answer = client.get(f"/api/{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


def shown_board(client: TestClient, path: str) -> Any:
    """A decision, once the engines have come to it."""
    for _ in range(200):
        if (found := got(client, path))["board_state"] != "replaying":
            break
    assert found["board_state"] == "shown"
    return found


def test_the_sessions_of_a_folder_are_listed_and_nothing_else(client: TestClient) -> None:
    """What is no log says why; a link out of the folder is not there."""
    found = {each["name"]: each for each in got(client, "sessions")["sessions"]}
    assert sorted(found) == ["random.jsonl", "text.log", "whole.jsonl"]
    assert found["whole.jsonl"]["model"] == "one"
    assert found["random.jsonl"]["cartridges"] == ["counter"]
    assert "no header" in found["text.log"]["error"]


@pytest.mark.parametrize(
    "name", ["out.jsonl", "..", ".", "", "%2e%2e%2fsecret.jsonl", "/etc/passwd", "a%00b", "x" * 5000]
)
def test_names_lead_nowhere_else(client: TestClient, name: str) -> None:
    """Links out of the folder, parents, absolute paths, NUL, too long a name: nothing is there."""
    assert client.get(f"/api/s/{name}").status_code == 404
    assert client.get(f"/api/s/{name}/d/1").status_code == 404


def test_a_log_is_summed_up(client: TestClient) -> None:
    """Header, verdict, outcome, counts."""
    found = got(client, "s/whole.jsonl")
    for _ in range(100):
        if found["verified"]["state"] != "checking":
            break
        found = got(client, "s/whole.jsonl")
    assert found["verified"]["state"] == "verified"
    assert found["verified"]["engines"] is True
    assert (found["decisions"], found["complete"], found["header"]["seed"]) == (40, True, 7)
    assert found["outcome"]["ending"] == "limit"
    assert found["names"] == {"cartridges": ["counter"], "outcomes": []}


def test_a_decision_is_what_its_line_says(client: TestClient, folder: Path) -> None:
    """Each field against the record, the board against the engine's own words."""
    with LogReader(folder / "whole.jsonl") as reader:
        records = list(reader)
    for n in (1, 17, 40):
        found, record = shown_board(client, f"s/whole.jsonl/d/{n}"), records[n - 1]
        assert found["said"] == repr(record.instruction.instruction())
        assert (found["text"], found["result"], found["margin"]) == (record.text, record.result, record.margin)
        assert [token["id"] for token in found["tokens"]] == list(record.ids)
        assert [o["text"] for o in found["options"]] == [row.text for row in record.legal or ()]
        assert [o["raw"] for o in found["options"]] == [row.logprob for row in record.legal or ()]
        assert [o["chosen"] for o in found["options"]].index(True) == record.chosen == found["chosen"]
        assert found["board"]["lines"][0][0]["text"] == f"value {record.result.removeprefix('now ')}"
        assert found["counts"]["kept"] == (record.prompt.keep if record.prompt else None)
    assert got(client, "s/whole.jsonl/d/41", 404)["error"]["code"] == "not_found"
    assert got(client, "s/whole.jsonl/d/0", 404)


def test_rows_filters_and_the_least_confident(client: TestClient, folder: Path) -> None:
    """The list in windows, a filter by margin, and the order of margins, against the log."""
    with LogReader(folder / "whole.jsonl") as reader:
        margins = {record.n: record.margin or 0.0 for record in reader}
    window = got(client, "s/whole.jsonl/d?from=10&count=5")
    assert [row["n"] for row in window["rows"]] == [11, 12, 13, 14, 15]
    assert window["total"] == 40
    low = got(client, "s/whole.jsonl/d?margin_below=0.3&count=200")
    assert [row["n"] for row in low["rows"]] == [n for n, margin in margins.items() if margin < 0.3]
    order = sorted(margins, key=lambda n: (margins[n], n))
    first = got(client, "s/whole.jsonl/least")
    assert (first["n"], first["rank"]) == (order[0], 1)
    assert got(client, f"s/whole.jsonl/least?after={order[4]}")["n"] == order[5]
    for wrong in ("from=x", "count=-1", "margin_below=low", "from=9999999999"):
        assert got(client, f"s/whole.jsonl/d?{wrong}", 400)["error"]["param"] == wrong.partition("=")[0]


def test_the_strip_of_a_log(client: TestClient) -> None:
    """Forty decisions in columns of 16 bytes each, behind a head."""
    data = client.get("/api/s/whole.jsonl/strip").content
    assert struct.unpack("<8I", data[:32])[3:6] == (1, 40, 40)
    assert len(data) == 32 + 40 * 16
    told = got(client, "s/whole.jsonl/changes?after=38")
    assert (told["from"], told["count"], len(told["margin"])) == (39, 2, 2)


def test_two_sessions_part_where_diff_says(client: TestClient, folder: Path) -> None:
    """The same log twice does not; another seed parts at the start."""
    assert got(client, "diff?a=whole.jsonl&b=whole.jsonl")["parting"] is None
    shutil.copy(folder / "whole.jsonl", folder / "copy.jsonl")
    assert got(client, "diff?a=whole.jsonl&b=copy.jsonl")["same"] == 40
    parting = got(client, "diff?a=whole.jsonl&b=random.jsonl")["parting"]
    assert (parting["n"], parting["why"]) == (1, "legal set") or parting["why"] in ("player", "rule", "scores")
    assert got(client, "diff?a=whole.jsonl", 400)["error"]["param"] == "b"
    assert got(client, "diff?a=whole.jsonl&b=nothing", 404)


def test_a_log_whose_every_text_is_hostile_is_told_as_text(client: TestClient, folder: Path) -> None:
    """Markup, controls, half a surrogate pair, 100,000 characters: the JSON holds them, escaped, in every answer."""
    hostile_log(folder / "hostile.jsonl", folder / "random.jsonl")
    for path in ("", "/d", "/d/1", "/d/2", "/d/1/prompt", "/d/1/t/0", "/changes"):
        answer = client.get(f"/api/s/hostile.jsonl{path}")
        assert answer.status_code == 200, path
        assert answer.content.isascii(), path
        assert answer.headers["content-type"] == "application/json"
    found = got(client, "s/hostile.jsonl/d/1")
    for name in ("result", "text", "request", "failed", "state", "preferred"):
        assert found[name] == HOSTILE, name
    assert found["options"] == []
    assert len(got(client, "s/hostile.jsonl/d")["rows"][0]["result"]) == 240
    assert found["ledger"][0]["rows"][0]["text"] == '{"legal":true}'
    assert "\\ud800" in shown(found["result"])


def test_a_ledger_is_that_of_the_log(client: TestClient, folder: Path) -> None:
    """A step by its place and by its token; a forced token; one that is not there."""
    log = folder / "ledger.jsonl"
    lines = (folder / "whole.jsonl").read_bytes().splitlines()
    log.write_bytes(lines[0] + b"\n" + seal(encode(hostile_record(1, ids=(1, 5), prompt=None)), _chain(lines[0]))[0])
    step = got(client, "s/ledger.jsonl/d/1/t/0")
    assert step == got(client, "s/ledger.jsonl/d/1/t?token=0") == got(client, "s/ledger.jsonl/d/1")["ledger"][0]
    assert (step["legal"], step["mass"], step["forced_after"]) == (2, 0.5, 1)
    assert [row["state"] for row in step["rows"]] == ["removed", "chosen"]
    before, after = step["rows"][1]["before"], step["rows"][1]["after"]
    assert before == pytest.approx(0.4965853)
    assert after == pytest.approx(before / 0.5)
    assert got(client, "s/ledger.jsonl/d/1/t?token=1")["rows"] == []
    assert got(client, "s/ledger.jsonl/d/1/t/1", 404)
    assert got(client, "s/ledger.jsonl/d/1/t?token=2", 404)


def _chain(line: bytes) -> str:
    parts = unseal(line)
    assert parts is not None
    return parts[1]


def test_what_was_read_is_told_as_text(client: TestClient) -> None:
    """Through the vocabulary of the model that is served; without it the view writes it again."""
    client.services.submit(lambda kernel: None).result(10)  # type: ignore[attr-defined]
    found = got(client, "s/whole.jsonl/d/3/prompt")
    assert found["from"] == "ids"
    text = "".join(part["text"] for part in found["orders"][0]["parts"])
    assert text.startswith("value ")
    assert [part["kept"] for part in found["orders"][0]["parts"]] == [True, False]
    again = got(client, "s/random.jsonl/d/3/prompt")
    assert again["from"] == "view"
    assert "vocabulary" in again["why"]


def test_lines_without_an_order_are_told_as_a_set(tmp_path: Path) -> None:
    """A lead, each line alone, the question behind them."""
    vocabulary = kernel().vocabulary
    ids = [tuple(vocabulary.plain(text)) for text in ("Choose:\n", "- b\n", "- a\n", "Best:")]
    with LogWriter(tmp_path / "log", header(7)) as log:
        engine = CounterEngine()
        engine.reset(7)
        log.decision(decision(1, engine, 1), prompt=Listed(ids[0], ids[1:3], ids[3]))
    index = LogIndex(tmp_path / "log")
    index.read()
    found = reading(index, 1, vocabulary, "no engines")
    index.close()
    told = {"order": 0, "lead": "Choose:\n", "lines": ["- a\n", "- b\n"], "question": "Best:"}
    assert found["sets"] == [told]
    assert "".join(part["text"] for part in found["orders"][0]["parts"]) == "Choose:\n- a\n- b\nBest:"
