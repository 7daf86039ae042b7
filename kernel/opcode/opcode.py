"""Opcodes: the classes that declare what a model may say, written by hand or made from a JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel.canon import canonical
from kernel.errors import OpcodeError, short
from kernel.opcode.domains import arguments_of, combinations, parameters_of, read_schema, why_open
from kernel.opcode.instruction import HALT_INSTRUCTION, NAME, Instruction
from kernel.shape.argument import Argument, Parameters
from kernel.shape.shape import Shape

if TYPE_CHECKING:
    from kernel.shape.keywords import Note

T = TypeVar("T")

MAX_INSTANCES = 2_000_000
"""The combinations of arguments up to which the values of an opcode are listed."""
MAX_INSTANCES_OF_SCHEMA = 4096
"""The same for an opcode of a JSON Schema: nobody wrote an engine that says which of more are legal."""


class Opcode(BaseModel):
    """A declared instruction. Subclass it; the fields are the arguments, the docstring says what it does.

    The method is the class name in snake case unless `method` says otherwise. `wire_phrase` is a template such as
    "{column} {rotation}", for an opcode that is better not said as its method followed by its values; it names every
    required argument once. `wire_values` says how the values of an argument stand in the phrase, by its name and their
    JSON texts: `{"column": {"0": "b", "1": "c"}}`; all values of the argument, in words that differ.
    `kernel.opcode.spelling` says both. `confirm` is true where a person has to agree before a
    session carries it out.

    >>> class Light(Opcode):
    ...     '''Switch the light.'''
    ...     on: bool
    >>> Light.method, [str(i.instruction("home")) for i in Light.instances()]
    ('light', ['home.light(on=True)', 'home.light(on=False)'])
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    method: ClassVar[str] = ""
    wire_phrase: ClassVar[str] = ""
    wire_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    confirm: ClassVar[bool] = False
    _most: ClassVar[int] = MAX_INSTANCES

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "method" not in cls.__dict__:
            cls.method = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if not NAME.fullmatch(cls.method):
            raise OpcodeError(f"{cls.__name__}: method {cls.method!r} does not match {NAME.pattern!r}")

    def instruction(self, cartridge: str) -> Instruction:
        """Return the instruction of the named cartridge that this value stands for."""
        return Instruction(cartridge, self.method, canonical(self.model_dump(mode="json")))

    @classmethod
    def from_arguments(cls, arguments: str) -> Self:
        """Parse the JSON text of the arguments; raises OpcodeError with the field that is wrong."""
        try:
            return cls.model_validate_json(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join([cls.method, *map(str, first["loc"])])
            raise OpcodeError(f"{where}: {first['input']!r}: {first['msg']}") from error

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        """Return the arguments in declaration order, each with the shape of its value.

        Raises OpcodeError, naming the field and what is wrong with it, for a field that cannot be held.
        """
        return _arguments(cls)

    @classmethod
    def instances(cls) -> Iterator[Self]:
        """Yield every value of an opcode whose domains are all finite, in declaration order.

        Raises OpcodeError when `is_open`.
        """
        if (reason := _why_open(cls)) is not None:
            raise OpcodeError(reason)
        yield from map(cls.from_arguments, filter(cls._together, combinations(cls.arguments())))

    @classmethod
    def _together(cls, arguments: str) -> bool:
        """Whether values that their arguments accept may stand together."""
        return True

    @classmethod
    def alternatives(cls) -> tuple[tuple[Argument, ...], ...]:
        """Return the arguments in each of the ways in which they may be given; of a class, there is one way."""
        return (cls.arguments(),)

    @classmethod
    def counts(cls) -> tuple[int, int | None]:
        """Return how many arguments have to be given at least, and may be at most."""
        return 0, None

    @classmethod
    def arguments_shape(cls) -> Shape:
        """Return the shape of the JSON object of the arguments; one with a default is written all the same."""
        from kernel.shape.objects import Member, mapping  # loads much that opcodes are declared without

        return mapping([Member(a.name, a.shape, a.required or a.default is not None) for a in cls.arguments()])

    @classmethod
    def is_open(cls) -> bool:
        """Return whether its values cannot be listed, so that they are written: a field is open (a free string, an
        unbounded number), or there are more combinations than MAX_INSTANCES.
        """
        return _why_open(cls) is not None

    @classmethod
    def from_json_schema(cls, name: str, schema: Mapping[str, Any] | str | Path | None) -> type[Opcode]:
        """Return an opcode whose arguments a JSON Schema describes: a dict, its JSON text, or a file of it.

        Raises:
            OpcodeError: naming tool, JSON path and keyword of what cannot be held; nothing is ever left free instead.

        >>> Beep = Opcode.from_json_schema("beep", {"properties": {"times": {"enum": [1, 2, "1"]}}})
        >>> [i.instruction("toy") for i in Beep.instances()]
        [toy.beep(), toy.beep(times=1), toy.beep(times=2), toy.beep(times='1')]
        """
        return SchemaOpcode.declare(name, read_schema(name, schema))


class Halt(Opcode):
    """End the session."""

    def instruction(self, cartridge: str) -> Instruction:
        """Return the shared halt, whichever cartridge asks."""
        return HALT_INSTRUCTION


class SchemaOpcode(Opcode):
    """An opcode that a JSON Schema declares; `Opcode.from_json_schema` makes the class.

    `values` are the arguments that were given, by name, in the order of their declaration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    method: ClassVar[str] = "schema_opcode"
    schema_: ClassVar[Mapping[str, Any]] = {}
    parameters: ClassVar[Parameters]
    _most: ClassVar[int] = MAX_INSTANCES_OF_SCHEMA
    original: ClassVar[str] = ""
    """The name of the tool as its server has it."""

    values: dict[str, Any]

    def instruction(self, cartridge: str) -> Instruction:
        """See Opcode."""
        return Instruction(cartridge, self.method, canonical(self.values))

    @classmethod
    def from_arguments(cls, arguments: str) -> Self:
        """See Opcode."""
        names: list[str] = []

        def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
            """Take objects from the inside out, so that the last one is that of the arguments."""
            names[:] = [name for name, _ in found]
            return dict(found)  # in a map a key may come twice, no grammar can tell; as everywhere, the last one counts

        try:
            values = json.loads(arguments, object_pairs_hook=pairs, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise OpcodeError(f"{cls.method}: {short(arguments)} is no JSON: {error}") from error
        if not isinstance(values, dict):
            raise OpcodeError(f"{cls.method}: {short(arguments)} is no object of arguments")
        if len(set(names)) < len(names):
            raise OpcodeError(f"{cls.method}: an argument comes twice in {names}")
        known = {argument.name: argument for argument in cls.arguments()}
        for name in values:
            if name not in known:
                raise OpcodeError(f"{cls.method}.{name}: there is no such argument; there is: {', '.join(known)}")
        for name, argument in known.items():
            if name not in values:
                if argument.required:
                    raise OpcodeError(f"{cls.method}.{name}: is missing")
            elif not argument.accepts(values[name]):
                schema = (cls.schema_.get("properties") or {}).get(name, {})
                raise OpcodeError(f"{cls.method}.{name}: {short(values[name])} does not satisfy {short(schema)}")
        if not cls.parameters.allow(values):
            raise OpcodeError(f"{cls.method}: {short(arguments)} has arguments that do not go together")
        return cls(values={name: values[name] for name in known if name in values})

    @classmethod
    def declare(cls, method: str, schema: Mapping[str, Any] | None, *, original: str = "") -> type[SchemaOpcode]:
        """Return the opcode class of a schema of arguments; None is a schema without arguments.

        Args:
            original: the name of the tool as its server has it, where that is not the method.
        """
        text = (schema or {}).get("description") or original or method
        body = {
            "__doc__": text if isinstance(text, str) else method,
            "__module__": __name__,
            "method": method,
            "schema_": dict(schema or {}),
            "parameters": parameters_of(original or method, schema),
            "original": original or method,
        }
        return type(_class_name(method), (SchemaOpcode,), body)

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        """See Opcode."""
        return cls.parameters.arguments

    @classmethod
    def alternatives(cls) -> tuple[tuple[Argument, ...], ...]:
        """See Opcode."""
        return cls.parameters.alternatives

    @classmethod
    def counts(cls) -> tuple[int, int | None]:
        """See Opcode."""
        return cls.parameters.low, cls.parameters.high

    @classmethod
    def arguments_shape(cls) -> Shape:
        """See Opcode."""
        return cls.parameters.shape

    @classmethod
    def _together(cls, arguments: str) -> bool:
        return cls.parameters.allow(json.loads(arguments))

    @classmethod
    def notes(cls) -> tuple[Note, ...]:
        """Return what of the schema is not held to the letter."""
        return cls.parameters.notes


def commands(cartridge: str, opcodes: Iterable[type[Opcode]]) -> tuple[Instruction, ...]:
    """Return every instruction of a cartridge that can be listed, in declaration order; open opcodes are left out.

    >>> commands("home", [Halt, Opcode.from_json_schema("say", {"properties": {"text": {"type": "string"}}})])
    (halt(),)
    """
    listed = (
        value.instruction(cartridge) for opcode in opcodes if not opcode.is_open() for value in opcode.instances()
    )
    return tuple(dict.fromkeys(listed))


def _arguments(opcode: type[Opcode]) -> tuple[Argument, ...]:
    return kept(opcode, "_own_arguments", lambda: arguments_of(opcode.method, opcode))


def _why_open(opcode: type[Opcode]) -> str | None:
    return kept(opcode, "_own_why_open", lambda: why_open(opcode.method, opcode.arguments(), opcode._most))


def kept(opcode: type[Opcode], name: str, make: Callable[[], T]) -> T:
    """Return what is derived from a class, made once and kept on the class: it goes when the class goes."""
    if name not in opcode.__dict__:
        setattr(opcode, name, make())
    value: T = opcode.__dict__[name]
    return value


def _class_name(method: str) -> str:
    return "".join(part.capitalize() for part in method.replace("-", "_").split("_")) or "Tool"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
