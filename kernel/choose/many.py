"""Decides several questions at once: those that wait at the same time share passes, as far as that is worth it.

Questions of one legal set have one token tree. Those of different ones share the merged tree of all of them, which
evaluates behind each prompt what only the others ask; they share where that is little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision, decided
from kernel.choose.question import Question
from kernel.choose.rule import RuleName
from kernel.choose.score import Values, evaluate, scores_of
from kernel.choose.verdict import judged
from kernel.memory.listed import Listed, Prompted, cells_of
from kernel.memory.merged import merged
from kernel.memory.passes import Cost, Work
from kernel.memory.tree import ScoreTree

SHARED = 8
"""Tokens a prompt that a shared pass may cost beyond those of its own tree; a pass of its own costs about as much."""


def choose_many(chooser: Chooser, questions: Sequence[Question]) -> list[Decision]:
    """Choose for each question; the answers are those of `Chooser.choose`, in the order of the questions.

    Greedy, learned, searched and watched questions are decided one after the other. The cost of passes that several
    questions share is told by the first of them.

    Raises:
        UsageError, ContextError, LogitsError, BackendError: of a question that has one; nothing is returned then.
    """
    with chooser.memory.lock:
        questions = [chooser.as_read(question) for question in questions]
        decisions: dict[int, Decision] = {}
        for group in _groups(chooser, questions):
            together = [questions[number] for number in group]
            made = [chooser.choose(together[0])] if len(group) == 1 else _together(chooser, together)
            decisions |= zip(group, made, strict=True)
        return [decisions[number] for number in range(len(questions))]


def _groups(chooser: Chooser, questions: Sequence[Question]) -> list[list[int]]:
    """Return the places of the questions that share passes; each joins the first group in which it fits."""
    groups: list[list[int]] = []
    sharing: list[list[int]] = []
    for number, question in enumerate(questions):
        shares = _shares(chooser, question)
        for group in sharing if shares else ():
            if _fits(chooser, [*(questions[n] for n in group), question]):
                group.append(number)
                break
        else:
            groups.append([number])
            if shares:
                sharing.append(groups[-1])
    return groups


def _fits(chooser: Chooser, group: Sequence[Question]) -> bool:
    """Return whether questions certainly fit into a pass together and are worth it; alone each may fit all the same."""
    trees = [_tree(chooser, question) for question in group]
    tree = merged(trees)
    if any(_cells(tree) > _cells(own) + SHARED for own in trees):
        return False
    prompts = [each for question in group for each in question.orders]
    longest = max(cells_of(each) for question in group for each in (*question.orders, *question.nulls))
    if any(isinstance(prompt, Listed) for prompt in prompts):  # sequences that lines do not take
        prompts += [null for question in group for null in question.nulls]
    cells = cells_of(group[0].prompt.main) + longest + tree.longest
    return cells <= chooser.memory.room.n_ctx and len(prompts) <= chooser.nulls.at_once


def _cells(tree: ScoreTree) -> int:
    return len(tree.prefix) + len(tree.tokens)


def _tree(chooser: Chooser, question: Question) -> ScoreTree:
    tree = chooser.scorer.tree(question.opcodes, question.legal)
    assert tree is not None, "only questions that are scored whole share"
    return tree


def _shares(chooser: Chooser, question: Question) -> bool:
    """Return whether a question is scored whole and asks for nothing that belongs to it alone."""
    if question.watch is not None or question.beyond or question.by.name in (RuleName.GREEDY, RuleName.LEARNED):
        return False
    return len(question.legal) > 1 and chooser.scorer.tree(question.opcodes, question.legal) is not None


def _together(chooser: Chooser, questions: Sequence[Question]) -> list[Decision]:
    """Score questions in the same passes."""
    before, trees = chooser.memory.cost, [_tree(chooser, question) for question in questions]
    tree = merged(trees)
    orders = [order for question in questions for order in question.orders]
    nulls = [chooser.nulls.of(question, own, None) for question, own in zip(questions, trees, strict=True)]
    wanted = [[null for part in each.parts() for null in part] for each in nulls]
    missing = list(dict.fromkeys(null for several in wanted for null in several))
    behind: dict[Prompted, Values] = {}
    for at in range(0, max(1, len(missing)), chooser.nulls.at_once):
        part = missing[at : at + chooser.nulls.at_once]
        values = _read(chooser, Work((*orders, *part), tree))
        behind |= zip(part, values[len(orders) :], strict=True)
    decisions, first = [], 0
    for question, own, each, asked in zip(questions, trees, nulls, wanted, strict=True):
        count = len(question.orders)
        read = [*values[first : first + count], *(behind[null] for null in asked)]
        if own is not tree:
            read = [own.out_of(tree, found) for found in read]
        each.take(asked, scores_of(own, read, Cost()))
        comparison = chooser.compare(question, scores_of(own, read[:count], Cost()), slice(count), each.mean())
        cost, before = chooser.memory.cost - before, chooser.memory.cost
        decisions.append(judged(question, decided(question, comparison, cost), None))
        first += count
    return decisions


def _read(chooser: Chooser, work: Work) -> list[Values]:
    """Return what is read behind each prompt."""
    values: list[Values] = [{} for _ in work.prompts]

    def read(stem: int, point: int, row: NDArray[np.float32]) -> None:
        values[stem][point] = chooser.scorer.rows.log_probabilities(row, work.tree.ids_at[point])

    evaluate(chooser.memory, work, read)
    return values
