"""What the model says of labelled requests: the numbers that learning starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.api import Kernel
from kernel.choose.learned import Keys
from kernel.choose.rule import Floats
from kernel.choose.score import Scorer
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.memory.passes import Ids, Work
from kernel.prompt import Part, Piece, Prompt
from kernel.trie.opcodes import Literal, OpcodeSet

STATE_IDS = 1024
"""So many logits are the state: more than small models' states have dimensions, so none of it is lost."""

CLOSER = "\n"

EXAMPLES = "Request:"
"""A head of worked examples begins so; of several heads of a prompt this one is learned behind."""


@dataclass(frozen=True)
class Features:
    """What the model says of requests, a row each; columns are opcodes by their bodies in sorted order.

    Attributes:
        keys: of the model, its tokenizer and the opcodes.
        bodies: of the opcodes.
        head, tail: ids before and behind each request.
        requests: their ids.
        raw: float64, shape (rows, n): log-probability of each opcode behind the request.
        states: float32, shape (rows, k): the logits at the ids `seen`.
        null: float64, shape (n,): mean of the log-probabilities behind the null prompts.
        nulls: float64, shape (null prompts, n).
    """

    keys: Keys
    bodies: tuple[str, ...]
    head: Ids
    tail: Ids
    seen: NDArray[np.int32]
    requests: tuple[Ids, ...]
    raw: Floats
    states: NDArray[np.float32]
    nulls: Floats

    @property
    def null(self) -> Floats:
        """The mean over the null prompts."""
        mean: Floats = self.nulls.mean(axis=0)
        return mean

    def labels(self, answers: Sequence[str]) -> NDArray[np.intp]:
        """Return the column of each answer; -1 is nothing."""
        column = {body: at for at, body in enumerate(self.bodies)}
        return np.array([column[answer] if answer else -1 for answer in answers], np.intp)


def learned_form(prompt: Prompt) -> tuple[tuple[Part, ...], tuple[tuple[Part, ...], ...]]:
    """Return the order of a prompt that is learned behind, and the null prompts of that order.

    Raises UsageError for a prompt that is no request between two pieces of template text.
    """
    orders = [_plain(parts) for parts in (prompt.parts, *prompt.rotations)]
    chosen = next((parts for parts in orders if parts[0].text.startswith(EXAMPLES)), orders[0])
    return chosen, tuple(null for null in map(_plain, prompt.nulls) if null[0] == chosen[0])


def _plain(parts: tuple[Piece, ...]) -> tuple[Part, ...]:
    found = tuple(part for part in parts if isinstance(part, Part))
    if len(found) != len(parts) or [part.trusted for part in found] != [True, False, True]:
        raise UsageError("to learn takes a prompt that is a request between two pieces of template text")
    return found


def features(
    kernel: Kernel, cases: Sequence[Case], progress: Callable[[int, int], None] = lambda done, total: None
) -> Features:
    """Read the requests of cases that have the same options.

    Raises:
        UsageError: cases without a request, with other options, or behind another head; too many options.
        ContextError, LogitsError, BackendError.
    """
    first = cases[0] if cases else None
    if first is None or any(case.options != first.options or not case.request for case in cases):
        raise UsageError("to learn takes labelled requests that are answered out of the same commands")
    form, nulls = learned_form(first.prompt)
    vocabulary = kernel.vocabulary
    opcodes = kernel.compile([Literal(option, CLOSER) for option in first.options])
    prompts = [tuple(vocabulary.prompt(learned_form(case.prompt)[0])) for case in cases]
    null_prompts = [tuple(vocabulary.prompt(null)) for null in nulls]
    head, tail = _ends([*prompts, *null_prompts])
    if not null_prompts or not head or learned_form(cases[-1].prompt)[0][0] != form[0]:
        raise UsageError("to learn takes a prompt with null prompts, the same one behind which all requests stand")
    with kernel.lock:
        reader = _Reader(kernel, opcodes)
        total = len(prompts) + len(null_prompts)
        nulled = [reader.read(ids, progress, n, total)[0] for n, ids in enumerate(null_prompts)]
        read = [reader.read(ids, progress, n, total) for n, ids in enumerate(prompts, len(null_prompts))]
    return Features(
        Keys.of(kernel.backend.fingerprint, vocabulary, opcodes),
        tuple(sorted(first.options)),
        head,
        tail,
        reader.seen,
        tuple(ids[len(head) : len(ids) - len(tail)] for ids in prompts),
        np.stack([raw for raw, _ in read]),
        np.stack([state for _, state in read]),
        np.stack(nulled),
    )


class _Reader:
    """Reads one prompt after the other."""

    def __init__(self, kernel: Kernel, opcodes: OpcodeSet) -> None:
        self.scorer = Scorer(kernel.memory)
        tree = self.scorer.tree(opcodes, opcodes.everything)
        if tree is None:
            raise UsageError(f"{len(opcodes)} commands are too many to learn")
        self.tree, self.seen = tree, state_ids(kernel)
        self._order = np.argsort(np.array([opcodes.literals[leaf].body for leaf in tree.leaves], object), kind="stable")

    def read(
        self, ids: Ids, progress: Callable[[int, int], None], number: int, total: int
    ) -> tuple[Floats, NDArray[np.float32]]:
        scores = self.scorer.score(Work((ids,), self.tree, 1, self.seen))
        progress(number + 1, total)
        assert scores.states is not None, "the work asks for them"
        return scores.log_probabilities[0][self._order], scores.states[0]


def state_ids(kernel: Kernel) -> NDArray[np.int32]:
    """Return the ids whose logits are the state: STATE_IDS of those that are text, spread over the vocabulary."""
    text = np.flatnonzero(kernel.vocabulary.is_text)
    places = np.linspace(0, len(text) - 1, min(STATE_IDS, len(text))).astype(np.intp)
    return text[places].astype(np.int32)


def _ends(prompts: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Return the ids that all prompts begin with, and those that all end with."""
    shortest = min(map(len, prompts))
    same = [len({ids[at] for ids in prompts}) == 1 for at in range(shortest)]
    head = same.index(False) if False in same else shortest
    back = [len({ids[-at - 1] for ids in prompts}) == 1 for at in range(shortest - head)]
    tail = back.index(False) if False in back else len(back)
    return prompts[0][:head], prompts[0][len(prompts[0]) - tail :]
