"""The guard in front of every route: name, origin, token and body of a request, and the headers of every answer.

It answers before anything else of the server has seen the request, and it is the only place that decides who may ask.
"""

from __future__ import annotations

import asyncio
import logging
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dispatch.loading.error_line import error_line
from dispatch.serve.access import COOKIE, Access
from dispatch.serve.errors import RequestError, answer, as_request_error
from dispatch.serve.limits import Limits
from kernel.shown import shown

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Content-Security-Policy (W3C): nothing but our own files runs, and no text can become markup."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

TOKEN_HEADER = "x-kernel-token"
READS = frozenset({"GET", "HEAD"})

_log = logging.getLogger(__name__)


class Guard:
    """An ASGI middleware; see the module."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, policy: str = POLICY) -> None:
        self.app = app
        self.policy = policy
        self.access = access
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started, body = False, BoundedBody(receive, self.limits)

        async def headed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "content-security-policy": self.policy}.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                if scope["method"] not in READS and not body.whole:
                    headers["connection"] = "close"  # what is left of the body is not read
            await send(message)

        try:
            self._look(scope)
            if (login := self._login(scope)) is not None:
                await login(scope, receive, headed)
                return
            await self.app(scope, body, headed)
        except RequestError as error:
            if not started:
                await answer(error)(scope, receive, headed)
        except Exception as error:
            _log.warning("serve: %s %s: %s", scope["method"], shown(scope["path"][:200]), shown(error_line(error)))
            if not started:
                await answer(as_request_error(error))(scope, receive, headed)

    def _look(self, scope: Scope) -> None:
        """Raise RequestError for a request that may not be answered."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.access.answers_to(hosts[0]):
            raise RequestError(f"no server of the name {hosts!r} is here", status=421, code="unknown_host")
        self._of_this_origin(scope, headers)
        if path != "/healthz" and not self.access.knows(_bearer(headers)) and not self._knocks(scope):
            raise RequestError(
                "a bearer token is needed: 'Authorization: Bearer TOKEN', or open /?token=TOKEN in a browser",
                status=401,
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        if method in READS:
            return
        if method != "POST":
            raise RequestError(f"{method} does nothing here", status=405, headers={"allow": "GET, HEAD, POST"})
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestError(
                f"a request is application/json, not {kind!r}", status=415, code="unsupported_media_type"
            )
        if path.startswith("/api/") and not self.access.acts(headers.get(TOKEN_HEADER)):
            raise RequestError(
                "the page has the token of another run; load it again", status=403, code="token_of_another_run"
            )
        if (length := headers.get("content-length", "")).isdigit() and int(length[:20]) > self.limits.body_bytes:
            raise _too_large(self.limits)

    @staticmethod
    def _of_this_origin(scope: Scope, headers: Headers) -> None:
        """Refuse what a page of another origin sends; programs that are no browser send neither header."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != f"{scope['scheme']}://{headers['host']}":
            raise RequestError(f"a page of {origin!r} may not ask", status=403, code="cross_origin")
        opened = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/"
        opened = opened and headers.get("sec-fetch-dest") == "document"  # by a link; never in a frame
        if site not in (None, "same-origin", "none") and not opened:
            raise RequestError(f"a page of another site ({site}) may not ask", status=403, code="cross_origin")

    def _knocks(self, scope: Scope) -> bool:
        """Return whether a browser brings the bearer token in the address, to have it as a cookie from then on."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return scope["path"] == "/" and scope["method"] == "GET" and len(given) == 1 and self.access.knows(given[0])

    def _login(self, scope: Scope) -> RedirectResponse | None:
        if self.access.bearer is None or not self._knocks(scope):
            return None
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(COOKIE, self.access.bearer, httponly=True, samesite="strict")
        return response


class BoundedBody:
    """A `receive` that reads no more than the limits allow.

    Attributes:
        whole: whether the body has been read to its end.
    """

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._size = 0
        self._until = asyncio.get_running_loop().time() + limits.body_seconds
        self.whole = False

    async def __call__(self) -> Message:
        """Return the next message; raises RequestError for a body that is too large or comes too slowly."""
        if self.whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            seconds = f"{self._limits.body_seconds:g}"
            raise RequestError(f"the body did not come within {seconds} seconds", status=408, code="slow") from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)
            if self._size > self._limits.body_bytes:
                raise _too_large(self._limits)
        else:
            self.whole = True
        return message


def inside(folder: Path, name: str) -> Path:
    """Return the file of a name in a folder, or below it; raises RequestError (404) for what lies anywhere else.

    Links are followed before the place is judged, so that one out of the folder leads nowhere.
    """
    try:
        root = folder.resolve(strict=True)
        found = (root / name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # a NUL, too long a name, a loop of links
        found = None
    if found is None or not found.is_relative_to(root) or not found.is_file():
        raise RequestError(f"there is no {name[:200]!r} here", status=404, code="not_found")
    return found


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def _too_large(limits: Limits) -> RequestError:
    return RequestError(f"a body has at most {limits.body_bytes} bytes", status=413, code="too_large")
