"""Decides several questions at once: those that have one legal set are scored in the same passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision, decided
from kernel.choose.question import Question
from kernel.choose.rule import RuleName
from kernel.choose.verdict import judged
from kernel.memory.listed import cells_of
from kernel.memory.passes import Work


def choose_many(chooser: Chooser, questions: Sequence[Question]) -> list[Decision]:
    """Choose for each question; the answers are those of `Chooser.choose`, in the order of the questions.

    Greedy, searched and watched questions are decided one after the other. The cost of passes that several questions
    share is told by the first of them.

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
    """Return the places of the questions that share passes; a question that cannot share stands alone."""
    groups: list[list[int]] = []
    open_groups: dict[tuple[int, bytes], list[int]] = {}
    for number, question in enumerate(questions):
        key, shares = (id(question.opcodes), question.legal.key), _shares(chooser, question)
        group = open_groups.get(key) if shares else None
        if group is None or not _fits(chooser, [questions[n] for n in group], question):
            group = []
            groups.append(group)
        group.append(number)
        if shares:
            open_groups[key] = group
    return groups


def _fits(chooser: Chooser, group: Sequence[Question], question: Question) -> bool:
    """Return whether a question certainly fits beside those of a group; alone it may fit all the same."""
    tree = chooser.scorer.tree(question.opcodes, question.legal)
    assert tree is not None, "only questions that are scored whole share"
    longest = max(cells_of(each) for each in (*question.orders, *question.nulls))
    cells = cells_of(group[0].prompt.main) + longest + tree.longest
    return cells <= chooser.memory.room.n_ctx and sum(len(q.orders) for q in group) < chooser.nulls.at_once


def _shares(chooser: Chooser, question: Question) -> bool:
    """Return whether a question is scored whole and asks for nothing that belongs to it alone."""
    if question.watch is not None or question.beyond or question.by.name is RuleName.GREEDY:
        return False
    return len(question.legal) > 1 and chooser.scorer.tree(question.opcodes, question.legal) is not None


def _together(chooser: Chooser, questions: Sequence[Question]) -> list[Decision]:
    """Score questions of one legal set in the same passes."""
    before, tree = chooser.memory.cost, chooser.scorer.tree(questions[0].opcodes, questions[0].legal)
    assert tree is not None, "only questions that are scored whole share"
    orders = [order for question in questions for order in question.orders]
    nulls = [chooser.nulls.of(question, tree, None) for question in questions]
    missing = list(dict.fromkeys(null for each in nulls for part in each.parts() for null in part))
    for at in range(0, max(1, len(missing)), chooser.nulls.at_once):
        part = missing[at : at + chooser.nulls.at_once]
        scores = chooser.scorer.score(Work((*orders, *part), tree))
        for each in nulls:
            each.take(part, scores)
    decisions, first = [], 0
    for question, each in zip(questions, nulls, strict=True):
        rows = slice(first, first + len(question.orders))
        mass = float(np.exp(scores.values[first][tree.reads[0].point]).sum())
        comparison = chooser.compare(question, replace(scores, mass=mass), rows, each.mean())
        cost, before = chooser.memory.cost - before, chooser.memory.cost
        decisions.append(judged(question, decided(question, comparison, cost), None))
        first = rows.stop
    return decisions
