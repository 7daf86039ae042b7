"""The routes of `serve --tab`: the page with the model in the visitor's tab. It sends files, and decides nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from dispatch.serve.errors import RequestError, answer
from dispatch.serve.metrics import Counting
from dispatch.serve.page import KINDS
from dispatch.serve.security import Guard
from dispatch.serve.services import Services
from dispatch.tab.packing import POLICY, Packed
from kernel.errors import KernelError

MORE_KINDS = {".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
OTHER = "application/octet-stream"
FRAMES = "frame-ancestors 'none'"
"""What a policy can say in a header only."""


def make_app(services: Services, packed: Packed) -> ASGIApp:
    """Return the application of a server that sends the files of a tab, in ranges where they are asked for."""
    tags = {
        place: f'"{hashlib.blake2b(file, digest_size=12).hexdigest()}"'
        for place, file in packed.files.items()
        if isinstance(file, bytes)
    }

    async def index(request: Request) -> Response:
        return HTMLResponse(packed.index)

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok", "model": services.model, "waiting": 0})

    async def file(request: Request) -> Response:
        place = request.path_params["place"]
        found = packed.files.get(place)
        if found is None:
            raise RequestError(f"there is nothing at {request.url.path[:200]!r}", status=404, code="not_found")
        suffix = Path(place).suffix
        kind, headers = {**KINDS, **MORE_KINDS}.get(suffix, OTHER), {"cache-control": "no-cache"}
        if isinstance(found, Path):
            return FileResponse(found, media_type=kind, headers=headers)
        headers["etag"] = tags[place]
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(found, media_type=kind, headers=headers)

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        made = error if isinstance(error, RequestError) else RequestError(str(error)[:200], status=status)
        return answer(made)

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/index.html", index),
            Route("/healthz", healthz),
            Route("/{place:path}", file),
        ],
        exception_handlers={HTTPException: refused, RequestError: refused, KernelError: refused},
    )
    app.state.services = services
    policy = "; ".join((*POLICY, FRAMES))
    return Counting(Guard(app, services.access, services.limits, policy), services.metrics)
