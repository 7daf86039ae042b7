"""Opcodes with open arguments in a session: chosen as one leaf, written, carried out, logged, decided again."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import Field

from dispatch.cli.stage import line
from dispatch.log.objects import RuleRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import Header
from dispatch.log.replay import Verdict, replay
from dispatch.log.writer import LogWriter
from dispatch.session.decide import decide_again
from dispatch.session.model_player import ModelPlayer, leaves
from dispatch.session.players import RandomPlayer
from dispatch.session.session import Session
from dispatch.session.situation import Open, open_opcodes
from dispatch.wire.form import FORMS, form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Stop
from kernel.choose.rule import Rule
from kernel.contract import Cartridge, Option
from kernel.errors import BuildError, ContextError, IllegalInstructionError, NoLegalOpcodeError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction, Opcode
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary

forms = pytest.mark.parametrize("wire", list(FORMS))


class Lamp(Opcode):
    """Switch the lamp."""

    on: bool


class Note(Opcode):
    """Write something down."""

    text: Annotated[str, Field(max_length=20)]


class Pair(Opcode):
    """Too many pairs to list."""

    x: Annotated[int, Field(ge=0, le=9999)]
    y: Annotated[int, Field(ge=0, le=9999)]


class Desk:
    """Takes anything but an empty note; ended by the note "end"."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.said: list[str] = []

    def legal(self) -> Sequence[Instruction]:
        return [] if self.ended() else [value.instruction("desk") for value in Lamp.instances()]

    def apply(self, instruction: Instruction) -> str:
        if instruction.args.get("text") == "":
            raise IllegalInstructionError("desk: an empty note")
        self.said.append(repr(instruction))
        return f"{len(self.said)} done"

    def copy(self) -> Self:
        twin = type(self)()
        twin.said = [*self.said]
        return twin

    def state_hash(self) -> str:
        return " ".join(self.said)

    def ended(self) -> str | None:
        return "it says end" if "desk.note(text='end')" in self.said else None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"done": len(self.said)}


class DeskView:
    """The request, and a colon."""

    def prompt(self, engine: Desk, options: Sequence[Option], request: str = "") -> Prompt:
        return Prompt((Part(request), Part(":", trusted=True)), ((Part("-:", trusted=True),),))

    def render(self, engine: Desk) -> Any:
        return "desk"


