"""The cartridges that take part in a session: their engines, what is legal among them, who joins and leaves."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.log.objects import CartridgeRecord
from dispatch.session.players import Player
from dispatch.session.settling import Pending, Person
from dispatch.session.situation import Situation, situation
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import UsageError, did_you_mean
from kernel.opcode import HALT_INSTRUCTION, Instruction


class Participants:
    """The cartridges of a session by name, and an engine of each.

    Args:
        seed: given to every engine.

    Attributes:
        person: is asked where two instructions are close or one has to be agreed to; None leaves that to the program.
        yes: whether all that has to be agreed to is agreed to beforehand.
        pending: the decision of the last turn, where it waits for the program.
    """

    def __init__(self, cartridges: Sequence[Cartridge], player: Player, seed: int) -> None:
        if not cartridges:
            raise UsageError("a session needs at least one cartridge")
        self.cartridges = {cartridge.name: cartridge for cartridge in cartridges}
        self.player = player
        self.seed = seed
        self.person: Person | None = None
        self.yes = False
        self.pending: Pending | None = None
        self.engines = {cartridge.name: self._started(cartridge) for cartridge in cartridges}

    @property
    def records(self) -> tuple[CartridgeRecord, ...]:
        """What a header says of the cartridges: as they are now, so ask before the first turn."""
        return tuple(self._record(cartridge) for cartridge in self.cartridges.values())

    def join(self, cartridge: Cartridge) -> None:
        """Let a cartridge take part from the next turn on; the others keep their states.

        Raises UsageError when one of that name is there, BuildError when it cannot be compiled: nothing has changed.
        """
        if cartridge.name in self.cartridges:
            raise UsageError(f"cartridge {cartridge.name!r} is there already")
        self.lapse()
        engine = self._started(cartridge)
        self.player.use([*self.cartridges.values(), cartridge])
        self.cartridges[cartridge.name], self.engines[cartridge.name] = cartridge, engine
        self._changed(self._record(cartridge))

    def leave(self, name: str) -> None:
        """Let a cartridge take part no more: its state is gone, and none of its opcodes can be chosen.

        Raises UsageError for one that is not there, and for the last one.
        """
        if name not in self.cartridges:
            raise UsageError(f"no cartridge {name!r} takes part{did_you_mean(name, self.cartridges)}")
        if len(self.cartridges) == 1:
            raise UsageError(f"cartridge {name!r} is the only one; a session needs at least one")
        self.lapse()
        self.player.use([c for c in self.cartridges.values() if c.name != name])
        if (live := self.cartridges[name].live) is not None:
            live.close()
        del self.cartridges[name], self.engines[name]
        self._changed(name)

    def exchange(self, cartridge: Cartridge) -> None:
        """Let a cartridge take the place of the one of its name, with a new engine; the others keep their states.

        Raises BuildError when it cannot be compiled: nothing has changed.
        """
        self.lapse()
        engine = self._started(cartridge)
        self.player.use([cartridge if c.name == cartridge.name else c for c in self.cartridges.values()])
        self.cartridges[cartridge.name], self.engines[cartridge.name] = cartridge, engine
        self._changed(self._record(cartridge))

    def end_live(self) -> None:
        """End what stands behind the cartridges."""
        for cartridge in self.cartridges.values():
            if cartridge.live is not None:
                cartridge.live.close()

    def situation(self, number: int, request: str) -> tuple[Situation, tuple[Option, ...]]:
        """Return what the player sees now, and the planner's options that the prompt shows."""
        return situation(self.cartridges, self.engines, number, request)

    def lapse(self) -> None:
        """Drop the decision that is pending, if one is."""
        if self.pending is not None:
            self.pending.lapse()

    def whose(self, instruction: Instruction) -> str:
        """Return the cartridge in whose turn an instruction is carried out; a halt is the first one's."""
        return next(iter(self.cartridges)) if instruction == HALT_INSTRUCTION else instruction.cartridge

    def acts(self, name: str) -> bool:
        """Return whether a cartridge that takes part acts outside its engine."""
        cartridge = self.cartridges.get(name)
        return cartridge is not None and cartridge.acts_outside

    def _changed(self, who: CartridgeRecord | str) -> None:
        """Take note of a cartridge that has joined, or of the name of one that has left."""

    def _started(self, cartridge: Cartridge) -> Engine:
        engine = cartridge.engine()
        engine.reset(self.seed)
        return engine

    def _record(self, cartridge: Cartridge) -> CartridgeRecord:
        return CartridgeRecord(
            name=cartridge.name,
            version=cartridge.version,
            state=self.engines[cartridge.name].state_hash(),
            options=dict(cartridge.options) or None,
        )
