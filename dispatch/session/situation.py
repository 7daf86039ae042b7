"""What a player sees before it chooses, asked of the engines, planners and views that take part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dispatch.session.guides import asked_of_all, guide_of
from kernel.contract import Cartridge, Engine, Option
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction, Opcode
from kernel.prompt import Prompt


class Open(NamedTuple):
    """An opcode whose arguments cannot be listed; chosen by how it begins, then written."""

    cartridge: str
    method: str


Leaf = Instruction | Open
"""What a model chooses among."""


@dataclass(frozen=True)
class Situation:
    """What a player sees before it chooses.

    Attributes:
        number: of the decision, from 1.
        legal: every instruction that may be chosen now, as far as they can be listed.
        options: the planner's, best first; of several cartridges one after the other.
        prompt: what a model would read.
        ratified: the offered instructions, where the cartridge lets a model choose among those only.
        open: the opcodes that may be chosen now and are written then.
        asked: whether a person's request is to be met, who may ask for what is not legal now, or for nothing of this. A
            request beside the planner's options only colours a move that has to be made.
        request: what the person asks for.
    """

    number: int
    legal: Sequence[Instruction]
    options: Sequence[Option]
    prompt: Prompt
    ratified: Sequence[Instruction] = ()
    open: Sequence[Open] = ()
    asked: bool = False
    request: str = ""

    @property
    def choices(self) -> Sequence[Leaf]:
        """What a model chooses among."""
        return self.ratified or [*self.legal, *self.open]


def situation(
    cartridges: Mapping[str, Cartridge], engines: Mapping[str, Engine], number: int, request: str
) -> tuple[Situation, tuple[Option, ...]]:
    """Return what the player sees now, and the planner's options that the prompt shows.

    Args:
        cartridges: by name, at least one.
        engines: of the same names, in the states in which the decision is made.
        number: of the decision, from 1.
        request: what a person asks for, or nothing.
    """
    legal: list[Instruction] = []
    ranked: list[Option] = []
    offered: list[Option] = []
    written: list[Open] = []
    for name, cartridge in cartridges.items():
        engine = engines[name]
        legal += engine.legal()
        if engine.ended() is None:
            written += open_opcodes(cartridge)
        if cartridge.planner is not None and engine.ended() is None:
            options = list(cartridge.planner.rank(engine))
            ranked += options
            offered += options[: cartridge.offered]
    if any(issubclass(o, Halt) for c in cartridges.values() for o in c.opcodes):
        legal.append(HALT_INSTRUCTION)
    if len(cartridges) > 1:
        prompt = asked_of_all(request, guide_of(tuple(cartridges.values())))
        return Situation(number, legal, ranked, prompt, open=written, asked=bool(request), request=request), ()
    ((name, cartridge),) = cartridges.items()
    prompt = cartridge.view.prompt(engines[name], offered, request)
    if request and cartridge.takes_requests and not cartridge.offers_beside_request:
        offered = []
    ratified = [option.instruction for option in offered] if cartridge.ratifies else []
    asked = bool(request) and cartridge.takes_requests and not cartridge.offers_beside_request
    return Situation(number, legal, ranked, prompt, ratified, written, asked, request), tuple(offered)


def open_opcodes(cartridge: Cartridge) -> list[Open]:
    """Return the opcodes of a cartridge that are written, or whose arguments are chosen one by one."""
    return [Open(cartridge.name, opcode.method) for opcode in cartridge.opcodes if is_written(cartridge, opcode)]


def is_written(cartridge: Cartridge, opcode: type[Opcode]) -> bool:
    """Return whether an opcode is one choice, whatever its arguments: what they are is found out behind it."""
    return opcode.is_open() or (cartridge.tools and not issubclass(opcode, Halt))
