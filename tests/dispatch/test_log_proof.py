"""What a log proves: a forged one is damaged or different, with the line; a key finds what checksums do not."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cartridges.tetris import make as make_tetris
from dispatch.log.encoding import START, encode_data, seal, stamp, unseal
from dispatch.log.export import redacted_copy, write_csv
from dispatch.log.key import Key
from dispatch.log.reader import LogReader
from dispatch.log.records import Header
from dispatch.log.redact import Redactor
from dispatch.log.replay import replay
from dispatch.log.report import ReplayReport, Verdict
from dispatch.log.resume import resume
from dispatch.log.stats import stats
from dispatch.log.writer import LogWriter
from dispatch.session.players import PlannerPlayer
from dispatch.session.session import Session
from kernel.errors import LogError, UsageError
from tests.dispatch.test_replay_decide import again, kernel, played
from tests.fuzz.log_cases import Line, lines_of, sealed

Change = Callable[[list[Line]], None]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, counter: SimpleNamespace) -> Path:
    """Forty decisions of a scripted model by the rule `exact`, with offers; decision n is line n."""
    return played(tmp_path_factory.mktemp("original") / "log", counter)


@pytest.fixture
def log(tmp_path: Path, original: Path) -> Path:
    """A copy of that log."""
    return Path(shutil.copy(original, tmp_path / "log"))


def forge(path: Path, change: Change) -> None:
    """Change the lines of a log and compute every checksum again."""
    lines = lines_of(path)
    change(lines)
    path.write_bytes(sealed(lines))


def judged(path: Path, counter: SimpleNamespace, line: int) -> ReplayReport:
    """Replay a forged log; it must not verify, and the line must be named."""
    report = replay(path, counter.make)
    assert report.verdict in (Verdict.DAMAGED, Verdict.DIFFERENT), report.sentence
    assert report.line == line, report.sentence
    assert f"line {line}" in report.sentence
    return report


DECISION = (
    "text",
    "ids",
    "result",
    "refused",
    "instruction.arguments",
    "offered.0.note",
    "offered.1.instruction.arguments",
)
MODEL = (
    "rule",
    "legal",
    "legal_count",
    "chosen",
    "margin",
    "legal_mass",
    "passes",
    "tokens_evaluated",
    "chosen_tokens",
)


@pytest.mark.parametrize("field", [*DECISION, *MODEL, "legal.0.score", "legal.1.logprob", "legal.2.probability"])
def test_a_line_without_a_promised_field_is_invalid(log: Path, counter: SimpleNamespace, field: str) -> None:
    """The kind: a field of "always", or one that every decision of a model has, is deleted and the log sealed anew."""

    def delete(lines: list[Line]) -> None:
        *way, last = field.split(".")
        node: Any = lines[4]
        for part in way:
            node = node[int(part)] if isinstance(node, list) else node[part]
        del node[last]

    forge(log, delete)
    report = judged(log, counter, 5)
    assert report.damage is not None
    assert "invalid: " in report.damage
    assert field.split(".")[0] in report.damage


@pytest.mark.parametrize("field", ["started", "player", "versions", "schema", "seed", "cartridges"])
def test_a_header_without_a_promised_field_is_refused(log: Path, field: str) -> None:
    """By its name."""
    forge(log, lambda lines: lines[0].pop(field))
    with pytest.raises(LogError, match=field):
        LogReader(log)


@pytest.mark.parametrize("field", ["detail", "summary", "ending", "decisions"])
def test_an_outcome_without_a_promised_field_is_invalid(log: Path, counter: SimpleNamespace, field: str) -> None:
    """The last line, 42."""
    forge(log, lambda lines: lines[-1].pop(field))
    assert field in str(judged(log, counter, 42).damage)


def other(lines: list[Line]) -> Line:
    """Return a legal row of decision 4 that was not chosen."""
    row: Line = next(row for at, row in enumerate(lines[4]["legal"]) if at != lines[4]["chosen"])
    return row


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[4].update(text=other(lines)["text"]),
        lambda lines: lines[4].update(text=""),
        lambda lines: lines[4].update(text=lines[4]["text"].strip()),
        lambda lines: lines[4].update(ids=[]),
        lambda lines: lines[4].update(ids=lines[4]["ids"] * 2),
        lambda lines: lines[4].update(chosen=(lines[4]["chosen"] + 1) % 3),
        lambda lines: lines[4].update(chosen=7),
        lambda lines: lines[4].update(margin=lines[4]["margin"] + 0.1),
        lambda lines: lines[4].update(margin=0.431),
        lambda lines: lines[4].update(legal_count=4),
        lambda lines: lines[4].update(legal=lines[4]["legal"][:2], legal_count=2),
        lambda lines: lines[4]["legal"].append({**lines[4]["legal"][0], "text": " add 4\n@counter\n"}),
        lambda lines: lines[4]["legal"][0].update(score=lines[4]["legal"][0]["score"] - 1),
        lambda lines: lines[4]["legal"][0].update(logprob=lines[4]["legal"][0]["logprob"] - 1),
        lambda lines: lines[4]["legal"][0].update(probability=0.5),
        lambda lines: lines[4]["legal"][0].update(text=lines[4]["legal"][1]["text"]),
        lambda lines: lines[4].update(rule="greedy"),
        lambda lines: lines[4].update(forced_tokens=0),
        lambda lines: lines[4].update(stop="forced"),
        lambda lines: lines[4].update(n=5),
        lambda lines: lines[4].update(at_ms=0.0),
        lambda lines: lines[4].update(refused=True),
        lambda lines: lines[4].update(failed="the bridge is off"),
        lambda lines: lines[4]["offered"][0]["instruction"]["arguments"].update(by=9),
        lambda lines: lines[4]["instruction"].update(cartridge="chess"),
        lambda lines: lines[4].update(preferred=lines[4]["text"], preferred_by=1.0),
        lambda lines: lines[4]["prompt"].update(keep=100_000),
        lambda lines: lines[4].update(nulls_of=2),
    ],
)
def test_fields_of_one_line_that_contradict_each_other_are_found(
    log: Path, counter: SimpleNamespace, change: Change
) -> None:
    """The kind: one field says something else than the others of its line, or than the lines above, sealed anew."""
    forge(log, change)
    judged(log, counter, 5)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line["totals"].update(passes=line["totals"]["passes"] + 1),
        lambda line: line["totals"].update(agreed=0.5),
        lambda line: line.update(seconds=0.0),
        lambda line: line.update(decisions=39),
        lambda line: line.update(ending="halt"),
        lambda line: line.update(ending="rules"),
        lambda line: line.update(ending="repeat"),
        lambda line: line.update(ending="failed"),
        lambda line: line.update(summary={}),
        lambda line: line["summary"]["counter"].update(steps=41),
        lambda line: line["summary"].update(chess={}),
    ],
)
def test_an_outcome_that_contradicts_the_lines_is_found(
    log: Path, counter: SimpleNamespace, change: Callable[[Line], None]
) -> None:
    """Counts, sums, times, the ending and the summary."""
    forge(log, lambda lines: change(lines[-1]))
    judged(log, counter, 42)


def test_another_legal_instruction_is_found_though_the_rest_is_played_on(tmp_path: Path) -> None:
    """The kind: a planner's game with one choice replaced, states and results those of the engine, all sealed anew."""
    path, cartridge = tmp_path / "log", make_tetris()
    session = Session([cartridge], PlannerPlayer(), seed=3, limits={"pieces": 3})
    with LogWriter(path, Header(cartridges=session.records, seed=3, player="planner")) as writer:
        session.write_to(writer)
        list(session.turns())
        session.end_log()
    assert replay(path, lambda _: cartridge).verdict is Verdict.VERIFIED

    def play_otherwise(lines: list[Line]) -> None:
        engine = cartridge.engine()
        engine.reset(3)
        for n in (1, 2, 3):
            played = lines[n]["instruction"]
            legal = engine.legal()
            chosen = next(i for i in legal if i.args == played["arguments"]) if n == 1 else legal[0]
            lines[n]["instruction"]["arguments"] = chosen.args
            lines[n].update(result=engine.apply(chosen), state=engine.state_hash())
        lines[-1]["summary"] = {"tetris": dict(engine.summary())}

    forge(path, play_otherwise)
    report = replay(path, lambda _: cartridge)
    assert (report.verdict, report.line) == (Verdict.DAMAGED, 3)
    assert "the planner's first option" in report.sentence


