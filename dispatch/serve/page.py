"""The files of the page: a fixed list of what lies in the folder `page`, and the token of this run in its head."""

from __future__ import annotations

import hashlib
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

TOKEN = '<meta name="kernel-token" content="">'
"""Stands in index.html where the token of the run belongs."""


def routes(services: Services) -> list[Route]:
    """Return the routes of the page: `/`, and one for each of its files, which lie flat beside index.html."""
    files = {path.name: path for path in sorted(FOLDER.iterdir()) if path.suffix in KINDS and path.is_file()}

    async def index(request: Request) -> Response:
        text = files["index.html"].read_text("utf-8")
        return HTMLResponse(text.replace(TOKEN, TOKEN.replace('""', f'"{html.escape(services.access.token)}"')))

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise RequestError(f"there is nothing at {request.url.path[:200]!r}", status=404, code="not_found")
        data = files[name].read_bytes()
        headers = {"etag": f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"', "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=KINDS[files[name].suffix], headers=headers)

    return [Route("/", index), Route("/index.html", index), Route("/{name}", file)]
