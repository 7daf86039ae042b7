"""Makes a cartridge of a tool list: JSON Schemas from a file, and a module with a function for each tool.

`python -m kernel import` writes cartridges of this kind.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

from rich.table import Table
from rich.text import Text

from cartridges.kit.rules import hashed, own
from kernel.canon import canonical
from kernel.casefile import calls
from kernel.contract import Cartridge, Engine, Live, Option
from kernel.errors import ActionFailedError, CartridgeError, IllegalInstructionError, OpcodeError, did_you_mean
from kernel.opcode import Halt, Instruction, commands
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tool_prompt import ToolPrompt, Turn
from kernel.opcode.tools import function_name, read_tools
from kernel.prompt import Prompt
from kernel.shown import shown

Handler = Callable[..., Any]

LONGEST_ANSWER = 100_000
"""Characters of an answer that are kept; how many there were is said in place of the rest."""

LONGEST_SUMMARY = 120
"""Characters of a cartridge's summary: one line."""


def toolbox(name: str, file: Path, handlers: ModuleType, *, version: str = "1", cases: Path | None = None) -> Cartridge:
    """Return the cartridge of a tool list; `handlers` has a function for each method, named by `function_name`.

    `cases` is a file of labelled requests (`kernel.casefile.calls`).

    Raises CartridgeError when a tool of the file cannot be held or has no function.
    """
    found = read_tools(file)
    if found.refusals:
        raise CartridgeError(f"{file.name}: {found.refusals[0].reason}")
    functions: dict[str, Handler] = {}
    for opcode in found.opcodes:
        function = getattr(handlers, function_name(opcode.method), None)
        if function is None:  # a module written before names such as `print` were given a `_`
            function = getattr(handlers, opcode.method.replace("-", "_"), None)
        if not callable(function):
            raise CartridgeError(f"{handlers.__name__} has no function {function_name(opcode.method)!r}")
        functions[opcode.method] = function
    made = tooled(name, found.opcodes, functions, version=version, origin=file.name)
    return made if cases is None else replace(made, call_cases=partial(calls, cases))


def tooled(
    name: str,
    tools: Sequence[type[SchemaOpcode]],
    functions: Mapping[str, Handler],
    *,
    version: str,
    origin: str,
    options: Mapping[str, str | int | float | bool] | None = None,
    live: Live | None = None,
) -> Cartridge:
    """Return the cartridge of some tools.

    Args:
        functions: by method; called with the arguments as keywords.
        origin: where the tools are from, for the summary.
        options: what a log keeps, so that the cartridge can be made again.
        live: what stands behind it, where that may change or end.
    """
    opcodes = {opcode.method: opcode for opcode in tools}
    summary = f"{len(opcodes)} tools out of {origin}: {', '.join(itertools.islice(opcodes, 4))}"
    if len(opcodes) > 4 or len(summary) > LONGEST_SUMMARY:
        summary = f"{summary[: LONGEST_SUMMARY - 4]} ..."
    return Cartridge(
        name=name,
        version=version,
        summary=summary,
        opcodes=(*tools, Done),
        engine=lambda: Tools(name, opcodes, functions),
        view=ToolView(tools),
        takes_requests=True,
        tools=True,
        acts_outside=True,
        options=options or {},
        live=live,
    )


