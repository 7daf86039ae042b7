"""Replay without the model: states, results and the outcome are compared, and the first difference is named."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from cartridges.tetris import make as make_tetris
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LegalRow, Offer
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.replay import Replay, Verdict, replay
from dispatch.log.writer import LogWriter
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.opcode import HALT_INSTRUCTION, Instruction


@pytest.fixture
def log(tmp_path: Path, counter: SimpleNamespace) -> Path:
    """Ten decisions from 7 on, and an outcome."""
    path: Path = counter.write(tmp_path / "log.jsonl")
    return path


def test_a_whole_log_verifies_step_by_step(log: Path, counter: SimpleNamespace) -> None:
    """Every step is shown with the engine in the state after it."""
    seen: list[tuple[int, str]] = []
    with LogReader(log) as reader:
        run = Replay(reader, counter.make)
        for step in run:
            seen.append((step.record.n, step.engine.state_hash()))
            assert step.record.state == step.engine.state_hash()
        report = run.report()
    assert [n for n, _ in seen] == list(range(1, 11))
    assert report.verdict is Verdict.VERIFIED
    assert report.good
    assert report.decisions == 10
    assert report.sentence == "verified: 10 whole decisions verify to the end: limit (decisions)"
    assert (report.damage, report.difference, report.notes) == (None, None, ())


def test_decisions_come_with_the_engine_as_it_was_before_them(log: Path, counter: SimpleNamespace) -> None:
    """Each is carried out when the next one is asked for, so the verdict at the end is that of a whole replay."""
    with LogReader(log) as reader:
        run = Replay(reader, counter.make)
        state, before, after = run.engines["counter"].state_hash(), [], []
        for record in run.decisions():
            before.append((run.n, run.engines["counter"].state_hash()))
            after.append((record.n, record.state))
        assert before == [(0, state), *after[:-1]]
        assert len(after) > 3
        assert run.report().verdict is Verdict.VERIFIED


def test_deciding_stops_where_the_engine_disagrees(log: Path, counter: SimpleNamespace) -> None:
    """The decision that does not hold is handed out, since it is verified only afterwards; none follows it."""
    with LogReader(log) as reader:
        run = Replay(reader, counter.make)
        numbers = []
        for record in run.decisions():
            numbers.append(record.n)
            if record.n == 3:
                run.engines["counter"].reset(0)
        assert numbers == [1, 2, 3]
        assert (run.n, run.report().verdict) == (2, Verdict.DIFFERENT)


def test_a_log_of_no_decisions_verifies(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Header and outcome alone are a whole session."""
    report = replay(counter.write(tmp_path / "none.jsonl", decisions=0), counter.make)
    assert report.sentence == "verified: 0 whole decisions verify to the end: limit (decisions)"


def test_a_killed_session_verifies_to_its_last_line(tmp_path: Path, counter: SimpleNamespace) -> None:
    """No outcome: the verdict says so; a last line that is cut is named on top of that."""
    path = counter.write(tmp_path / "log.jsonl", decisions=4, end=False)
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions, report.good) == (Verdict.UNFINISHED, 4, False)
    assert (
        report.sentence
        == "unfinished: 4 whole decisions verify, and no outcome follows: killed, or its end was cut off"
    )
    path.write_bytes(path.read_bytes()[:-10])
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.DAMAGED, 3)
    assert (
        report.sentence == "damaged: 3 whole decisions verify, then line 5 (decision 4): cut: the file ends inside it"
    )


def test_replay_stops_where_it_is_asked_to(log: Path, counter: SimpleNamespace) -> None:
    """Up to decision 4, or not at all."""
    report = replay(log, counter.make, last=4)
    assert (report.verdict, report.decisions, report.good) == (Verdict.STOPPED, 4, True)
    assert report.sentence == "stopped as asked: 4 whole decisions verify"
    assert replay(log, counter.make, last=0).decisions == 0


