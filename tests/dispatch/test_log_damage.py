"""The reader: every kind of damage is found, named and located, and what stands before it is given out."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from dispatch.log.damage import Damage, Fault
from dispatch.log.reader import LogReader
from dispatch.log.records import FORMAT
from dispatch.log.replay import Verdict, replay
from kernel.errors import LogError


def read(path: Path) -> tuple[int, Damage | None, bool]:
    """Return decisions, damage and whether an outcome was reached."""
    with LogReader(path) as reader:
        count = sum(1 for _ in reader)
        assert count == reader.n
        return count, reader.damage, reader.outcome is not None


def lines_of(path: Path) -> list[bytes]:
    """Return the lines with their newlines; the header is line 0, decision n is line n."""
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def log(tmp_path: Path, counter: SimpleNamespace) -> Path:
    """Ten decisions and an outcome: twelve lines."""
    path: Path = counter.write(tmp_path / "log.jsonl")
    return path


def test_a_whole_log_reads_to_its_outcome(log: Path) -> None:
    """Ten decisions, no damage."""
    assert read(log) == (10, None, True)


def test_a_log_without_its_last_lines_has_no_outcome(log: Path) -> None:
    """Cut at the end of a line nothing is damaged, but the outcome is not there."""
    log.write_bytes(b"".join(lines_of(log)[:8]))
    assert read(log) == (7, None, False)


@pytest.mark.parametrize("keep", [1, 30, -20, -2])
def test_a_cut_last_line_is_located(log: Path, keep: int) -> None:
    """Wherever the cut is inside decision 7, six decisions remain and line 8 is named."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:7]) + lines[7][:keep])
    assert read(log) == (6, Damage(8, 7, Fault.CUT, "the file ends inside it"), False)


def test_a_lost_last_newline_loses_nothing(log: Path) -> None:
    """The outcome is whole without it."""
    log.write_bytes(log.read_bytes()[:-1])
    assert read(log) == (10, None, True)


def test_a_changed_line_is_located(log: Path) -> None:
    """A number inside decision 4 becomes another one."""
    lines = lines_of(log)
    lines[4] = lines[4].replace(b'"ids":[10', b'"ids":[90')
    log.write_bytes(b"".join(lines))
    assert read(log) == (3, Damage(5, 4, Fault.CHANGED, "its checksum does not fit"), False)


def test_a_line_that_became_garbage_is_located(log: Path) -> None:
    """Text in place of decision 4."""
    lines = lines_of(log)
    lines[4] = b"hello\n"
    log.write_bytes(b"".join(lines))
    assert read(log) == (3, Damage(5, 4, Fault.CHANGED, "it is no line of a log"), False)


def test_dropped_lines_are_counted(log: Path) -> None:
    """Decisions 4 to 6 are gone; alone, decision 4 is gone."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:4] + lines[7:]))
    assert read(log) == (3, Damage(5, 4, Fault.MISSING, "decisions 4 to 6 are gone"), False)
    log.write_bytes(b"".join(lines[:4] + lines[5:]))
    assert read(log) == (3, Damage(5, 4, Fault.MISSING, "decision 4 is gone"), False)


def test_dropped_last_decisions_are_found_by_the_outcome(log: Path) -> None:
    """The outcome follows decision 8."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:9] + lines[11:]))
    assert read(log) == (8, Damage(10, 9, Fault.MISSING, "decisions 9 to 10 are gone"), False)


