"""The contract of a cartridge: its engine, planner, view and opcodes, as authors implement them and dispatch runs them.

An engine reads like a Gymnasium environment: `reset(seed)`, then `apply(instruction)` until `ended()` is not None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from kernel.opcode import Instruction, Opcode
from kernel.prompt import Explained, Lines, Part, Prompt

__all__ = [
    "ActingEngine",
    "CallCase",
    "Cartridge",
    "Case",
    "Engine",
    "Explained",
    "Lines",
    "Live",
    "Option",
    "Part",
    "Planner",
    "Prompt",
    "View",
]


@dataclass(frozen=True, slots=True)
class Option:
    """A legal instruction as the planner sees it. Higher `score` is better; `note` says why in words."""

    instruction: Instruction
    score: float = 0.0
    note: str = ""
    plan: tuple[Instruction, ...] = ()


class Engine(Protocol):
    """The rules, all of them. Equal seeds and instructions give equal state hashes."""

    def reset(self, seed: int) -> None:
        """Start anew; everything random follows from the seed."""

    def legal(self) -> Sequence[Instruction]:
        """Return the instructions that `apply` takes now; empty exactly when the rules have ended the session.

        Opcodes with open arguments (`Opcode.is_open`) are not listed: a model may choose them until the session ends,
        and `apply` refuses what it does not take.
        """

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and return what happened in a few words (data, never instructions).

        Raises IllegalInstructionError, and changes nothing, when it is not legal now.
        """

    def copy(self) -> Self:
        """Return an independent engine in the same state."""

    def state_hash(self) -> str:
        """Return a hash of the whole state, what is random included."""

    def ended(self) -> str | None:
        """Return why the rules ended the session, or None while it goes on."""

    def summary(self) -> Mapping[str, int | float | str]:
        """Return the counts that a person wants at the end, by name."""


class ActingEngine(Engine, Protocol):
    """An engine whose `apply` has effects outside of it: a device moves, a file is written, a server is asked.

    `apply` raises ActionFailedError where the action was tried and failed; the engine is then as it was. Sessions are
    the only ones that call it. A check, a replay and a resumed log call `recall` instead.

    A copy acts as well: its `apply` would move the same device. So a planner that looks ahead calls `recall` on copies,
    with an answer that it expects, or looks at nothing but the state.

    An engine may have `rehearsal(result)`, which returns a copy whose `apply` gives that result and does nothing
    outside; a check then holds that `recall` leads to the state that `apply` leads to.
    """

    def recall(self, instruction: Instruction, result: str) -> None:
        """Take note of an instruction that gave this result, as `apply` would, and do nothing outside.

        Raises IllegalInstructionError, and changes nothing, when it is not legal now.
        """


class Planner(Protocol):
    """Ranks legal options by asking a copy of the engine; owns no rule."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return options for this step, best first; each option's instruction is legal now."""


class View(Protocol):
    """Words and pictures: prompts for the model, a board for the person."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the prompt of this step. `options` are those offered; `request` is what a person typed."""

    def render(self, engine: Engine) -> Any:
        """Return a rich renderable of the state; a string, in a table's cell too, is plain text and no markup."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled state: what the model reads, what it may choose among, what is right; the request, if it is one.

    A request that nothing should answer has a `kind` (see `kernel.casefile`) and the empty answer. `elsewhere` names
    the cartridges beside which that answer is not the only right one, so there it is no case.
    """

    id: str
    prompt: Prompt
    options: tuple[str, ...]
    answer: str
    split: str = "test"
    request: str = ""
    kind: str = ""
    elsewhere: tuple[str, ...] = ()


class Live(Protocol):
    """What stands behind a cartridge that may change or end while a session runs: a server of tools.

    A session asks before every decision, never in the middle of one.
    """

    def now(self) -> Cartridge | None:
        """Return the cartridge as it is now, the same object while nothing has changed; None when it has ended."""

    def why(self) -> str:
        """Return why it has ended, in a few words (data)."""

    def close(self) -> None:
        """End it; nothing happens where it has ended."""


@dataclass(frozen=True, slots=True)
class CallCase:
    """One labelled request to tools: the tool, and the values that are right for each of its arguments.

    None among the values says that the argument may be left out; one that is not named has to be.
    """

    id: str
    request: str
    tool: str
    arguments: Mapping[str, tuple[Any, ...]]
    split: str = "test"

    def accepts(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether these are right arguments."""
        given = {name: arguments.get(name) for name in {*arguments, *self.arguments}}
        return all(value in self.arguments.get(name, (None,)) for name, value in given.items())


@dataclass(frozen=True)
class Cartridge:
    """Opcodes + engine + planner + view, with a name and a version."""

    name: str
    version: str
    summary: str
    opcodes: tuple[type[Opcode], ...]
    engine: Callable[[], Engine]
    view: View
    planner: Planner | None = None
    offered: int = 3
    """How many of the planner's options the prompt lists, the best first."""
    ratifies: bool = False
    """Whether a model chooses among the offered options only, or among all that is legal."""
    takes_requests: bool = False
    """Whether the prompt shows what a person asks for; a session of one that has no planner waits for requests."""
    offers_beside_request: bool = False
    """Whether a prompt that shows a request lists the planner's options as well."""
    tools: bool = False
    """Whether its instructions are calls of tools: a request chooses the tool, and then each argument by itself."""
    acts_outside: bool = False
    """Whether its engine is an `ActingEngine`, whose instructions have effects outside of it."""
    guide: tuple[Explained, ...] = ()
    """What each command means, for requests that name none; read by the view, and by sessions of several cartridges."""
    cases: Callable[[], Sequence[Case]] | None = field(default=None, compare=False)
    more_cases: Mapping[str, Callable[[], Sequence[Case]]] = field(default_factory=dict, compare=False)
    """Further labelled sets by name, such as a harder one. `cases` is the set that is meant when none is named."""
    call_cases: Callable[[], Sequence[CallCase]] | None = field(default=None, compare=False)
    """Labelled requests to tools."""
    learned: Path | None = field(default=None, compare=False)
    """A folder of files that `learn` wrote, for requests to this cartridge, alone or with others."""
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """What its maker was called with, so that a replay can call it again."""
    live: Live | None = field(default=None, compare=False, repr=False)
    """What stands behind it, where that may change or end."""
