"""Makes a cartridge of a tool list: JSON Schemas from a file, and a module with a function for each tool.

`python -m kernel import` writes cartridges of this kind.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from rich.table import Table

from cartridges.kit.rules import hashed, own
from kernel.canon import canonical
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import CartridgeError, IllegalInstructionError, OpcodeError, did_you_mean
from kernel.opcode import Halt, Instruction, commands
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import function_name, read_tools
from kernel.prompt import Part, Prompt

NOTHING = "N/A"

Handler = Callable[..., Any]


def toolbox(name: str, file: Path, handlers: ModuleType, *, version: str = "1") -> Cartridge:
    """Return the cartridge of a tool list; `handlers` has a function for each method, `-` in it as `_`.

    Raises CartridgeError when a tool of the file cannot be held or has no function.
    """
    found = read_tools(file)
    if found.refusals:
        raise CartridgeError(f"{file.name}: {found.refusals[0].reason}")
    functions: dict[str, Handler] = {}
    for opcode in found.opcodes:
        function = getattr(handlers, function_name(opcode.method), None)
        if not callable(function):
            raise CartridgeError(f"{handlers.__name__} has no function {function_name(opcode.method)!r}")
        functions[opcode.method] = function
    opcodes = {opcode.method: opcode for opcode in found.opcodes}
    return Cartridge(
        name=name,
        version=version,
        summary=f"{len(opcodes)} tools out of {file.name}: {', '.join(itertools.islice(opcodes, 4))}"
        + (" ..." if len(opcodes) > 4 else ""),
        opcodes=(*found.opcodes, Halt),
        engine=lambda: Tools(name, opcodes, functions),
        view=ToolView(found.opcodes),
        takes_requests=True,
    )


class Tools:
    """Carries out calls and remembers them; any call with valid arguments is legal at any time."""

    def __init__(self, name: str, opcodes: Mapping[str, type[SchemaOpcode]], functions: Mapping[str, Handler]) -> None:
        self.name = name
        self._opcodes = opcodes
        self._functions = functions
        self.calls: list[tuple[Instruction, str]] = []
        self._listed: Sequence[Instruction] | None = None

    def reset(self, seed: int) -> None:
        """Forget the calls."""
        self.calls = []

    def legal(self) -> Sequence[Instruction]:
        """Return every call that can be listed; the others are open, and legal as well."""
        if self._listed is None:
            self._listed = commands(self.name, self._opcodes.values())
        return self._listed

    def apply(self, instruction: Instruction) -> str:
        """Call the function and return what it says; an exception of its own becomes part of that."""
        opcode = self._opcodes.get(instruction.method)
        if opcode is None or instruction.cartridge != self.name:
            raise IllegalInstructionError(
                f"{self.name}: no tool {instruction.name!r}{did_you_mean(instruction.method, self._opcodes)}"
            )
        try:
            values = opcode.from_arguments(instruction.arguments).values
        except OpcodeError as error:
            raise IllegalInstructionError(f"{self.name}.{error}") from error
        try:
            answer = self._functions[instruction.method](**values)
        except Exception as error:  # what is filled in there is not ours
            answer = f"{type(error).__name__}: {error}"
        said = answer if isinstance(answer, str) else canonical(answer)
        self.calls.append((instruction, said))
        return said

    def copy(self) -> Self:
        """Return tools that remember the same calls; what the functions keep for themselves is shared."""
        other = copy.copy(self)
        other.calls = self.calls.copy()
        return other

    def state_hash(self) -> str:
        """Return a hash of the calls and their answers."""
        return hashed(canonical([[i.name, i.arguments, said] for i, said in self.calls]))

    def ended(self) -> str | None:
        """Return None: tools can always be called."""
        return None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return how many calls were carried out."""
        return {"calls": len(self.calls)}


class ToolView:
    """Lists the tools for the model and the calls for the person."""

    def __init__(self, opcodes: Sequence[type[SchemaOpcode]]) -> None:
        self._lines = [tool_line(opcode) for opcode in opcodes]

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the tools, the request on one line, and a blank for the call; the null prompt asks for nothing."""
        return Prompt(self._parts(" ".join(request.split()) or NOTHING), (self._parts(NOTHING),))

    def render(self, engine: Engine) -> Table:
        """Return a table of the calls so far."""
        tools = own(engine, Tools)
        table = Table("call", "answer", title=tools.name, box=None)
        for instruction, said in tools.calls:
            table.add_row(repr(instruction), said)
        return table

    def _parts(self, request: str) -> tuple[Part, ...]:
        tools = "".join(f"- {line}\n" for line in self._lines)
        return (
            Part("Tools:\n", trusted=True),
            Part(tools),
            Part("\nRequest:", trusted=True),
            Part(f" {request}"),
            Part("\nCall:", trusted=True),
        )


def tool_line(opcode: type[SchemaOpcode]) -> str:
    """Return a tool as one line: its method, the names of its arguments, the first sentence that describes it."""
    names = ", ".join(a.name if a.required else f"{a.name}?" for a in opcode.arguments())
    told = " ".join((opcode.__doc__ or "").split())
    first = told.split(". ")[0].rstrip(".")
    return f"{opcode.method}({names}): {first[:200]}"
