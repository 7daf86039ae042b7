"""The bench: what is held is what `write` and `choose` give, what is raw is what the model does alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient

from dispatch.inspector.bench import OptionsSide, RawSide, SchemaSide, Side
from dispatch.inspector.presets import presets
from dispatch.inspector.tasks import OptionsTask, Paths, SchemaTask
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from dispatch.serve.services import Services
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.errors import NoLegalOpcodeError
from kernel.prompt import Part
from kernel.write.writer import write, write_freely
from tests.dispatch.conftest import vocabulary

SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99},
                     "b": {"enum": ["x", "yy"]}}, "required": ["a", "b"]})  # fmt: skip
PROMPT = "Say it:\n"


def model() -> Kernel:
    """A token a byte; it likes what a hash of the last ids says, letters and digits more."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.random.default_rng(abs(hash(ids[-4:]))).normal(size=256).astype(np.float32)
        out[48:58] += 2
        return out

    return Kernel(ScriptedBackend(vocabulary(), row, n_ctx=4096))


@pytest.fixture
def kernel() -> Kernel:
    return model()


def run_to_its_end(side: Side, kernel: Kernel) -> list[Any]:
    lines: list[Any] = []
    while not side.done:
        lines += side.advance(kernel)
    return lines


def test_the_exact_side_writes_what_write_writes(kernel: Kernel) -> None:
    """Token for token, forced ones as such; every chosen one is legal and leads the legal ones."""
    task = SchemaTask(SCHEMA, kernel.vocabulary)
    ids = kernel.vocabulary.prompt([Part(PROMPT, trusted=True)])
    lines = run_to_its_end(SchemaSide(ids, kernel.vocabulary, task, 100), kernel)
    expected = write(kernel.memory, task._stages, ids, max_tokens=100)
    done = lines[-1]
    assert [line["token"]["id"] for line in lines[:-1]] == list(expected.ids)
    assert (done["text"], done["chosen"], done["forced"], done["closed"]) == (
        expected.text, expected.chosen, expected.forced, expected.closed
    )  # fmt: skip
    assert (done["valid"], done["fault"]) == (True, None)
    assert done["value"] == json.loads(expected.text)
    for line in lines[:-1]:
        step = line["step"]
        assert line["token"]["forced"] is (step is None)
        if step is not None:
            legal = [row for row in step["rows"] if row["state"] != "removed"]
            assert legal[0]["state"] == "chosen"
            assert sum(row["state"] == "removed" for row in step["rows"]) >= 2
            assert len(step["rows"]) == 11


def test_a_budget_that_runs_out_closes_the_value(kernel: Kernel) -> None:
    """The value is whole all the same, and what was put behind is counted."""
    text = json.dumps({"type": "string", "maxLength": 300})
    task = SchemaTask(text, kernel.vocabulary)
    done = run_to_its_end(SchemaSide([1, 2], kernel.vocabulary, task, 12), kernel)[-1]
    assert done["closed"] > 0
    assert done["valid"] is True
    assert done["tokens"] <= 12


def test_the_raw_side_is_the_model_alone_until_it_leaves_the_schema(kernel: Kernel) -> None:
    """The ids of `write_freely`; the mask looks on and says where the text left it."""
    task = SchemaTask(SCHEMA, kernel.vocabulary)
    ids = kernel.vocabulary.prompt([Part(PROMPT, trusted=True)])
    side = RawSide(ids, kernel.vocabulary, task.matcher(None), task.judge, 20)
    lines = run_to_its_end(side, kernel)
    tokens = [line for line in lines if line["event"] == "token"]
    assert [line["token"]["id"] for line in tokens] == list(write_freely(kernel.memory, ids, max_tokens=20).ids)
    left = next(line for line in lines if line["event"] == "left")
    assert left["at"] == 0, "a digit is no beginning of an object"
    assert tokens[0]["step"]["legal"] == 1
    assert tokens[1]["step"]["legal"] == 0
    assert lines[-1]["valid"] is False
    assert lines[-1]["fault"].startswith("no JSON")


