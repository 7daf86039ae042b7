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
from dispatch.serve.errors import RequestError, answer, as_request_error
from dispatch.serve.security import Guard
from dispatch.serve.services import Services
from kernel.errors import KernelError


def make_app(services: Services) -> ASGIApp:
    """Return the application of a server."""
    looking = inspector.Inspector(services)
    player = live.Player(looking)
    routes: list[BaseRoute] = [Route("/healthz", _healthz), *inspector.routes(looking), *live.routes(player)]
    others = again.Others(looking)
    routes += again.routes(looking, others)
    routes += [*bench.routes(bench.Bench(services)), *page.routes(services)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with looking.running(), player.running(), others.running():
            yield

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http, RequestError: _refused, KernelError: _refused},
    )
    app.state.services = services
    return Guard(app, services.access, services.limits)


async def _healthz(request: Request) -> Response:
    """Say that requests are answered."""
    services: Services = request.app.state.services
    return JSONResponse({"status": "ok", "model": services.model, "waiting": services.queue.waiting})


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: f"there is nothing at {request.url.path[:200]!r}", 405: f"{request.method} does nothing here"}
    made = RequestError(
        said.get(error.status_code, error.detail), status=error.status_code, headers=error.headers, code="not_found"
    )
    return answer(made)


async def _refused(request: Request, error: Exception) -> Response:
    return answer(as_request_error(error))
