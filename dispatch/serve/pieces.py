"""Follows what is written, on the kernel's thread: the text piece by piece, and the log-probability of each token.

A log-probability is that of a token among those that were legal, so those of one step add up to 1; a token without
alternative has 0. What the model itself would have said, the rest of the vocabulary included, is in the ledger of a
session.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernel.text.vocabulary import Vocabulary

NEVER = -9999.0
"""Stands for the logarithm of nothing, which JSON cannot hold, as in OpenAI's API."""


@dataclass(frozen=True)
class Token:
    """A token of an answer: its bytes, its log-probability, and the most probable legal tokens with theirs."""

    data: bytes
    logprob: float = 0.0
    top: tuple[tuple[bytes, float], ...] = ()

    def document(self) -> dict[str, object]:
        """Return it as OpenAI's API writes it."""
        entries = [_entry(data, value) for data, value in (self.top or ((self.data, self.logprob),))]
        return {**_entry(self.data, self.logprob), "top_logprobs": entries if self.top else []}


class Pieces:
    """Sees each choice (it is a `Watch`), and tells the tokens that are settled by then."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        tell: Callable[[Sequence[Token]], None],
        check: Callable[[], None],
        top: int | None,
    ) -> None:
        """Take what is told the tokens, what raises when nobody waits, and how many alternatives are told."""
        self._vocabulary = vocabulary
        self._tell = tell
        self._check = check
        self._top = top
        self._told = 0
        self._step: tuple[int, NDArray[np.int32], NDArray[np.float64]] | None = None

    def __call__(
        self, ids: tuple[int, ...], legal: NDArray[np.int32], row: NDArray[np.float32], normaliser: float
    ) -> None:
        """Take the ids before a choice, and the row that it is made from."""
        self._check()
        self._settle(ids)
        if self._top is not None:
            values = row[legal].astype(np.float64)
            values[~np.isfinite(values)] = -np.inf
            with np.errstate(divide="ignore"):
                self._step = len(ids), legal.copy(), values - np.logaddexp.reduce(values)

    def finish(self, ids: Sequence[int]) -> None:
        """Tell the tokens that are left."""
        self._settle(ids)

    def _settle(self, ids: Sequence[int]) -> None:
        tokens = []
        for place in range(self._told, len(ids)):
            data = self._vocabulary.join([ids[place]])
            if self._step is not None and self._step[0] == place:
                tokens.append(self._chosen(ids[place], data))
            else:
                tokens.append(Token(data))
        self._told = len(ids)
        if tokens:
            self._tell(tokens)

    def _chosen(self, token: int, data: bytes) -> Token:
        assert self._step is not None
        _, legal, values = self._step
        own = values[np.flatnonzero(legal == token)]
        best = np.argsort(-values, kind="stable")[: self._top]
        top = tuple((self._vocabulary.join([int(legal[i])]), float(values[i])) for i in best.tolist())
        return Token(data, float(own[0]) if len(own) else 0.0, top)


def _entry(data: bytes, logprob: float) -> dict[str, object]:
    value = logprob if math.isfinite(logprob) else NEVER
    return {"token": data.decode("utf-8", "replace"), "logprob": value, "bytes": list(data)}


class Cut(Protocol):
    """What takes from the text that is written what a client is to see."""

    def take(self, text: str) -> str:
        """Return what of the next piece of text is shown."""


class Line:
    """Leaves out the end of line that ends a value; inside a value there is none."""

    def take(self, text: str) -> str:
        """See Cut."""
        return text.replace("\n", "")


class Argument:
    """Cuts the arguments of a call out of the text of the whole call, as it comes.

    >>> cut = Argument("<|call|>home.say ")
    >>> cut.take("<|call|>home.say {"), cut.take('"text":"}"'), cut.take("}<|/call|>")
    ('{', '"text":"}"', '}')
    """

    def __init__(self, head: str) -> None:
        self._skip = len(head)
        self._depth = 0
        self._quoted = self._escaped = self.ended = False

    def take(self, text: str) -> str:
        """See Cut."""
        begin = min(self._skip, len(text))
        self._skip -= begin
        for place in range(begin, len(text)):
            if self.ended:
                return text[begin:place]
            self._see(text[place])
        return text[begin:]

    def _see(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._quoted:
            self._escaped, self._quoted = char == "\\", char != '"'
        elif char == '"':
            self._quoted = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            self.ended = self._depth == 0
