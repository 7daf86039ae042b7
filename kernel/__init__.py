"""One legal decision: opcode, trie, choice.

What stands in `__all__` is loaded on first use, so that an author of opcodes waits for no model runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.api import Kernel
    from kernel.choose.decision import Decision
    from kernel.choose.rule import Rule

__all__ = ["Decision", "Kernel", "Rule"]

_HOMES = {"Decision": "kernel.choose.decision", "Kernel": "kernel.api", "Rule": "kernel.choose.rule"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
