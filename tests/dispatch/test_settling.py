"""What is done with a decision: carried out, held back, asked about; in the session, in its log and in its replay."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from dispatch.cli import app, call, choose
from dispatch.loading.registry import Registry, load
from dispatch.log.corrections import corrections
from dispatch.log.reader import LogReader
from dispatch.log.records import Confirmed, DecisionRecord, Ending, Unchosen
from dispatch.log.replay import replay
from dispatch.log.resume import resume
from dispatch.log.stats import stats
from dispatch.log.writer import LogWriter
from dispatch.session.decide import decide_again
from dispatch.session.header import By, header
from dispatch.session.judging import logged_judge
from dispatch.session.model_player import ModelPlayer
from dispatch.session.session import Session
from dispatch.session.told import why_held
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import UsageError
from kernel.opcode import Instruction, Opcode
from kernel.text.vocabulary import NORMAL, Vocabulary

WANTS: Mapping[str, Sequence[str]] = {
    "one": (" add 1",), "two": (" add 2",), "three": (" add 3",), "two or three": (" add 3", " add 2"),
    "wipe it": (" wipe",), "what is the capital of France": (),
}  # fmt: skip
"""What the model wants to say behind a request; of two it likes the first a little more."""


class Wipe(Opcode):
    """Begin at 0 again."""

    confirm: ClassVar[bool] = True


def model(wants: Mapping[str, Sequence[str]] = WANTS) -> Kernel:
    """A model over bytes that likes all alike, but for what is wanted behind a prompt of the counter's form or ours."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )
    asked = re.compile(r"(?:value \d+ (?P<counter>.*)\n|Request: (?P<ours>.*)\nCommand:)(?P<said>.*)\Z")

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.zeros(256, np.float32)
        out[0] = -1.0  # a row that is all alike counts as one that nobody wrote
        if (found := asked.search(bytes(ids[-200:]).decode())) is not None:
            said = found["said"]
            for at, wanted in enumerate(wants.get(found["counter"] or found["ours"], ())):
                if wanted.startswith(said) and len(said) < len(wanted):
                    out[ord(wanted[len(said)])] = 10 - 0.01 * at
        return out

    return Kernel(ScriptedBackend(vocabulary, row, n_ctx=1 << 16, n_seq=128))


@pytest.fixture
def wiper(counter: SimpleNamespace) -> Cartridge:
    """The counter, which can be wiped; that has to be agreed to."""

    class Engine(counter.engine):  # type: ignore[misc, name-defined]
        def legal(self) -> Sequence[Instruction]:
            return [*super().legal(), Instruction.of("counter", "wipe")]

        def apply(self, instruction: Instruction) -> str:
            if instruction.method == "wipe":
                self.value, self.steps = 0, self.steps + 1
                return "wiped"
            said: str = super().apply(instruction)
            return said

    made: Cartridge = replace(
        counter.cartridge, opcodes=(*counter.cartridge.opcodes, Wipe), engine=Engine, planner=None
    )
    return made


class Somebody:
    """Answers as told, and counts the questions."""

    def __init__(self, option: int | None = None, agrees: bool = False) -> None:
        self.option, self.answer = option, agrees
        self.asked: list[str] = []

    def which(self, request: str, options: Sequence[Instruction]) -> int | None:
        self.asked.append(f"which {' '.join(map(repr, options))}")
        return self.option

    def agrees(self, request: str, instruction: Instruction) -> bool:
        self.asked.append(f"agrees {instruction!r}")
        return self.answer


