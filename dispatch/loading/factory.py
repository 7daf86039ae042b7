"""Makes one cartridge: imports the module that its source names, checks the options, checks what was made."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dispatch.loading import importing, options
from dispatch.loading.error_line import error_line
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, KernelError
from kernel.opcode import NAME, Opcode

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
PATH = re.compile(r"[/\\]|^[.~]|\.py(:\w+)?$")
"""What makes a text a folder or a file rather than a module."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a cartridge comes from: an entry point that an installed package advertises, or what somebody typed.

    Attributes:
        name: as advertised; empty for a module or folder that somebody typed.
        version: as advertised; None where none is stated.
        target: the module and the function in it, or the folder or file.
        origin: the package with its version, or what was typed.
        given: options that are part of what was typed; a log does not have them.
    """

    name: str
    version: str | None
    target: str
    origin: str
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """`name@version`, or the name alone, or what was typed.

        >>> Source("chess", "2", "chess_cartridge.two:make", "chess-cartridge 1.4").id
        'chess@2'
        """
        return self.target if not self.name else self.name if self.version is None else f"{self.name}@{self.version}"

    def __str__(self) -> str:
        return f"{self.id} of {self.origin} ({self.target})" if self.name else self.target

    def clashes(self, other: Source) -> bool:
        """Return whether the two could be one and the same cartridge as far as their names tell."""
        return self.name == other.name and (None in (self.version, other.version) or self.version == other.version)


class Factory:
    """The function that makes one cartridge. Raises CartridgeError when it cannot be imported or is no function."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.where = f"cartridge {source.id!r} of {source.origin}" if source.name else f"cartridge {source.target!r}"
        target = re.sub(r"\s*\[.*\]\s*$", "", source.target).strip()  # an entry point may name extras
        if not source.name and PATH.search(target):
            head, colon, tail = target.rpartition(":")
            if not (colon and tail.isidentifier()):
                head, tail = target, importing.MAKE
            module = importing.by_path(Path(head), self.where)
        else:
            head, _, tail = target.partition(":")
            module = importing.by_name(head.strip(), self.where)
        self._make: Callable[..., Any] = importing.function(module, tail.strip() or importing.MAKE, self.where)

    def takes(self, name: str) -> bool:
        """Return whether it has an option of that name."""
        return options.takes(self._make, name)

    def accepts(self, name: str, value: object) -> bool:
        """Return whether it has an option of that name that can have that value."""
        return options.accepts(self._make, name, value)

    def options(self) -> set[str]:
        """Return the names of its options; one that takes any name adds none."""
        return options.names(self._make)

    def cartridge(self, given: Mapping[str, object]) -> Cartridge:
        """Make it with options; see `Registry.load` for the errors."""
        ready = options.checked(self._make, {**given, **self.source.given}, self.where)
        try:
            made = self._make(**ready)
        except KernelError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of the author's code; SystemExit among them
            raise CartridgeError(f"{self.where} cannot be made: {error_line(error)}") from error
        cartridge = self._checked(made)
        ready = {name: value for name, value in ready.items() if name not in self.source.given}
        return replace(cartridge, options={**cartridge.options, **ready}) if ready else cartridge

    def _checked(self, made: object) -> Cartridge:
        """Refuse what is no cartridge, and one that is not what its source says."""
        source, where = self.source, self.where
        if not isinstance(made, Cartridge):
            raise CartridgeError(f"{where}: {source.target} made {reprlib.repr(made)}, no kernel.contract.Cartridge")
        if not NAME.fullmatch(made.name) or not VERSION.fullmatch(made.version):
            raise CartridgeError(
                f"{where}: name {made.name!r} and version {made.version!r} must match "
                f"{NAME.pattern!r} and {VERSION.pattern!r}"
            )
        if source.name and (made.name, made.version) != (source.name, source.version or made.version):
            raise CartridgeError(f"{where} is made as {made.name}@{made.version}; make the two agree")
        declared = [o.method for o in made.opcodes if isinstance(o, type) and issubclass(o, Opcode)]
        if not declared or len(declared) < len(made.opcodes) or len(set(declared)) < len(declared):
            raise CartridgeError(f"{where}: its opcodes must be Opcode classes with methods of their own: {declared}")
        return made
