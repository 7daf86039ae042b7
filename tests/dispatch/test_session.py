"""The loop: endings, limits, several cartridges, joins and leaves, what is logged, going on."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import itertools
import statistics
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import Field

from dispatch.log.export import redacted_copy
from dispatch.log.objects import CartridgeRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Header
from dispatch.log.redact import Redactor
from dispatch.log.replay import Verdict, replay
from dispatch.log.resume import resume
from dispatch.log.stats import stats
from dispatch.log.writer import LogWriter
from dispatch.session.guides import guide_of
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice, PlannerPlayer, Player, RandomPlayer
from dispatch.session.session import Session
from dispatch.session.situation import Situation
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import ActionFailedError, BuildError, IllegalInstructionError, UsageError, WireError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction, Opcode
from kernel.prompt import Explained, Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary


class Switch(Opcode):
    """Turn the lamp."""

    to: Literal["on", "off"]


class LampEngine:
    """A lamp; breaks when it is switched on with a seed of 13."""

    def reset(self, seed: int) -> None:
        self.on, self.seed, self.broken = False, seed, False

    def legal(self) -> Sequence[Instruction]:
        return () if self.broken else [Instruction.of("lamp", "switch", to=to) for to in ("on", "off")]

    def apply(self, instruction: Instruction) -> str:
        if instruction not in self.legal():
            raise IllegalInstructionError(f"lamp: {instruction!r}")
        self.on = instruction.args["to"] == "on"
        self.broken = self.on and self.seed == 13
        return f"the lamp is {instruction.args['to']}"

    def copy(self) -> Self:
        raise NotImplementedError

    def state_hash(self) -> str:
        return f"{self.on} {self.broken}"

    def ended(self) -> str | None:
        return "broken" if self.broken else None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"on": int(self.on)}


class LampView:
    """Shows the request only."""

    def prompt(self, engine: LampEngine, options: Sequence[Option], request: str = "") -> Prompt:
        return Prompt((Part(f"lamp? {request}"),), ((Part("lamp? "),),))

    def render(self, engine: LampEngine) -> Any:
        return ""


LAMP = Cartridge("lamp", "1", "A lamp.", (Switch, Halt), LampEngine, LampView(), takes_requests=True)


class Says:
    """A player that says what it is told to, the last one for ever."""

    name = "says"

    def __init__(self, *instructions: Instruction) -> None:
        self.left = list(instructions)
        self.seen: list[Situation] = []
        self.used: list[list[str]] = []

    def choose(self, situation: Situation) -> Choice:
        self.seen.append(situation)
        return Choice(self.left.pop(0) if len(self.left) > 1 else self.left[0])

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        self.used.append([c.name for c in cartridges])


def switch(to: str) -> Instruction:
    return Instruction.of("lamp", "switch", to=to)


def logged(path: Path, session: Session) -> LogWriter:
    """Let a session write to a new log."""
    header = Header(
        cartridges=session.records, seed=session.seed, player=session.player.name, limits=session.limits or None
    )
    writer = LogWriter(path, header)
    session.write_to(writer)
    return writer


def records(path: Path) -> list[DecisionRecord]:
    with LogReader(path) as reader:
        return list(reader)


def play(session: Session) -> None:
    for _ in session.turns():
        pass
    session.end_log()


def test_a_session_stops_at_its_limit_and_its_log_verifies(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The planner adds 3 five times: 7 + 15 = 22, every choice the planner's first."""
    session = Session([counter.cartridge], PlannerPlayer(), seed=7, limits={"steps": 5})
    with logged(tmp_path / "log", session):
        play(session)
    assert (session.ending, session.detail, session.engines["counter"].summary()) == (
        Ending.LIMIT,
        "5 steps",
        {"value": 22, "steps": 5},
    )
    tally = session.tally
    assert (tally.decisions, tally.with_offer, tally.agreed_first, tally.by_cartridge) == (5, 5, 5, {"counter": 5})
    assert replay(tmp_path / "log", counter.make).verdict is Verdict.VERIFIED
    assert [len(r.offered or ()) for r in records(tmp_path / "log")] == [2] * 5


def test_a_limit_that_nothing_counts_is_refused_at_the_start(counter: SimpleNamespace) -> None:
    """Before a model decides anything."""
    with pytest.raises(UsageError, match=r"^counter: nothing here counts 'pieces', so it is no limit$"):
        Session([counter.cartridge], PlannerPlayer(), limits={"pieces": 3})


