"""What a player sees before it chooses, asked of the engines, planners and views that take part."""

from __future__ import annotations

from collections.abc import Mapping

from dispatch.session.guides import asked_of_all, guide_of
from dispatch.session.players import Open, Situation, open_opcodes
from kernel.contract import Cartridge, Engine, Option
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction


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
        return Situation(number, legal, ranked, prompt, open=written, asked=bool(request)), ()
    ((name, cartridge),) = cartridges.items()
    prompt = cartridge.view.prompt(engines[name], offered, request)
    if request and cartridge.takes_requests and not cartridge.offers_beside_request:
        offered = []
    ratified = [option.instruction for option in offered] if cartridge.ratifies else []
    return Situation(number, legal, ranked, prompt, ratified, written, bool(request)), tuple(offered)