def test_deciding_again_trusts_no_logged_margin(log: Path, counter: SimpleNamespace) -> None:
    """The kind: choices, scores and margins forged so that they fit each other, and not what the model scores."""

    def lie(lines: list[Line]) -> None:
        engine = counter.engine()
        engine.reset(7)
        for line in lines[1:-1]:
            rows = line["legal"]
            at = (line["chosen"] + 1) % len(rows)
            scores = [-1.0] * len(rows)
            scores[at] = -0.9
            total = sum(map(math.exp, scores))
            for row, score in zip(rows, scores, strict=True):
                row.update(logprob=score, score=score, probability=round(math.exp(score) / total, 6))
            by = engine.legal()[at].args["by"]
            line["instruction"]["arguments"] = {"by": by}
            line.update(chosen=at, text=rows[at]["text"], margin=0.1, ids=list(rows[at]["text"].encode()))
            line.update(result=engine.apply(counter.add(by)), state=engine.state_hash())
        lines[-1].update(summary={"counter": dict(engine.summary())})
        del lines[-1]["totals"]

    forge(log, lie)
    assert replay(log, counter.make).verdict is Verdict.VERIFIED  # that is what a chain without a secret proves
    found = again(log, counter, kernel())
    assert found.changed == ()
    assert found.beyond > 20
    assert not found.good


