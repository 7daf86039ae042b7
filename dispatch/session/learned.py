"""Which learned file goes with a model and some cartridges: what `learn` wrote last, or the one that is shipped."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from dispatch.session.guides import guide_of
from kernel.api import Kernel
from kernel.choose.learned import SUFFIX, Keys, Learned, unordered
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import StoreError
from kernel.models.catalogue import cache_dir

_log = logging.getLogger(__name__)


def file_name(kernel: Kernel, cartridges: Sequence[Cartridge]) -> str:
    """Return how a learned file is called: the cartridges by name, in that order, and a part of the model's hash."""
    names = "+".join(sorted(cartridge.name for cartridge in cartridges))
    return f"{names}-{kernel.backend.fingerprint.removeprefix('b2:')[:8]}{SUFFIX}"


def own_folder() -> Path:
    """Return the folder of what `learn` has written here."""
    return cache_dir() / "learned"


def keys_of(kernel: Kernel, cartridges: Sequence[Cartridge]) -> Keys:
    """Return the keys of a file for the commands of some cartridges, as the compact form says them."""
    bodies = [f" {each.words}" for each in guide_of(cartridges)]
    return Keys(kernel.backend.fingerprint, kernel.vocabulary.fingerprint, unordered(bodies))


def learned_for(kernel: Kernel, cartridges: Sequence[Cartridge]) -> Learned | None:
    """Return what was learned of requests to some cartridges, here before what is shipped; None where nothing was.

    A file that cannot be used is noted and left out. Cartridges without guides have none.
    """
    if not cartridges or not all(cartridge.guide and cartridge.takes_requests for cartridge in cartridges):
        return None
    name, keys = file_name(kernel, cartridges), keys_of(kernel, cartridges)
    folders = [own_folder(), *(cartridge.learned for cartridge in cartridges if cartridge.learned is not None)]
    for folder in dict.fromkeys(folders):
        path = folder / name
        if path.is_file():
            try:
                return Learned.read(path, keys)
            except StoreError as error:
                _log.warning("%s", error)
    return None


def taught(kernel: Kernel, cartridges: Sequence[Cartridge]) -> Learned | None:
    """Teach the kernel what was learned of requests to some cartridges, and return it."""
    found = learned_for(kernel, cartridges)
    if found is not None:
        kernel.teach(found)
    return found


def default_rule(kernel: Kernel, cartridges: Sequence[Cartridge], wire: str) -> Rule | None:
    """Return the rule where none is named: `learned` where something was, and elsewhere None, the kernel's own.

    What is learned is learned of the compact form.
    """
    return Rule(RuleName.LEARNED) if wire == "compact" and taught(kernel, cartridges) is not None else None
