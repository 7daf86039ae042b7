"""What may be said: an opcode is declared, an instruction is decoded. Knows no wire form, no tokens, no game."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kernel.canon import canonical
from kernel.errors import OpcodeError
from kernel.shape.listing import Counter, texts
from kernel.shape.scalars import LISTED
from kernel.shape.schema import Argument, read_parameters

__all__ = ["HALT", "HALT_INSTRUCTION", "NAME", "Argument", "Halt", "Instruction", "Opcode", "canonical"]

NAME = re.compile(r"[a-z][a-z0-9_-]*")
HALT = "halt"
MAX_INSTANCES = 2_000_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """One opcode as decoded and parsed, with its arguments.

    The arguments are kept as canonical JSON text, so that two instructions are equal exactly when their
    types agree as well (`1`, `true` and `"1"` are three values) and hashing is cheap.

    >>> Instruction.of("tetris", "place", column=7, rotation=2)
    tetris.place(column=7, rotation=2)
    """

    cartridge: str
    method: str
    arguments: str = "{}"

    @classmethod
    def of(cls, cartridge: str, method: str, /, **args: object) -> Self:
        """Build one from Python values, in the order given."""
        return cls(cartridge, method, canonical(args))

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as a new dict, in declaration order."""
        loaded: dict[str, Any] = json.loads(self.arguments)
        return loaded

    @property
    def name(self) -> str:
        """`cartridge.method`, or `halt` for the shared halt."""
        return f"{self.cartridge}.{self.method}" if self.cartridge else self.method

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.args.items())})"


HALT_INSTRUCTION = Instruction("", HALT)
"""The instruction that ends a session; it belongs to no cartridge and is stored once."""


class Opcode(BaseModel):
    """A declared instruction. Subclass it; the fields are the arguments, the docstring says what it does.

    The method is the class name in snake case unless `method` says otherwise. `wire_phrase` is a template such as
    "{column} {rotation}": how the compact wire form spells the arguments when method first, then values, is not the
    best way for a model to say it. It names every required argument once.

    >>> class Light(Opcode):
    ...     '''Switch the light.'''
    ...     on: bool
    >>> Light.method, [str(i.instruction("home")) for i in Light.instances()]
    ('light', ['home.light(on=True)', 'home.light(on=False)'])
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    method: ClassVar[str] = ""
    wire_phrase: ClassVar[str] = ""
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
        if (reason := _open(cls)) is not None:
            raise OpcodeError(reason)
        listed = [
            [
                *([] if a.required or a.default is not None else [""]),
                *(f"{canonical(a.name)}:{text}" for text in dict.fromkeys(texts(a.shape))),
            ]
            for a in cls.arguments()
        ]
        for values in itertools.product(*listed):
            yield cls.from_arguments("{" + ",".join(filter(None, values)) + "}")

    @classmethod
    def is_open(cls) -> bool:
        """Return whether its values cannot be listed, so that they are written: a field is open (a free string, an
        unbounded number), or there are more combinations than MAX_INSTANCES.
        """
        return _open(cls) is not None

    @classmethod
    def from_json_schema(cls, name: str, schema: Mapping[str, Any] | str | Path | None) -> type[Opcode]:
        """Return an opcode whose arguments a JSON Schema describes: a dict, its JSON text, or a file of it.

        Raises:
            OpcodeError: naming tool, JSON path and keyword of what cannot be held; nothing is ever left free instead.

        >>> Beep = Opcode.from_json_schema("beep", {"properties": {"times": {"enum": [1, 2, "1"]}}})
        >>> [i.instruction("toy") for i in Beep.instances()]
        [toy.beep(), toy.beep(times=1), toy.beep(times=2), toy.beep(times='1')]
        """
        from kernel.opcode.imported import opcode_of, read_schema

        return opcode_of(name, read_schema(name, schema))


class Halt(Opcode):
    """End the session."""

    def instruction(self, cartridge: str) -> Instruction:
        """Return the shared halt, whichever cartridge asks."""
        return HALT_INSTRUCTION


@cache
def _arguments(opcode: type[Opcode]) -> tuple[Argument, ...]:
    """Read the JSON schema that pydantic writes of the class; a key that has a default is written all the same."""
    schema = opcode.model_json_schema()
    fields = opcode.model_fields
    found = read_parameters(opcode.method, schema).arguments
    out = []
    for argument in found:
        field = fields[argument.name]
        default = None if field.is_required() else _plain(field.get_default(call_default_factory=True))
        out.append(replace(argument, default=default))
    return tuple(out)


@cache
def _open(opcode: type[Opcode]) -> str | None:
    """Return why the values of an opcode cannot be listed, or None."""
    size = 1
    for argument in opcode.arguments():
        count = Counter()(argument.shape)
        if count > LISTED:
            return (
                f"{opcode.method}.{argument.name}: not a finite domain of at most {LISTED} values; "
                "use Literal, Enum, bool, None, or a number with bounds on both sides and a step"
            )
        size *= count + (not argument.required and argument.default is None)
    return f"{opcode.method}: {size} combinations are more than {opcode._most}" if size > opcode._most else None


def _plain(value: Any) -> str:
    """Return a default as JSON text: an enum member is its value, a model its fields."""
    return canonical(TypeAdapter(type(value)).dump_python(value, mode="json"))
