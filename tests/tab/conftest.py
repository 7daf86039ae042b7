"""A stand-in for the JavaScript beside the Python of a tab: it answers in the form of the tab's kernel."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cartridges.tetris import make
from dispatch.session.model_player import leaves
from dispatch.tab.choosing import WIRE
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire


class ScriptedBridge:
    """A kernel whose tokens are bytes, and which likes the first legal opcode best.

    The k-th legal opcode, from 0, has a log-probability of -1 - k; a null prompt takes the same from all.
    """

    def __init__(self) -> None:
        cartridge = make()
        wire = Wire([cartridge], FORMS[WIRE])
        self.all = [literal.text for literal in leaves(cartridge, wire).values()]
        self.questions: list[dict[str, Any]] = []
        self.kept: list[tuple[str, str]] = []
        self.fails: Exception | None = None
        self.options = [" shut", " opener"]
        self.writes = b" so"
        self.stopped = False

    def about(self) -> str:
        """See Bridge."""
        return json.dumps({"model": "scripted", "fingerprint": "b2:00", "tokens": 256})

    def texts(self, cartridge: str) -> str:
        """See Bridge."""
        return json.dumps(self.all if cartridge == "tetris" else self.options)

    async def ids(self, prompt: str) -> str:
        """See Bridge."""
        return json.dumps(ids_of(json.loads(prompt)))

    async def write(self, wanted: str, told: Callable[[str], None]) -> str:
        """See Bridge. The model writes ` op`, which leaves the options at its third byte, until it is stopped."""
        for at, token in enumerate(self.writes):
            await asyncio.sleep(0)
            if self.stopped:
                raise RuntimeError("stopped")
            rows = [{"id": token, "logprob": -0.1, "legal": at < 2, "rank": 1}]
            step = {"at": at, "legal": 1 if at < 2 else 0, "mass": 0.9 if at < 2 else 0.0, "rows": rows}
            told(json.dumps({"at": at, "id": token, "left": at >= 2, "step": step}))
        return json.dumps({"ids": list(self.writes), "closed": True})

    def stop(self) -> None:
        """See Bridge."""
        self.stopped = True

    def piece(self, token: int) -> str:
        """See Bridge."""
        return f"{token:02x}"

    def control(self, token: int) -> bool:
        """See Bridge."""
        return token == 0

    def keep(self, session: str, lines: str) -> None:
        """See Bridge."""
        self.kept.append((session, lines))

    async def decide(self, question: str) -> str:
        """See Bridge."""
        if self.fails is not None:
            raise self.fails
        asked = json.loads(question)
        self.questions.append(asked)
        texts = self.all if asked["cartridge"] == "tetris" else self.options
        legal = list(range(len(texts))) if asked["legal"] is None else asked["legal"]
        return json.dumps(decision(legal, texts, asked["rule"], ids_of(asked["prompt"])))


def ids_of(prompt: dict[str, Any]) -> dict[str, Any]:
    """Return a prompt as bytes, a set as a list."""

    def read(pieces: Sequence[dict[str, Any]]) -> list[int]:
        return list("".join(each.get("text") or "".join(each["texts"]) for each in pieces).encode())

    return {
        "main": read(prompt["parts"]),
        "nulls": [read(each) for each in prompt["nulls"]],
        "rotations": [read(each) for each in prompt["rotations"]],
    }


def decision(legal: Sequence[int], texts: Sequence[str], rule: str, prompt: dict[str, Any]) -> dict[str, Any]:
    """Return what a kernel answers that likes the first best."""
    raw = [-1.0 - place for place in range(len(legal))]
    null = [-2.0] * len(legal) if rule == "calibrated" else None
    scores = [value - (0.0 if null is None else -2.0) for value in raw]
    total = sum(math.exp(value) for value in scores)
    ids = list(texts[legal[0]].encode())
    rivals = [
        {"id": ids[0], "logprob": -0.5, "legal": True, "rank": 1},
        {"id": 9, "logprob": -1.5, "legal": False, "rank": 2},
    ]
    step = {"at": 0, "legal": 2, "mass": 0.75, "rows": rivals}
    alone = len(legal) == 1
    return {
        "index": legal[0], "ids": ids, "rule": rule, "leaves": list(legal), "scores": scores, "raw": raw, "null": null,
        "shares": [math.exp(value) / total for value in scores], "margin": "inf" if alone else scores[0] - scores[1],
        "mass": 0.75, "chosen": 0 if alone else 1, "forced": len(ids) - (0 if alone else 1),
        "stop": "forced" if alone else "complete", "decodes": 3, "tokens": 40, "prompt": prompt,
        "ledger": [] if alone else [step],
    }  # fmt: skip


@pytest.fixture
def bridge() -> ScriptedBridge:
    return ScriptedBridge()
