"""The one tree of errors. Each says where, what (by repr) and what would work. Knows nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class KernelError(Exception):
    """Anything this project raises on purpose; a command prints it in one line and exits."""


class BuildError(KernelError):
    """A set of opcodes cannot be compiled: a literal that does not round-trip, a clash, an empty set.

    `pairs` names the opcodes that clash, by their place in the set.
    """

    def __init__(self, message: str, pairs: Iterable[tuple[int, int]] = ()) -> None:
        super().__init__(message)
        self.pairs = tuple(pairs)


class StoreError(KernelError):
    """A compiled trie on disk that is foreign, damaged, or made for another tokenizer or another set of opcodes."""


class OpcodeError(KernelError):
    """A declaration that cannot become an opcode, or text and arguments that are not one."""


class NoLegalOpcodeError(KernelError):
    """Nothing may be chosen: an empty legal set, or a legal set unknown to the compiled opcodes."""


class LogitsError(KernelError):
    """The model's row cannot be trusted: constant, all NaN, or no finite legal value."""


class ContextError(KernelError):
    """The prompt and the longest legal opcode do not fit into the context."""


class BackendError(KernelError):
    """The runtime refused or failed."""


class ModelError(KernelError):
    """A model that cannot be found, fetched, verified or loaded."""


class PackageError(KernelError):
    """A package of a registry that cannot be fetched or is not what was pinned, or files of one that are not here."""


class CartridgeError(KernelError):
    """A cartridge that cannot be found, imported or trusted."""


class WireError(KernelError):
    """Text that is not exactly one instruction."""


class IllegalInstructionError(KernelError):
    """An instruction that the rules of the engine do not allow in this state."""


class ActionFailedError(KernelError):
    """What an instruction does outside the engine was tried and failed; the engine is as it was."""


class DeclinedError(KernelError):
    """A call that is not carried out: nothing was chosen, or nobody agreed to it."""


class LogError(KernelError):
    """A session log that cannot be written or read."""


class UsageError(KernelError):
    """An argument of a command or of the API that makes no sense; commands exit with 2."""


class UnknownCartridgeError(CartridgeError, UsageError):
    """A cartridge that was typed wrong: no installed name, no module, no folder."""


class UnknownModelError(ModelError, UsageError):
    """A model that was typed wrong: no name of the catalogue, no file, no `hf:` name."""


class NotThereError(LogError, UsageError):
    """A session, a decision of a log or a step of it that was asked for and is not there."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` or the list of what there is, to end an error message.

    >>> did_you_mean("tetriss", ["tetris", "home"])
    "; did you mean 'tetris'?"
    >>> did_you_mean("zz", ["tetris", "home"])
    '; there is: home, tetris'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there is: {', '.join(names)}" if names else "; there is none"


def short(value: Any) -> str:
    """Return a value by repr, as much of it as fits into a message."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:97]}..."