DESK = replace(
    Cartridge("desk", "1", "A desk.", (Lamp, Note, Pair, Halt), Desk, DeskView()),  # type: ignore[arg-type]
    takes_requests=True,
)
BYTES = Vocabulary(
    [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
)


def kernel(wishes: Mapping[str, str], strength: float = 20, n_ctx: int = 2048) -> Kernel:
    """A model over bytes that wants to say `wishes[request]` behind it, and never anything behind the null prompt."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.linspace(0, 1, 256).astype(np.float32)
        request, _, said = bytes(ids).decode("latin-1").partition(":")
        wanted = wishes.get(request, "").encode().decode("latin-1")
        if wanted.startswith(said) and len(said) < len(wanted):
            out[ord(wanted[len(said)])] += strength
        return out

    backend = ScriptedBackend(BYTES, row, n_ctx=n_ctx)
    backend.fingerprint = "wishes"
    return Kernel(backend)


def session(
    wishes: Mapping[str, str], wire: str = "compact", rule: Rule | None = None, max_tokens: int = 256, **more: Any
) -> Session:
    made = kernel(wishes, **more)
    player = ModelPlayer(made, Wire([DESK], form(wire)), [DESK], rule or Rule("exact"), ledger=True)  # type: ignore[arg-type]
    player.max_tokens = max_tokens
    return Session([DESK], player)


def spelled(method: str, wire: str, **arguments: object) -> str:
    return Wire([DESK], form(wire)).literal(Instruction.of("desk", method, **arguments)).text


@forms
def test_an_open_opcode_is_chosen_among_the_others_written_and_carried_out(wire: str) -> None:
    """What the model wants is what is done, whether it can be listed or not; the halt as well."""
    note = spelled("note", wire, text='buy "ü"')
    wishes = {
        "a": note,
        "b": spelled("lamp", wire, on=False),
        "c": spelled("pair", wire, x=12, y=3400),
        "d": Wire([DESK], form(wire)).literal(HALT_INSTRUCTION).text,
    }
    played = session(wishes, wire)
    turns = list(played.turns(iter("abcd")))
    assert [repr(turn.instruction) for turn in turns] == [
        """desk.note(text='buy "ü"')""",
        "desk.lamp(on=False)",
        "desk.pair(x=12, y=3400)",
        "halt()",
    ]
    assert played.engines["desk"].summary() == {"done": 3}
    first = turns[0].decision
    assert first is not None
    assert (first.text, bytes(first.ids).decode(), first.stop) == (note, note, Stop.COMPLETE)
    assert first.chosen_tokens + first.forced_tokens == len(note.encode())
    assert sum("..." in text for text in first.texts) == 2
    assert first.probability > 0.9


def test_the_leaf_of_an_open_opcode_is_scored_to_where_its_arguments_begin() -> None:
    """Its log-probability is that of the bytes of its method behind the first branch, worked out from the rows."""
    made = kernel({}, strength=0)
    player = ModelPlayer(made, Wire([DESK]), [DESK], Rule("exact"))  # type: ignore[arg-type]
    played = Session([DESK], player)
    played.player = player
    decision = played.turn("x").decision
    assert decision is not None
    row = np.linspace(0, 1, 256)
    each = row - np.log(np.exp(row).sum())
    known = dict(zip(decision.texts, decision.raw.tolist(), strict=True))
    assert set(known) == {" lamp true\n@desk\n", " lamp false\n@desk\n", " note ...", " pair ...", " halt\n"}
    assert known[" note ..."] == pytest.approx(each[list(b"note")].sum(), abs=1e-4)  # the space has no alternative
    assert known[" pair ..."] == pytest.approx(each[list(b"pair")].sum(), abs=1e-4)


def test_in_the_tagged_form_the_name_of_the_first_argument_is_scored_as_it_is_for_others() -> None:
    """So that an opcode is not favoured for being open. One that may be empty ends at its method."""
    search = Opcode.from_json_schema("search", {"properties": {"q": {"type": "string"}}})
    wire = Wire([replace(DESK, opcodes=(Note, search))], form("tagged"))
    note, found = wire.opening("desk", "note"), wire.opening("desk", "search")
    assert (note.body, note.closer) == ('<|call|>desk.note {"text', '":')
    assert (found.body, found.closer) == ("<|call|>desk.search", " {")


def test_a_text_that_uses_up_its_tokens_is_closed_and_flagged() -> None:
    """In the decision, in the line, in the counts; the instruction is valid all the same."""
    played = session({"a": spelled("note", "compact", text="x" * 20)}, max_tokens=18)
    turn = played.turn("a")
    assert turn.decision is not None
    assert (turn.decision.stop, len(turn.decision.ids)) == (Stop.CLOSED, 18)
    assert turn.instruction == Instruction.of("desk", "note", text="xxx")  # ` note "` and `"\n@desk\n` are 15
    assert "%) CLOSED: 1 done" in line(turn)
    assert played.tally.closed == 1
    with pytest.raises(ContextError, match="the shortest opcode has 15 ids, but there is room for 9"):
        session({"a": spelled("note", "compact", text="")}, max_tokens=9).turn("a")


def test_what_the_engine_does_not_take_is_refused_and_the_session_goes_on() -> None:
    """An open opcode is legal until the rules end the session; its text is the engine's to judge."""
    wishes = {"a": spelled("note", "compact", text=""), "b": spelled("note", "compact", text="end")}
    played = session(wishes)
    turns = list(played.turns(iter("ab")))
    assert [(turn.refused, turn.result) for turn in turns] == [(True, "desk: an empty note"), (False, "1 done")]
    assert played.situation(3, "")[0].choices == [HALT_INSTRUCTION]


@pytest.mark.parametrize("rule", ["exact", "calibrated", "greedy", "sample"])
def test_a_logged_session_replays_and_decides_again(tmp_path: Path, rule: str) -> None:
    """The text is in the log with its ids and its budget; deciding again writes the same one, sampled or not."""
    made = Rule(rule, temperature=3.0, seed=4) if rule == "sample" else Rule(rule)  # type: ignore[arg-type]
    wishes = {"a": spelled("note", "compact", text="ab ünd"), "b": spelled("pair", "compact", x=7, y=9)}
    requests = "ababz"
    path = tmp_path / "log"
    played = session(wishes, rule=made, max_tokens=30, strength=3 if rule == "sample" else 20)
    head = Header(
        cartridges=played.records,
        seed=0,
        max_tokens=30,
        rule=RuleRecord(name=rule, parameters={"temperature": 3.0, "seed": 4} if rule == "sample" else {}),
    )
    with LogWriter(path, head) as log:
        played.write_to(log)
        turns = list(played.turns(iter(requests)))
        played.end_log()
    assert any(turn.instruction.method in ("note", "pair") for turn in turns)
    with LogReader(path) as reader:
        records = list(reader)
    assert [record.instruction.instruction() for record in records] == [turn.instruction for turn in turns]
    assert replay(path, lambda _: DESK).verdict is Verdict.VERIFIED
    again = session(wishes, rule=made, strength=3 if rule == "sample" else 20).player
    assert isinstance(again, ModelPlayer)
    report = decide_again(path, lambda _: DESK, again, ())
    assert (report.decisions, report.agree, report.good) == (5, 5, True)
    assert again.max_tokens == 30


def test_a_model_that_writes_otherwise_is_another_choice(tmp_path: Path) -> None:
    """The margin of a written text is the smallest along it, so that a close call is known as one."""
    path = tmp_path / "log"
    played = session({"a": spelled("note", "compact", text="aaaa")}, strength=20)
    with LogWriter(path, Header(cartridges=played.records, seed=0)) as log:
        played.write_to(log)
        list(played.turns(iter("a")))
        played.end_log()
    other = session({"a": spelled("note", "compact", text="aaab")}).player
    assert isinstance(other, ModelPlayer)
    report = decide_again(path, lambda _: DESK, other, ())
    assert (report.agree, report.within, report.beyond) == (0, 0, 1)
    assert report.first is not None
    assert (report.first.then, report.first.now) == ("desk.note(text='aaaa')", "desk.note(text='aaab')")
    assert report.first.margin_now == pytest.approx(20, abs=1)


def test_the_ledger_tells_the_ids_that_are_logged(tmp_path: Path) -> None:
    """Of the choice; what is written behind it has none."""
    turn = session({"a": spelled("note", "compact", text="aaaa")}).turn("a")
    assert turn.decision is not None
    assert turn.choice.ledger
    for step in turn.choice.ledger:
        assert turn.decision.ids[step.at] in [row.id for row in step.rows if row.legal]
        assert step.at < len(b" note")


def test_samples_follow_from_the_seed_and_the_number_of_the_decision() -> None:
    """Equal ones write equal texts, others others."""

    def texts(seed: int) -> list[str]:
        rule = Rule("sample", temperature=8.0, seed=seed)  # type: ignore[arg-type]
        wishes = dict.fromkeys("abcdefgh", spelled("note", "compact", text="x"))
        return [turn.instruction.arguments for turn in session(wishes, rule=rule).turns(iter("abcdefgh"))]

    assert texts(1) == texts(1) != texts(2)
    assert len(set(texts(1))) > 2


def test_chance_takes_what_is_listed() -> None:
    """And says so where nothing is."""
    played = Session([DESK], RandomPlayer(3), limits={"decisions": 20})
    methods = {turn.instruction.method for turn in played.turns()}
    assert methods == {"lamp", "halt"}
    only = replace(DESK, opcodes=(Note,), engine=Silent)
    with pytest.raises(NoLegalOpcodeError, match="nothing is legal here but 'note', whose arguments only a model"):
        Session([only], RandomPlayer(3)).turn()


class Silent(Desk):
    """Nothing that can be listed."""

    def legal(self) -> Sequence[Instruction]:
        return []


def test_a_phrase_needs_a_word_before_its_open_argument() -> None:
    """Else nothing could be chosen before it is written."""

    class Say(Opcode):
        """Begins with a word."""

        wire_phrase: ClassVar[str] = "say {text} aloud"
        text: str

    class Bare(Opcode):
        """Begins with what is open."""

        wire_phrase: ClassVar[str] = "{text} aloud"
        text: str

    said = Wire([replace(DESK, opcodes=(Say,))]).opening("desk", "say")
    assert (said.body, said.closer) == (" say", "\n@desk.say\n")
    with pytest.raises(BuildError, match=r"desk\.bare: nothing tells '\{text\} aloud' apart before"):
        Wire([replace(DESK, opcodes=(Bare,))]).opening("desk", "bare")


def test_open_opcodes_of_several_cartridges_stand_side_by_side() -> None:
    """Each with its own address; the cartridge whose leaf is chosen is the one that acts."""
    other = replace(DESK, name="wall", opcodes=(Note,), engine=Silent)
    wishes = {"a": spelled("note", "tagged", text="hi").replace("desk.note", "wall.note")}
    both = [DESK, other]

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.linspace(0, 1, 256).astype(np.float32)
        said = bytes(ids).decode("latin-1").rpartition("Command:")[2]
        if wishes["a"].startswith(said) and len(said) < len(wishes["a"]):
            out[ord(wishes["a"][len(said)])] += 20
        return out

    player = ModelPlayer(
        Kernel(ScriptedBackend(BYTES, row)),
        Wire(both, form("tagged")),
        both,
        Rule("exact"),  # type: ignore[arg-type]
    )
    turn = Session(both, player).turn("a")
    assert (turn.cartridge, turn.instruction) == ("wall", Instruction.of("wall", "note", text="hi"))
    assert open_opcodes(other) == [Open("wall", "note")]
    assert list(leaves(other, Wire([other]))) == [Open("wall", "note")]