def test_a_repeated_line_is_located(log: Path) -> None:
    """Decision 4 twice in a row, and once more at the end of decision 6."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:5] + lines[4:]))
    assert read(log) == (4, Damage(6, 5, Fault.REPEATED, "the line before stands there again"), False)
    log.write_bytes(b"".join([*lines[:7], lines[4], *lines[7:]]))
    assert read(log) == (6, Damage(8, 7, Fault.REPEATED, "decision 4 stands there again"), False)


def test_moved_lines_are_located(log: Path) -> None:
    """Decisions 4 and 6 change places: 6 stands on line 5, and 4 is found on line 7."""
    lines = lines_of(log)
    lines[4], lines[6] = lines[6], lines[4]
    log.write_bytes(b"".join(lines))
    assert read(log) == (3, Damage(5, 4, Fault.MOVED, "decision 6 stands there; 4 is on line 7"), False)


@pytest.mark.parametrize("rest", [b"", b"\n"])
def test_a_block_of_nuls_is_called_so(log: Path, rest: bytes) -> None:
    """As a power cut leaves it: the length is right, the content never arrived."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:7]) + lines[7][:10] + bytes(4096) + rest)
    assert read(log) == (6, Damage(8, 7, Fault.NULS, "4096 NUL bytes"), False)


def test_what_follows_the_outcome_is_reported(log: Path) -> None:
    """Two logs in one file: the first is whole, the second is not part of it."""
    whole = log.read_bytes()
    log.write_bytes(whole + whole)
    count, damage, ended = read(log)
    assert (count, ended) == (10, True)
    assert damage is not None
    assert (damage.line, damage.fault) == (13, Fault.TRAILING)


