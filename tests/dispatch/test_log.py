"""The writer: what stands in the file, who may write it, what happens when it cannot be written."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.log.encoding import START, decode, encode, link, seal, unseal
from dispatch.log.export import redacted_copy
from dispatch.log.objects import Delta, InstructionRecord, LedgerStep, LegalRow, TokenRow
from dispatch.log.prompts import Prompts, delta
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Outcome
from dispatch.log.redact import Redactor
from dispatch.log.replay import Verdict, replay
from dispatch.log.writer import LogWriter
from kernel.errors import LogError
from kernel.memory.listed import Listed
from kernel.opcode import Instruction


def strict(line: bytes) -> dict[str, object]:
    """Parse as a strict JSON reader does."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(line, parse_constant=refuse)


def some_decision(n: int = 1, **fields: object) -> DecisionRecord:
    values = {"instruction": InstructionRecord(cartridge="c", method="go"), "state": "s", "cartridge": "c"}
    return DecisionRecord.model_validate({"n": n, **values, **fields})


def test_a_short_log_has_these_bytes(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Header and one decision, written out by hand, the checksums computed with hashlib alone."""
    path = tmp_path / "log.jsonl"
    engine = counter.engine()
    engine.reset(7)
    with LogWriter(path, counter.header()) as log:
        log.decision(counter.decision(1, engine, 2), prompt=[5, 6, 7])
    one = (
        '{"event":"header","schema":2,"started":"2026-01-02T03:04:05+00:00","cartridges":[{"name":"counter",'
        '"version":"1","state":"s7.0"}],"seed":7,"player":"random","versions":{}}'
    )
    two = (
        '{"event":"decision","n":1,"cartridge":"counter","instruction":{"cartridge":"counter","method":"add",'
        '"arguments":{"by":2}},"text":" add 2\\n@counter\\n","ids":[102],"state":"s9.1",'
        '"result":"now 9","refused":false,"prompt":{"keep":0,"new":[5,6,7]},'
        '"legal":[{"text":" add 1\\n@counter\\n","logprob":-0.5},'
        '{"text":" add 2\\n@counter\\n","logprob":-1.0},{"text":" add 3\\n@counter\\n","logprob":-1.5}]}'
    )
    first = blake2b(one.encode(), digest_size=16).hexdigest()
    second = blake2b(first.encode() + two.encode(), digest_size=16).hexdigest()
    assert path.read_text() == f'{one[:-1]},"chain":"{first}"}}\n{two[:-1]},"chain":"{second}"}}\n'


def test_numbers_that_are_not_finite_have_an_agreed_form_and_come_back() -> None:
    """-inf, NaN and thousands of masked rows leave strict JSON, and reading gives the same numbers back."""
    rows = [LegalRow(text="a", logprob=-math.inf), LegalRow(text="b", logprob=math.nan), LegalRow(text="c", logprob=-1)]
    rows += [LegalRow(text=f"m{i}", logprob=-math.inf, score=math.inf) for i in range(3000)]
    body = encode(some_decision(legal=rows, margin=math.inf))
    flags = strict(body)["nonfinite"]
    assert isinstance(flags, dict)
    assert flags["/legal/0/logprob"] == "-inf"
    assert flags["/legal/1/logprob"] == "nan"
    assert flags["/margin"] == "inf"
    assert len(flags) == 3 + 6000
    again = DecisionRecord.model_validate(decode(body))
    assert again.legal is not None
    assert [row.logprob for row in again.legal[:1]] == [-math.inf]
    assert math.isnan(again.legal[1].logprob or 0)
    assert again.legal[2].logprob == -1
    assert again.margin == math.inf
    assert encode(again) == body


def test_a_null_argument_survives_and_so_does_the_order_of_arguments() -> None:
    """Absent fields are left out, but a null inside the arguments is a value."""
    instruction = Instruction.of("c", "go", z=None, a=[1, None], m={"k": None})
    body = encode(some_decision(instruction=InstructionRecord.of(instruction)))
    assert b'"arguments":{"z":null,"a":[1,null],"m":{"k":null}}' in body
    assert DecisionRecord.model_validate(decode(body)).instruction.instruction() == instruction


def test_unknown_fields_survive() -> None:
    """A field of a later version is read, kept and written again."""
    body = encode(some_decision()).replace(b'"state":"s"', b'"state":"s","mood":{"calm":[1,2]}')
    record = DecisionRecord.model_validate(decode(body))
    assert record.model_extra == {"mood": {"calm": [1, 2]}}
    assert decode(encode(record)) == decode(body)


@pytest.mark.parametrize("piece", [b"abc", "門".encode(), b"\xf0\x9f", b"", b"\x00\n\xff"])
def test_a_ledger_row_keeps_the_exact_bytes_of_a_token(piece: bytes) -> None:
    """Half a character, NUL and nothing at all are told apart and come back."""
    row = TokenRow.of(3, piece, -1.5, legal=False)
    body = encode(some_decision(ledger=[LedgerStep(at=0, legal=2, mass=0.25, rows=(row,))]))
    ledger = DecisionRecord.model_validate(decode(body)).ledger
    assert ledger is not None
    assert ledger[0].rows[0].piece == piece


def test_text_with_line_breaks_of_every_kind_stays_on_one_line() -> None:
    """Results are data: newline, carriage return, U+2028 and NUL do not end a line."""
    body = encode(some_decision(result="a\nb\rc\u2028d\x00e"))
    assert b"\n" not in body
    assert b"\0" not in body
    assert decode(body)["result"] == "a\nb\rc\u2028d\x00e"


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    """Command lines and file names can hold them; UTF-8 cannot."""
    body = encode(some_decision(request="caf\udce9", result="門"))
    assert rb'"request":"caf\udce9"' in body
    assert "門".encode() in body
    assert decode(body)["request"] == "caf\udce9"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"n":NaN}', "NaN is not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"n":1,"nonfinite":{"/n":"inf"}}', "not null"),
        (b'{"n":null,"nonfinite":{"/m":"inf"}}', "not there"),
        (b'{"n":null,"nonfinite":{"/n":"big"}}', "'big'"),
        (b'{"n":null,"nonfinite":3}', "not there"),
        (b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"n":' + b"9" * 5000 + b"}", "4300"),
    ],
)
def test_a_body_that_is_not_strict_json_is_refused_with_a_reason(body: bytes, why: str) -> None:
    """No NaN, no made-up flags, no recursion error, no number that takes minutes."""
    with pytest.raises(ValueError, match=why):
        decode(body)


def test_sealing_and_unsealing_agree_and_every_flipped_byte_is_found() -> None:
    """Each single changed byte of a line, its checksum included, breaks the link."""
    line, chain = seal(b'{"event":"decision","n":1}', START)
    bare = line.rstrip(b"\n")
    assert unseal(bare) == (b'{"event":"decision","n":1}', chain)
    for at in range(len(bare)):
        parts = unseal(bare[:at] + bytes([bare[at] ^ 1]) + bare[at + 1 :])
        assert parts is None or link(START, parts[0]) != parts[1]


ids = st.lists(st.integers(0, 3), max_size=12)


@given(st.lists(st.tuples(ids.filter(bool), st.lists(ids, max_size=3)), max_size=6))
def test_prompt_ids_come_back_exactly(prompts: list[tuple[list[int], list[list[int]]]]) -> None:
    """Differences from the decision before, folded together again, give every prompt and null prompt."""
    base: list[int] = []
    fold = Prompts()
    for n, (prompt, nulls) in enumerate(prompts, 1):
        made = delta(prompt, base)
        kept = next((i for i, (a, b) in enumerate(zip(prompt, base, strict=False)) if a != b), None)
        assert made.keep == (min(len(prompt), len(base)) if kept is None else kept)
        record = some_decision(n, prompt=made, nulls=[delta(null, prompt) for null in nulls])
        assert fold.take(record) == (tuple(prompt), [tuple(null) for null in nulls], [])
        base = prompt


def test_the_writer_logs_prompts_as_differences(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A growing history costs its new ids only, and reading gives each prompt in full."""
    path = tmp_path / "log.jsonl"
    prompts = [[1, 2, 3], [1, 2, 3, 4, 5], [1, 9]]
    with LogWriter(path, counter.header()) as log:
        for n, prompt in enumerate(prompts, 1):
            log.decision(some_decision(n), prompt=prompt, nulls=[[*prompt[:-1], 0], [8]])
    with LogReader(path) as reader:
        records, fold = list(reader), Prompts()
    assert [(r.prompt.keep, r.prompt.new) for r in records if r.prompt] == [(0, (1, 2, 3)), (3, (4, 5)), (1, (9,))]
    assert [fold.take(r) for r in records] == [(tuple(prompt), [(*prompt[:-1], 0), (8,)], []) for prompt in prompts]


def test_a_second_writer_is_refused(tmp_path: Path, counter: SimpleNamespace) -> None:
    """In this process and in another one; the first goes on undisturbed."""
    path = tmp_path / "log.jsonl"
    with LogWriter(path, counter.header()) as log:
        with pytest.raises(LogError, match=r"log\.jsonl' is being written by another session"):
            LogWriter(path, counter.header())
        code = f"from dispatch.log.writer import LogWriter; LogWriter({str(path)!r}, None)"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "is being written by another session" in other.stderr
        engine = counter.engine()
        engine.reset(7)
        log.outcome(Outcome(decisions=0, ending=Ending.LIMIT, summary=counter.summary(engine)))
    assert replay(path, counter.make).verdict is Verdict.VERIFIED


def test_a_file_that_holds_something_is_never_written_over(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Neither a log nor anything else; an empty file is fine."""
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(LogError, match=r"notes\.txt' holds something already"):
        LogWriter(path, counter.header())
    assert path.read_text() == "my notes\n"
    (tmp_path / "empty").touch()
    LogWriter(tmp_path / "empty", counter.header()).close()


def test_a_path_that_cannot_be_written_is_a_typed_error(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A directory and a missing folder are named."""
    with pytest.raises(LogError, match="Is a directory"):
        LogWriter(tmp_path, counter.header())
    with pytest.raises(LogError, match="No such file"):
        LogWriter(tmp_path / "no" / "log", counter.header())


def test_decisions_come_in_order_and_the_outcome_counts_them(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A gap, a wrong count and a line after the outcome are refused."""
    with LogWriter(tmp_path / "log", counter.header()) as log:
        log.decision(some_decision(1))
        with pytest.raises(LogError, match="decision 3 cannot follow decision 1"):
            log.decision(some_decision(3))
        with pytest.raises(LogError, match="counts 2 decisions, 1 are written"):
            log.outcome(Outcome(decisions=2, ending=Ending.HALT))
        log.outcome(Outcome(decisions=1, ending=Ending.HALT))
        with pytest.raises(LogError, match="is closed"):
            log.decision(some_decision(2))


class FullDisk:
    """Takes `room` bytes, then reports that no space is left."""

    def __init__(self, room: int) -> None:
        self.room, self.write = room, os.write

    def __call__(self, fd: int, data: bytes) -> int:
        """Stand in for os.write."""
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data[: self.room]
        self.room -= len(part)
        return self.write(fd, part)


def test_a_full_disk_ends_the_session_when_told_so(
    tmp_path: Path, counter: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names file and decision; the half line is taken back and the log reads as unfinished."""
    path, engine = tmp_path / "log", counter.engine()
    engine.reset(7)
    with LogWriter(path, counter.header()) as log:
        log.decision(counter.decision(1, engine, 1))
        monkeypatch.setattr(os, "write", FullDisk(50))
        with pytest.raises(LogError, match="No space left on device at decision 2; 1 are written"):
            log.decision(counter.decision(2, engine, 1))
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.UNFINISHED, 1)


def test_a_full_disk_lets_the_session_go_on_when_told_so(
    tmp_path: Path, counter: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning, nothing more is written, even when space comes back: a log has no holes."""
    path, engine = tmp_path / "log", counter.engine()
    engine.reset(7)
    with LogWriter(path, counter.header(), on_error="continue") as log:
        log.decision(counter.decision(1, engine, 1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", FullDisk(50))
            with pytest.warns(RuntimeWarning, match="at decision 2; 1 are written"):
                log.decision(counter.decision(2, engine, 1))
        for n in (3, 4):
            log.decision(counter.decision(n, engine, 1))
        log.outcome(Outcome(decisions=4, ending=Ending.LIMIT))
        assert log.error is not None
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.UNFINISHED, 1)


@pytest.mark.parametrize("part", [0, 1, 40, 10_000])
def test_an_interrupt_inside_a_write_leaves_whole_lines(
    part: int, tmp_path: Path, counter: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after none, some or all of a line: the line is finished, and the outcome follows it."""
    path, engine, write = tmp_path / "log", counter.engine(), os.write
    engine.reset(7)

    def interrupted(fd: int, data: bytes) -> int:
        write(fd, data[:part])
        raise KeyboardInterrupt

    with LogWriter(path, counter.header()) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                log.decision(counter.decision(1, engine, 1))
        log.outcome(Outcome(decisions=log.n, ending=Ending.INTERRUPTED, summary=counter.summary(engine)))
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.VERIFIED, 1)


PLAYER = """
import sys, itertools
from pathlib import Path
sys.path.insert(0, {folder!r})
import conftest as counter
from dispatch.log.writer import LogWriter
engine = counter.CounterEngine()
engine.reset(-10**9)
with LogWriter({path!r}, counter.header(-10**9)) as log:
    for n in itertools.count(1):
        log.decision(counter.decision(n, engine, 1))
        if n == 3:
            print("playing", flush=True)
"""


def test_a_killed_process_leaves_a_log_that_verifies(tmp_path: Path, counter: SimpleNamespace) -> None:
    """kill -9 at three moments: every whole line verifies and the verdict says that there is no outcome."""
    for moment in (0, 2, 4):
        path = tmp_path / f"{moment}.jsonl"
        code = PLAYER.format(folder=str(Path(__file__).parent), path=str(path))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.003 * moment)
            process.send_signal(signal.SIGKILL)
        report = replay(path, counter.make)
        assert report.decisions >= 3
        assert report.decisions in (path.read_bytes().count(b"\n") - 1, path.read_bytes().count(b"\n"))
        assert report.verdict is Verdict.UNFINISHED or "cut" in report.sentence


def test_null_prompts_that_stay_are_written_once(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The nulls of two rotations, three decisions: the second refers to the first, the third has others.

    A null behind a rotation is told as the difference from it.
    """
    first, nulls = [1, 2, 3], [[1, 2, 9], [7, 8, 9]]
    path = tmp_path / "log.jsonl"
    with LogWriter(path, counter.header()) as log:
        log.decision(some_decision(1), first, nulls, [[7, 8, 3]])
        log.decision(some_decision(2), [1, 2, 4], nulls, [[7, 8, 4]])
        log.decision(some_decision(3), [1, 2, 5], [[1, 2, 6]], [[7, 8, 5]])
    with LogReader(path) as reader:
        records, fold = list(reader), Prompts()
    assert [r.nulls_of for r in records] == [None, 1, None]
    assert records[0].nulls is not None
    assert [(d.of, d.keep, d.new) for d in records[0].nulls] == [(None, 2, (9,)), (1, 2, (9,))]
    assert [fold.take(r) for r in records] == [
        ((1, 2, 3), [(1, 2, 9), (7, 8, 9)], [(7, 8, 3)]),
        ((1, 2, 4), [(1, 2, 9), (7, 8, 9)], [(7, 8, 4)]),
        ((1, 2, 5), [(1, 2, 6)], [(7, 8, 5)]),
    ]


def test_lines_without_an_order_come_back_exactly(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Their ids one behind the other are the difference, the lengths of lead and lines stand beside it."""
    one = Listed((1,), ((5, 6), (4,)), (9, 9))
    other = Listed((1,), ((4,), (5, 7)), (9,))
    null = Listed((1,), ((4,), (5, 8)), (9, 9))
    path = tmp_path / "log.jsonl"
    with LogWriter(path, counter.header()) as log:
        log.decision(some_decision(1), one, [null, (1, 2)])
        log.decision(some_decision(2), other, [null, (1, 2)])
    with LogReader(path) as reader:
        records, fold = list(reader), Prompts()
    assert reader.damage is None
    told = [(r.prompt.keep, r.prompt.new, r.prompt.lines) for r in records if r.prompt]
    assert told == [(0, (1, 4, 5, 6, 9, 9), (1, 1, 2)), (3, (7, 9), (1, 1, 2))]
    assert [fold.take(r) for r in records] == [(one, [null, (1, 2)], []), (other, [null, (1, 2)], [])]
    copy = tmp_path / "copy.jsonl"
    redactor = Redactor("00" * 16)
    redacted_copy(path, copy, redactor)
    with LogReader(copy) as reader:
        hashes = [record.redacted or {} for record in reader]
    assert hashes[0]["prompt"] == redactor.hash(Listed((1,), ((4,), (5, 6)), (9, 9))) != hashes[1]["prompt"]


@pytest.mark.parametrize("lines", [(), (0, 2), (1, 0), (1, 5), (6,)])
def test_lengths_that_leave_no_line_or_no_question_are_damage(
    tmp_path: Path, counter: SimpleNamespace, lines: tuple[int, ...]
) -> None:
    """A lead, every line and the question have an id at least."""
    path = tmp_path / "log.jsonl"
    with LogWriter(path, counter.header()) as log:
        log.decision(some_decision(1, prompt=Delta(keep=0, new=(1, 2, 3, 4, 5, 6), lines=lines)))
    with LogReader(path) as reader:
        assert list(reader) == []
    assert "prompt.lines" in str(reader.damage)


def test_a_reference_to_null_prompts_that_are_not_there_is_refused() -> None:
    """Lines of a log in the wrong order are found before; this is for those who fold records themselves."""
    lost = some_decision(2).model_copy(update={"prompt": Delta(keep=0, new=(1,)), "nulls_of": 1})
    with pytest.raises(LogError, match="null prompts of decision 1, which has none"):
        Prompts().take(lost)
