"""The routes of the bench: presets, and runs that stream what the model writes alone and what it writes when held."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dispatch.inspector.bench import MOST_TOKENS, OptionsSide, RawSide, SchemaSide, Side, room
from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.presets import presets
from dispatch.inspector.tasks import OptionsTask, Paths, SchemaTask, schema_shape
from dispatch.serve.errors import RequestError, as_request_error, document
from dispatch.serve.live import told_of
from dispatch.serve.patience import within
from dispatch.serve.reading import Form, read
from dispatch.serve.services import Services
from dispatch.session.rules import make_rule
from kernel.api import Kernel
from kernel.choose.rule import Rule
from kernel.errors import KernelError
from kernel.memory.listed import flat_of
from kernel.prompt import Part

MOST_OPTIONS = 1000
MOST_RATE = 10_000.0
MODES = ("raw", "exact")
MOST_RUNS = 4
"""Runs at a time."""

Text = Annotated[str, Field(max_length=200_000)]


class Run(Form):
    """What is to be run."""

    prompt: Annotated[str, Field(min_length=1, max_length=200_000)]
    schema_: Annotated[str | None, Field(alias="schema", max_length=200_000)] = None
    options: Annotated[list[Text], Field(min_length=1, max_length=MOST_OPTIONS)] | None = None
    null: Text | None = None
    modes: Annotated[list[Literal["raw", "exact"]], Field(min_length=1, max_length=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = 120
    rate: Annotated[float, Field(gt=0, le=MOST_RATE)] | None = None
    rule: str | None = None


class Stop(Form):
    """Which run is to stop."""

    run: str


@dataclass
class Running:
    """A run that is being streamed."""

    id: str
    sides: list[Side]
    rate: float | None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)


class Bench:
    """The runs of a server."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.runs: dict[str, Running] = {}
        self._numbers = itertools.count(1)

    async def begin(self, form: Run) -> tuple[Running, Json]:
        """Compile what is to be run; return the run and its first line. Raises RequestError for what cannot be held."""
        if (form.schema_ is None) == (form.options is None):
            raise RequestError("give a schema, or options", status=422, param="schema", code="invalid_value")
        if len(self.runs) >= MOST_RUNS:
            raise RequestError(f"{MOST_RUNS} runs are going on; stop one", status=409, code="conflict")
        if form.schema_ is not None:
            with told_of("schema"):
                await run_in_threadpool(schema_shape, form.schema_)
        rule: Rule | None = None
        if form.rule is not None:
            with told_of("rule"):
                rule = make_rule(form.rule, where="rule")
        async with within(self.services.limits.answer_seconds):
            sides, count, notes = await self._sides(form, rule)
        run = Running(str(next(self._numbers)), sides, form.rate)
        self.runs[run.id] = run
        first = {"event": "start", "run": run.id, "modes": [side.mode for side in sides], "prompt_tokens": count}
        return run, {**first, "notes": notes}

    async def _sides(self, form: Run, rule: Rule | None) -> tuple[list[Side], int, list[str]]:
        services = self.services
        if form.options is not None:
            options = form.options
            with told_of("options"):
                return await services.run(lambda kernel: _of_options(kernel, form, options, rule))
        text = form.schema_ or ""
        vocabulary = await services.run(lambda kernel: kernel.vocabulary)
        with told_of("schema"):
            task = await run_in_threadpool(SchemaTask, text, vocabulary)
        with told_of("prompt"):
            return await services.run(lambda kernel: _of_schema(kernel, form, task))

    async def lines(self, run: Running, first: Json) -> AsyncIterator[bytes]:
        """Yield the lines of a run until it ends, is stopped, or nobody reads them."""
        ready: dict[str, deque[Json]] = {side.mode: deque() for side in run.sides}
        told = dict.fromkeys(ready, 0)
        try:
            yield _line(first)
            while any(ready.values()) or not all(side.done for side in run.sides):
                if run.stopped.is_set() or self.services.ending.is_set():
                    for side in run.sides:
                        if not side.done or ready[side.mode]:
                            yield _line(side.stop(told[side.mode]))
                    break
                for side in run.sides:
                    if not side.done and not ready[side.mode]:
                        ready[side.mode].extend(await self.services.run(side.advance))
                    for line in _due(ready[side.mode], run.rate):
                        told[side.mode] += line["event"] == "token"
                        yield _line(line)
                if run.rate is not None:
                    await self._wait(run, 1 / run.rate)
            yield _line({"event": "end"})
        except KernelError as error:
            yield _line({"event": "error", **document(as_request_error(error))})
        finally:
            self.runs.pop(run.id, None)

    async def _wait(self, run: Running, seconds: float) -> None:
        """Wait, unless it is stopped or the server ends."""
        waits = [asyncio.ensure_future(each.wait()) for each in (run.stopped, self.services.ending)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()


def routes(bench: Bench) -> list[BaseRoute]:
    """Return the routes of the bench."""

    async def offered(request: Request) -> Response:
        return _json({"presets": presets()})

    async def run(request: Request) -> Response:
        begun, first = await bench.begin(await read(request, Run))
        return StreamingResponse(bench.lines(begun, first), media_type="application/x-ndjson")

    async def stop(request: Request) -> Response:
        form = await read(request, Stop)
        known = bench.runs.get(form.run)
        if known is not None:
            known.stopped.set()
        return _json({"stopped": known is not None})

    return [
        Route("/api/bench/presets", offered),
        Route("/api/bench/run", run, methods=["POST"]),
        Route("/api/bench/stop", stop, methods=["POST"]),
    ]


def _of_options(kernel: Kernel, form: Run, options: list[str], rule: Rule | None) -> tuple[list[Side], int, list[str]]:
    task = OptionsTask(kernel, form.prompt, options, form.null, rule)
    prompt, vocabulary = flat_of(task.question.prompt.main), kernel.vocabulary
    most = room(kernel, prompt, form.max_tokens)
    sides: list[Side] = [
        RawSide(prompt, vocabulary, Paths(task.sequences), task.judge, most)
        if mode == "raw"
        else OptionsSide(vocabulary, task)
        for mode in dict.fromkeys(form.modes or MODES)
    ]
    return sides, len(prompt), []


def _of_schema(kernel: Kernel, form: Run, task: SchemaTask) -> tuple[list[Side], int, list[str]]:
    vocabulary = kernel.vocabulary
    prompt = vocabulary.prompt([Part(form.prompt, trusted=True)])
    most = room(kernel, prompt, form.max_tokens)
    sides: list[Side] = [
        RawSide(prompt, vocabulary, task.matcher(None), task.judge, most)
        if mode == "raw"
        else SchemaSide(prompt, vocabulary, task, most)
        for mode in dict.fromkeys(form.modes or MODES)
    ]
    return sides, len(prompt), [str(note) for note in task.notes]


def _due(ready: deque[Json], rate: float | None) -> list[Json]:
    """Take the lines that are told now: all, or with a rate one token and what is told with it."""
    found: list[Json] = []
    while ready:
        if rate is not None and found and ready[0]["event"] == "token":
            break
        found.append(ready.popleft())
    return found


def _line(value: Json) -> bytes:
    return dump(value) + b"\n"


def _json(value: Json) -> Response:
    return Response(dump(value), media_type="application/json")