def test_options_are_chosen_as_choose_chooses(kernel: Kernel) -> None:
    """The same winner, the same scores, a ledger for the ids that were a choice."""
    options = ["alpha", "beta", "alphabet"]
    task = OptionsTask(kernel, PROMPT, options, None, None)
    lines = run_to_its_end(OptionsSide(kernel.vocabulary, task), kernel)
    expected = kernel.choose(PROMPT, options)
    done = lines[-1]
    assert done["value"] == expected.text
    assert [o["text"] for o in done["options"] if o["chosen"]] == [expected.text]
    assert [o["raw"] for o in done["options"]] == pytest.approx(expected.raw.tolist())
    assert done["chosen"] == expected.chosen_tokens


def test_paths_of_options_are_walked_token_by_token() -> None:
    """Two that share a beginning, one that begins another."""
    paths = Paths([(1, 2), (1, 2, 3), (4,)])
    assert paths.legal().tolist() == [1, 4]
    paths.consume(1)
    paths.consume(2)
    assert (paths.legal().tolist(), paths.ended) == ([3], False)
    paths.consume(3)
    assert (paths.legal().tolist(), paths.ended) == ([], True)
    with pytest.raises(NoLegalOpcodeError):
        paths.consume(9)


def test_a_side_that_is_stopped_tells_what_was_told(kernel: Kernel) -> None:
    """Tokens that were made and not told do not count."""
    task = SchemaTask(SCHEMA, kernel.vocabulary)
    side = SchemaSide([1, 2], kernel.vocabulary, task, 100)
    lines = side.advance(kernel)
    done = side.stop(3)
    assert (done["tokens"], done["stopped"], done["valid"]) == (3, True, False)
    assert done["text"] == "".join(line["token"]["text"] for line in lines[:3])


@pytest.fixture
def client() -> Iterator[TestClient]:
    queue = KernelQueue(model, Limits())
    services = Services(queue=queue, model="one", load=lambda name: model())
    with TestClient(make_app(services), base_url="http://127.0.0.1") as made:
        made.headers["x-kernel-token"] = services.access.token
        yield made
    queue.close(1.0)


def test_every_preset_runs(client: TestClient) -> None:
    """Both sides of each, to the end, the held side always valid."""
    found = client.get("/api/bench/presets").json()["presets"]
    assert found == presets()
    assert {preset["kind"] for preset in found} == {"schema", "options"}
    for preset in found:
        body = {name: preset[name] for name in ("prompt", "schema", "options", "null", "max_tokens")}
        answer = client.post("/api/bench/run", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert lines[0]["event"] == "start"
        assert lines[-1] == {"event": "end"}
        done = {line["mode"]: line for line in lines if line["event"] == "done"}
        assert set(done) == {"raw", "exact"}
        assert done["exact"]["valid"] is True, done["exact"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"schema": "{"}, "schema"),
        ({"schema": '{"type": "object", "patternProperties": {"^a": {"type": "string"}}}'}, "schema"),
        ({"schema": '{"$ref": "/etc/passwd"}'}, "schema"),
        ({"schema": "/etc/passwd"}, "schema"),
        ({"options": ["a", "a"]}, "options"),
        ({"options": [""]}, "options"),
        ({"options": ["a"], "schema": "{}"}, "schema"),
        ({}, "schema"),
        ({"options": ["a", "b"], "rule": "calibrated:x"}, "rule"),
        ({"schema": "true", "prompt": "x" * 9000, "max_tokens": 10}, "prompt"),
    ],
)
def test_what_cannot_be_held_is_an_error_of_its_field(client: TestClient, body: Any, param: str) -> None:
    """422 before anything is streamed, with the field; a path is no schema."""
    answer = client.post("/api/bench/run", json={"prompt": PROMPT, **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, param), answer.text
    assert "root:" not in answer.text


def test_a_run_that_is_not_there_is_not_stopped(client: TestClient) -> None:
    """Stopping is no error."""
    assert client.post("/api/bench/stop", json={"run": "99"}).json() == {"stopped": False}


def test_a_rate_is_kept(client: TestClient) -> None:
    """Ten tokens at a hundred a second take a tenth of a second at least."""
    answer = client.post("/api/bench/run", json={"prompt": PROMPT, "schema": SCHEMA, "modes": ["exact"], "rate": 100})
    tokens = [line for line in answer.text.splitlines() if '"event":"token"' in line]
    assert answer.elapsed.total_seconds() >= (len(tokens) - 1) / 100
