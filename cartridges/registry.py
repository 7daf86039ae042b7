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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from cartridges import importing, options, strategies
from cartridges.blame import blame
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, KernelError, UnknownCartridgeError, did_you_mean
from kernel.opcode import NAME, Opcode

GROUP = "cartridge_kernel.cartridges"
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
STRATEGY = "strategy"
"""The option that every cartridge with a folder `strategies` takes."""

_PATH = re.compile(r"[/\\]|^[.~]|\.py(:\w+)?$")


@dataclass(frozen=True, slots=True)
class Entry:
    """An offer: what it is called, what makes it, where it comes from. `version` is None when the offer has none."""

    name: str
    version: str | None
    target: str
    origin: str

    @property
    def id(self) -> str:
        """`name@version`, or the name alone.

        >>> Entry("chess", "2", "chess_cartridge.two:make", "chess-cartridge 1.4").id
        'chess@2'
        """
        return self.name if self.version is None else f"{self.name}@{self.version}"

    def __str__(self) -> str:
        return f"{self.id} of {self.origin} ({self.target})"

    def clashes(self, other: Entry) -> bool:
        """Return whether the two could be one and the same cartridge as far as their names tell."""
        return self.name == other.name and (None in (self.version, other.version) or self.version == other.version)


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
        if _PATH.search(spec):
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
        return self._load(spec, given)[0]

    def load_all(self, specs: Sequence[str], **given: object) -> list[Cartridge]:
        """Make several for one session, each with the options given; two of one name are refused."""
        made: dict[str, tuple[Cartridge, Entry]] = {}
        for spec in specs:
            cartridge, entry = self._load(spec, given)
            if cartridge.name in made:
                other = made[cartridge.name][1]
                raise CartridgeError(
                    f"two cartridges are named {cartridge.name!r}: that of {other.origin} ({other.target}) and that "
                    f"of {entry.origin} ({entry.target}); a session holds one"
                )
            made[cartridge.name] = (cartridge, entry)
        return [cartridge for cartridge, _ in made.values()]

    def scan(self) -> list[Found]:
        """Import and make every offer, in the order of their names; one that fails stands there with its error."""
        found = list(self._bad)
        for entry in self.entries:
            try:
                self._only(entry.id, [e for e in self.entries if e.clashes(entry)])
                found.append(Found(entry.id, entry.target, entry.origin, self._make(entry, {})))
            except KernelError as error:
                found.append(Found(entry.id, entry.target, entry.origin, None, error))
        return sorted(found, key=lambda f: (f.id, f.origin))

    def _load(self, spec: str, given: dict[str, object]) -> tuple[Cartridge, Entry]:
        entry = self.find(spec)
        cartridge = self._make(entry, given)
        version = spec.partition("@")[2] if entry.name else ""
        if version and version != cartridge.version:
            raise UnknownCartridgeError(
                f"no cartridge {spec!r}; {entry.origin} offers {cartridge.name}@{cartridge.version}"
            )
        return cartridge, entry

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

    def _make(self, entry: Entry, given: dict[str, object]) -> Cartridge:
        where = f"cartridge {entry.id!r} of {entry.origin}" if entry.name else f"cartridge {entry.target!r}"
        module, name = _module(entry, where)
        make = importing.function(module, name, where)
        given = dict(given)
        file = getattr(module, "__file__", None)
        folder = Path(file).parent / strategies.FOLDER if file else None
        chosen = given.pop(STRATEGY, None) if not options.takes(make, STRATEGY) else None
        ready = options.checked(make, given, where, also=[STRATEGY] if folder and folder.is_dir() else [])
        try:
            made = make(**ready)
        except KernelError:
            raise
        except (Exception, SystemExit) as error:
            raise CartridgeError(f"{where} cannot be made: {blame(error)}") from error
        cartridge = _checked(made, entry, where)
        if chosen is not None:
            cartridge = strategies.choose(cartridge, folder, str(chosen))
        kept = ready if chosen is None else ready | {STRATEGY: str(chosen)}
        return replace(cartridge, options={**cartridge.options, **kept}) if kept else cartridge


def load(spec: str, **given: object) -> Cartridge:
    """Make a cartridge with the registry of what is installed now; see `Registry.load`."""
    return Registry().load(spec, **given)


def _module(entry: Entry, where: str) -> tuple[ModuleType, str]:
    """Import the module of an offer; return it and the name of the function that makes the cartridge."""
    target = re.sub(r"\s*\[.*\]\s*$", "", entry.target).strip()  # an entry point may name extras
    if not entry.name and _PATH.search(target):
        head, colon, tail = target.rpartition(":")
        if not (colon and tail.isidentifier()):
            head, tail = target, importing.MAKE
        return importing.by_path(Path(head), where), tail
    module, _, name = target.partition(":")
    return importing.by_name(module.strip(), where), name.strip() or importing.MAKE


def _checked(cartridge: object, entry: Entry, where: str) -> Cartridge:
    """Return a cartridge; refuse what is none, and one that is not what its offer says."""
    if not isinstance(cartridge, Cartridge):
        raise CartridgeError(f"{where}: {entry.target} made {cartridge!r}, no kernel.contract.Cartridge")
    if not NAME.fullmatch(cartridge.name) or not VERSION.fullmatch(cartridge.version):
        raise CartridgeError(
            f"{where}: name {cartridge.name!r} and version {cartridge.version!r} must match "
            f"{NAME.pattern!r} and {VERSION.pattern!r}"
        )
    if entry.name and (cartridge.name, cartridge.version) != (entry.name, entry.version or cartridge.version):
        raise CartridgeError(f"{where} is made as {cartridge.name}@{cartridge.version}; make the two agree")
    declared = [o.method for o in cartridge.opcodes if isinstance(o, type) and issubclass(o, Opcode)]
    if not declared or len(declared) < len(cartridge.opcodes) or len(set(declared)) < len(declared):
        raise CartridgeError(f"{where}: its opcodes must be Opcode classes with methods of their own: {declared}")
    return cartridge
