"""The routes by which the page plays: start, play, pause, step, speed, stop, and requests to a session."""

from __future__ import annotations

import asyncio
import itertools
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import OpenedLog
from dispatch.loading import registry
from dispatch.serve.errors import RequestError
from dispatch.serve.inspector import Inspector
from dispatch.serve.playing import MOST_SPEED, LiveSession, Wish
from dispatch.serve.reading import Form, read
from dispatch.session.rules import make_rule
from kernel.contract import Cartridge
from kernel.errors import KernelError, UsageError, did_you_mean, short

_log = logging.getLogger(__name__)

MOST_SESSIONS = 8
"""Live sessions that may play at a time."""
MOST_COUNT = 10**6
MOST_SEED = 2**63 - 1
WIRE = "compact"
"""The form in which sessions decode, as `run` does."""
RETRY_SECONDS = 0.2
"""The queue was full: a session tries again after so long."""

Speed = Annotated[float, Field(gt=0, le=MOST_SPEED)]


class Start(Form):
    """What is to be played."""

    cartridges: Annotated[list[str], Field(min_length=1, max_length=16)]
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    player: Literal["model", "planner", "random"] = "model"
    rule: str | None = None
    limits: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    options: dict[str, str] = Field(default_factory=dict)
    speed: Speed | None = None
    paused: bool = False


class Which(Form):
    """A live session."""

    session: str


class Steps(Which):
    """So many decisions."""

    count: Annotated[int, Field(ge=1, le=MOST_COUNT)] = 1


class Pace(Which):
    """So many decisions a second; none is as fast as it goes."""

    speed: Speed | None = None


class Asked(Which):
    """A request in words."""

    request: Annotated[str, Field(max_length=10_000)]


class Player:
    """The live sessions of a server, each with a task that paces it."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._services = inspector.services
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sessions: dict[str, tuple[LiveSession, OpenedLog]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have what is served ready to be played, paused; end every session in the end."""
        first = asyncio.create_task(self._first())
        try:
            yield
        finally:
            first.cancel()
            for task in self._tasks.values():
                task.cancel()
            try:
                for session, _ in self._sessions.values():
                    session.close("the server ended")
            finally:
                if self._folder is not None:
                    self._folder.cleanup()

    async def start(self, form: Start) -> tuple[str, LiveSession]:
        """Begin a session; raises RequestError for what cannot be played."""
        playing = [name for name, (session, _) in self._sessions.items() if not session.ended]
        if len(playing) >= MOST_SESSIONS:
            raise RequestError(f"{MOST_SESSIONS} sessions are being played; stop one", status=409, code="conflict")
        await self._forget()
        wish = await run_in_threadpool(self._wish, form)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="cartridge-kernel-", ignore_cleanup_errors=True)
        name = f"live:{next(self._numbers)}"
        path = Path(self._folder.name) / f"{name.replace(':', '-')}.jsonl"

        def made(kernel: Any) -> LiveSession:
            return LiveSession(wish, path, kernel, paused=form.paused, speed=form.speed)

        if form.player == "model":
            session = await self._services.run(made)
        else:
            session = await run_in_threadpool(made, None)
        opened = await run_in_threadpool(self._inspector.sessions.add_live, name, path, session.told)
        self._sessions[name] = session, opened
        self._changed[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._play(name, form.player == "model"))
        return name, session

    async def _first(self) -> None:
        """Begin a session of all that is served, for the page to find."""
        services = self._services
        if not services.cartridges:
            return
        self._inspector.starting = True
        try:
            await self.start(Start(cartridges=[each.name for each in services.cartridges], paused=True))
        except KernelError as error:
            _log.warning("serve: no session of %s: %s", ", ".join(services.specs), error)
        finally:
            self._inspector.starting = False

    def session(self, name: str) -> LiveSession:
        """Return a live session; raises RequestError 404."""
        found = self._sessions.get(name)
        if found is None:
            raise RequestError(f"there is no live session {short(name)}", status=404, param="session", code="not_found")
        return found[0]

    async def _forget(self) -> None:
        """Let the oldest sessions go that have ended, so that no more are kept than may play."""
        ended = [name for name, (session, opened) in self._sessions.items() if session.ended and not opened.followers]
        for name in ended[: max(0, len(self._sessions) + 1 - 2 * MOST_SESSIONS)]:
            session, opened = self._sessions.pop(name)
            del self._tasks[name], self._changed[name]
            await run_in_threadpool(session.close, "")
            await run_in_threadpool(self._inspector.sessions.drop_live, name)
            opened.keeper.path.unlink(missing_ok=True)

    def wake(self, name: str) -> None:
        """Let a session see at once what was asked of it."""
        self._changed[name].set()

    def _wish(self, form: Start) -> Wish:
        rule = self._services.rule
        if form.rule is not None:
            with told_of("rule"):
                rule = make_rule(form.rule, seed=form.seed or 0, where="rule")
        with told_of("cartridges"):
            cartridges = self._cartridges(form)
        seed = self._services.seed if form.seed is None else form.seed
        return Wish(cartridges, seed, form.player, self._services.model, rule, WIRE, form.limits)

    def _cartridges(self, form: Start) -> list[Cartridge]:
        """Make what is to be played anew: only what is served, with the options that were asked for."""
        services = self._services
        specs = dict(zip((cartridge.name for cartridge in services.cartridges), services.specs, strict=False))
        for name in form.cartridges:
            if name not in specs:
                raise UsageError(f"no cartridge {short(name)} is served{did_you_mean(name, specs)}")
        if form.options:
            return registry.load_all([specs[name] for name in form.cartridges], **form.options)
        return [next(each for each in services.cartridges if each.name == name) for name in form.cartridges]

    async def _play(self, name: str, by_model: bool) -> None:
        """Make the decisions of a session as they are due, until it has ended."""
        session, opened = self._sessions[name]
        changed = self._changed[name]
        while not session.ended:
            wait = session.wait_seconds()
            if wait != 0.0:
                try:
                    async with asyncio.timeout(wait):
                        await changed.wait()
                except TimeoutError:
                    pass
                changed.clear()
                continue
            try:
                with self._inspector.sessions.foreground:  # checking what was played has time afterwards
                    if by_model:
                        await self._services.run(lambda kernel: session.turns())
                    else:
                        await run_in_threadpool(session.turns)
            except RequestError:  # the queue is full
                await asyncio.sleep(RETRY_SECONDS)
            opened.keeper.poke()