def test_a_file_without_newlines_does_not_fill_the_memory(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is read up to a limit."""
    for module in ("dispatch.log.reader", "dispatch.log.damage"):
        monkeypatch.setattr(f"{module}.MAX_LINE", 2000)
    log.write_bytes(b"".join(lines_of(log)[:3]) + b"x" * 5000)
    assert read(log) == (2, Damage(4, 3, Fault.CUT, "no end within 2000 bytes"), False)


def test_other_line_endings_and_blank_lines_change_nothing(log: Path) -> None:
    """What an editor or a checkout does to line ends is noted, and is no damage."""
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\n")
    with LogReader(log) as reader:
        assert sum(1 for _ in reader) == 10
        assert reader.damage is None
        assert reader.outcome is not None
        assert reader.notes == ["a byte order mark was put in front", "line endings were changed",
                                "line 13 is blank", "line 14 is blank"]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"n": 5}, "n is 5"),
        ({"ids": "abc"}, "ids: 'abc'"),
        ({"state": 3}, "state: 3"),
        ({"event": "header"}, "a second header"),
    ],
)
def test_a_well_sealed_line_that_is_no_record_is_invalid(
    log: Path, counter: SimpleNamespace, fields: dict[str, object], why: str
) -> None:
    """Another writer's mistake is told apart from damage, with the field."""
    counter.forge(log, 5, **fields)
    count, damage, _ = read(log)
    assert count == 3
    assert damage is not None
    assert (damage.line, damage.step, damage.fault) == (5, 4, Fault.INVALID)
    assert why in damage.detail


def test_an_event_of_a_later_version_is_noted_and_skipped(log: Path, counter: SimpleNamespace) -> None:
    """The chain holds over lines that this version does not know."""
    counter.forge(log, 11, event="chat", n=None)
    counter.forge(log, 12, decisions=9)
    with LogReader(log) as reader:
        assert sum(1 for _ in reader) == 9
        assert reader.notes == ["line 11 is 'chat', which this version does not know"]
        assert reader.outcome is not None


def test_a_newer_schema_is_refused_by_name(log: Path, counter: SimpleNamespace) -> None:
    """Even when everything else of it is unknown."""
    counter.forge(log, 1, schema=7, cartridges="another form")
    with pytest.raises(LogError, match=f"schema 7 is newer than {FORMAT}, the newest that this version reads"):
        LogReader(log)


@pytest.mark.parametrize("schema", [0, -1, True, 1.5, "1"])
def test_a_schema_that_is_no_version_is_refused(log: Path, counter: SimpleNamespace, schema: object) -> None:
    """By its repr."""
    counter.forge(log, 1, schema=schema)
    with pytest.raises(LogError, match=f"schema {schema!r} is no version"):
        LogReader(log)


def test_a_header_that_is_not_whole_is_a_typed_error(log: Path, tmp_path: Path) -> None:
    """Empty, something else, cut, dropped and changed headers each have their own words."""
    lines = lines_of(log)
    for content, why in [
        (b"", "is empty"),
        (b"# Readme\n", "line 1 is no header of a session log"),
        (b'{"event":"header","schema":1}\n', "line 1 is cut"),
        (bytes(4096), "line 1 is no header of a session log"),
        (lines[0][:60], "line 1 is cut"),
        (b"".join(lines[1:]), "line 1 is 'decision', not the header"),
        (lines[0].replace(b'"seed":7', b'"seed":8'), "its checksum does not fit"),
        (lines[0].replace(b'"seed":7', b'"seed":NaN'), "NaN is not JSON"),
    ]:
        log.write_bytes(content)
        with pytest.raises(LogError, match=why):
            LogReader(log)
    with pytest.raises(LogError, match="is a directory"):
        LogReader(tmp_path)
    with pytest.raises(LogError, match=r"cannot read '.*no': No such file"):
        LogReader(tmp_path / "no")


def damaged(lines: list[bytes], rng: random.Random) -> bytes:
    """Cut, flip, duplicate, drop or move at a random place."""
    lines = list(lines)
    at = rng.randrange(len(lines))
    match rng.choice(["cut", "flip", "bytes", "block", "dup", "drop", "move", "join"]):
        case "cut":
            data = b"".join(lines)
            return data[: rng.randrange(len(data))]
        case "flip":
            data = bytearray(b"".join(lines))
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return bytes(data)
        case "bytes":
            data = bytearray(b"".join(lines))
            start = rng.randrange(len(data))
            del data[start : start + rng.randrange(1, 50)]
            return bytes(data)
        case "block":
            data = bytearray(b"".join(lines))
            start = rng.randrange(len(data))
            data[start : start + rng.randrange(1, 5000)] = bytes(rng.randrange(1, 5000))
            return bytes(data)
        case "dup":
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        case "drop":
            del lines[at : at + rng.randrange(1, 4)]
        case "move":
            lines.insert(rng.randrange(len(lines)), lines.pop(at))
        case "join":
            lines[at] = lines[at].rstrip(b"\n")
    return b"".join(lines)


def test_damage_at_random_places_is_found_and_located(log: Path, counter: SimpleNamespace) -> None:
    """The first line that is not as written is found, and every decision before it is recovered."""
    counter.write(log.with_name("long.jsonl"), decisions=60)
    good = lines_of(log.with_name("long.jsonl"))
    found = set()
    for seed in (*range(200), 478):  # 478 cuts the outcome off whole
        data = damaged(good, random.Random(seed))
        log.write_bytes(data)
        # Independent of the reader: count the leading lines that are byte for byte as written.
        bad = [line.rstrip(b"\r\n") for line in data.split(b"\n")]
        same = 0
        while same < len(good) and same < len(bad) and bad[same] == good[same].rstrip(b"\n"):
            same += 1
        if same == 0:
            with pytest.raises(LogError, match="line 1"):
                replay(log, counter.make)
            continue
        report = replay(log, counter.make)
        assert report.decisions == min(same - 1, 60), seed
        if same < len(good) or any(bad[same:]):
            assert report.verdict in (Verdict.DAMAGED, Verdict.UNFINISHED), seed
            if report.verdict is Verdict.DAMAGED:
                assert f"line {same + 1} " in report.sentence, seed
            else:
                assert not any(bad[same:]), seed
            found.add(report.damage.split(": ")[1] if report.damage else "end")
        else:
            assert report.verdict is Verdict.VERIFIED, seed
    assert found == {"end", "cut", "changed", "missing", "repeated", "moved", "nuls", "trailing"}
