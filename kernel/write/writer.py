"""Writes one opcode with open arguments: the model takes id by id among those that the matcher allows.

A rule that compares whole opcodes has nothing to compare before the text is there, so the choice is the most probable
legal id each time, or a sample of the legal ids. When the budget of ids runs out, the shortest ending is put behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kernel.errors import ContextError, LogitsError
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import MAIN, Cost
from kernel.memory.rows import RowReader, Watch
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages

BRANCH = 1
"""The sequence that carries what is written, so that the prompt's own stays clean."""
TOKENS = 256
"""Ids of one opcode where nobody says otherwise."""


@dataclass(frozen=True)
class Written:
    """One opcode as the model wrote it.

    Attributes:
        text: the bytes of `ids` as UTF-8; for free writing without the end-of-generation id.
        ids: all ids behind the prompt, in order: those that were chosen, forced, and put at the end.
        chosen: how many ids were a choice between at least two.
        forced: how many ids had no alternative and cost no choice.
        closed: how many ids were put at the end because the budget ran out; 0 means that the model ended the opcode.
        cost: the passes and tokens of the whole opcode, the prompt's included.
        margin: the smallest lead of a chosen id over the second: in logits, or in what a temperature made of them;
            infinite when nothing was chosen.
    """

    text: str
    ids: tuple[int, ...]
    chosen: int
    forced: int
    closed: int
    cost: Cost
    margin: float = math.inf


class _Sampler:
    """Picks one id after the other behind a prompt; it frees its sequence when the `with` block ends.

    The first pass holds the prompt and the ids that were forced from the start; what comes later stands on the sequence
    BRANCH. `watch`, where one is set, sees the row of each choice before it is taken.
    """

    def __init__(self, memory: Memory, prompt: Sequence[int], temperature: float, seed: int | Sequence[int]) -> None:
        self.memory = memory
        self.prompt = prompt
        self.temperature = temperature
        self.rng = np.random.default_rng(seed)
        self.watch: Watch | None = None
        self._reader = RowReader(len(memory.backend.vocabulary))
        self._held = 0
        self._source: int | None = None

    def __enter__(self) -> Self:
        self.memory.lock.acquire()  # from the first pass to the last: another thread's decision would move the branch
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._source == BRANCH:
                self.memory.drop(BRANCH)
        finally:
            self.memory.lock.release()

    def next(self, ids: Sequence[int], legal: NDArray[np.int32]) -> tuple[int, float]:
        """Return which of the legal ids comes behind the prompt and `ids`, and its lead over the second.

        `ids` go on where those of the last call ended.
        """
        picked: list[tuple[int, float]] = []
        rows: list[NDArray[np.float32]] = []

        def read(_: int, __: int, row: NDArray[np.float32]) -> None:
            picked.append(_pick(row, legal, self.temperature, self.rng))
            rows.append(row)

        if self._source is None:
            self.memory.open([*self.prompt, *ids], read)
            self._source = MAIN
        else:
            new = tuple(ids[self._held :])
            growth = Growth(self._source, len(self.prompt) + self._held, BRANCH, new, len(new) - 1)
            self.memory.expand([growth], read)
            self._source = BRANCH
        self._held = len(ids)
        if self.watch is not None:
            self.watch(tuple(ids), legal, rows[0], self._reader.normaliser(rows[0]))
        return picked[0]


def write(
    memory: Memory,
    stages: Stages,
    prompt: Sequence[int],
    *,
    max_tokens: int = TOKENS,
    temperature: float = 0.0,
    seed: int | Sequence[int] = 0,
    watch: Watch | None = None,
) -> Written:
    """Write one opcode behind a prompt.

    Args:
        max_tokens: budget of ids; less where n_ctx leaves less.
        temperature: 0 takes the most probable legal id, ties the lowest; above, the legal ids are sampled.
        watch: sees each choice as it is made; what it raises ends the writing.
    Raises:
        ContextError: before anything is evaluated, when the shortest opcode does not fit.
        LogitsError: no legal id has a finite logit.
    """
    room = memory.backend.n_ctx - len(prompt)
    if not prompt or room < 1:
        raise ContextError(f"a prompt of {len(prompt)} ids leaves no room in n_ctx={memory.backend.n_ctx}")
    matcher = Matcher(stages, min(max_tokens, room))
    chosen = closed = 0
    margin = math.inf
    forced = _force(matcher)
    with _Sampler(memory, prompt, temperature, seed) as sampler:
        sampler.watch = watch
        before = memory.cost
        memory.give_way(2, len(prompt) + min(max_tokens, room))
        while not matcher.ended:
            token, lead = sampler.next(matcher.ids, matcher.legal())
            margin = min(margin, lead)
            ending = matcher.ending_instead(token)
            if ending is not None:
                for token in ending:
                    matcher.consume(token)
                closed = len(ending)
                break
            matcher.consume(token)
            chosen += 1
            forced += _force(matcher)
    return Written(matcher.text.decode(), tuple(matcher.ids), chosen, forced, closed, memory.cost - before, margin)


def _force(matcher: Matcher) -> int:
    """Take what follows without a choice, as far as the budget allows it; return how many ids that were."""
    taken = 0
    for token in matcher.forced():
        if matcher.ending_instead(token) is not None:
            break
        matcher.consume(token)
        taken += 1
    return taken


def _pick(
    row: NDArray[np.float32], legal: NDArray[np.int32], temperature: float, rng: np.random.Generator
) -> tuple[int, float]:
    """Return the id that is taken, and its lead over the second."""
    values = row[legal].astype(np.float64)
    values[~np.isfinite(values)] = -np.inf
    top = values.max(initial=-np.inf)
    if top == -np.inf:
        raise LogitsError(f"none of {len(legal)} legal ids has a finite logit")
    if temperature > 0:
        values = (values - top) / temperature + rng.gumbel(size=len(values))
    best = int(values.argmax())
    top, values[best] = values[best], -np.inf
    return int(legal[best]), float(top - values.max())


def write_freely(
    memory: Memory,
    prompt: Sequence[int],
    *,
    max_tokens: int = TOKENS,
    temperature: float = 0.0,
    seed: int = 0,
    watch: Watch | None = None,
) -> Written:
    """Write behind a prompt with nothing held, to show what a model does alone; an end-of-generation id ends it.

    Bytes that are not UTF-8 become U+FFFD in the text. `watch` as of `write`.
    """
    backend = memory.backend
    everything = np.arange(len(backend.vocabulary), dtype=np.int32)
    ids: list[int] = []
    memory.check([tuple(prompt)], max_tokens)
    with _Sampler(memory, prompt, temperature, seed) as sampler:
        sampler.watch = watch
        before = memory.cost
        while not ids or (ids[-1] not in backend.vocabulary.eog and len(ids) < max_tokens):
            ids.append(sampler.next(ids, everything)[0])
    shown = [i for i in ids if i not in backend.vocabulary.eog]
    text = backend.vocabulary.join(shown).decode(errors="replace")
    return Written(text, tuple(ids), len(ids), 0, 0, memory.cost - before)