def test_stop_ends_before_the_next_decision(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The decision at which it came is whole, in the log too."""
    session = Session([counter.cartridge], PlannerPlayer(), seed=7)
    with logged(tmp_path / "log", session):
        for turn in session.turns():
            if turn.number == 3:
                session.stop("stopped by a person")
        session.end_log()
    report = replay(tmp_path / "log", counter.make)
    assert (report.verdict, report.decisions) == (Verdict.VERIFIED, 3)
    assert report.outcome is not None
    assert (report.outcome.ending, report.outcome.detail) == (Ending.INTERRUPTED, "stopped by a person")


def test_what_breaks_in_between_apply_and_log_leaves_a_log_that_can_be_gone_on_with(
    tmp_path: Path, counter: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is one step ahead, so no outcome is written; going on makes that step again."""
    path = tmp_path / "log"
    session = Session([counter.cartridge], PlannerPlayer(), seed=7, limits={"steps": 5})
    with logged(path, session) as writer:
        turns = session.turns()
        next(turns)
        next(turns)

        def broken(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(writer, "decision", broken)
            with pytest.raises(KeyboardInterrupt):
                next(turns)
        session.close(Ending.INTERRUPTED)
        session.end_log()
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.UNFINISHED, 2)
    found = resume(path, counter.make)
    with found.writer:
        again = Session.resume(found, PlannerPlayer())
        play(again)
    assert (again.tally.decisions, again.engines["counter"].summary()["value"]) == (5, 22)
    assert replay(path, counter.make).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("make", [PlannerPlayer, lambda: RandomPlayer(4)], ids=["planner", "random"])
def test_a_session_that_goes_on_comes_to_the_same_end(tmp_path: Path, counter: SimpleNamespace, make: Any) -> None:
    """Same decisions, same counts, same final state as without the break, and a clock that never goes back."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    session = Session([counter.cartridge], make(), seed=7, limits={"decisions": 20})
    with logged(whole, session):
        play(session)
    first = Session([counter.cartridge], make(), seed=7, limits={"decisions": 20})
    with logged(broken, first):
        for turn in first.turns():
            if turn.number == 8:
                first.stop("enough")
        first.end_log()
    found = resume(broken, counter.make)
    with found.writer:
        again = Session.resume(found, make())
        assert again.tally.decisions == 8
        play(again)
    assert [r.instruction for r in records(broken)] == [r.instruction for r in records(whole)]
    assert again.engines["counter"].state_hash() == session.engines["counter"].state_hash()
    assert again.outcome().totals == session.outcome().totals
    times = [r.at_ms or 0.0 for r in records(broken)]
    assert times == sorted(times)
    assert replay(broken, counter.make).verdict is Verdict.VERIFIED


def test_a_refused_instruction_is_logged_and_changes_nothing(tmp_path: Path, counter: SimpleNamespace) -> None:
    """At 999 only 1 may be added."""
    session = Session([counter.cartridge], Says(counter.add(3), counter.add(1)), seed=999)
    with logged(tmp_path / "log", session):
        turns = list(session.turns())
        session.end_log()
    assert [(t.refused, t.moved) for t in turns] == [(True, False), (False, True)]
    assert turns[0].result == "counter: counter.add(by=3) at 999"
    assert (session.ending, session.detail, session.tally.refused) == (Ending.RULES, "a thousand", 1)
    assert replay(tmp_path / "log", counter.make).verdict is Verdict.VERIFIED


class Unplugged(LampEngine):
    """A lamp whose bridge is off: no way to switch it on."""

    def apply(self, instruction: Instruction) -> str:
        if instruction == switch("on"):
            raise ActionFailedError("ConnectionError: the bridge is off")
        return super().apply(instruction)

    def recall(self, instruction: Instruction, result: str) -> None:
        super().apply(instruction)


UNPLUGGED = replace(LAMP, engine=Unplugged, acts_outside=True)


def test_a_failed_action_is_logged_as_failed_and_the_session_goes_on(tmp_path: Path) -> None:
    """What an action raises is no result: the record says so, the state is as it was, both counts grow."""
    session = Session([UNPLUGGED], Says(switch("on"), switch("off")))
    with logged(tmp_path / "log", session):
        turns = list(session.turns(iter(["light", "dark"])))
        session.end_log()
    assert [(t.refused, t.failed, t.result, t.moved) for t in turns] == [
        (True, "ConnectionError: the bridge is off", "", False),
        (False, None, "the lamp is off", False),
    ]
    first, second = records(tmp_path / "log")
    assert (first.refused, first.failed, first.result) == (True, "ConnectionError: the bridge is off", "")
    assert (second.refused, second.failed, second.result) == (False, None, "the lamp is off")
    assert (session.tally.refused, session.tally.failed, session.ending) == (1, 1, Ending.LIMIT)
    (group,) = stats([tmp_path / "log"]).groups
    assert (group.refused, group.failed) == (1, 1)


def test_a_failed_action_ends_a_session_that_nobody_watches() -> None:
    """Unattended, the next decision would only try again: it ends in a way of its own, which says what failed."""
    session = Session([UNPLUGGED], Says(switch("on")))
    assert len(list(session.turns(itertools.repeat("light"), unattended=True))) == 1
    assert (session.ending, session.detail) == (Ending.FAILED, "ConnectionError: the bridge is off")


def test_each_request_is_one_decision(counter: SimpleNamespace) -> None:
    """And no more requests is the end."""
    session = Session([LAMP], Says(switch("on")))
    turns = list(session.turns(iter(["light", "dark"])))
    assert [(t.number, t.request) for t in turns] == [(1, "light"), (2, "dark")]
    assert (session.ending, session.detail) == (Ending.LIMIT, "no more requests")


def test_what_is_legal_with_several_cartridges_is_what_any_allows(counter: SimpleNamespace) -> None:
    """Its halt stands once; the prompt ends in the request on one line, nothing is offered, all is ranked."""
    player = Says(switch("on"))
    session = Session([counter.cartridge, LAMP], player, seed=999)
    session.turn("  make\nlight ")
    seen = player.seen[0]
    assert seen.legal == [counter.add(1), switch("on"), switch("off"), HALT_INSTRUCTION]
    assert "".join(p.text for p in seen.prompt.parts).endswith("\nRequest: make light\nCommand:")
    assert [p.trusted for p in seen.prompt.parts] == [True, False, True]
    assert [o.instruction for o in seen.options] == [counter.add(1)]
    assert session.tally.with_offer == 0


def said(prompt: Prompt) -> list[str]:
    """Return what the model reads: the prompt, then its other orders."""
    return ["".join(part.text for part in parts) for parts in (prompt.parts, *prompt.rotations)]


def test_with_several_the_commands_of_all_stand_before_the_request(counter: SimpleNamespace) -> None:
    """From the guides in the order of the names, as examples from the first one down; then as a list, from its end.

    The lamp has a guide, the counter only its docstring. Who came first makes no difference.
    """
    guide = tuple(
        Explained(f"switch {to}", f"{verb} the lamp", f"it is {when}", f"Too {when}")
        for to, verb, when in (("on", "light", "dark"), ("off", "darken", "bright"))
    )
    lamp, player = replace(LAMP, guide=guide), Says(switch("on"))
    for cartridges in ([lamp, counter.cartridge], [counter.cartridge, lamp]):
        Session(cartridges, player, seed=7).turn("hm")
    first, second = (situation.prompt for situation in player.seen)
    assert first == second
    assert said(first) == [
        "Request: Add a number, add 1\nCommand: add 1\nRequest: Add a number, add 2\nCommand: add 2\n"
        "Request: Add a number, add 3\nCommand: add 3\n"
        "Request: Light the lamp, it is dark\nCommand: switch on\n"
        "Request: Darken the lamp, it is bright\nCommand: switch off\n"
        "Request: hm\nCommand:",
        "Commands:\n- darken the lamp: switch off\n- light the lamp: switch on\n"
        "- add a number: add 3\n- add a number: add 2\n- add a number: add 1\n"
        "\nRequest: hm\nCommand:",
    ]
    assert [null[1].text for null in first.nulls] == [" add 1", " add 2", " add 3", " Too dark", " Too bright"] * 2


def test_many_commands_without_a_guide_are_one_line_an_opcode() -> None:
    """Of 50 numbers the first stands for all, and an opcode that is written is said as it begins."""

    class Dial(Opcode):
        """Set the dial. In degrees."""

        to: int = Field(ge=1, le=50)

    class Note(Opcode):
        text: str

    many = Cartridge("dial", "1", "A dial.", (Dial, Note, Halt), LampEngine, LampView(), takes_requests=True)
    assert [(e.words, e.phrase) for e in guide_of([many])] == [("dial 1", "set the dial. In degrees"), ("note", "note")]


def test_several_cartridges_end_when_all_have_ended(counter: SimpleNamespace) -> None:
    """With a seed of 13 the lamp breaks at once; the counter goes on to its limit of 1000."""
    session = Session([LAMP, counter.cartridge], Says(switch("on"), *[counter.add(3)] * 329), seed=13)
    play(session)
    assert (session.ending, session.detail) == (Ending.RULES, "lamp: broken; counter: a thousand")
    assert session.tally.decisions == 330


def test_halt_ends_a_session(tmp_path: Path) -> None:
    """It is logged as a decision of the first cartridge and leaves the state as it was."""
    session = Session([LAMP], Says(HALT_INSTRUCTION))
    with logged(tmp_path / "log", session):
        play(session)
    assert (session.ending, session.tally.decisions) == (Ending.HALT, 1)
    assert replay(tmp_path / "log", lambda _: LAMP).verdict is Verdict.VERIFIED


def test_an_unattended_session_ends_when_it_repeats_itself(tmp_path: Path) -> None:
    """On, on (nothing changes), on again on the unchanged state: that is the end, and it stands in the log."""
    session = Session([LAMP], Says(switch("on")))
    with logged(tmp_path / "log", session):
        turns = list(session.turns(itertools.repeat("light"), unattended=True))
        session.end_log()
    assert [t.moved for t in turns] == [True, False, False]
    assert (session.ending, session.detail) == (
        Ending.REPEAT,
        "lamp.switch(to='on') again on an unchanged state",
    )
    report = replay(tmp_path / "log", lambda _: LAMP)
    assert report.verdict is Verdict.VERIFIED
    assert report.outcome is not None
    assert report.outcome.ending is Ending.REPEAT


def test_changing_instructions_are_no_repetition() -> None:
    """On and off for ever reach the step limit; a person who asks may repeat."""
    to_and_fro = Says(*[switch("on"), switch("off")] * 10)
    session = Session([LAMP], to_and_fro, limits={"decisions": 6})
    assert len(list(session.turns(itertools.repeat("x"), unattended=True))) == 6
    assert (session.ending, session.detail) == (Ending.LIMIT, "6 decisions")
    asked = Session([LAMP], Says(switch("on")))
    assert len(list(asked.turns(iter(["on"] * 5)))) == 5


def test_cartridges_join_and_leave_and_the_others_keep_their_states(counter: SimpleNamespace) -> None:
    """The one that comes back begins anew."""
    player = Says(counter.add(2))
    session = Session([counter.cartridge], player, seed=7)
    session.turn()
    session.join(LAMP)
    assert player.used == [["counter", "lamp"]]
    session.turn("x")
    assert switch("on") in player.seen[-1].legal
    session.leave("counter")
    assert player.used[-1] == ["lamp"]
    session.engines["lamp"].apply(switch("on"))
    session.join(counter.cartridge)
    assert session.engines["counter"].summary() == {"value": 7, "steps": 0}
    assert session.engines["lamp"].summary() == {"on": 1}


def test_joins_and_leaves_that_make_no_sense_change_nothing(counter: SimpleNamespace) -> None:
    """Twice, unknown, the last one, and one that the player cannot compile."""
    session = Session([counter.cartridge], PlannerPlayer())
    with pytest.raises(UsageError, match=r"^cartridge 'counter' is there already$"):
        session.join(counter.cartridge)
    with pytest.raises(UsageError, match=r"^no cartridge 'countr' takes part; did you mean 'counter'\?$"):
        session.leave("countr")
    with pytest.raises(UsageError, match="'counter' is the only one"):
        session.leave("counter")

    class Refuses(PlannerPlayer):
        def use(self, cartridges: Sequence[Cartridge]) -> None:
            raise BuildError("clash")

    session = Session([counter.cartridge], Refuses())
    with pytest.raises(BuildError, match="clash"):
        session.join(LAMP)
    assert list(session.cartridges) == list(session.engines) == ["counter"]


def make_either(counter: SimpleNamespace, record: CartridgeRecord) -> Cartridge:
    return LAMP if record.name == "lamp" else counter.make(record)  # type: ignore[no-any-return]


def test_a_log_with_joins_and_leaves_replays_and_can_be_gone_on_with(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Counter, then the lamp too, then the lamp alone, then both; broken off and gone on with."""
    path = tmp_path / "log"
    player = Says(counter.add(1), switch("on"), switch("off"), counter.add(2))
    session = Session([counter.cartridge], player, seed=7)
    with logged(path, session):
        session.turn()
        session.join(LAMP)
        session.turn("x")
        session.leave("counter")
        session.turn("x")
        session.join(counter.cartridge)
        session.turn("x")
    report = replay(path, lambda r: make_either(counter, r))
    assert (report.verdict, report.decisions) == (Verdict.UNFINISHED, 4)
    found = resume(path, lambda r: make_either(counter, r))
    assert list(found.engines) == ["lamp", "counter"]
    assert found.engines["counter"].summary() == {"value": 9, "steps": 1}
    with found.writer:
        again = Session.resume(found, Says(counter.add(3)), limits={"decisions": 5})
        again.leave("lamp")
        play(again)
    report = replay(path, lambda r: make_either(counter, r))
    assert (report.verdict, report.decisions) == (Verdict.VERIFIED, 5)
    assert again.engines["counter"].summary()["value"] == 12
    assert redacted_copy(path, tmp_path / "copy", Redactor()) == (5, None)
    assert replay(tmp_path / "copy", lambda r: make_either(counter, r)).verdict is Verdict.VERIFIED


def byte_kernel() -> Kernel:
    """A model over bytes that likes what a hash of what stands before says."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        return np.random.default_rng(list(ids)).normal(size=256).astype(np.float32)

    return Kernel(ScriptedBackend(vocabulary, row))


def model_player(cartridges: Sequence[Cartridge]) -> ModelPlayer:
    return ModelPlayer(byte_kernel(), Wire(cartridges), cartridges)


def test_a_single_cartridge_chooses_what_it_chose_before_others_came_and_went(counter: SimpleNamespace) -> None:
    """Thirty decisions with a join, a decision and a leave before each, against thirty without."""

    def values(visited: bool) -> list[int]:
        session = Session([counter.cartridge], model_player([counter.cartridge]), seed=7)
        out = []
        for _ in range(30):
            if visited:
                session.join(LAMP)
                assert switch("on") in session.situation(1, "")[0].legal
                session.leave("lamp")
            out.append(session.turn().instruction.args["by"])
        return out

    alone = values(False)
    assert values(True) == alone
    assert len(set(alone)) > 1


def test_four_hundred_joins_and_leaves_neither_grow_nor_slow(counter: SimpleNamespace) -> None:
    """The kernel keeps two sets; memory after 400 is that after 100; the last hundred take as long as the first."""
    player: Player = model_player([counter.cartridge])
    assert isinstance(player, ModelPlayer)
    session = Session([counter.cartridge], player, seed=7)
    took: list[float] = []
    memory = [0, 0]
    tracemalloc.start()
    try:
        for n in range(400):
            if n in (100, 399):
                memory[n == 399] = tracemalloc.get_traced_memory()[0]
            started = time.perf_counter()
            session.join(LAMP)
            if n % 50 == 0:
                session.turn("light")
            session.leave("lamp")
            took.append(time.perf_counter() - started)
    finally:
        tracemalloc.stop()
    assert memory[1] - memory[0] < 200_000
    assert statistics.median(took[-100:]) < 3 * statistics.median(took[50:150])
    assert set(session.engines) == {"counter"}


def test_a_text_that_is_not_read_back_fails_its_decision_and_not_the_session(
    caplog: pytest.LogCaptureFixture, counter: SimpleNamespace
) -> None:
    """Of three requests the second one cannot be read back: two decisions, and a warning that nothing was done.

    The kind of fault: mask and parser read one shape in two ways.
    """

    class Garbled(RandomPlayer):
        def choose(self, situation: Situation) -> Choice:
            if situation.prompt.parts[-1].text == "second":
                raise WireError("' add' is not an instruction in the compact form")
            return super().choose(situation)

    cartridge = replace(counter.cartridge, view=Echo(), takes_requests=True)
    session = Session([cartridge], Garbled(1))
    turns = list(session.turns(iter(["first", "second", "third"])))
    assert [turn.request for turn in turns] == ["first", "third"]
    assert session.ending is Ending.LIMIT
    assert "is not an instruction in the compact form; nothing was done" in caplog.text


class Echo:
    """The request is the prompt."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the request."""
        return Prompt((Part(request),))

    def render(self, engine: Engine) -> str:
        """Return nothing."""
        return ""
