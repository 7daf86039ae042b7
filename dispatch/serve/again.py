"""The route that makes one logged decision again: another rule, another model, an edited prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dispatch.inspector.again import Asked, By, again
from dispatch.inspector.boards import Engines
from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import OpenedLog
from dispatch.serve.errors import RequestError
from dispatch.serve.inspector import Inspector
from dispatch.serve.live import told_of
from dispatch.serve.patience import within
from dispatch.serve.reading import Form, read
from dispatch.session.rules import make_rule
from kernel.api import Kernel
from kernel.errors import UsageError, did_you_mean, short
from kernel.recent import keep, recall

MOST_KERNELS = 1
"""Models beside the one that is served that stay loaded."""


class AgainForm(Form):
    """What is to be different; everything may be left out."""

    model: str | None = None
    rule: str | None = None
    prompt: Annotated[str | None, Field(max_length=500_000)] = None
    control: bool = False


class Others:
    """Models beside the one that is served, loaded when they are asked for. All of it happens on the queue's thread."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._kernels: OrderedDict[str, Kernel] = OrderedDict()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Forget them in the end; the process frees what a pass still holds."""
        try:
            yield
        finally:
            self._kernels.clear()

    def by(self, served: Kernel, name: str) -> By:
        """Return a model by its name."""
        services = self._inspector.services
        if name == services.model:
            return By(served, name)
        known = recall(self._kernels, name)
        if known is None:
            while len(self._kernels) >= MOST_KERNELS:
                self._kernels.popitem(last=False)[1].close()
            known = services.load(name)
            keep(self._kernels, name, known, MOST_KERNELS)
        return By(known, name)


def routes(inspector: Inspector, others: Others) -> list[BaseRoute]:
    """Return the route."""

    async def decide(request: Request) -> Response:
        form = await read(request, AgainForm)
        name, n = request.path_params["name"], request.path_params["n"]
        opened = await run_in_threadpool(inspector.sessions.open, name)
        before = await run_in_threadpool(_engines, opened, n)
        model = _model(inspector, form, opened)
        rule = None
        if form.rule is not None:
            with told_of("rule"):
                rule = make_rule(form.rule, where="rule")
        asked = Asked(rule, form.prompt, form.control)
        index = opened.kept.index
        vocabulary = await run_in_threadpool(inspector.vocabularies.of, index.header)

        def work(kernel: Kernel) -> Json:
            return again(index, n, before, others.by(kernel, model), asked, vocabulary=vocabulary)

        async with within(inspector.services.limits.answer_seconds):
            try:
                found = await inspector.services.run(work)
            except UsageError as error:
                raise RequestError(str(error), status=422, param="rule", code="UsageError") from error
        return Response(dump(found), media_type="application/json")

    return [Route("/api/s/{name}/d/{n:int}/again", decide, methods=["POST"])]


def _model(inspector: Inspector, form: AgainForm, opened: OpenedLog) -> str:
    """Return the name of the model that decides: the one asked for, else the log's if it is here, else the served."""
    models: list[str] = inspector.models()
    if form.model is not None:
        if form.model not in models:
            raise RequestError(
                f"there is no model {short(form.model)} here{did_you_mean(form.model, models)}",
                status=404,
                param="model",
                code="model_not_found",
            )
        return form.model
    logged = opened.kept.index.header.model
    return logged.name if logged is not None and logged.name in models else inspector.services.model


def _engines(opened: OpenedLog, n: int) -> Engines:
    """Return the engines in the state in which a decision was made; raises RequestError 409 where there are none."""
    why, found = opened.before(n)
    if found is None:
        raise RequestError(f"decision {n} cannot be made again: {why}", status=409, code="conflict")
    return found
