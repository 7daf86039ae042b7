"""One legal decision: opcode, trie, choice.

What stands in `__all__` is loaded on first use, so that an author of opcodes waits for no model runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.api import Kernel
    from kernel.choose.decision import Decision, Stop
    from kernel.choose.outcome import Evidence, Judge, Outcome, Thresholds
    from kernel.choose.question import Question
    from kernel.choose.rule import Rule, RuleName
    from kernel.tools.call import Call
    from kernel.tools.tools import Tool, Tools
    from kernel.trie.opcodes import Literal

__all__ = [
    "Call",
    "Decision",
    "Evidence",
    "Judge",
    "Kernel",
    "Literal",
    "Outcome",
    "Question",
    "Rule",
    "RuleName",
    "Stop",
    "Thresholds",
    "Tool",
    "Tools",
]

_HOMES = {
    "Call": "kernel.tools.call",
    "Decision": "kernel.choose.decision",
    "Evidence": "kernel.choose.outcome",
    "Judge": "kernel.choose.outcome",
    "Kernel": "kernel.api",
    "Literal": "kernel.trie.opcodes",
    "Outcome": "kernel.choose.outcome",
    "Question": "kernel.choose.question",
    "Rule": "kernel.choose.rule",
    "RuleName": "kernel.choose.rule",
    "Stop": "kernel.choose.decision",
    "Thresholds": "kernel.choose.outcome",
    "Tool": "kernel.tools.tools",
    "Tools": "kernel.tools.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
