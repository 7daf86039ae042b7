"""One legal decision: opcode, trie, choice. Knows no game, no wire format, no screen."""

from kernel.api import Kernel
from kernel.decision import Decision
from kernel.rule import Rule

__all__ = ["Decision", "Kernel", "Rule"]
