"""The files of the page: a fixed list of what lies in the folder `page`, and the token of this run in its head."""

from __future__ import annotations

import html
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dispatch.serve.errors import RequestError
from dispatch.serve.services import Services

FOLDER = Path(__file__).with_name("page")

KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}

TOKEN = "KERNEL-TOKEN"
"""Stands in index.html where the token of the run belongs."""


def routes(services: Services) -> list[Route]:
    """Return the routes of the page: `/` and one for each file."""
    files = {
        path.relative_to(FOLDER).as_posix(): path
        for path in sorted(FOLDER.rglob("*"))
        if path.is_file() and path.suffix in KINDS
    }

    async def index(request: Request) -> Response:
        text = files["index.html"].read_text("utf-8")
        return HTMLResponse(text.replace(TOKEN, html.escape(services.access.token)))

    async def file(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        if found is None:
            raise RequestError("there is no such file of the page", status=404, code="not_found")
        return Response(found.read_bytes(), media_type=KINDS[found.suffix])

    return [Route("/", index), Route("/page/{name:path}", file)]