class Tools:
    """Carries out calls and remembers them; any call with valid arguments is legal at any time.

    What the functions do is outside: only `apply` calls one, `recall` takes a call and its answer as given.
    """

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
        """Call the function and return what it says.

        Raises ActionFailedError, and remembers nothing, when the function raises or returns what is no JSON.
        """
        values = self._arguments(instruction)
        try:
            said = in_words(self._functions[instruction.method](**values))
        except KeyboardInterrupt:
            raise
        except ActionFailedError as error:
            raise ActionFailedError(f"{instruction.name}: {in_words(str(error))}") from error
        except BaseException as error:  # of the functions, which are not ours; SystemExit among them
            raise ActionFailedError(f"{instruction.name}: {_kind(error)}") from error
        self.calls.append((instruction, said))
        return said

    def recall(self, instruction: Instruction, result: str) -> None:
        """Remember a call that gave this answer, without calling anything."""
        self._arguments(instruction)
        self.calls.append((instruction, result))

    def copy(self) -> Self:
        """Return tools that remember the same calls. They act as well: what the functions do and keep is shared."""
        other = copy.copy(self)
        other.calls = self.calls.copy()
        return other

    def rehearsal(self, result: str) -> Self:
        """Return a copy with a stand-in for each function, which says `result`."""
        other = self.copy()
        other._functions = dict.fromkeys(self._functions, lambda **arguments: result)
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

    def _arguments(self, instruction: Instruction) -> dict[str, Any]:
        """Return the arguments of a call; raises IllegalInstructionError for one that is not legal."""
        opcode = self._opcodes.get(instruction.method)
        if opcode is None or instruction.cartridge != self.name:
            raise IllegalInstructionError(
                f"{self.name}: no tool {instruction.name!r}{did_you_mean(instruction.method, self._opcodes)}"
            )
        try:
            return opcode.from_arguments(instruction.arguments).values
        except OpcodeError as error:
            raise IllegalInstructionError(f"{self.name}.{error}") from error


class Done(Halt):
    """Nothing is left to do."""

    method = Halt.method


class ToolView:
    """Lists the tools for the model and the calls for the person."""

    def __init__(self, opcodes: Sequence[type[SchemaOpcode]]) -> None:
        self._prompt = ToolPrompt(opcodes)
        self._goal = ToolPrompt([*opcodes, Done])

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the tools, the request on one line, and a blank for the call; the null prompt asks for nothing.

        Of a goal, the request goes on in lines with its calls and their results; then there is an end to be chosen.
        """
        if steps := steps_of(request):
            return self._goal.behind([Turn("Request", request.partition("\n")[0]), *steps])
        return self._prompt.asked(request)

    def render(self, engine: Engine) -> Table:
        """Return a table of the calls so far."""
        tools = own(engine, Tools)
        table = Table("call", "answer", title=tools.name, box=None)
        for instruction, said in tools.calls:
            table.add_row(Text(shown(repr(instruction))), Text(shown(said)))
        return table


def steps_of(request: str) -> list[Turn]:
    """Return the calls and results that stand below a goal, none where anything else does (`dispatch.session.steps`).

    >>> steps_of("look around\\nCall: wall.look()\\nResult: white")
    [Turn(said='Call', text='wall.look()'), Turn(said='Result', text='white')]
    >>> steps_of("look around\\nand then paint")
    []
    """
    found: list[Turn] = []
    for place, line in enumerate(request.split("\n")[1:]):
        said: Literal["Call", "Result"] = "Result" if place % 2 else "Call"
        if not line.startswith(f"{said}: "):
            return []
        found.append(Turn(said, line.removeprefix(f"{said}: ")))
    return found


def in_words(answer: object) -> str:
    """Return an answer as text: text as it is, all else as JSON, both cut after LONGEST_ANSWER characters.

    Raises TypeError, ValueError or RecursionError for what JSON cannot hold.

    >>> in_words("on"), in_words([1, None]), len(in_words("x" * 10_000_000))
    ('on', '[1,null]', 100027)
    """
    said = str.__str__(answer) if isinstance(answer, str) else canonical(answer)
    if len(said) > LONGEST_ANSWER:
        said = f"{said[:LONGEST_ANSWER]} ... of {len(said)} characters"
    return said.encode("utf-8", "backslashreplace").decode("utf-8")  # half of a surrogate pair is no text


def _kind(error: BaseException) -> str:
    """Return type and text of an exception, of which nothing is known, cut as an answer is."""
    try:
        return in_words(f"{type(error).__name__}: {error}".removesuffix(": "))
    except Exception:  # its own __str__
        return type(error).__name__