def test_deciding_again_finds_margins_and_token_ids_that_are_not_the_model_s(
    log: Path, counter: SimpleNamespace
) -> None:
    """The choice is the same, and the numbers that explain it, or the ids, are not."""
    good = log.read_bytes()
    assert again(log, counter, kernel()).good

    def flatter(lines: list[Line]) -> None:
        rows = lines[4]["legal"]
        for at, row in enumerate(rows):
            score = -1.0 if at == lines[4]["chosen"] else -21.0
            row.update(logprob=score, score=score, probability=float(at == lines[4]["chosen"]))
        lines[4].update(margin=20.0)

    forge(log, flatter)
    found = again(log, counter, kernel())
    assert (found.moved, found.good) == (1, False)
    log.write_bytes(good)
    forge(log, lambda lines: lines[4].update(ids=[1] * len(lines[4]["ids"])))
    found = again(log, counter, kernel())
    assert found.replay.verdict is Verdict.DIFFERENT
    assert str(found.replay.difference).startswith("decision 4: ids: ")
    log.write_bytes(good)
    forge(log, lambda lines: lines[4]["prompt"].update(new=[10**9]))
    assert "ids below 512" in str(again(log, counter, kernel()).replay.difference)


STRANGE = [math.nan, math.inf, -math.inf, 10**30, -1, True, "1", [1], {"a": 1}]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
@pytest.mark.parametrize(
    "field", ["at_ms", "model_ms", "n", "chosen", "ids", "state", "refused", "legal", "instruction", "passes", "result"]
)
def test_a_value_of_another_kind_is_invalid_in_every_reader(
    log: Path, counter: SimpleNamespace, field: str, value: object
) -> None:
    """The kind: NaN, infinities, huge numbers and other types, in a log whose checksums are right."""
    if (isinstance(value, str) and field in ("state", "result")) or (value is True and field == "refused"):
        pytest.skip("a value like another")
    forge(log, lambda lines: lines[4].update({field: value}))
    report = judged(log, counter, 5)
    assert field in report.sentence
    assert stats([log]).damaged == 1
    assert len(write_csv([log], (log.parent / "out").open("w"))) == 1
    assert redacted_copy(log, log.with_name("copy"), Redactor())[1] is not None
    with pytest.raises(LogError, match="damaged before its end: line 5"):
        resume(log, counter.make)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=repr)
def test_an_argument_that_is_no_number_is_invalid(log: Path, counter: SimpleNamespace, value: float) -> None:
    """In what was done and in what was offered: no instruction has such an argument."""
    good = log.read_bytes()
    for place in ("instruction", "offered"):
        log.write_bytes(good)

        def put(lines: list[Line], place: str = place) -> None:
            node = lines[4][place]
            (node[0]["instruction"] if place == "offered" else node)["arguments"]["by"] = value

        forge(log, put)
        assert f"{place}" in judged(log, counter, 5).sentence
        assert again(log, counter, kernel()).replay.damage is not None


SECRET = Key(b"sixteen bytes or more")


def keyed(path: Path, counter: SimpleNamespace, decisions: int = 6) -> Path:
    """Write a keyed log of the counter."""
    session = Session([counter.cartridge], PlannerPlayer(), seed=7, limits={"decisions": decisions})
    header = Header(cartridges=session.records, seed=7, player="planner")
    with LogWriter(path, header, key=SECRET) as log:
        session.write_to(log)
        list(session.turns())
        session.end_log()
    return path


