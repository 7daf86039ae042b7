"""Builds the cartridges that a log names; only installed ones, and those that a person named."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.loading import registry, servers
from dispatch.loading.factory import Factory, Source
from dispatch.log.objects import CartridgeRecord
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, UnknownCartridgeError, UsageError
from kernel.opcode import NAME

PROSE = "strategy"
"""Option of cartridges in logs of earlier versions: prose that stood before their prompts."""


def make_cartridge(record: CartridgeRecord, specs: Sequence[str] = ()) -> Cartridge:
    """Build the cartridge that a log names, with the options that it was played with.

    A log may come from anywhere, so the name in it is only looked up among installed cartridges; `specs` are what the
    person at the keyboard named, and may be modules and folders as well. A server of tools is not started: the log has
    what it listed and what it answered.
    """
    options = record.options or {}
    if servers.LISTED in options:
        source = Source("", None, servers.RECORDED, f"the log's {record.name!r}")
        return Factory(source).cartridge({**options, "name": record.name, "version": record.version})
    specs = [spec for spec in specs if not servers.is_server(spec)]
    if odd := [name for name in options if not name.isidentifier() or name in ("self", "spec")]:
        raise CartridgeError(f"no cartridge takes an option {odd[0]!r}")
    for spec in specs:
        if registry.load(spec).name == record.name:
            return registry.load(spec, **options)
    try:
        if not NAME.fullmatch(record.name):
            raise UnknownCartridgeError(f"no cartridge {record.name!r}")
        exact = f"{record.name}@{record.version}"
        known = [source.id for source in registry.Registry().sources]
        return registry.load(exact if exact in known else record.name, **options)
    except UnknownCartridgeError as error:
        raise CartridgeError(f"{error}; the log was played with it: name it with --cartridge") from error


def resumed_cartridge(record: CartridgeRecord, specs: Sequence[str] = ()) -> Cartridge:
    """Build it to go on with: as `make_cartridge`, but a server of tools is started, if a person named it.

    Raises CartridgeError where nobody did: its command is in no log.
    """
    if servers.LISTED not in (record.options or {}):
        return make_cartridge(record, specs)
    for spec in (each for named in specs for each in servers.each(named) if servers.is_server(each)):
        made = registry.load(spec)
        if made.name == record.name:
            return made
        if made.live is not None:
            made.live.close()
    raise CartridgeError(
        f"{record.name!r} was an MCP server, and its command is in no log: name it, as in "
        'run mcp:"COMMAND" --resume LOG'
    )


def replayed_cartridge(record: CartridgeRecord, specs: Sequence[str] = ()) -> Cartridge:
    """Build it for a replay: as `make_cartridge`, but without the option PROSE where it is not taken any more.

    No state depends on that prose; what a model would read does, so a session is not gone on with without it.
    """
    try:
        return make_cartridge(record, specs)
    except UsageError:
        options = dict(record.options or {})
        if options.pop(PROSE, None) is None:
            raise
        return make_cartridge(record.model_copy(update={"options": options}), specs)
