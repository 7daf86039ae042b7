"""The Python of a tab, run here: it answers the page as a server does, and its logs are those of everybody."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cartridges.tetris import make
from dispatch.inspector.columns import Columns, Filter
from dispatch.inspector.lines import Glance
from dispatch.inspector.quick import QuickColumns
from dispatch.log.replay import replay
from dispatch.log.report import Verdict
from dispatch.session.recorded import replayed_cartridge
from dispatch.tab.program import Program
from dispatch.tab.zipped import WHEN, zipped
from kernel.errors import CartridgeError

ROOT = Path(__file__).resolve().parents[2]

Asked = Callable[..., Any]


def played(bridge: Any, folder: Path, **start: Any) -> tuple[Program, str]:
    """Return a tab in which a session was played to its end."""

    async def play() -> tuple[Program, str]:
        program = Program(bridge, [make()], {"cartridge-kernel": "0"}, folder)
        told = await said(program, "POST", "/api/live/start", {"cartridges": ["tetris"], "seed": 7, **start})
        while (await said(program, "GET", f"/api/s/{told['name']}"))["live"]["state"] != "ended":
            await asyncio.sleep(0)
        return program, told["name"]

    return asyncio.run(play())


async def said(program: Program, method: str, path: str, body: Any = None) -> Any:
    """Return an answer that is no error."""
    status, text = await program.answer(method, path, json.dumps(body))
    assert status == 200, text
    return json.loads(text) if isinstance(text, str) else text


def asked(program: Program, path: str) -> Any:
    return asyncio.run(said(program, "GET", path))


def test_a_log_of_a_tab_is_verified_as_every_other(bridge: Any, tmp_path: Path) -> None:
    """Five pieces are played by a kernel beside; `replay` runs the engines again and holds every field."""
    program, name = played(bridge, tmp_path, limits={"pieces": 5})
    path = tmp_path / "saved.jsonl"
    path.write_bytes(program.log(name))
    report = replay(path, replayed_cartridge)
    assert report.verdict is Verdict.VERIFIED, report.sentence
    assert report.decisions == 5
    header = json.loads(path.read_text().splitlines()[0])
    assert (header["player"], header["model"]["name"], header["rule"]["name"]) == ("model", "scripted", "calibrated")


def test_the_kernel_is_asked_what_a_session_asks_and_its_answer_is_carried_out(bridge: Any, tmp_path: Path) -> None:
    """The legal opcodes are those that the planner offered, and the first of them was played."""
    program, name = played(bridge, tmp_path, limits={"pieces": 2})
    question = bridge.questions[0]
    assert question["rule"] == "calibrated"
    assert len(question["legal"]) == 3
    assert [len(each.get("texts", ())) for each in question["prompt"]["parts"]] == [0, 3, 0]
    told = asked(program, f"/api/s/{name}/d/1")
    assert told["text"] == bridge.all[question["legal"][0]]
    assert [option["chosen"] for option in told["options"]] == [True, False, False]
    assert told["margin"] == pytest.approx(1.0)
    assert told["tokens"][0]["text"] == bridge.all[question["legal"][0]][0]
    assert told["ledger"][0]["rows"][1]["state"] == "removed"
    assert told["board_state"] == "shown"
    assert any("pieces 1" in run["text"] for line in told["board"]["lines"] for run in line)
    read = asked(program, f"/api/s/{name}/d/1/prompt")
    assert read["from"] == "ids"
    assert "".join(part["text"] for part in read["orders"][0]["parts"]).startswith("Options:")


def test_the_page_is_told_what_a_server_tells(bridge: Any, tmp_path: Path) -> None:
    """The same log, looked at by a tab and by a server's code with numpy, gives the same rows, strip and order."""
    from dispatch.inspector.opened import OpenedLog
    from dispatch.inspector.vocabularies import Vocabularies

    program, name = played(bridge, tmp_path / "tab", limits={"pieces": 6})
    path = tmp_path / "saved.jsonl"
    path.write_bytes(program.log(name))
    server = OpenedLog(name, path, replayed_cartridge, Vocabularies(), until=0)
    try:
        assert asked(program, f"/api/s/{name}/d?from=2&count=3")["rows"] == server.rows(2, 3, Filter())["rows"]
        assert asked(program, f"/api/s/{name}/strip?from=1") == server.strip(1)
        assert asked(program, f"/api/s/{name}/least?after=0") == server.least(None)
        assert asked(program, f"/api/s/{name}/changes?after=4")["count"] == 2
        mine, theirs = asked(program, f"/api/s/{name}"), server.summary()
        for field in ("decisions", "verified", "outcome", "counts", "slow_ms", "boards", "names"):
            assert mine[field] == theirs[field], field
    finally:
        server.close()


