"""The bench in a tab: what the model writes alone, and what it chooses among the texts that were packed.

A tab compiles nothing: it has the tries of the presets whose texts can be listed, options and small schemas. Their
prompts may be edited; other options and schemas are refused with a sentence.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from dispatch.inspector.decision import body, piece, step_told
from dispatch.inspector.jsonable import Json, clip, number, plain
from dispatch.tab.bridge import Bridge, TabVocabulary, ledger_step, real
from dispatch.tab.errors import FieldError
from kernel.canon import canonical
from kernel.choose.kinds import RuleName

MODES = ("raw", "exact")
MOST_TOKENS = 2048
STOPPED = "stopped"
WHOLE = "the texts that are legal here are compared whole; serve writes any schema token by token"


class Side:
    """One side of a run: its tokens so far, and the lines that tell them.

    Attributes:
        mode: raw or exact.
    """

    def __init__(self, mode: str, texts: Sequence[str], vocabulary: TabVocabulary) -> None:
        self.mode = mode
        self.ids: list[int] = []
        self.forced = 0
        self.left = False
        self._texts = frozenset(texts)
        self._vocabulary = vocabulary
        self._begun = time.perf_counter()

    @property
    def text(self) -> str:
        """What was written so far."""
        return b"".join(self._vocabulary.pieces[token] for token in self.ids).decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        """Whether one of the texts is written, and none goes on."""
        return self.text in self._texts and not any(
            text != self.text and text.startswith(self.text) for text in self._texts
        )

    def token(self, token: int, step: Mapping[str, Any] | None) -> Json:
        """Take a token, and return the line that tells it."""
        at = len(self.ids)
        told: Json | None = None
        if step is not None:
            told = step_told(ledger_step(step, self._vocabulary), token, at - self.forced, at + 1)
        logprob = None if told is None else next((row["logprob"] for row in told["rows"] if row["id"] == token), None)
        self.ids.append(token)
        self.forced += step is None
        known = {"id": token, **piece(token, self._vocabulary), "forced": step is None}  # type: ignore[arg-type]
        return {
            "event": "token", "mode": self.mode, "at": at, "token": {**known, "step": None, "logprob": logprob},
            "step": told,
        }  # fmt: skip

    def done(self, judged: tuple[Any, str | None], *, closed: bool = False, options: list[Json] | None = None) -> Json:
        """Return the last line."""
        value, fault = judged
        return {
            "event": "done",
            "mode": self.mode,
            "text": clip(self.text),
            "valid": fault is None,
            "fault": None if fault is None else clip(fault),
            "value": plain(value),
            "tokens": len(self.ids),
            "chosen": len(self.ids) - self.forced,
            "forced": self.forced,
            "closed": int(closed),
            "stopped": fault == STOPPED,
            "ms": round(1000 * (time.perf_counter() - self._begun), 3),
            "options": options,
        }


class TabBench:
    """The runs of a tab, one at a time.

    Args:
        presets: those that were packed, as docs/inspector.md has them.
    """

    def __init__(self, bridge: Bridge, vocabulary: TabVocabulary, presets: Sequence[Json]) -> None:
        self.presets = list(presets)
        self._bridge = bridge
        self._vocabulary = vocabulary
        self._numbers = itertools.count(1)
        self._run: str | None = None

    def stop(self, run: str | None) -> bool:
        """End a run, or whichever there is; return whether there was one."""
        known = self._run is not None and run in (None, self._run)
        if known:
            self._run = None
            self._bridge.stop()
        return known

    async def run(self, asked: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        """Run both sides and tell their lines; raises FieldError, before any line, for what was not packed."""
        preset = self._packed(asked)
        name, texts = f"bench:{preset['id']}", json.loads(self._bridge.texts(f"bench:{preset['id']}"))
        parts = [{"text": str(asked["prompt"]), "trusted": True}]
        nulls = [[{"text": str(asked["null"]), "trusted": True}]] if asked.get("null") else []
        prompt = {"parts": parts, "nulls": nulls, "rotations": []}
        ids = json.loads(await self._bridge.ids(json.dumps(prompt)))["main"]
        rule = asked.get("rule") or (RuleName.CALIBRATED if nulls else RuleName.EXACT)
        most = min(int(asked.get("max_tokens") or 120), MOST_TOKENS)
        question = {"cartridge": name, "prompt": prompt, "legal": None, "rule": str(rule)}
        self._run = run = str(next(self._numbers))
        modes = [mode for mode in MODES if mode in (asked.get("modes") or MODES)]
        first = {"event": "start", "run": run, "modes": modes, "prompt_tokens": len(ids)}
        tell(json.dumps({**first, "notes": [WHOLE] if preset["schema"] else []}))
        pause = 1 / float(asked["rate"]) if asked.get("rate") else 0.0
        for mode in modes:
            side = Side(mode, texts, self._vocabulary)
            judge = _judge(preset, texts)
            lines = (
                self._raw(side, judge, {"cartridge": name, "prompt": ids, "max_tokens": most})
                if mode == "raw"
                else (self._exact(side, judge, question, texts))
            )
            async for line in lines:
                tell(json.dumps(line))
                await asyncio.sleep(pause if line["event"] == "token" else 0)
        self._run = None
        tell(json.dumps({"event": "end"}))

    async def _raw(self, side: Side, judge: Any, wanted: Json) -> AsyncIterator[Json]:
        """Yield what the model writes alone."""
        run, steps = self._run, asyncio.Queue[Json | None]()
        writing = asyncio.ensure_future(
            self._bridge.write(json.dumps(wanted), lambda text: steps.put_nowait(json.loads(text)))
        )
        writing.add_done_callback(lambda _: steps.put_nowait(None))
        while (step := await steps.get()) is not None and self._run == run and not side.whole:
            yield (line := side.token(step["id"], step["step"]))
            if step["left"] and not side.left:
                side.left = True
                yield {"event": "left", "mode": side.mode, "at": line["at"], "token": line["token"]}
            if side.whole:
                self._bridge.stop()
        stopped = self._run != run
        if not writing.done():
            self._bridge.stop()
        try:
            closed = json.loads(await writing)["closed"]
        except Exception:
            if not (stopped or side.whole):  # it was not ended from here
                raise
            closed = False
        yield side.done((None, STOPPED) if stopped else judge(side.text), closed=closed)

    async def _exact(self, side: Side, judge: Any, question: Json, texts: Sequence[str]) -> AsyncIterator[Json]:
        """Yield what is chosen among the texts."""
        run = self._run
        if run is None:
            yield side.done((None, STOPPED))
            return
        try:
            answer = json.loads(await self._bridge.decide(json.dumps(question)))
        except Exception:
            if self._run == run:
                raise
            yield side.done((None, STOPPED))
            return
        steps = {step["at"]: step for step in answer["ledger"]}
        for at, token in enumerate(answer["ids"]):
            yield side.token(token, steps.get(at))
        yield side.done(judge(side.text), options=_options(answer, texts))

    def _packed(self, asked: Mapping[str, Any]) -> Json:
        """Return the preset whose texts are asked for."""
        field = "schema" if asked.get("schema") is not None else "options"
        for preset in self.presets:
            if preset[field] is not None and _same(field, preset[field], asked.get(field)):
                return preset
        there = ", ".join(f"{preset['title']!r}" for preset in self.presets if preset[field] is not None) or "none"
        raise FieldError(
            f"a tab has the {field} that were packed, and no others: {there}. Their prompts may be edited; "
            "python -m kernel serve runs any",
            field,
        )


def _same(field: str, packed: Any, asked: Any) -> bool:
    if field == "options":
        return bool(packed == asked)
    try:
        return bool(json.loads(packed) == json.loads(asked))
    except ValueError as error:
        raise FieldError(f"the schema is no JSON: {error}", field) from error


def _judge(preset: Json, texts: Sequence[str]) -> Callable[[str], tuple[Any, str | None]]:
    """Return what says which value a text is, and what is wrong with it."""
    bodies = {body(text): body(text) for text in texts}

    def option(text: str) -> tuple[Any, str | None]:
        known = bodies.get(text.strip())
        return known, None if known is not None else "none of the options"

    def value(text: str) -> tuple[Any, str | None]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            return None, f"no JSON: {error}"
        return found, None if canonical(found) in bodies else "JSON, but no value of the schema"

    return option if preset["options"] is not None else value


def _options(answer: Mapping[str, Any], texts: Sequence[str]) -> list[Json]:
    """Return what was thought of each text, as of a logged decision."""
    nulls = answer["null"] or [None] * len(answer["leaves"])
    columns = zip(answer["leaves"], answer["raw"], nulls, answer["scores"], answer["shares"], strict=True)
    return [
        {
            "text": clip(texts[leaf]),
            "body": clip(body(texts[leaf])),
            "raw": number(real(raw)),
            "null": None if null is None else number(real(null)),
            "score": number(real(score)),
            "learned": None,
            "probability": number(real(share)),
            "chosen": leaf == answer["index"],
        }
        for leaf, raw, null, score, share in columns
    ]
