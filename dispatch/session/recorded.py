"""Builds the cartridges that a log names; only installed ones, and those that a person named."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.loading import registry
from dispatch.log.objects import CartridgeRecord
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, UnknownCartridgeError, UsageError
from kernel.opcode import NAME

PROSE = "strategy"
"""Option of cartridges in logs of earlier versions: prose that stood before their prompts."""


def make_cartridge(record: CartridgeRecord, specs: Sequence[str] = ()) -> Cartridge:
    """Build the cartridge that a log names, with the options that it was played with.

    A log may come from anywhere, so the name in it is only looked up among installed cartridges; `specs` are what the
    person at the keyboard named, and may be modules and folders as well.
    """
    options = record.options or {}
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
