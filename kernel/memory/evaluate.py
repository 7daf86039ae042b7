"""Evaluates prompts and the trees behind them: plans the passes, runs them, remembers what the memory then holds."""

from __future__ import annotations

from kernel.memory import attention, recurrent
from kernel.memory.memory import Memory
from kernel.memory.passes import ReadRow, Work


def evaluate(memory: Memory, work: Work, read: ReadRow) -> None:
    """Evaluate the tree behind each prompt, with as few passes and tokens as the memory allows.

    Args:
        read: gets (number of the prompt, point of the tree, row) once for each row that the tree wants.

    Raises:
        ContextError: it does not fit; nothing is evaluated, and the memory is as it was.
        BackendError: the runtime refused; the memory is empty.
    """
    tree = work.tree
    memory.check([(*prompt, *tree.prefix) for prompt in work.prompts], tree.longest - len(tree.prefix))
    with memory.guard():
        plan = (attention if memory.backend.shares_tokens else recurrent).plan(memory, work)
        memory.carry_out(plan.steps, read)
        memory.held, memory.kept = list(plan.held), list(map(list, plan.kept))