def test_a_session_is_paused_stepped_and_stopped(bridge: Any, tmp_path: Path) -> None:
    """It is driven as a session on a server: one decision at a time, and it ends when it is told to."""

    async def drive() -> None:
        program = Program(bridge, [make()], {}, tmp_path)
        name = (await said(program, "POST", "/api/live/start", {"cartridges": ["tetris"], "paused": True}))["name"]
        await asyncio.sleep(0.01)
        assert (await said(program, "GET", f"/api/s/{name}"))["decisions"] == 0
        await said(program, "POST", "/api/live/step", {"session": name, "count": 2})
        while (await said(program, "GET", f"/api/s/{name}"))["decisions"] < 2:
            await asyncio.sleep(0)
        live = (await said(program, "GET", f"/api/s/{name}"))["live"]
        assert (live["state"], live["decisions"]) == ("paused", 2)
        await said(program, "POST", "/api/live/stop", {"session": name})
        await asyncio.sleep(0.01)
        summary = await said(program, "GET", f"/api/s/{name}")
        assert (summary["live"]["state"], summary["outcome"]["ending"]) == ("ended", "interrupted")
        status, text = await program.answer("POST", "/api/live/play", json.dumps({"session": name}))
        assert status == 409
        assert "has ended" in str(text)

    asyncio.run(drive())


def test_a_kernel_that_fails_ends_the_session_with_its_words(bridge: Any, tmp_path: Path) -> None:
    """What the model's side says stands in the session and in the log, which is still whole."""
    bridge.fails = RuntimeError("the model ran out of memory")
    program, name = played(bridge, tmp_path)
    summary = asked(program, f"/api/s/{name}")
    assert "ran out of memory" in summary["live"]["error"]
    assert summary["outcome"]["ending"] == "error"


def test_every_line_is_kept_where_a_reload_does_not_reach(bridge: Any, tmp_path: Path) -> None:
    """What was handed on line by line is the log, and a tab that is loaded anew shows it."""
    program, name = played(bridge, tmp_path / "first", limits={"pieces": 2})
    text = "".join(lines for session, lines in bridge.kept if session == name)
    assert text.encode() == program.log(name)
    broken = text[: text.rindex('{"event":"outcome"')]
    again = Program(bridge, [make()], {}, tmp_path / "second")
    again.take("kept: before", broken)
    (listed,) = asked(again, "/api/sessions")["sessions"]
    assert (listed["name"], listed["kind"]) == ("kept: before", "log")
    assert asked(again, "/api/s/kept%3A%20before")["verified"]["state"] == "unfinished"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/api/s/nobody", None, 404, "no session 'nobody'"),
        ("GET", "/api/nothing", None, 404, "nothing at"),
        ("POST", "/api/live/start", {"cartridges": ["tetriss"]}, 400, "did you mean 'tetris'"),
        ("POST", "/api/live/start", {"cartridges": ["tetris"], "rule": "exakt"}, 400, "did you mean 'exact'"),
        ("POST", "/api/live/start", {"cartridges": ["tetris"], "player": "nobody"}, 400, "model, planner, random"),
        ("POST", "/api/live/start", {}, 400, "cartridges"),
        ("POST", "/api/live/play", {"session": "live:9"}, 404, "no live session"),
        ("POST", "/api/bench/run", {}, 404, "nothing at"),
        ("POST", "/api/s/live%3A1/d/1/again", {}, 409, "replay --decide"),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_sentence(
    bridge: Any, tmp_path: Path, method: str, path: str, body: Any, status: int, words: str
) -> None:
    """Nothing that the page asks ends in a traceback."""
    program = Program(bridge, [make()], {}, tmp_path)
    found, text = asyncio.run(program.answer(method, path, json.dumps(body)))
    assert found == status
    assert words in json.loads(str(text))["error"]["message"]


PRESET = {
    "id": "opposite", "kind": "options", "title": "The opposite of open", "prompt": "The opposite of open is",
    "schema": None, "options": ["shut", "opener"], "null": None, "max_tokens": 12,
}  # fmt: skip


def bench(bridge: Any, folder: Path, **changed: Any) -> tuple[int, list[Any], str]:
    """Run the preset with some fields changed; return the status, the lines, and what was said."""
    program = Program(bridge, [make()], {}, folder, [PRESET])
    lines: list[str] = []
    asked = {**PRESET, "modes": ["raw", "exact"], "rate": None, "rule": None, **changed}
    status, said = asyncio.run(program.lines("/api/bench/run", json.dumps(asked), lines.append))
    return status, [json.loads(line) for line in lines], str(said)


def test_the_bench_tells_both_sides(bridge: Any, tmp_path: Path) -> None:
    """Raw leaves what is legal at its third token, and says so once; exact is one of the options, compared whole."""
    status, lines, _ = bench(bridge, tmp_path, prompt="Shut means")
    assert status == 200
    assert [line["event"] for line in lines[:6]] == ["start", "token", "token", "token", "left", "done"]
    assert (lines[0]["modes"], lines[0]["prompt_tokens"]) == (["raw", "exact"], len("Shut means"))
    raw = lines[5]
    assert (raw["mode"], raw["text"], raw["valid"], raw["fault"]) == ("raw", " so", False, "none of the options")
    assert (raw["tokens"], raw["closed"]) == (3, 1)
    exact = lines[-2]
    assert (exact["mode"], exact["value"], exact["valid"]) == ("exact", "shut", True)
    assert [option["chosen"] for option in exact["options"]] == [True, False]
    assert exact["tokens"] == exact["chosen"] + exact["forced"] == len(" shut")
    assert lines[-1] == {"event": "end"}


