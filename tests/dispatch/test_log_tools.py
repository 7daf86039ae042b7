"""Counting over many logs, comparing two, redacting one, rows for other tools."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dispatch.cli.logs import app as log_app
from dispatch.cli.logs import diff_command, stats_command
from dispatch.log.diff import diff
from dispatch.log.export import COLUMNS, redacted_copy, write_csv, write_parquet
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LegalRow, ModelRecord, Offer, RuleRecord
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.redact import Redactor
from dispatch.log.replay import Verdict, replay
from dispatch.log.stats import stats
from dispatch.log.writer import LogWriter
from kernel.errors import UsageError
from kernel.opcode import Instruction

app = typer.Typer()
app.command("stats")(stats_command)
app.command("diff")(diff_command)
app.add_typer(log_app, name="log")


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process; return exit code, stdout, stderr."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


def add(by: int) -> InstructionRecord:
    return InstructionRecord.of(Instruction.of("counter", "add", by=by))


def said(by: int) -> str:
    return f" add {by}\n@counter\n"


def rows(by: int, count: int, shift: float) -> tuple[LegalRow, ...]:
    """Legal rows at -i, the chosen one a quarter ahead of the others, as the planner's weight made it."""
    scores = [0.25 if i == by else 0.0 for i in range(1, count + 1)]
    total = sum(map(math.exp, scores))
    return tuple(
        LegalRow(text=said(i), logprob=-i - shift, score=score, probability=math.exp(score) / total)
        for i, score in enumerate(scores, 1)
    )


def session(path: Path, choices: list[int], **changes: Any) -> Path:
    """Log a model's game from 0: legal rows at -by, offers 1 and 2, 10 ms a decision, one a second."""
    start = CartridgeRecord(name="counter", version="1", state="s0.0")
    model = ModelRecord(name="/home/ann/m.gguf")
    rule = RuleRecord(name=changes.get("rule", "exact"), parameters={"planner_weight": 1.0})
    value = 0
    with LogWriter(path, Header(cartridges=(start,), seed=0, model=model, rule=rule)) as log:
        for n, by in enumerate(choices, 1):
            value += by
            shift = changes.get("shift", {}).get(n, 0.0)
            count = 3 + (n in changes.get("wider", ()))
            log.decision(
                DecisionRecord(
                    n=n,
                    cartridge="counter",
                    instruction=add(by),
                    text=said(by),
                    ids=(100 + by,),
                    result=f"now {value}",
                    state=changes.get("states", {}).get(n, f"s{value}.{n}"),
                    request=f"please {n}",
                    rule=rule.name,
                    legal=rows(by, count, shift),
                    legal_count=count,
                    chosen=by - 1,
                    offered=(Offer(instruction=add(1), score=2), Offer(instruction=add(2), score=1)),
                    margin=0.25,
                    legal_mass=0.5,
                    passes=2,
                    tokens_evaluated=30,
                    chosen_tokens=1,
                    forced_tokens=0,
                    stop="complete",
                    model_ms=10.0 * n,
                    at_ms=1000.0 * n,
                ),
                prompt=[7] * (10 + n),
                nulls=[[7, 7, 8]],
            )
        if changes.get("end", True):
            summary: dict[str, dict[str, int | float | str]] = {"counter": {"value": value, "steps": len(choices)}}
            log.outcome(Outcome(decisions=len(choices), ending=Ending.LIMIT, summary=summary, seconds=8.0))
    return path