def test_a_keyed_log_says_what_is_known_by_the_key(tmp_path: Path, counter: SimpleNamespace) -> None:
    """With it, without it, with another one; and a key for a log that has none."""
    path = keyed(tmp_path / "log", counter)
    text = path.read_text()
    assert SECRET.id in text
    assert "sixteen" not in text
    for key, told, good in [
        (SECRET, f"; sealed with the key {SECRET.id}", True),
        (None, "; keyed; not checked", True),
        (Key(b"another key, as long"), f"; keyed with another key, '{SECRET.id}'; not checked", False),
    ]:
        report = replay(path, counter.make, key=key)
        assert (report.verdict, report.good, report.sentence.endswith(told)) == (Verdict.VERIFIED, good, True)
    plain = counter.write(tmp_path / "plain")
    report = replay(plain, counter.make, key=SECRET)
    assert report.sentence.endswith("; not keyed: the key proves nothing")
    assert not report.good
    assert not report.by_key


def test_a_keyed_log_that_was_rewritten_is_found(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The kind: another possible session in its place, every checksum right, the codes copied, made up or left out."""
    path, rewritten = keyed(tmp_path / "log", counter), keyed(tmp_path / "other", counter, decisions=5)
    codes = [json.loads(line)["mac"] for line in path.read_bytes().splitlines()]
    lines = lines_of(rewritten)

    def with_codes(codes: list[str | None]) -> bytes:
        out, chain = [], START
        for line, code in zip(lines, codes, strict=False):
            body = encode_data(dict(line))
            new, chain = seal(body if code is None else stamp(body, code), chain)
            out.append(new)
        return b"".join(out)

    path.write_bytes(with_codes(list(codes)))
    try:
        told = replay(path, counter.make, key=SECRET).sentence
    except LogError as error:  # the header of the other one may have been written in another second
        told = str(error)
    assert "forged: mac: " in told
    path.write_bytes(with_codes([None] * 9))
    with pytest.raises(LogError, match="mac: missing in a keyed log"):
        replay(path, counter.make, key=SECRET)
    del lines[0]["keyed"]
    path.write_bytes(with_codes([None] * 9))
    assert not replay(path, counter.make, key=SECRET).good  # stripped of its codes it verifies, by no key


@pytest.mark.parametrize("line", range(2, 9))
def test_a_line_that_the_key_did_not_seal_is_located(tmp_path: Path, counter: SimpleNamespace, line: int) -> None:
    """One letter of each line in turn, the checksums computed again, the codes as they were."""
    path = keyed(tmp_path / "log", counter)
    out, chain = [], START
    for at, old in enumerate(path.read_bytes().splitlines(), 1):
        parts = unseal(old)
        assert parts is not None
        body = parts[0]
        if at == line:
            body = body.replace(b'"planner_ms":', b'"planner_ms":1', 1).replace(b'"seconds":', b'"seconds":1', 1)
        new, chain = seal(body, chain)
        out.append(new)
    path.write_bytes(b"".join(out))
    assert replay(path, counter.make).verdict is Verdict.VERIFIED
    report = replay(path, counter.make, key=SECRET)
    assert (report.verdict, report.line) == (Verdict.DAMAGED, line)
    assert "forged" in report.sentence


def test_a_keyed_log_goes_on_with_its_key_only(tmp_path: Path, counter: SimpleNamespace) -> None:
    """And every line that follows is sealed as well."""
    path = keyed(tmp_path / "log", counter)
    for wrong in (None, Key(b"another key, as long")):
        with pytest.raises(UsageError, match="is keyed; give its key"):
            resume(path, counter.make, key=wrong)
    with pytest.raises(UsageError, match="is not keyed; give no key"):
        resume(counter.write(tmp_path / "plain"), counter.make, key=SECRET)
    found = resume(path, counter.make, key=SECRET)
    session = Session.resume(found, PlannerPlayer(), limits={"decisions": 9})
    with found.writer:
        list(session.turns())
        session.end_log()
    report = replay(path, counter.make, key=SECRET)
    assert (report.verdict, report.by_key, report.decisions) == (Verdict.VERIFIED, True, 9)


def test_a_key_is_a_file_of_enough_bytes(tmp_path: Path) -> None:
    """Too short, too long, not there and a folder are misuse; the whole file counts, its newline too."""
    file = tmp_path / "key"
    for data in (b"", b"short", b"x" * ((1 << 20) + 1)):
        file.write_bytes(data)
        with pytest.raises(UsageError, match="takes 16 to 1048576"):
            Key.read(file)
    for path in (tmp_path, tmp_path / "no"):
        with pytest.raises(UsageError, match="cannot be read"):
            Key.read(path)
    file.write_bytes(b"0123456789abcdef\n")
    assert Key.read(file).id != Key(b"0123456789abcdef").id
    shutil.rmtree(tmp_path)