@pytest.mark.parametrize(
    ("line", "fields", "decisions", "difference"),
    [
        (1, {"seed": 8}, 0, "the start: counter state: the log has 's7.0', the engine 's8.0'"),
        (4, {"state": "s0.0"}, 2, "decision 3: state: the log has 's0.0', the engine"),
        (4, {"result": "now 0"}, 2, "decision 3: result: the log has 'now 0', the engine"),
        (4, {"cartridge": "chess"}, 2, "decision 3: cartridge: the log has 'chess', the engine 'only counter'"),
        (4, {"refused": True}, 2, "decision 3: legality: "),
        (12, {"summary": {"counter": {"value": 9, "steps": 10}}}, 10, "decision 10: counter summary: "),
        (12, {"summary": {"chess": {}, "counter": {}}}, 10, "decision 10: counter summary: "),
        (
            12,
            {"ending": "rules"},
            10,
            "decision 10: ending: the log has 'decisions', the engine 'the session may go on",
        ),
    ],
)
def test_a_forged_log_is_found_where_the_rules_disagree(
    log: Path, counter: SimpleNamespace, line: int, fields: dict[str, object], decisions: int, difference: str
) -> None:
    """Checksums that fit do not help: the engine knows better. What stands before still verifies."""
    counter.forge(log, line, **fields)
    report = replay(log, counter.make)
    assert (report.verdict, report.decisions, report.good) == (Verdict.DIFFERENT, decisions, False)
    assert report.difference is not None
    assert report.difference.startswith(difference)


@pytest.mark.parametrize(
    ("arguments", "method"), [({"by": 9}, "add"), ({"by": "1"}, "add"), ({}, "add"), ({"by": 1}, "sub")]
)
def test_an_instruction_that_the_engine_refuses_is_a_difference(
    log: Path, counter: SimpleNamespace, arguments: dict[str, object], method: str
) -> None:
    """An illegal instruction in the log ends the replay before it."""
    counter.forge(log, 4, instruction={"cartridge": "counter", "method": method, "arguments": arguments})
    report = replay(log, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.DIFFERENT, 2)
    assert str(report.difference).startswith("decision 3: legality: the log has ")
    assert f"counter.{method}(" in str(report.difference)