@pytest.fixture
def play(wiper: Cartridge, tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A session of the counter at 7, judged by the defaults, and its log."""
    player = ModelPlayer(model(), Wire([wiper]), [wiper], judge=Thresholds())
    session = Session([wiper], player, seed=7)
    path = tmp_path / "log.jsonl"
    by = By(player.kernel, "scripted", Rule(), "compact", 256)
    with LogWriter(path, header(session, by)) as log:
        session.write_to(log)

        def end() -> list[DecisionRecord]:
            session.end_log()
            log.close()
            with LogReader(path) as reader:
                records = list(reader)
            assert reader.damage is None
            return records

        engine = session.engines["counter"]
        yield SimpleNamespace(session=session, player=player, path=path, end=end, engine=engine, make=lambda _: wiper)


def value(play: SimpleNamespace) -> int:
    found: int = play.engine.value
    return found


def test_a_request_that_means_nothing_of_this_changes_nothing(play: SimpleNamespace) -> None:
    """Nobody is asked; the log says so, and replays."""
    play.session.person = Somebody(agrees=True)
    before = play.engine.state_hash()
    turn = play.session.turn("what is the capital of France")
    assert (turn.outcome, turn.held, turn.result, turn.moved) == (Outcome.NONE, True, "", False)
    assert why_held(turn) == "nothing was done: none of the commands seems to be meant"
    assert (play.engine.state_hash(), play.session.person.asked) == (before, [])
    assert play.session.turn("two").result == "now 9"
    held, done = play.end()
    assert (held.outcome, held.held, held.state) == (Unchosen.NONE, True, before)
    assert (done.outcome, done.held) == (None, False)
    assert replay(play.path, play.make).good


def test_a_wish_that_is_not_legal_changes_nothing_and_is_named(play: SimpleNamespace) -> None:
    """At 999 only one can be added."""
    play.engine.value = 999
    turn = play.session.turn("three")
    assert (turn.outcome, turn.held, value(play)) == (Outcome.NOT_LEGAL, True, 999)
    assert why_held(turn) == "nothing was done: add 3 is not legal now"
    assert play.session.turn("one").result == "now 1000"


@pytest.mark.parametrize(("option", "by"), [(0, 3), (1, 2), (None, 0)])
def test_a_person_is_asked_between_two(play: SimpleNamespace, option: int | None, by: int) -> None:
    """One of the two is carried out, or neither; what the model found is logged as it was."""
    play.session.person = Somebody(option)
    turn = play.session.turn("two or three")
    assert play.session.person.asked == ["which counter.add(by=3) counter.add(by=2)"]
    assert (turn.outcome, turn.held, turn.settled) == (Outcome.UNSURE, option is None, option is not None)
    assert value(play) == 7 + by
    (record,) = play.end()
    assert (record.outcome, record.close) == (Unchosen.UNSURE, (" add 3\n@counter\n", " add 2\n@counter\n"))
    assert record.instruction.arguments == {"by": by or 3}
    assert record.settled is (option is not None)
    assert record.margin == pytest.approx(0.01, abs=1e-4)
    assert replay(play.path, play.make).good


def test_a_program_takes_or_drops_what_is_pending(play: SimpleNamespace) -> None:
    """Between two, and what has to be agreed to; what it leaves is dropped when the session goes on."""
    first = play.session.turn("two or three")
    assert (first.held, first.pending.options, value(play)) == (True, first.close, 7)
    assert first.pending.take(1).result == "now 9"
    with pytest.raises(UsageError, match="not pending any more"):
        first.pending.take(0)
    wipe = play.session.turn("wipe it")
    assert (wipe.outcome, wipe.held, wipe.confirmed) == (Outcome.CHOSEN, True, Confirmed.UNASKED)
    with pytest.raises(UsageError, match="option 1 of 1"):
        wipe.pending.take(1)
    assert (wipe.pending.take().result, value(play)) == ("wiped", 0)
    assert play.session.turn("wipe it").pending.drop().confirmed is Confirmed.DECLINED
    left = play.session.turn("wipe it")
    assert (play.session.turn("one").result, value(play)) == ("now 1", 1)
    with pytest.raises(UsageError, match="not pending any more"):
        left.pending.take()
    play.session.turn("two or three")
    records = play.end()
    assert [r.n for r in records] == [1, 2, 3, 4, 5, 6]
    assert [r.confirmed for r in records] == [
        None, Confirmed.AGREED, Confirmed.DECLINED, Confirmed.UNASKED, None, None
    ]  # fmt: skip
    assert [r.settled for r in records] == [True, None, None, None, None, None]
    assert [r.held for r in records] == [False, False, True, True, False, True]
    assert replay(play.path, play.make).good


@pytest.mark.parametrize(
    ("person", "yes", "confirmed", "questions"),
    [
        (Somebody(agrees=True), False, Confirmed.AGREED, 1),
        (Somebody(agrees=False), False, Confirmed.DECLINED, 1),
        (Somebody(agrees=False), True, Confirmed.BEFOREHAND, 0),
        (None, True, Confirmed.BEFOREHAND, 0),
        (None, False, Confirmed.UNASKED, 0),
    ],
)
def test_what_has_to_be_agreed_to_is_asked_first(
    play: SimpleNamespace, person: Somebody | None, yes: bool, confirmed: Confirmed, questions: int
) -> None:
    """Without anybody to ask and without a yes nothing is done."""
    play.session.person, play.session.yes = person, yes
    turn = play.session.turn("wipe it")
    done = confirmed in (Confirmed.AGREED, Confirmed.BEFOREHAND)
    assert (turn.held, value(play)) == (not done, 0 if done else 7)
    assert person is None or len(person.asked) == questions
    (record,) = play.end()
    assert (record.confirmed, record.held) == (confirmed, not done)
    assert replay(play.path, play.make).good


def test_without_a_judge_something_is_always_done(play: SimpleNamespace) -> None:
    """As before: the best of what is legal, whatever the request; what is better and not legal is noted."""
    play.player.judge = None
    for request in ("what is the capital of France", "two or three"):
        assert not play.session.turn(request).held
    play.engine.value = 999
    turn = play.session.turn("three")
    assert turn.decision.preferred_text == " add 3\n@counter\n"
    assert turn.confirmed is not None or not turn.held


def test_a_goal_ends_where_nothing_is_done(play: SimpleNamespace) -> None:
    """Nobody is watching, so the same would come again and again."""
    turns = list(play.session.turns(iter(["wipe it"] * 9), unattended=True))
    assert len(turns) == 1
    assert (play.session.ending, play.session.detail) == (Ending.HELD, "nothing was done: nobody has agreed to it")
    (record,) = play.end()
    assert record.confirmed is Confirmed.UNASKED
    assert replay(play.path, play.make).good


def test_a_session_goes_on_with_the_judge_of_its_log(play: SimpleNamespace) -> None:
    """The header has the thresholds; decisions that were held back count, and replaying them decides the same."""
    play.session.turn("what is the capital of France")
    play.session.turn("wipe it")
    play.session.close(Ending.INTERRUPTED, "test")
    play.end()
    with LogReader(play.path) as reader:
        assert logged_judge(reader.header) == Thresholds()
    again = decide_again(play.path, play.make, play.player, ())
    assert (again.good, again.decisions, again.agree, again.ended_otherwise) == (True, 2, 2, 0)
    play.player.judge = Thresholds(top=None)
    other = decide_again(play.path, play.make, play.player, ())
    assert (other.good, other.ended_otherwise) == (False, 1)
    assert other.first_ended is not None
    assert (other.first_ended.then, other.first_ended.now) == (Outcome.NONE, Outcome.UNSURE)
    found = resume(play.path, play.make)
    with found.writer:
        assert (found.tally.held, found.tally.outcomes) == (2, {"none": 1, "chosen": 1})
    (group,) = stats([play.path]).groups
    assert (group.held, group.outcomes, group.confirmed) == (2, {"none": 1, "chosen": 1}, {"unasked": 1})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": "s9.1"}, "state"),
        ({"result": "now 9"}, "result"),
        ({"outcome": None, "close": None, "settled": None}, "result"),
        ({"outcome": "none"}, "close"),
        ({"close": [" add 3\n@counter\n", " add 1\n@counter\n"]}, "close"),
        ({"settled": True}, "result"),
        ({"confirmed": "agreed"}, "confirmed"),
    ],
)
def test_a_held_decision_that_was_edited_is_found(
    play: SimpleNamespace, counter: SimpleNamespace, change: dict[str, Any], told: str
) -> None:
    """Fields contradict each other, or the engines."""
    play.session.person = Somebody()
    play.session.turn("two or three")
    play.end()
    counter.forge(play.path, 2, **change)
    found = replay(play.path, play.make)
    assert not found.good
    assert told in found.sentence


def test_corrections_are_logged_and_read(play: SimpleNamespace, tmp_path: Path) -> None:
    """The last word on a decision counts; nothing is undone, and the log replays."""
    with pytest.raises(UsageError, match="no request was answered yet"):
        play.session.correct()
    play.session.turn("one")
    play.session.correct()
    play.session.correct("add 2")
    play.session.turn("what is the capital of France")
    play.session.correct("none")
    play.session.turn("two")
    play.session.turn("three")
    play.session.correct("  wipe ")
    with pytest.raises(UsageError, match="'ad 2' is no command; did you mean 'add'"):
        play.session.correct("ad 2")
    with pytest.raises(UsageError, match="'add 9' is no command"):
        play.session.correct("add 9")
    play.session.turn("two")
    play.session.correct()
    play.end()
    assert value(play) == 7 + 1 + 2 + 3 + 2
    assert [(c.n, c.request, c.answer, c.held) for c in corrections(play.path)] == [
        (1, "one", "add 2", False),
        (2, "what is the capital of France", "", True),
        (4, "three", "wipe", False),
        (5, "two", None, False),
    ]
    first = corrections(play.path)[0]
    assert (first.chosen, first.instruction) == (play.session.cartridges["counter"].opcodes[0](by=1).instruction(
        "counter"
    ), Instruction.of("counter", "add", by=2))  # fmt: skip
    assert replay(play.path, play.make).good


def test_a_correction_of_nothing_is_damage(play: SimpleNamespace, counter: SimpleNamespace) -> None:
    """A decision that is not there yet; an answer without its instruction."""
    play.session.turn("one")
    play.session.correct("add 2")
    play.end()
    whole = play.path.read_bytes()
    for change in ({"decision": 2}, {"instruction": None}, {"answer": "none"}):
        play.path.write_bytes(whole)
        counter.forge(play.path, 3, **change)
        assert not replay(play.path, play.make).good


@pytest.mark.parametrize("name", [source.name for source in Registry().sources])
def test_a_request_for_what_is_not_legal_changes_nothing_in_any_cartridge(name: str) -> None:
    """Every command that some state forbids, at ten states of a random walk: the state is the same, the wish is named.

    Where a request stands beside the planner's options, it colours a move that has to be made, and is no wish.
    """
    cartridge = load(name)
    if cartridge.offers_beside_request or not cartridge.takes_requests:
        return
    rng, tried = random.Random(1), 0
    wire = Wire([cartridge])
    texts = [text for opcode in cartridge.opcodes if not opcode.is_open() for text in _texts(cartridge, opcode, wire)]
    wants = {f"wish {at}": (text.rstrip("\n").partition("\n")[0],) for at, (text, _) in enumerate(texts)}
    player = ModelPlayer(model(wants), wire, [cartridge], Rule(RuleName.EXACT), judge=Thresholds())
    session = Session([cartridge], player, seed=3)
    session.yes = True
    engine = session.engines[cartridge.name]
    for _ in range(10):
        legal = engine.legal()
        forbidden = [(at, said) for at, (_, said) in enumerate(texts) if said not in legal]
        for at, said in rng.sample(forbidden, min(2, len(forbidden))):
            before = engine.state_hash()
            turn = session.turn(f"wish {at}")
            assert (turn.outcome, turn.held, engine.state_hash()) == (Outcome.NOT_LEGAL, True, before), said
            assert turn.decision is not None
            assert turn.decision.preferred == player.leaf(said)
            tried += 1
        if not legal or engine.ended() is not None:
            break
        engine.apply(rng.choice(legal))
    assert tried or all(said in cartridge.engine().legal() for _, said in texts)


def _texts(cartridge: Cartridge, opcode: type[Opcode], wire: Wire) -> Iterator[tuple[str, Instruction]]:
    for each in opcode.instances():
        instruction = each.instruction(cartridge.name)
        if instruction.cartridge:
            yield wire.literal(instruction).text, instruction


def test_choose_says_where_none_of_the_texts_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a null prompt only, and unless one always wants a choice; the exit code says it, and JSON."""
    monkeypatch.setattr(choose, "load_kernel", lambda *_, **__: model())
    options = ["-o", " add 1", "-o", " add 2"]

    def said(request: str, *more: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["choose", "-p", f"value 1 {request}\n", *options, *more])
        return done.exit_code, done.stdout

    null = ["--null", "value 1 nothing\n"]
    code, told = said("two", *null)
    assert (code, "chosen:  add 2" in told) == (0, True)
    code, told = said("what is the capital of France", *null)
    assert (code, "none, likeliest:  add 1" in told) == (1, True)
    assert said("what is the capital of France", *null, "--always")[0] == 0
    assert said("what is the capital of France")[0] == 0
    found = json.loads(said("what is the capital of France", *null, "--json")[1])
    assert (found["outcome"], found["close"]) == ("none", [])


def test_call_asks_before_a_door_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there to agree, so a program is told; between two methods nothing is written."""
    wants = {"in": (" door unlock",), "either": (" music play", " vacuum start")}
    monkeypatch.setattr(call, "load_kernel", lambda *_, **__: model(wants))

    def said(request: str, *more: str) -> tuple[int, dict[str, Any]]:
        arguments = ["call", "home", request, "--rule", "exact", "--wire", "compact", "--json", *more]
        done = CliRunner().invoke(app, arguments)
        found: dict[str, Any] = json.loads(done.stdout)
        return done.exit_code, found

    code, found = said("in")
    assert (code, found["confirmed"], found["done"], found["arguments"]) == (1, "unasked", False, {"action": "unlock"})
    code, found = said("in", "--yes")
    assert (code, found["confirmed"], found["result"]) == (0, "beforehand", "the front door is unlocked")
    code, found = said("either")
    assert (code, found["outcome"], found["close"], found["text"]) == (1, "unsure", ["music", "vacuum"], "")
    assert found["why"] == "nothing was done: music or vacuum?"
    assert said("either", "--always")[1]["method"] == "music"
