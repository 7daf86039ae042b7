"""What the Python in a tab asks of the kernel beside it, which is JavaScript: a decision, and the bytes of a token.

Texts go across and nothing else: JSON, in which a number that is not finite is `"inf"`, `"-inf"` or `"nan"`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from dispatch.log.objects import LedgerStep, TokenRow
from kernel.prompt import Lines, Piece, Prompt
from kernel.text.attributes import CONTROL, NORMAL

DIGITS = 6
"""Decimals of a log-probability, as everywhere in logs."""
MOST_PIECES = 1 << 14


class Bridge(Protocol):
    """The kernel of the tab, as `serve/page/tab/worker.js` gives it to Python."""

    def about(self) -> str:
        """Return JSON: `model` (its name), `fingerprint` (of its vocabulary), `tokens` (how many ids)."""

    def texts(self, cartridge: str) -> str:
        """Return JSON: the wire text of each opcode of a cartridge, in the order of their indices."""

    def piece(self, token: int) -> str:
        """Return the bytes of an id in hexadecimal."""

    def control(self, token: int) -> bool:
        """Return whether an id is a control token."""

    def keep(self, session: str, lines: str) -> None:
        """Keep lines of a log where a reload of the tab does not reach."""

    def decide(self, question: str) -> Awaitable[str]:
        """Return the decision on a question, both JSON; see `choosing.py`."""

    def ids(self, prompt: str) -> Awaitable[str]:
        """Return the ids of a prompt, both JSON."""

    def write(self, wanted: str, told: Callable[[str], None]) -> Awaitable[str]:
        """Let the model write on alone, and return how that ended, JSON; each token is told as JSON before."""

    def stop(self) -> None:
        """End what is being decided or written."""


class TabVocabulary:
    """The vocabulary of the tab's model, as far as the inspector asks: how many ids, their bytes, what is control."""

    def __init__(self, bridge: Bridge) -> None:
        about = json.loads(bridge.about())
        self.fingerprint = str(about["fingerprint"])
        self._count = int(about["tokens"])
        self.pieces = _Each(lru_cache(MOST_PIECES)(lambda token: bytes.fromhex(bridge.piece(token))))
        self.attributes = _Each(lambda token: CONTROL if bridge.control(token) else NORMAL)

    def __len__(self) -> int:
        return self._count


class _Each:
    """Something of every id, asked for when it is wanted."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getitem__(self, token: int) -> Any:
        return self._of(token)


def ledger_step(step: Mapping[str, Any], vocabulary: TabVocabulary) -> LedgerStep:
    """Return a step of the kernel's ledger as logs have it."""
    rows = [
        TokenRow.of(
            row["id"],
            vocabulary.pieces[row["id"]],
            round(real(row["logprob"]), DIGITS),
            legal=row["legal"],
            rank=row["rank"],
        )
        for row in step["rows"]
    ]
    return LedgerStep(at=step["at"], legal=step["legal"], mass=round(real(step["mass"]), DIGITS), rows=tuple(rows))


def as_json(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as the tab's kernel takes it."""
    return {
        "parts": _pieces(prompt.parts),
        "nulls": [_pieces(each) for each in prompt.nulls],
        "rotations": [_pieces(each) for each in prompt.rotations],
    }


def real(value: Any) -> float:
    """Return a number of the tab's kernel.

    >>> real(1), real("-inf")
    (1.0, -inf)
    """
    return float(value)


def _pieces(parts: Iterable[Piece]) -> list[dict[str, Any]]:
    return [
        {"texts": list(part.texts), "trusted": part.trusted}
        if isinstance(part, Lines)
        else {"text": part.text, "trusted": part.trusted}
        for part in parts
    ]
