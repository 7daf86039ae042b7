"""Asks before a decision what stands behind the cartridges: what has changed is exchanged, what has ended leaves."""

from __future__ import annotations

import logging
from typing import Protocol

from kernel.contract import Cartridge
from kernel.errors import BuildError, CartridgeError

_notes = logging.getLogger(__name__)


class Renewed(Protocol):
    """What cartridges take part in; `Session` is one."""

    cartridges: dict[str, Cartridge]

    def exchange(self, cartridge: Cartridge) -> None:
        """Let a cartridge take the place of the one of its name."""

    def leave(self, name: str) -> None:
        """Let a cartridge take part no more."""


def renew(session: Renewed) -> None:
    """Let the cartridges of a session be what they are now.

    Raises CartridgeError where the last one has ended.
    """
    for name, cartridge in list(session.cartridges.items()):
        if cartridge.live is None:
            continue
        now, why = cartridge.live.now(), ""
        if now is not None and now.opcodes == cartridge.opcodes:
            continue
        if now is not None:
            try:
                session.exchange(now)
            except BuildError as error:
                why = f"its new tools cannot be used: {error}"
            else:
                _notes.warning("%s has other tools now: %s", name, now.summary)
                continue
        why = why or cartridge.live.why()
        if len(session.cartridges) == 1:
            raise CartridgeError(f"{name}: {why}; no other cartridge is left")
        session.leave(name)
        _notes.warning("%s has left: %s", name, why)
