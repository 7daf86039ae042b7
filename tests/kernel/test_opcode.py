"""Opcodes as classes: what they may say, what their text is, how the text comes back."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from dispatch.wire.form import FORMS, form
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge
from kernel.errors import OpcodeError, WireError
from kernel.opcode import Halt, Instruction, Opcode, words
from kernel.opcode.spelling import read_words
from kernel.shape.listing import texts
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages


class Mode(enum.Enum):
    """How much a heater draws."""

    ECO = "eco"
    TURBO = "full power"


class Point(BaseModel):
    """A corner of a small square."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    x: int = Field(ge=0, le=1)
    y: int = Field(ge=-1, le=0)


class Place(Opcode):
    """Put the piece down."""

    column: int = Field(ge=0, le=9)
    rotation: Literal[0, 1, 2, 3] = 0


class Heat(Opcode):
    """Set the heater."""

    celsius: float = Field(ge=16, le=18, multiple_of=0.5)
    mode: Mode = Mode.ECO


class Mixed(Opcode):
    """One of every finite kind."""

    value: Literal[1, "1", "true", "on", "a b", "küche"]
    flag: bool
    maybe: Literal["x"] | None
    step: int = Field(gt=-4, lt=4, multiple_of=3)


class Go(Opcode):
    """Move to a point."""

    to: Point
    fast: bool | None = None


class Aim(Opcode):
    """Say where, not what."""

    wire_phrase: ClassVar[str] = "{row}-{column} now"
    column: Literal["a", "b c"]
    row: int = Field(ge=0, le=2)
    hard: bool = False


class Spoken(Opcode):
    """Say a place in sounds, the values not in the order of their declaration."""

    wire_phrase: ClassVar[str] = "{row}{column}"
    wire_values: ClassVar[dict[str, dict[str, str]]] = {
        "column": {"0": "a", "1": "o"},
        "row": {'"up"': "b", '"far away"': "ch", "null": "d"},
    }
    column: int = Field(ge=0, le=1)
    row: Literal["up", "far away"] | None


class Stop(Opcode):
    """Stay where you are."""


class Remind(Opcode):
    """Say something later."""

    text: str = Field(max_length=60)
    minutes: int = Field(ge=1, le=180)


FINITE = [Place, Heat, Mixed, Go, Aim, Spoken, Stop]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("opcode", FINITE)
def test_the_texts_of_an_opcode_are_its_instructions_and_parse_back(name: str, opcode: type[Opcode]) -> None:
    """Compiler and parser agree: the shape's texts are the literals of all instances, each parses to its own."""
    cartridge = Cartridge("toy", "1", "", (opcode,), None, None)  # type: ignore[arg-type]
    wire = Wire([cartridge], FORMS[name])
    wanted = {wire.literal(value.instruction("toy")).text: value.instruction("toy") for value in opcode.instances()}
    assert set(texts(form(name).shape("toy", opcode))) == set(wanted)
    assert {text: wire.parse(text) for text in wanted} == wanted


@pytest.mark.parametrize(
    ("opcode", "count"),
    [(Place, 40), (Heat, 10), (Mixed, 6 * 2 * 2 * 3), (Go, 4 * 3), (Aim, 12), (Spoken, 6), (Stop, 1)],
)
def test_every_instance_comes_once(opcode: type[Opcode], count: int) -> None:
    """The product of the domains, each value once."""
    found = [value.instruction("toy") for value in opcode.instances()]
    assert len(found) == len(set(found)) == count


def test_instances_come_in_declaration_order() -> None:
    """The last argument changes first, a bool begins with True, a literal with its first value."""
    assert [value.instruction("toy").args for value in itertools.islice(Place.instances(), 5)] == [
        {"column": 0, "rotation": 0},
        {"column": 0, "rotation": 1},
        {"column": 0, "rotation": 2},
        {"column": 0, "rotation": 3},
        {"column": 1, "rotation": 0},
    ]
    assert [value.instruction("toy").args["celsius"] for value in Heat.instances()][::2] == [
        16.0,
        16.5,
        17.0,
        17.5,
        18.0,
    ]


def test_types_survive_the_way_through_text() -> None:
    """1 and "1" and "true" and true are different arguments all the way."""
    values = [value.instruction("toy").args["value"] for value in Mixed.instances()]
    assert list(dict.fromkeys(map(repr, values))) == ["1", "'1'", "'true'", "'on'", "'a b'", "'küche'"]
    one, text = (Instruction.of("toy", "mixed", value=v) for v in (1, "1"))
    assert one != text
    assert Mixed.from_arguments('{"value":"1","flag":true,"maybe":null,"step":-3}').flag is True
    with pytest.raises(OpcodeError, match=r"mixed\.flag"):
        Mixed.from_arguments('{"value":"1","flag":"true","maybe":null,"step":-3}')


