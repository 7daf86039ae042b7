"""What a model writes alone and what it writes when held, token by token, behind the same prompt.

A *side* makes its tokens in short bursts, so that others have their turn at the kernel in between, and tells for each
one what the model would have said and what the mask removed. The exact side of a schema writes what `write` writes;
that of options decides as `choose` does. The raw side takes the most probable token of all; the mask only looks on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dispatch.inspector.decision import body, piece, step_told
from dispatch.inspector.jsonable import Json, clip, number, plain
from dispatch.inspector.tasks import Mask, OptionsTask, SchemaTask
from dispatch.log.ledger import LedgerBuilder, ledger_step
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.errors import ContextError, NoLegalOpcodeError
from kernel.memory.listed import flat_of
from kernel.memory.rows import RowReader
from kernel.text.vocabulary import Vocabulary

BURST = 16
"""Tokens of one turn at the kernel."""
BURST_SECONDS = 0.25
MOST_TOKENS = 2048


class Side:
    """One side of the bench. `advance` is called on the kernel's thread.

    Attributes:
        mode: raw or exact.
        done: whether it has told its last line.
    """

    mode = ""

    def __init__(self, prompt: Sequence[int], vocabulary: Vocabulary) -> None:
        self.done = False
        self.ids: list[int] = []
        self.chosen = self.forced = self.closed = 0
        self._prompt = tuple(prompt)
        self._vocabulary = vocabulary
        self._rows = RowReader(len(vocabulary))
        self._seconds = 0.0
        self._was_forced: list[bool] = []

    def advance(self, kernel: Kernel) -> list[Json]:
        """Make some tokens, and return the lines that tell them."""
        started = time.perf_counter()
        found: list[Json] = []
        with kernel.lock:
            while not self.done and len(found) < BURST and time.perf_counter() - started < BURST_SECONDS:
                found += self._next(kernel)
        self._seconds += time.perf_counter() - started
        return found

    def stop(self, count: int) -> Json:
        """End it behind so many tokens: those that were told."""
        del self.ids[count:], self._was_forced[count:]
        self.forced = sum(self._was_forced)
        self.chosen = count - self.forced
        return self._ended(stopped=True)

    def _next(self, kernel: Kernel) -> list[Json]:
        raise NotImplementedError

    def _judged(self, text: str) -> tuple[Any, str | None]:
        raise NotImplementedError

    def _row(self, kernel: Kernel) -> tuple[NDArray[np.float32], float]:
        """Return the row behind the prompt and the ids so far, and its normaliser."""
        found: list[NDArray[np.float32]] = []
        kernel.memory.open([*self._prompt, *self.ids], lambda _, __, row: found.append(row.copy()))
        return found[0], self._rows.normaliser(found[0])

    def _token(self, token: int, step: Json | None) -> Json:
        told = {"id": token, **piece(token, self._vocabulary), "forced": step is None, "step": None, "logprob": None}
        if step is not None:
            told["logprob"] = next((row["logprob"] for row in step["rows"] if row["id"] == token), None)
        self.ids.append(token)
        self._was_forced.append(step is None)
        self.chosen, self.forced = self.chosen + (step is not None), self.forced + (step is None)
        return {"event": "token", "mode": self.mode, "at": len(self.ids) - 1, "token": told, "step": step}

    def _step(self, row: NDArray[np.float32], normaliser: float, legal: NDArray[np.int32], taken: int) -> Json:
        at = len(self.ids)
        made = ledger_step(at, row, normaliser, legal, taken, self._vocabulary.pieces.__getitem__)
        return step_told(made, taken, self.chosen, at + 1)

    def _ended(self, *, stopped: bool = False, **more: Any) -> Json:
        self.done = True
        written = [i for i in self.ids if i not in self._vocabulary.eog]
        text = self._vocabulary.join(written).decode("utf-8", "replace")
        value, fault = (None, "stopped") if stopped else self._judged(text)
        return {
            "event": "done",
            "mode": self.mode,
            "text": clip(text),
            "valid": fault is None,
            "fault": None if fault is None else clip(fault),
            "value": plain(value),
            "tokens": len(self.ids),
            "chosen": self.chosen,
            "forced": self.forced,
            "closed": self.closed,
            "stopped": stopped,
            "ms": round(1000 * self._seconds, 3),
            "options": None,
            **more,
        }


class RawSide(Side):
    """The model alone: the most probable token of all each time; ends with its own end, or where the text is whole."""

    mode = "raw"

    def __init__(self, prompt: Sequence[int], vocabulary: Vocabulary, mask: Mask, judge: Any, max_tokens: int) -> None:
        super().__init__(prompt, vocabulary)
        self._mask: Mask | None = mask
        self._judge = judge
        self._most = max_tokens

    def _next(self, kernel: Kernel) -> list[Json]:
        row, normaliser = self._row(kernel)
        token = int(np.argmax(np.where(np.isfinite(row), row, -np.inf)))
        legal = np.empty(0, np.int32) if self._mask is None else self._mask.legal()
        found = [self._token(token, self._step(row, normaliser, legal, token))]
        if self._mask is not None:
            try:
                self._mask.consume(token)
            except NoLegalOpcodeError:
                self._mask = None
                found.append({"event": "left", "mode": self.mode, "at": len(self.ids) - 1, "token": found[0]["token"]})
        whole = self._mask is not None and self._mask.ended
        if whole or token in self._vocabulary.eog or len(self.ids) >= self._most:
            found.append(self._ended())
        return found

    def _judged(self, text: str) -> tuple[Any, str | None]:
        found: tuple[Any, str | None] = self._judge(text)
        return found


class SchemaSide(Side):
    """A value of a schema, as `kernel.write.writer.write` writes it: the most probable legal token each time."""

    mode = "exact"

    def __init__(self, prompt: Sequence[int], vocabulary: Vocabulary, task: SchemaTask, max_tokens: int) -> None:
        super().__init__(prompt, vocabulary)
        self._task = task
        self._matcher = task.matcher(max_tokens)
        self._begun = False

    def _next(self, kernel: Kernel) -> list[Json]:
        found: list[Json] = []
        matcher = self._matcher
        if not self._begun:
            self._begun = True
            found += self._force()
        if not matcher.ended:
            row, normaliser = self._row(kernel)
            legal = matcher.legal()
            values = row[legal].astype(np.float64)
            values[~np.isfinite(values)] = -np.inf
            token = int(legal[int(values.argmax())])
            ending = matcher.ending_instead(token)
            if ending is None:
                found.append(self._token(token, self._step(row, normaliser, legal, token)))
                matcher.consume(token)
                found += self._force()
            else:
                for each in ending:
                    matcher.consume(each)
                    found.append(self._token(each, None))
                self.closed = len(ending)
        if matcher.ended:
            found.append(self._ended())
        return found

    def _force(self) -> list[Json]:
        found = []
        for token in self._matcher.forced():
            if self._matcher.ending_instead(token) is not None:
                break
            self._matcher.consume(token)
            found.append(self._token(token, None))
        return found

    def _judged(self, text: str) -> tuple[Any, str | None]:
        return self._task.judge(text)


class OptionsSide(Side):
    """The choice among options, whole options compared, as `choose` decides."""

    mode = "exact"

    def __init__(self, vocabulary: Vocabulary, task: OptionsTask) -> None:
        super().__init__(flat_of(task.question.prompt.main), vocabulary)
        self._task = task

    def _next(self, kernel: Kernel) -> list[Json]:
        builder = LedgerBuilder(self._vocabulary.pieces)
        decision = kernel.decide(replace(self._task.question, watch=builder.start()))
        steps = {step.at: step for step in builder.ledger(decision.ids)}
        found = []
        for at, token in enumerate(decision.ids):
            step = steps.get(at)
            found.append(self._token(token, None if step is None else step_told(step, token, self.chosen, at + 1)))
        return [*found, self._ended(options=options_of(decision))]

    def _judged(self, text: str) -> tuple[Any, str | None]:
        return self._task.judge(text)


def options_of(decision: Decision) -> list[Json]:
    """Return the legal opcodes of a decision with what was thought of each, as of a logged one."""
    nulls = [None] * len(decision.texts) if decision.null is None else decision.null.tolist()
    columns = zip(
        decision.texts,
        decision.raw.tolist(),
        nulls,
        decision.scores.tolist(),
        decision.shares.tolist(),
        strict=True,
    )
    return [
        {
            "text": clip(text),
            "body": clip(body(text)),
            "raw": number(raw),
            "null": number(null),
            "score": number(score),
            "learned": None,
            "probability": number(share),
            "chosen": place == decision.position,
        }
        for place, (text, raw, null, score, share) in enumerate(columns)
    ]


def room(kernel: Kernel, prompt: Sequence[int], max_tokens: int) -> int:
    """Return how many tokens may follow a prompt; raises ContextError where there is no room."""
    left = kernel.backend.n_ctx - len(prompt)
    if not prompt or left < 1:
        raise ContextError(f"a prompt of {len(prompt)} ids leaves no room in n_ctx={kernel.backend.n_ctx}")
    return min(max_tokens, left)