def test_a_refused_instruction_verifies_as_refused(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The state stays, and the reason is the engine's."""
    engine = counter.engine()
    engine.reset(7)
    wrong = Instruction.of("counter", "add", by=9)
    with pytest.raises(IllegalInstructionError) as reason:
        engine.apply(wrong)
    with LogWriter(tmp_path / "log", counter.header()) as log:
        log.decision(
            DecisionRecord(
                n=1,
                cartridge="counter",
                instruction=InstructionRecord.of(wrong),
                refused=True,
                result=str(reason.value),
                state="s7.0",
            )
        )
        log.decision(counter.decision(2, engine, 1))
        log.outcome(Outcome(decisions=2, ending=Ending.LIMIT, summary=counter.summary(engine)))
    assert replay(tmp_path / "log", counter.make).verdict is Verdict.VERIFIED


def test_halt_is_not_given_to_the_engine(tmp_path: Path, counter: SimpleNamespace) -> None:
    """It ends the session and leaves the state alone."""
    halt, engine = InstructionRecord.of(HALT_INSTRUCTION), counter.engine()
    engine.reset(7)
    with LogWriter(tmp_path / "log", counter.header()) as log:
        log.decision(DecisionRecord(n=1, cartridge="counter", instruction=halt, state="s7.0"))
        log.outcome(Outcome(decisions=1, ending=Ending.HALT, summary=counter.summary(engine)))
    assert replay(tmp_path / "log", counter.make).sentence == "verified: 1 whole decision verifies to the end: halt"


def test_a_cartridge_of_another_version_is_noted_and_the_states_decide(log: Path, counter: SimpleNamespace) -> None:
    """Version 2 with the same rules verifies, and the note stays."""
    report = replay(log, lambda record: dataclasses.replace(counter.make(record), version="2"))
    assert report.verdict is Verdict.VERIFIED
    assert report.notes == ("counter: logged with version 1, replayed with 2",)


def test_an_unknown_cartridge_is_the_factory_s_error(log: Path, counter: SimpleNamespace) -> None:
    """It passes through."""
    counter.forge(log, 1, cartridges=[{"name": "chess", "version": "1"}])
    with pytest.raises(CartridgeError, match="no cartridge 'chess'"):
        replay(log, counter.make)


def test_an_engine_that_breaks_is_a_difference_and_no_traceback(log: Path, counter: SimpleNamespace) -> None:
    """The class and text of the error are in the report."""

    class Broken(counter.engine):  # type: ignore[misc, name-defined]
        """Fails at the third step."""

        def apply(self, instruction: Instruction) -> str:
            """Fail."""
            if self.steps == 2:
                raise ZeroDivisionError("no way")
            return str(super().apply(instruction))

    report = replay(log, lambda record: dataclasses.replace(counter.make(record), engine=Broken))
    assert (report.verdict, report.decisions) == (Verdict.DIFFERENT, 2)
    assert "ZeroDivisionError: no way" in str(report.difference)


def test_scores_that_are_not_finite_do_not_disturb_a_replay(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A legal row at -inf and one NaN: the same choice comes back."""
    engine = counter.engine()
    engine.reset(7)
    record = counter.decision(1, engine, 2)
    rows = tuple(
        LegalRow(text=counter.said(by), logprob=value) for by, value in [(1, -math.inf), (2, -1.0), (3, math.nan)]
    )
    with LogWriter(tmp_path / "log", counter.header()) as log:
        log.decision(record.model_copy(update={"legal": rows}))
        log.outcome(Outcome(decisions=1, ending=Ending.LIMIT, summary=counter.summary(engine)))
    with LogReader(tmp_path / "log") as reader:
        run = Replay(reader, counter.make)
        seen = [step.record for step in run]
        assert run.report().verdict is Verdict.VERIFIED
    assert seen[0].instruction.instruction() == Instruction.of("counter", "add", by=2)
    assert seen[0].legal is not None
    assert [row.logprob for row in seen[0].legal[:1]] == [-math.inf]
    assert math.isnan(seen[0].legal[2].logprob or 0)


def tetris(record: CartridgeRecord) -> Cartridge:
    """Build Tetris from a header's record."""
    return make_tetris(**record.options or {})


def test_a_tetris_game_of_the_planner_verifies(tmp_path: Path) -> None:
    """Fifty pieces with the five keys, options and scores logged, state by state."""
    cartridge = make_tetris("moves")
    engine, planner = cartridge.engine(), cartridge.planner
    assert planner is not None
    engine.reset(3)
    start = CartridgeRecord(
        name="tetris", version=cartridge.version, state=engine.state_hash(), options={"opcodes": "moves"}
    )
    path = tmp_path / "tetris.jsonl"
    steps = itertools.count(1)
    with LogWriter(path, Header(cartridges=(start,), seed=3, player="planner")) as log:
        while engine.summary()["pieces"] != 50:
            options = planner.rank(engine)[:3]
            key = options[0].instruction
            result = engine.apply(key)
            log.decision(
                DecisionRecord(
                    n=next(steps),
                    cartridge="tetris",
                    instruction=InstructionRecord.of(key),
                    offered=tuple(map(Offer.of, options)),
                    result=result,
                    state=engine.state_hash(),
                )
            )
        log.outcome(Outcome(decisions=log.n, ending=Ending.LIMIT, summary={"tetris": dict(engine.summary())}))
    report = replay(path, tetris)
    assert report.verdict is Verdict.VERIFIED
    assert report.decisions == log.n >= 50