@contextmanager
def told_of(field: str) -> Iterator[None]:
    """Tell an error of what stands inside as one of a field (422)."""
    try:
        yield
    except KernelError as error:
        raise RequestError(str(error), status=422, param=field, code=type(error).__name__) from error


def routes(player: Player) -> list[BaseRoute]:
    """Return the routes that act on live sessions."""

    async def start(request: Request) -> Response:
        form = await read(request, Start)
        try:
            name, session = await player.start(form)
        except RequestError:
            raise
        except KernelError as error:
            raise RequestError(str(error), status=422, code=type(error).__name__) from error
        return _json({"name": name, "live": session.told()})

    async def play(request: Request) -> Response:
        return await act(request, Which, lambda session, form: session.play())

    async def pause(request: Request) -> Response:
        return await act(request, Which, lambda session, form: session.pause())

    async def stop(request: Request) -> Response:
        return await act(request, Which, lambda session, form: session.stop(), late=True)

    async def step(request: Request) -> Response:
        return await act(request, Steps, lambda session, form: session.step(form.count))

    async def speed(request: Request) -> Response:
        def set_speed(session: LiveSession, form: Any) -> None:
            session.speed = form.speed

        return await act(request, Pace, set_speed, late=True)

    async def ask(request: Request) -> Response:
        return await act(request, Asked, lambda session, form: {"waiting": session.ask(form.request)})

    async def act(request: Request, kind: type[Which], what: Any, late: bool = False) -> Response:
        """Do something to a session; `late` is possible when it has ended."""
        form = await read(request, kind)
        session = player.session(form.session)
        if session.ended and not late:
            raise RequestError("the session has ended", status=409, param="session", code="conflict")
        more = what(session, form) or {}
        player.wake(form.session)
        return _json({"live": session.told(), **more})

    acts = {"start": start, "play": play, "pause": pause, "stop": stop, "step": step, "speed": speed, "request": ask}
    return [Route(f"/api/live/{name}", endpoint, methods=["POST"]) for name, endpoint in acts.items()]


def _json(value: Json) -> Response:
    return Response(dump(value), media_type="application/json")
