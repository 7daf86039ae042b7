"""Writes one opcode with open arguments: the model chooses id by id among those that the matcher allows.

Knows no cartridge and no wire form. Whole-opcode scores exist for finite opcodes only; here the choice is greedy, or a
sample of the legal ids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.errors import ContextError, LogitsError
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import MAIN, Cost
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
        chosen, forced: how many of `ids` were a choice, and how many had no alternative.
        closed: how many ids were put at the end because the budget was used up; 0 is an opcode of the model's own.
        cost: passes and tokens.
        margin: smallest lead of an id that was chosen over the second, in what was compared.
    """

    text: str
    ids: tuple[int, ...]
    chosen: int
    forced: int
    closed: int
    cost: Cost
    margin: float = math.inf


def write(
    memory: Memory,
    stages: Stages,
    prompt: Sequence[int],
    *,
    max_tokens: int = TOKENS,
    temperature: float = 0.0,
    seed: int | Sequence[int] = 0,
) -> Written:
    """Write one opcode behind a prompt.

    Args:
        max_tokens: budget of ids; less where n_ctx leaves less.
        temperature: 0 takes the most probable legal id, ties the lowest; above, the legal ids are sampled.
    Raises:
        ContextError: before anything is evaluated, when the shortest opcode does not fit.
        LogitsError: no legal id has a finite logit.
    """
    room = memory.backend.n_ctx - len(prompt)
    if not prompt or room < 1:
        raise ContextError(f"a prompt of {len(prompt)} ids leaves no room in n_ctx={memory.backend.n_ctx}")
    before = memory.cost
    matcher = Matcher(stages, min(max_tokens, room))
    rng = np.random.default_rng(seed)
    picked: list[int] = []
    chosen = closed = done = 0
    margin = math.inf
    source = MAIN

    def read(_: int, __: int, row: NDArray[np.float32]) -> None:
        nonlocal margin
        token, lead = _pick(row, matcher.legal(), temperature, rng)
        picked.append(token)
        margin = min(margin, lead)

    forced = _force(matcher)
    try:
        while not matcher.ended:
            if not chosen:
                memory.open([*prompt, *matcher.ids], read)
            else:
                new = tuple(matcher.ids[done:])
                memory.expand([Growth(source, len(prompt) + done, BRANCH, new, len(new) - 1)], read)
                source = BRANCH
            done = len(matcher.ids)
            token = picked.pop()
            closing = matcher.ending_instead(token)
            if closing is not None:
                for token in closing:
                    matcher.consume(token)
                closed = len(closing)
                break
            matcher.consume(token)
            chosen += 1
            forced += _force(matcher)
    finally:
        if source == BRANCH:
            memory.drop(BRANCH)
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
    memory: Memory, prompt: Sequence[int], *, max_tokens: int = TOKENS, temperature: float = 0.0, seed: int = 0
) -> Written:
    """Write behind a prompt with nothing held, to show what a model does alone; an end-of-generation id ends it.

    Bytes that are not UTF-8 become U+FFFD in the text.
    """
    backend = memory.backend
    before = memory.cost
    everything = np.arange(len(backend.vocabulary), dtype=np.int32)
    rng = np.random.default_rng(seed)
    ids: list[int] = []
    source = MAIN

    def read(_: int, __: int, row: NDArray[np.float32]) -> None:
        ids.append(_pick(row, everything, temperature, rng)[0])

    memory.check([prompt], max_tokens)
    memory.open(prompt, read)
    try:
        while ids[-1] not in backend.vocabulary.eog and len(ids) < max_tokens:
            memory.expand([Growth(source, len(prompt) + len(ids) - 1, BRANCH, (ids[-1],))], read)
            source = BRANCH
    finally:
        if source == BRANCH:
            memory.drop(BRANCH)
    shown = [i for i in ids if i not in backend.vocabulary.eog]
    text = backend.vocabulary.join(shown).decode(errors="replace")
    return Written(text, tuple(ids), len(ids), 0, 0, memory.cost - before)
