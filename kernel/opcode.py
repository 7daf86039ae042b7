"""What may be said: an opcode is declared, an instruction is decoded. Knows no wire form, no tokens, no game."""

from __future__ import annotations

import enum
import itertools
import json
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from kernel.errors import OpcodeError

NAME = re.compile(r"[a-z][a-z0-9_-]*")
HALT = "halt"
MAX_INSTANCES = 2_000_000


def canonical(value: object) -> str:
    """Return the one JSON text of a value: no spaces, keys as given, UTF-8 kept, no NaN.

    >>> canonical({"room": "küche", "on": True})
    '{"room":"küche","on":true}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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

    The method is the class name in snake case unless `method` says otherwise.

    >>> class Move(Opcode):
    ...     '''Press one key.'''
    ...     action: Literal["left", "right"]
    >>> Move.method, [str(i.instruction("tetris")) for i in Move.instances()]
    ('move', ["tetris.move(action='left')", "tetris.move(action='right')"])
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    method: ClassVar[str] = ""

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
    def instances(cls) -> Iterator[Self]:
        """Yield every value of an opcode whose domains are all finite, in declaration order.

        Raises OpcodeError when a field is open (a free string, an unbounded number) or the product is
        larger than MAX_INSTANCES.
        """
        names = list(cls.model_fields)
        domains = [_domain(f"{cls.method}.{n}", f) for n, f in cls.model_fields.items()]
        size = 1
        for domain in domains:
            size *= len(domain)
        if size > MAX_INSTANCES:
            raise OpcodeError(f"{cls.method}: {size} combinations are more than {MAX_INSTANCES}")
        for values in itertools.product(*domains):
            yield cls(**dict(zip(names, values, strict=True)))


class Halt(Opcode):
    """End the session."""

    def instruction(self, cartridge: str) -> Instruction:
        """Return the shared halt, whichever cartridge asks."""
        return HALT_INSTRUCTION


def _domain(where: str, field: FieldInfo) -> list[Any]:
    """Return every value of one field; `where` is `method.field` for the error."""
    return _values(where, field.annotation, field.metadata)


def _values(where: str, annotation: Any, metadata: list[Any]) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Literal:
        return list(get_args(annotation))
    if origin in (Union, types.UnionType):
        return [v for part in get_args(annotation) for v in _values(where, part, metadata)]
    if annotation is bool:
        return [True, False]
    if annotation is None or annotation is type(None):
        return [None]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return list(annotation)
    if annotation is int:
        return _integers(where, metadata)
    raise OpcodeError(f"{where}: {annotation!r} is not a finite domain; use Literal, Enum, bool, None or bounded int")


def _integers(where: str, metadata: list[Any]) -> list[int]:
    low = high = None
    step = 1
    for rule in metadata:
        match rule:
            case annotated_types.Ge(ge=bound):
                low = bound
            case annotated_types.Gt(gt=bound):
                low = bound + 1  # type: ignore[operator]
            case annotated_types.Le(le=bound):
                high = bound
            case annotated_types.Lt(lt=bound):
                high = bound - 1  # type: ignore[operator]
            case annotated_types.MultipleOf(multiple_of=bound):
                step = bound  # type: ignore[assignment]
            case _:
                raise OpcodeError(f"{where}: {rule!r} is not supported on an integer")
    if not isinstance(low, int) or not isinstance(high, int):
        raise OpcodeError(f"{where}: int needs whole bounds on both sides (ge/gt and le/lt)")
    if low > high:
        raise OpcodeError(f"{where}: the range {low}..{high} is empty")
    first = -(-low // step) * step
    return list(range(first, high + 1, step))