def test_stats_count_by_cartridge_player_and_rule(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Four decisions in 8 s and two in 2 s; five of six took an option, three the best one."""
    a = session(tmp_path / "a", [1, 1, 2, 3])
    b = session(tmp_path / "b", [1, 2], end=False)
    c = counter.write(tmp_path / "c", decisions=5)
    found = stats([a, b, c])
    assert found.files == 3
    assert [(g.cartridge, g.player, g.rule, g.sessions, g.decisions) for g in found.groups] == [
        ("counter", "/home/ann/m.gguf", "exact", 2, 6),
        ("counter", "random", "", 1, 5),
    ]
    model, chance = found.groups
    assert (model.agree_first, model.agree_any) == (3 / 6, 5 / 6)
    assert model.decisions_per_second == 6 / 10
    assert (model.passes, model.tokens_evaluated, model.endings) == (12, 180, {"limit": 1, "none": 1})
    assert model.ms_median == pytest.approx(20, rel=0.02)
    assert model.ms_p99 == pytest.approx(40, rel=0.02)
    assert (chance.agree_first, chance.decisions_per_second, chance.ms_median) == (None, None, None)
    assert [(slow.ms, slow.path, slow.n) for slow in found.slowest][:3] == [
        (40, str(a), 4), (30, str(a), 3), (20, str(a), 2)]  # fmt: skip
    assert len(found.slowest) == 5


def test_stats_count_what_stands_before_the_damage(tmp_path: Path) -> None:
    """A cut log and a file that is none are named; exit 1."""
    cut = session(tmp_path / "cut", [1, 1, 1])
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:3]) + b"{")
    (tmp_path / "none").write_text("hello\n")
    found = stats([cut, tmp_path / "none"])
    assert (found.damaged, found.groups[0].decisions) == (2, 2)
    code, out, err = run("stats", cut, tmp_path / "none")
    assert code == 1
    assert "counter" in out
    assert "cut: line 4 (decision 3): cut" in err
    assert "line 1 is no header" in err


def test_stats_print_a_table_or_one_json_document(tmp_path: Path) -> None:
    """The same numbers in both."""
    path = session(tmp_path / "a", [1, 1, 2, 3])
    code, out, err = run("stats", path)
    assert (code, err) == (0, "")
    line = "counter /home/ann/m.gguf exact 1 4 0.5 50 % 75 % 20 40 0 0 limit 1"
    assert " ".join(out.splitlines()[1].split()) == line
    assert json.loads(run("stats", path, "--json")[1])["groups"][0]["decisions"] == 4


def test_two_equal_sessions_are_the_same(tmp_path: Path) -> None:
    """All decisions; exit 0."""
    a, b = session(tmp_path / "a", [1, 2, 3]), session(tmp_path / "b", [1, 2, 3])
    found = diff(a, b)
    assert (found.same, found.parting, found.headers, found.scores_from) == (3, None, {}, None)
    assert run("diff", a, b) == (0, "the same in all 3 decisions\n", "")


@pytest.mark.parametrize(
    ("choices", "changes", "n", "why", "detail"),
    [
        ([1, 3, 3], {"shift": {2: 1.25}}, 2, "scores", "log-probabilities differ by up to 1.250"),
        (
            [1, 3, 3],
            {"wider": (2,)},
            2,
            "legal set",
            "only the second ' add 4",
        ),
        ([1, 3, 3], {"rule": "greedy"}, 2, "rule", "exact against greedy, scores differ by at most 0.000"),
        ([1, 2, 3], {"states": {3: "s9.9"}}, 3, "state", "counter.add(by=3) leads to different states"),
        ([1, 2], {}, 3, "length", "one session ends before"),
    ],
)
def test_where_two_sessions_part_has_a_reason(
    tmp_path: Path, choices: list[int], changes: dict[str, Any], n: int, why: str, detail: str
) -> None:
    """Scores, legal set, rule, state or length; exit 1."""
    a, b = session(tmp_path / "a", [1, 2, 3]), session(tmp_path / "b", choices, **changes)
    found = diff(a, b)
    assert found.parting is not None
    assert (found.parting.n, found.parting.why, found.same) == (n, why, n - 1)
    assert detail in found.parting.detail
    code, out, _ = run("diff", a, b)
    assert code == 1
    assert f"part at decision {n}, after {n - 1} the same: {why}: " in out


def test_scores_that_move_without_changing_the_choice_are_told(tmp_path: Path) -> None:
    """From decision 2 on by 0.75, which is above the tolerance of 0.5; 0.25 is not."""
    a = session(tmp_path / "a", [1, 2, 3])
    b = session(tmp_path / "b", [1, 2, 3], shift={1: 0.25, 2: 0.75, 3: 0.75})
    assert (diff(a, b).parting, diff(a, b).scores_from) == (None, 2)
    assert diff(a, b, tolerance=0.1).scores_from == 1


def test_sessions_of_other_seeds_part_at_the_start(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Decision 0, and the header says how."""
    a, b = counter.write(tmp_path / "a", seed=1), counter.write(tmp_path / "b", seed=2)
    found = diff(a, b)
    assert found.parting is not None
    assert (found.parting.n, found.parting.why) == (0, "header")
    assert found.headers["seed"] == (1, 2)


def test_a_log_that_cannot_be_compared_exits_with_2(tmp_path: Path) -> None:
    """It is trouble, not a difference; so is a missing file."""
    a = session(tmp_path / "a", [1])
    (tmp_path / "none").write_text("hello\n")
    assert run("diff", a, tmp_path / "none")[0] == 2
    assert run("diff", a, tmp_path / "no")[0] == 2


def test_a_damaged_log_is_compared_up_to_the_damage(tmp_path: Path) -> None:
    """And the damage is told; exit 1."""
    a, b = session(tmp_path / "a", [1, 2, 3]), session(tmp_path / "b", [1, 2, 3])
    b.write_bytes(b.read_bytes()[:-1].replace(b"now 6", b"now 7"))
    code, out, _ = run("diff", a, b)
    assert code == 1
    assert "part at decision 3, after 2 the same: length" in out
    assert "line 4 (decision 3): changed" in out


def test_a_redacted_log_replays_and_holds_no_prompt_and_no_request(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Requests, ids and the path's folders are gone; with the salt they can be proven."""
    source, target = session(tmp_path / "a", [1, 2, 3]), tmp_path / "b"
    salt = "5a" * 16
    assert redacted_copy(source, target, Redactor(salt)) == (3, None)
    text = target.read_text()
    for secret in ("please", "/home/ann", salt, '"prompt":{', '"nulls"'):
        assert secret in source.read_text() or secret == salt
        assert secret not in text
    report = replay(target, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.VERIFIED, 3)
    with LogReader(source) as reader:
        fold = Prompts()
        originals = [(record.request, *fold.take(record)) for record in reader]
    with LogReader(target) as reader:
        records = list(reader)
    hashes, proof = [record.redacted for record in records], Redactor(salt)
    assert hashes == [
        {"request": proof.hash(request or ""), "prompt": proof.hash(prompt)}
        | ({"null 1": proof.hash(nulls[0])} if n == 0 else {})
        for n, (request, prompt, nulls, _) in enumerate(originals)
    ]
    assert [record.nulls_of for record in records] == [None, 1, 1]  # the null prompt of the first one stays
    assert hashes[0] != hashes[1]


def test_a_writer_can_redact_from_the_start(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Nothing ever reaches the disk."""
    engine = counter.engine()
    engine.reset(7)
    with LogWriter(tmp_path / "log", counter.header(), redact=Redactor()) as log:
        record = counter.decision(1, engine, 1).model_copy(update={"request": "unlock the vault"})
        log.decision(record, prompt=[1, 2, 3])
    text = (tmp_path / "log").read_text()
    assert "vault" not in text
    assert '"prompt":{' not in text
    assert '"redacted":{"request":' in text


def test_the_redact_command_tells_the_salt_once(tmp_path: Path) -> None:
    """On stderr, and only when it made it; twice is refused, and so is a bad salt."""
    source = session(tmp_path / "a", [1, 2])
    code, out, err = run("log", "redact", source, tmp_path / "b")
    assert (code, out) == (0, f"2 decisions written to {tmp_path / 'b'}\n")
    assert err.startswith("salt ")
    assert run("log", "redact", source, tmp_path / "c", "--salt", "00" * 16)[2] == ""
    assert run("log", "redact", source, tmp_path / "d", "--salt", "xy")[0] == 2
    assert run("log", "redact", source, tmp_path / "d", "--salt", "00")[0] == 2
    code, _, err = run("log", "redact", tmp_path / "b", tmp_path / "d")
    assert (code, "were dropped from this log before" in err) == (2, True)
    assert run("log", "redact", source, tmp_path / "b")[0] == 1


def test_decisions_become_rows(tmp_path: Path) -> None:
    """A head line, a row each, known values in their columns, unknown ones empty."""
    out = io.StringIO()
    assert write_csv([session(tmp_path / "a", [1, 3]), session(tmp_path / "b", [2])], out) == []
    table = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert list(table[0]) == list(COLUMNS)
    assert [(row["file"], row["n"], row["arguments"], row["logprob"], row["agree_first"]) for row in table] == [
        (str(tmp_path / "a"), "1", '{"by":1}', "-1.0", "True"),
        (str(tmp_path / "a"), "2", '{"by":3}', "-3.0", "False"),
        (str(tmp_path / "b"), "1", '{"by":2}', "-2.0", "False"),
    ]
    assert {row["stop"] for row in table} == {"complete"}
    assert {row["planner_ms"] for row in table} == {""}
    assert {row["legal"] for row in table} == {"3"}


def test_parquet_holds_the_same_rows_with_types(tmp_path: Path) -> None:
    """Read back with the library."""
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_parquet([session(tmp_path / "a", [1, 3])], tmp_path / "out.parquet") == []
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert list(table[0]) == list(COLUMNS)
    assert [(row["n"], row["logprob"], row["agree_first"], row["stop"]) for row in table] == [
        (1, -1.0, True, "complete"), (2, -3.0, False, "complete")]  # fmt: skip


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Misuse, not a traceback."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"needs the package 'pyarrow': pip install 'cartridge-kernel\[parquet\]'"):
        write_parquet([], tmp_path / "x")


def test_export_goes_to_stdout_or_a_file(tmp_path: Path) -> None:
    """CSV only; Parquet needs a file, and options that exclude each other are misuse."""
    path = session(tmp_path / "a", [1, 2])
    code, out, _ = run("stats", path, "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 3)
    assert run("stats", path, "--format", "csv", "-o", tmp_path / "o.csv")[0] == 0
    assert (tmp_path / "o.csv").read_text() == out
    for wrong in (["--format", "parquet"], ["-o", "x"], ["--format", "csv", "--json"], ["--format", "xml"]):
        assert run("stats", path, *wrong)[0] == 2


def test_the_schema_command_prints_the_schema() -> None:
    """One JSON document."""
    assert json.loads(run("log", "schema")[1])["title"] == "One line of a session log"
