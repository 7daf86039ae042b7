"""Puts the routes together behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from dispatch.serve import again, bench, inspector, live, page
from dispatch.serve.chat import chat
from dispatch.serve.choosing import choose
from dispatch.serve.errors import RequestError, answer, as_request_error
from dispatch.serve.metrics import Counting, Sample, text
from dispatch.serve.security import Guard
from dispatch.serve.services import Services
from kernel.errors import KernelError, did_you_mean, short


def make_app(services: Services) -> ASGIApp:
    """Return the application of a server."""
    looking = inspector.Inspector(services)
    player = live.Player(looking)
    others = again.Others(looking)
    routes: list[BaseRoute] = [
        Route("/healthz", _healthz),
        Route("/metrics", _metrics),
        Route("/v1/models", _models),
        Route("/v1/models/{name}", _models),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        *inspector.routes(looking),
        *live.routes(player),
        *again.routes(looking, others),
        *bench.routes(bench.Bench(services)),
        Route("/v1/choose", choose, methods=["POST"]),
        *page.routes(services),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with looking.running(), player.running(), others.running():
            yield

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http, RequestError: _refused, KernelError: _refused, Exception: _refused},
    )
    app.state.services = services
    return Counting(Guard(app, services.access, services.limits), services.metrics)


async def _healthz(request: Request) -> Response:
    """Say that requests are answered."""
    services: Services = request.app.state.services
    return JSONResponse({"status": "ok", "model": services.model, "waiting": services.queue.waiting})


async def _metrics(request: Request) -> Response:
    services: Services = request.app.state.services
    queue = services.queue
    samples = [
        Sample("kernel_queue_places", "gauge", "Requests that have a place in the queue.", queue.waiting),
        Sample("kernel_queue_refused_total", "counter", "Requests that found the queue full.", queue.refused),
        Sample("kernel_queue_left_total", "counter", "Requests whose client went away while they waited.", queue.left),
        Sample("kernel_decisions_total", "counter", "Decisions that were made.", queue.decided),
        Sample("kernel_decisions_shared_total", "counter", "Decisions in the passes of another one.", queue.shared),
        Sample("kernel_decision_passes_total", "counter", "Passes of the model for decisions.", queue.passes),
        Sample("kernel_decision_tokens_total", "counter", "Tokens evaluated for decisions.", queue.tokens),
    ]
    return Response(text(services.metrics, samples), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _models(request: Request) -> Response:
    """List the model and the cartridges that are served as one, or tell one of them."""
    services: Services = request.app.state.services
    owned = {services.model: "model", **dict.fromkeys(services.commands, "cartridge")}
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": kind} for name, kind in owned.items()]
    name = request.path_params.get("name")
    if name is None:
        return JSONResponse({"object": "list", "data": listed})
    if name not in owned:
        why = f"there is no model {short(name)} here{did_you_mean(name, owned)}"
        raise RequestError(why, status=404, param="model", code="model_not_found")
    return JSONResponse(listed[list(owned).index(name)])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: f"there is nothing at {request.url.path[:200]!r}", 405: f"{request.method} does nothing here"}
    made = RequestError(
        said.get(error.status_code, error.detail), status=error.status_code, headers=error.headers, code="not_found"
    )
    return answer(made)


async def _refused(request: Request, error: Exception) -> Response:
    return answer(as_request_error(error))
