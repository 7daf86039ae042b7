"""Finds cartridges and makes them: installed ones by name, others by module path or folder. Knows none by name.

An installed package offers cartridges in its pyproject.toml, and ours are offered in the same way:

    [project.entry-points."cartridge_kernel.cartridges"]
    chess = "chess_cartridge:make"
    "chess@2" = "chess_cartridge.two:make"

`chess` says nothing of its version until it is made; `chess@2` says it before. Two offers that cannot be told apart
are refused, and nothing but the cartridge that is asked for is imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatch.loading.maker import PATH, STRATEGY, VERSION, Entry, Maker
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, KernelError, UnknownCartridgeError, UsageError, did_you_mean
from kernel.opcode import NAME

__all__ = ["GROUP", "STRATEGY", "Entry", "Found", "Registry", "load", "load_all"]

GROUP = "cartridge_kernel.cartridges"


@dataclass(frozen=True, slots=True)
class Found:
    """One offer as `scan` finds it: the cartridge, or the error in its place."""

    id: str
    target: str
    origin: str
    cartridge: Cartridge | None = None
    error: KernelError | None = None


class Registry:
    """The offers of all installed packages, or those given."""

    def __init__(self, entries: Iterable[Entry] | None = None) -> None:
        self._bad: list[Found] = []
        self.entries = tuple(entries) if entries is not None else tuple(self._installed())

    def find(self, spec: str) -> Entry:
        """Return what `name`, `name@version`, `package.module[:function]` or a folder stands for; imports nothing.

        Raises UnknownCartridgeError for an unknown name, CartridgeError for one that several offers have.
        """
        if PATH.search(spec):
            return Entry("", None, spec, spec)
        name, at, version = spec.partition("@")
        if not NAME.fullmatch(name) or (at and not VERSION.fullmatch(version)):
            if all(part.isidentifier() for part in re.split(r"[.:]", spec)) and re.search(r"[.:]", spec):
                return Entry("", None, spec, spec)
            raise UnknownCartridgeError(
                f"{spec!r} names no cartridge; give a name such as 'chess' or 'chess@2', a module such as "
                "'package.module:make', or a folder such as './chess'"
            )
        return self._named(spec, name, version if at else None)

    def load(self, spec: str, **given: object) -> Cartridge:
        """Make the cartridge that `spec` stands for, as `find` reads it, with options for its `make`.

        Text is turned into what an option is annotated with (`"3"` into 3). Any cartridge with a folder `strategies`
        takes `strategy`, the id of one.

        Raises:
            UsageError: an option that it does not have, or a value that the option does not take.
            CartridgeError: not to be found, imported or made, or not what its name says.
        """
        return self._made(spec, Maker(self.find(spec)), given)

    def load_all(self, specs: Sequence[str], **given: object) -> list[Cartridge]:
        """Make several for one session; an option goes to those that take it.

        Raises:
            UsageError: an option that none of them takes.
            CartridgeError: as `load`, and for two of one name.
        """
        makers = [Maker(self.find(spec)) for spec in specs]
        for name in given:
            if not any(maker.takes(name) for maker in makers):
                known = {option for maker in makers for option in maker.options()}
                raise UsageError(f"{' '.join(specs)}: there is no option {name!r}{did_you_mean(name, known)}")
        made: dict[str, tuple[Cartridge, Entry]] = {}
        for spec, maker, own in zip(specs, makers, _shares(makers, given), strict=True):
            cartridge = self._made(spec, maker, own)
            if cartridge.name in made:
                other = made[cartridge.name][1]
                raise CartridgeError(
                    f"two cartridges are named {cartridge.name!r}: {other} and {maker.entry}; a session holds one"
                )
            made[cartridge.name] = (cartridge, maker.entry)
        return [cartridge for cartridge, _ in made.values()]

    def scan(self) -> list[Found]:
        """Import and make every offer, in the order of their names; one that fails stands there with its error."""
        found = list(self._bad)
        for entry in self.entries:
            try:
                self._only(entry.id, [e for e in self.entries if e.clashes(entry)])
                found.append(Found(entry.id, entry.target, entry.origin, Maker(entry).cartridge({})))
            except KernelError as error:
                found.append(Found(entry.id, entry.target, entry.origin, None, error))
        return sorted(found, key=lambda f: (f.id, f.origin))

    @staticmethod
    def _made(spec: str, maker: Maker, given: Mapping[str, object]) -> Cartridge:
        """Make it, and see that its version is the one that was asked for."""
        cartridge = maker.cartridge(given)
        version = spec.partition("@")[2] if maker.entry.name else ""
        if version and version != cartridge.version:
            raise UnknownCartridgeError(
                f"no cartridge {spec!r}; {maker.entry.origin} offers {cartridge.name}@{cartridge.version}"
            )
        return cartridge

    def _installed(self) -> Iterator[Entry]:
        for point in importlib.metadata.entry_points(group=GROUP):
            origin = f"{point.dist.metadata['Name']} {point.dist.version}" if point.dist else "an unknown package"
            name, at, version = point.name.partition("@")
            if NAME.fullmatch(name) and (not at or VERSION.fullmatch(version)):
                yield Entry(name, version if at else None, point.value, origin)
            else:
                error = CartridgeError(f"{origin} offers {point.name!r}, no name such as 'chess' or 'chess@2'")
                self._bad.append(Found(point.name, point.value, origin, None, error))

    def _named(self, spec: str, name: str, version: str | None) -> Entry:
        same = [e for e in self.entries if e.name == name]
        exact = [e for e in same if version is None or e.version in (None, version)]
        if not exact:
            offered = [e.id for e in self.entries]
            hint = did_you_mean(spec, offered)
            if not offered:
                hint = "; no installed package offers any: run make setup, or pip install the package that does"
            elif (Path(spec) / "__init__.py").is_file():
                hint = f"; for the folder, say {f'.{os.sep}{spec}'!r}"
            raise UnknownCartridgeError(f"no cartridge {spec!r}{hint}")
        return self._only(spec, exact)

    @staticmethod
    def _only(spec: str, entries: Sequence[Entry]) -> Entry:
        if len(entries) == 1:
            return entries[0]
        if any(a.clashes(b) for n, a in enumerate(entries) for b in entries[:n]):
            way = "uninstall one, or name it by its module"
        else:
            way = f"name the version, {' or '.join(repr(e.id) for e in entries)}"
        raise CartridgeError(f"{spec!r} is offered {len(entries)} times: {', '.join(map(str, entries))}; {way}")


def load(spec: str, **given: object) -> Cartridge:
    """Make a cartridge with the registry of what is installed now; see `Registry.load`."""
    return Registry().load(spec, **given)


def load_all(specs: Sequence[str], **given: object) -> list[Cartridge]:
    """Make several cartridges for one session; see `Registry.load_all`."""
    return Registry().load_all(specs, **given)


def _shares(makers: Sequence[Maker], given: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield for each maker the options that are its own.

    A strategy goes to those that have it by that id, another value to those that take it, if there is one.
    """
    strategy = given.get(STRATEGY)
    known = [maker.strategies() for maker in makers]
    if strategy is not None and len(makers) > 1 and not any(strategy in ids for ids in known):
        everything = [i for ids in known for i in ids]
        raise UsageError(f"no strategy {strategy!r} of these cartridges{did_you_mean(str(strategy), everything)}")
    fitting = {n for n, v in given.items() if any(maker.accepts(n, v) for maker in makers)}
    for maker, ids in zip(makers, known, strict=True):
        if len(makers) == 1:
            yield dict(given)
        else:
            yield {
                n: v
                for n, v in given.items()
                if (v in ids if n == STRATEGY else maker.accepts(n, v) if n in fitting else maker.takes(n))
            }
