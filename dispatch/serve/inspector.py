"""The routes of the page that look at sessions; docs/inspector.md has the forms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dispatch.inspector.columns import Filter
from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import MOST_ROWS, OpenedLog
from dispatch.inspector.sessions import Sessions
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.log.diff import diff
from dispatch.log.objects import CartridgeRecord
from dispatch.serve import following
from dispatch.serve.errors import RequestError
from dispatch.serve.services import Services
from dispatch.serve.streams import events
from dispatch.session.recorded import make_cartridge
from kernel.choose.rule import RuleName
from kernel.contract import Cartridge
from kernel.errors import CartridgeError
from kernel.models import catalogue
from kernel.text.vocabulary import Vocabulary

MOST = 10**9


class Inspector:
    """What the page looks at."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.starting = False
        """Whether a live session is about to be there."""
        self.vocabularies = Vocabularies(self._served)
        self.sessions = Sessions(services.logs, services.folder, self.make, self.vocabularies)

    def make(self, record: CartridgeRecord) -> Cartridge:
        """Build the cartridge that a log names: an installed one, or one that is served."""
        try:
            return make_cartridge(record, self.services.specs)
        except CartridgeError:
            for cartridge in self.services.cartridges:
                if cartridge.name == record.name and dict(cartridge.options) == (record.options or {}):
                    return cartridge
            raise

    def overview(self) -> Json:
        """Return what there is: sessions, models, rules, cartridges."""
        services = self.services
        return {
            "sessions": self.sessions.listed(),
            "default": self.sessions.default,
            "model": services.model,
            "models": self.models(),
            "rules": [str(name) for name in RuleName],
            "cartridges": [cartridge.name for cartridge in services.cartridges],
            "bench": True,
            "starting": self.starting,
        }

    def models(self) -> list[str]:
        """Return the models that are on this machine, and the one that is served."""
        here = {name for name, known in catalogue.catalogue().items() if known.pulled}
        return sorted(here | {self.services.model})

    def _served(self) -> Vocabulary | None:
        kernel = self.services.queue.kernel
        return None if kernel is None else kernel.vocabulary

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close everything in the end."""
        try:
            yield
        finally:
            await run_in_threadpool(self.sessions.close)


def routes(inspector: Inspector) -> list[BaseRoute]:
    """Return the routes under /api that look at sessions."""
    sessions = inspector.sessions

    async def answer(work: Callable[[], Json]) -> Response:
        """Answer with what is worked out on another thread; work in the background makes room for it."""
        with sessions.foreground:
            return Response(await run_in_threadpool(lambda: dump(work())), media_type="application/json")

    async def overview(request: Request) -> Response:
        return await answer(inspector.overview)

    async def summary(request: Request) -> Response:
        return await answer(lambda: _opened(sessions, request).summary())

    async def strip(request: Request) -> Response:
        start = _integer(request, "from", 1)
        with sessions.foreground:
            data = await run_in_threadpool(lambda: _opened(sessions, request).strip(start))
        return Response(data, media_type="application/octet-stream")

    async def changes(request: Request) -> Response:
        after = _integer(request, "after", 0)
        return await answer(lambda: _opened(sessions, request).changes(after))

    async def rows(request: Request) -> Response:
        start, count = _integer(request, "from", 0), _integer(request, "count", 50)
        by = Filter(
            margin_below=_real(request, "margin_below"),
            ms_above=_real(request, "ms_above"),
            cartridge=request.query_params.get("cartridge"),
            outcome=request.query_params.get("outcome"),
            flags=_integer(request, "flags", 0) or None,
        )
        return await answer(lambda: _opened(sessions, request).rows(start, min(count, MOST_ROWS), by))

    async def least(request: Request) -> Response:
        after = _integer(request, "after", 0)
        return await answer(lambda: _opened(sessions, request).least(after or None))

    async def decision(request: Request) -> Response:
        return await answer(lambda: _opened(sessions, request).decision(request.path_params["n"]))

    async def prompt(request: Request) -> Response:
        return await answer(lambda: _opened(sessions, request).prompt(request.path_params["n"]))

    async def step(request: Request) -> Response:
        n, place = request.path_params["n"], request.path_params.get("k")
        token = None if place is not None else _integer(request, "token", 0)
        return await answer(lambda: _opened(sessions, request).ledger(n, place, token))

    async def compared(request: Request) -> Response:
        names = [request.query_params.get(name) for name in ("a", "b")]
        if None in names:
            raise RequestError("name two sessions: ?a=NAME&b=NAME", param="a" if names[0] is None else "b")
        return await answer(lambda: diff(*(sessions.path(str(name)) for name in names)).model_dump(mode="json"))

    async def follow(request: Request) -> Response:
        opened = await run_in_threadpool(lambda: _opened(sessions, request))
        told = request.headers.get("last-event-id") or request.query_params.get("after")
        return events(inspector.services, following.events(opened, told))

    session = "/api/s/{name}"
    return [
        Route("/api/sessions", overview),
        Route("/api/diff", compared),
        Route(session, summary),
        Route(f"{session}/strip", strip),
        Route(f"{session}/changes", changes),
        Route(f"{session}/events", follow),
        Route(f"{session}/least", least),
        Route(f"{session}/d", rows),
        Route(f"{session}/d/{{n:int}}", decision),
        Route(f"{session}/d/{{n:int}}/prompt", prompt),
        Route(f"{session}/d/{{n:int}}/t", step),
        Route(f"{session}/d/{{n:int}}/t/{{k:int}}", step),
    ]


def _opened(sessions: Sessions, request: Request) -> OpenedLog:
    return sessions.open(request.path_params["name"])


def _integer(request: Request, name: str, default: int) -> int:
    """Return a count of the query."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RequestError(f"{name}: {text[:40]!r} is no number from 0 to {MOST}", param=name)
    return int(text)


def _real(request: Request, name: str) -> float | None:
    """Return a number of the query."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise RequestError(f"{name}: {text[:40]!r} is no number", param=name) from None