def test_raw_ends_where_an_option_is_whole(bridge: Any, tmp_path: Path) -> None:
    """The model would write on; nothing of that is told."""
    bridge.writes = b" shut up now"
    _, lines, _ = bench(bridge, tmp_path, modes=["raw"])
    done = next(line for line in lines if line["event"] == "done")
    assert (done["text"], done["valid"], done["stopped"]) == (" shut", True, False)


@pytest.mark.parametrize(
    ("changed", "param", "words"),
    [
        ({"options": ["shut", "closed"]}, "options", "'The opposite of open'"),
        ({"options": None, "schema": "{}"}, "schema", "serve runs any"),
    ],
)
def test_what_was_not_packed_is_refused_by_its_field(
    bridge: Any, tmp_path: Path, changed: dict[str, Any], param: str, words: str
) -> None:
    """Before any line is told."""
    status, lines, said = bench(bridge, tmp_path, **changed)
    error = json.loads(said)["error"]
    assert (status, lines, error["param"]) == (422, [], param)
    assert words in error["message"]


@pytest.fixture(scope="module")
def archive() -> zipfile.ZipFile:
    """The Python of a tab that plays Tetris."""
    return zipfile.ZipFile(io.BytesIO(zipped("cartridges.tetris")))


def test_the_python_of_a_tab_needs_no_numpy(archive: zipfile.ZipFile, tmp_path: Path) -> None:
    """Unpacked alone, with numpy and everything else that a tab has not out of reach, it plays and verifies a game."""
    archive.extractall(tmp_path / "program")
    code = """
import asyncio, json, sys
for name in ("numpy", "llama_cpp", "llguidance", "filelock", "platformdirs", "starlette", "typer"):
    sys.modules[name] = None
from dispatch.tab import program
class Bridge:
    about = staticmethod(lambda: json.dumps({"model": "none", "fingerprint": "b2:00", "tokens": 0}))
    keep = staticmethod(lambda session, lines: None)
async def play():
    found = program.Program(Bridge, [__import__("cartridges.tetris").tetris.make()], {}, program.Path(sys.argv[1]))
    ask = {"cartridges": ["tetris"], "player": "planner", "limits": {"pieces": 3}}
    name = json.loads((await found.answer("POST", "/api/live/start", json.dumps(ask)))[1])["name"]
    await asyncio.gather(*found._tasks)
    print(json.loads((await found.answer("GET", f"/api/s/{name}", ""))[1])["verified"]["state"])
asyncio.run(play())
"""
    where = {"PYTHONPATH": str(tmp_path / "program")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "logs")], env=where, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("verified", "")


def test_a_cartridge_that_imports_what_a_tab_has_not_is_refused() -> None:
    """The sentence names the module and what it wants."""
    with pytest.raises(CartridgeError, match=r"cartridges\.kit\.gymnasium imports 'gymnasium'"):
        zipped("cartridges.frozenlake")


def test_the_zip_holds_the_modules_as_they_stand(archive: zipfile.ZipFile) -> None:
    """Nothing is written twice: each file is one of this project, and no file brings the time of its making along."""
    names = archive.namelist()
    assert {"cartridges/tetris/engine.py", "kernel/shape/parameters.py", "dispatch/log/writer.py"} <= set(names)
    assert not {"kernel/api.py", "dispatch/session/model_player.py"} & set(names)
    for name in names:
        assert archive.read(name) == (ROOT / name).read_bytes()
    assert {each.date_time for each in archive.infolist()} == {WHEN}


def test_columns_tell_the_same_with_numpy_and_without() -> None:
    """Filters, order, times and counts are equal, NaN and infinite margins and equal ones included."""
    margins = [0.5, float("nan"), float("inf"), 0.25, 0.5, 3.0, 0.125]
    glances = [
        Glance(n, "ab"[n % 2], margin, 10.0 * n, float(n), n, None if n % 3 else "none", 0)
        for n, margin in enumerate(margins, 1)
    ]
    both = Columns(), QuickColumns()
    for columns in both:
        columns.extend(glances, [(n, n) for n in range(len(glances))])
    plain, quick = both
    for by in (Filter(margin_below=0.5), Filter(ms_above=40), Filter(cartridge="a"), Filter(outcome="none"),
               Filter(flags=5), Filter(cartridge="nobody"), Filter(margin_below=1, flags=1)):  # fmt: skip
        assert list(plain.select(by)) == list(quick.select(by)), by
    order, n = [], None
    while (found := plain.least(n)) is not None:
        assert found == quick.least(n)
        n = found[0]
        order.append(n)
    assert order == [7, 4, 1, 5, 6]
    assert plain.slow_ms() == pytest.approx(quick.slow_ms())
    assert plain.counts([("odd", 1), ("two", 2)]) == quick.counts([("odd", 1), ("two", 2)]) == {"odd": 4, "two": 4}
    assert plain.strip(1, 3, complete=True) == quick.strip(1, 3, complete=True)