def test_an_argument_knows_what_missing_means() -> None:
    """A field with a default need not be written; what it stands for is JSON."""
    assert [(a.name, a.required, a.default) for a in Place.arguments()] == [
        ("column", True, None),
        ("rotation", False, "0"),
    ]
    assert [a.default for a in Heat.arguments()] == [None, '"eco"']
    assert [a.default for a in Go.arguments()] == [None, "null"]


def test_an_open_field_has_no_instances() -> None:
    """A free string cannot be listed; the error names it and says what can."""
    with pytest.raises(OpcodeError, match=r"remind\.text: not a finite domain of at most 131072 values; use Literal"):
        next(Remind.instances())
    assert [argument.name for argument in Remind.arguments()] == ["text", "minutes"]


def test_a_field_that_cannot_be_held_is_named() -> None:
    """No bound is dropped: a step without bounds is an error with its path and keyword."""

    class Odd(Opcode):
        """Three at a time."""

        count: int = Field(multiple_of=3)

    with pytest.raises(OpcodeError, match=r"odd: \$\.properties\.count: multipleOf: 3 needs bounds on both sides"):
        Odd.arguments()


def test_a_product_beyond_two_million_is_not_listed() -> None:
    """It can be compiled all the same, in stages."""

    class Aim(Opcode):
        """Point somewhere."""

        x: int = Field(ge=0, le=9999)
        y: int = Field(ge=0, le=9999)

    with pytest.raises(OpcodeError, match="100000000 combinations are more than 2000000"):
        next(Aim.instances())
    assert len(Aim.arguments()) == 2


def test_a_name_that_is_no_method_is_refused() -> None:
    """What stands in the wire's text must be readable there."""
    with pytest.raises(OpcodeError, match="does not match"):

        class Bad(Opcode):
            """Never made."""

            method = "Not a name"


def test_the_halt_has_one_instance() -> None:
    """It is the same instruction whichever cartridge asks."""
    assert {value.instruction(name) for value in Halt.instances() for name in ("a", "b")} == {Instruction("", "halt")}


def test_open_and_finite_opcodes_compile_together(load: Callable[[str], Vocabulary]) -> None:
    """One chain for a whole cartridge: the first id tells the opcodes apart, the slot comes when it is reached."""
    vocabulary = load("qwen2")
    opcodes: list[Any] = [*FINITE, Remind]
    stages = Stages([form("compact").shape("toy", opcode) for opcode in opcodes], vocabulary)
    for text in (
        " place 7 rotation=2\n@toy\n",
        " place 7\n@toy\n",
        ' mixed "1" false x -3\n@toy\n',
        " stop\n@toy\n",
        ' remind "call mom, then dad" 15\n@toy\n',
        ' go {"x":1,"y":-1} fast=false\n@toy\n',
    ):
        matcher = Matcher(stages)
        for token in vocabulary.plain(text):
            assert token in matcher.legal(), text
            matcher.consume(token)
        assert matcher.ended


def test_values_stand_in_a_phrase_as_the_opcode_says_them() -> None:
    """Column 1 is `o` and row "far away" `ch`, as the phrase has them; back they are what they were."""
    far = Spoken(column=1, row="far away").instruction("toy")
    assert words(far, [Spoken]) == "cho"
    assert read_words("cho", Spoken) == far.arguments == '{"column":1,"row":"far away"}'
    with pytest.raises(WireError, match="'chu' is not said as"):
        read_words("chu", Spoken)


@pytest.mark.parametrize(
    "said",
    [{"0": "a"}, {"0": "a", "1": "a"}, {"0": "a", "1": "o", "2": "u"}],
    ids=["a value is missing", "one word twice", "a value too many"],
)
def test_values_that_are_not_all_said_in_words_that_differ_are_refused(said: dict[str, str]) -> None:
    """The error names the argument and its values."""

    class Wrong(Opcode):
        """Say a column."""

        wire_phrase: ClassVar[str] = "{column}"
        wire_values: ClassVar[dict[str, dict[str, str]]] = {"column": said}
        column: int = Field(ge=0, le=1)

    with pytest.raises(OpcodeError, match=r"wrong\.column: wire_values .* in words that differ: \['0', '1'\]"):
        words(Wrong(column=0).instruction("toy"), [Wrong])
