"""Finds cartridges and makes them: installed ones by name, others by module path or folder.

An installed package advertises its cartridges in its pyproject.toml, and so does ours:

    [project.entry-points."cartridge_kernel.cartridges"]
    chess = "chess_cartridge:make"
    "chess@2" = "chess_cartridge.two:make"

`chess` says nothing of its version until it is made; `chess@2` says it before. Two sources that cannot be told apart
are refused, and nothing but the cartridge that is asked for is imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatch.loading import servers
from dispatch.loading.factory import PATH, VERSION, Factory, Source
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, KernelError, UnknownCartridgeError, UsageError, did_you_mean
from kernel.opcode import NAME

__all__ = ["GROUP", "Registry", "ScanResult", "Source", "load", "load_all"]

GROUP = "cartridge_kernel.cartridges"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """One source as `scan` finds it: the cartridge, or the error in its place."""

    source: Source
    cartridge: Cartridge | None = None
    error: KernelError | None = None


class Registry:
    """The cartridges that installed packages advertise, or those of the sources given."""

    def __init__(self, sources: Iterable[Source] | None = None) -> None:
        self._bad: list[ScanResult] = []
        self.sources = tuple(sources) if sources is not None else tuple(self._installed())

    def find(self, spec: str) -> Source:
        """Return what `name`, `name@version`, `package.module[:function]`, a folder or `mcp:...` stands for.

        Nothing is imported or started.

        Raises UnknownCartridgeError for an unknown name, CartridgeError for one that several sources have.
        """
        if servers.is_server(spec):
            return Source("", None, servers.MAKER, spec, {"server": servers.entry(spec)})
        if PATH.search(spec):
            return Source("", None, spec, spec)
        name, at, version = spec.partition("@")
        if not NAME.fullmatch(name) or (at and not VERSION.fullmatch(version)):
            if all(part.isidentifier() for part in re.split(r"[.:]", spec)) and re.search(r"[.:]", spec):
                return Source("", None, spec, spec)
            raise UnknownCartridgeError(
                f"{spec!r} names no cartridge; give a name such as 'chess' or 'chess@2', a module such as "
                "'package.module:make', or a folder such as './chess'"
            )
        return self._named(spec, name, version if at else None)

    def load(self, spec: str, **given: object) -> Cartridge:
        """Make the cartridge that `spec` stands for, as `find` reads it, with options for its `make`.

        Text is turned into what an option is annotated with (`"3"` into 3).

        Raises:
            UsageError: an option that it does not have, or a value that the option does not take.
            CartridgeError: not to be found, imported or made, or not what its name says.
        """
        return self._made(spec, Factory(self.find(spec)), given)

    def load_all(self, specs: Sequence[str], **given: object) -> list[Cartridge]:
        """Make several for one session; an option goes to those that take it, and a file of servers is all of them.

        Raises:
            UsageError: an option that none of them takes.
            CartridgeError: as `load`, and for two of one name.
        """
        specs = [each for spec in specs for each in servers.each(spec)]
        factories = [Factory(self.find(spec)) for spec in specs]
        for name in given:
            if not any(factory.takes(name) for factory in factories):
                known = {option for factory in factories for option in factory.options()}
                raise UsageError(f"{' '.join(specs)}: there is no option {name!r}{did_you_mean(name, known)}")
        made: list[Cartridge] = []
        sources: dict[str, Source] = {}
        for spec, factory, own in zip(specs, factories, _shares(factories, given), strict=True):
            made.append(self._made(spec, factory, own))
            name, source = made[-1].name, factory.source
            if name in sources:
                raise CartridgeError(
                    f"two cartridges are named {name!r}: {sources[name]} and {source}; a session holds one"
                )
            sources[name] = source
        return made

    def scan(self) -> list[ScanResult]:
        """Make the cartridge of every source, by name; where one fails, its error stands in its place."""
        found = list(self._bad)
        for source in self.sources:
            try:
                self._only(source.id, [other for other in self.sources if other.clashes(source)])
                found.append(ScanResult(source, Factory(source).cartridge({})))
            except KernelError as error:
                found.append(ScanResult(source, None, error))
        return sorted(found, key=lambda f: (f.source.id, f.source.origin))

    @staticmethod
    def _made(spec: str, factory: Factory, given: Mapping[str, object]) -> Cartridge:
        """Make it, and see that its version is the one that was asked for."""
        cartridge = factory.cartridge(given)
        version = spec.partition("@")[2] if factory.source.name else ""
        if version and version != cartridge.version:
            raise UnknownCartridgeError(
                f"no cartridge {spec!r}; {factory.source.origin} advertises {cartridge.name}@{cartridge.version}"
            )
        return cartridge

    def _installed(self) -> Iterator[Source]:
        for point in importlib.metadata.entry_points(group=GROUP):
            origin = f"{point.dist.metadata['Name']} {point.dist.version}" if point.dist else "an unknown package"
            name, at, version = point.name.partition("@")
            if NAME.fullmatch(name) and (not at or VERSION.fullmatch(version)):
                yield Source(name, version if at else None, point.value, origin)
            else:
                error = CartridgeError(f"{origin} advertises {point.name!r}, no name such as 'chess' or 'chess@2'")
                self._bad.append(ScanResult(Source(point.name, None, point.value, origin), None, error))

    def _named(self, spec: str, name: str, version: str | None) -> Source:
        found = [s for s in self.sources if s.name == name and (version is None or s.version in (None, version))]
        if not found:
            hint = did_you_mean(spec, [source.id for source in self.sources])
            if not self.sources:
                hint = "; no installed package advertises any: run make setup, or pip install the package that does"
            elif (Path(spec) / "__init__.py").is_file():
                hint = f"; for the folder, say {f'.{os.sep}{spec}'!r}"
            raise UnknownCartridgeError(f"no cartridge {spec!r}{hint}")
        return self._only(spec, found)

    @staticmethod
    def _only(spec: str, sources: Sequence[Source]) -> Source:
        if len(sources) == 1:
            return sources[0]
        if any(a.clashes(b) for n, a in enumerate(sources) for b in sources[:n]):
            way = "uninstall one, or name it by its module"
        else:
            way = f"name the version, {' or '.join(repr(source.id) for source in sources)}"
        raise CartridgeError(f"{spec!r} is advertised {len(sources)} times: {', '.join(map(str, sources))}; {way}")


def load(spec: str, **given: object) -> Cartridge:
    """Make a cartridge with the registry of what is installed now; see `Registry.load`."""
    return Registry().load(spec, **given)


def load_all(specs: Sequence[str], **given: object) -> list[Cartridge]:
    """Make several cartridges for one session; see `Registry.load_all`."""
    return Registry().load_all(specs, **given)


def _shares(factories: Sequence[Factory], given: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield for each factory the options that are its own: a value goes to those that take it, if there is one."""
    if len(factories) == 1:
        yield dict(given)
        return
    fitting = {n for n, v in given.items() if any(factory.accepts(n, v) for factory in factories)}
    for factory in factories:
        yield {n: v for n, v in given.items() if (factory.accepts(n, v) if n in fitting else factory.takes(n))}
