"""Who is answered: not a foreign page, not a name that was made to point here, not what is too large or too slow."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatch.serve.access import Access, read_token
from dispatch.serve.errors import RequestError
from dispatch.serve.security import inside
from kernel.errors import UsageError

SECRET = "a secret of nineteen"
TOKEN = "the-token-of-this-run"
ASKED = {"prompt": "The opposite of open is", "options": ["shut", "opener"]}


@pytest.fixture(scope="module")
def live(running: Any) -> Any:
    with running() as made:
        yield made


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/models", "/api/sessions"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.", "10.0.0.1"]
)
def test_a_foreign_name_is_not_answered(live: Any, path: str, host: str) -> None:
    """DNS rebinding: the browser takes us for the attacker's own server, and sends the attacker's name."""
    reply = live.ask("GET", path, host=host)
    assert reply.fault == (421, None, "unknown_host")
    assert TOKEN.encode() not in reply.body


def test_names_of_this_machine_are_answered(live: Any, running: Any) -> None:
    """And what was named, and nothing else."""
    for host in ("localhost", f"127.0.0.1:{live.port}", "[::1]:8117", "LOCALHOST:1"):
        assert live.ask("GET", "/healthz", host=host).status == 200
    with running(Access("127.0.0.1", frozenset({"house.lan"}), token=TOKEN)) as named:
        assert named.ask("GET", "/healthz", host="house.lan:8117").status == 200
        assert named.ask("GET", "/healthz", host="other.lan").status == 421


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/choose", "/api/live/start"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
    ],
)
def test_a_foreign_page_cannot_post(live: Any, path: str, headers: dict[str, str]) -> None:
    """Not even with the token of the run, which it cannot know."""
    before = live.gate.passes
    reply = live.ask("POST", path, ASKED, x_kernel_token=TOKEN, **headers)
    assert reply.fault == (403, None, "cross_origin")
    assert live.gate.passes == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_not_taken(live: Any, kind: str) -> None:
    """A form needs no leave of ours to post across origins; JSON does, and is given none."""
    assert live.ask("POST", "/v1/choose", ASKED, content_type=kind).fault == (415, None, "unsupported_media_type")
    asked = live.ask("OPTIONS", "/v1/choose", origin="https://evil.example", access_control_request_method="POST")
    assert asked.status == 403
    assert not [name for name in asked.headers if name.startswith("access-control")]


def test_no_answer_lets_another_origin_read_it(live: Any) -> None:
    """No CORS header, a policy without inline code, trusted types, no frame; on pages, data and errors alike."""
    for path in ("/", "/healthz", "/v1/models", "/nothing"):
        headers = live.ask("GET", path, origin=live.base, sec_fetch_site="same-origin").headers
        assert not [name for name in headers if name.startswith("access-control")]
        policy = headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy)
        assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} <= set(policy)
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_link_opens_the_page_and_nothing_else(live: Any) -> None:
    """From another site; an image, a script or a frame of it is refused."""
    opened = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert live.ask("GET", "/", **opened).status == 200
    assert live.ask("GET", "/", **{**opened, "sec_fetch_dest": "iframe"}).status == 403
    assert live.ask("GET", "/v1/models", **opened).status == 403
    assert live.ask("GET", "/index.html", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403


def test_what_acts_through_the_page_needs_the_token_of_this_run(live: Any) -> None:
    """It stands in the page; one of another run, or none, does nothing."""
    assert f'name="kernel-token" content="{TOKEN}"'.encode() in live.ask("GET", "/").body
    assert live.ask("POST", "/api/nothing", {}).fault == (403, None, "token_of_another_run")
    assert live.ask("POST", "/api/nothing", {}, x_kernel_token="x" * 43).fault[0] == 403
    assert live.ask("POST", "/api/nothing", {}, x_kernel_token=TOKEN, origin=live.base).status == 404
    for method in ("PUT", "DELETE", "PATCH"):
        assert live.ask(method, "/api/nothing", {}, x_kernel_token=TOKEN).status == 405


def test_another_address_needs_a_secret(running: Any, tmp_path: Path) -> None:
    """Every request brings it, as a header or as the cookie that a browser is given for it."""
    for host in ("0.0.0.0", "::", "192.168.1.7", "house.lan"):
        with pytest.raises(UsageError, match="--token-file"):
            Access(host)
    with pytest.raises(UsageError, match="at least 16"):
        Access("0.0.0.0", bearer="short")
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    access = Access("0.0.0.0", bearer=read_token(tmp_path / "secret"), token=TOKEN)
    with running(access) as live:
        for path in ("/", "/v1/models", "/metrics", "/api/sessions"):
            assert live.ask("GET", path).fault == (401, None, "invalid_api_key")
            assert live.ask("GET", path, authorization="Bearer another secret....").status == 401
        assert live.ask("POST", "/v1/choose", ASKED).status == 401
        assert live.ask("GET", "/healthz").status == 200
        assert live.ask("GET", "/", authorization=f"Bearer {SECRET}").status == 200
        assert live.ask("GET", "/healthz", host="192.168.1.7:8117").status == 200, "a number is no name to rebind"
        assert live.ask("GET", "/healthz", host="evil.example").status == 421
        assert live.ask("GET", "/?token=another+secret....").status == 401
        knocked = live.ask("GET", f"/?token={SECRET.replace(' ', '+')}")
        assert (knocked.status, knocked.headers["location"]) == (303, "/")
        cookie = knocked.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert live.ask("GET", "/", cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/%2e%2e/app.py",
        "/..%2fapp.py",
        "/..%5capp.py",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/index.html%00.js",
        "/./../../../../../../etc/passwd",
        "/" + "a" * 5000,
    ],
)
def test_no_path_leads_out_of_the_page(live: Any, path: str) -> None:
    """Its files are a fixed list."""
    reply = live.ask("GET", path)
    assert reply.fault[0] == 404
    assert b"root:" not in reply.body


def test_names_are_resolved_inside_the_served_folder_only(tmp_path: Path) -> None:
    """Also where a link in it leads out, and where the folder itself is a link."""
    folder = tmp_path / "logs"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text("x")
    (folder / "game.jsonl").write_text("x")
    (folder / "below" / "other.jsonl").write_text("x")
    (folder / "out.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (tmp_path / "link").symlink_to(folder)
    for root in (folder, tmp_path / "link"):
        assert inside(root, "game.jsonl") == folder / "game.jsonl"
        assert inside(root, "below/other.jsonl") == folder / "below" / "other.jsonl"
        for name in (
            "../secret.jsonl",
            str(tmp_path / "secret.jsonl"),
            "out.jsonl",
            "loop.jsonl",
            "below",
            ".",
            "",
            "nul\0",
            "x" * 5000,
            "below/../../secret.jsonl",
        ):
            with pytest.raises(RequestError, match="there is no"):
                inside(root, name)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(running: Any) -> None:
    """By what it says of itself, and by what comes, where it says nothing or lies."""
    with running(body_bytes=1000) as live:
        assert live.ask("POST", "/v1/choose", b"{" + b" " * 1000, content_length=str(10**12)).fault[2] == "too_large"
        assert live.ask("POST", "/v1/choose", b"[" * 1001).fault == (413, None, "too_large")
        chunk = b"3e8\r\n" + b" " * 1000 + b"\r\n"
        head = f"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nContent-Type: application/json\r\n"
        with live.raw(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 3) as connection:
            said = _all(connection)
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in said
        assert live.ask("POST", "/v1/choose", b" " * 999).fault == (400, None, "invalid_json")


def test_a_slow_sender_is_cut_off(running: Any) -> None:
    """One whose body trickles, one whose head does, one who says nothing; others are answered meanwhile."""
    with running(body_seconds=0.3, head_seconds=0.3) as live:
        head = f"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nContent-Type: application/json\r\n"
        began = time.monotonic()
        with (
            live.raw(head.encode() + b'Content-Length: 100\r\n\r\n{"pro') as slow_body,
            live.raw(head.encode()) as slow_head,
            live.raw(b"") as silent,
        ):
            assert live.ask("GET", "/healthz").status == 200
            for _ in range(4):
                time.sleep(0.05)
                slow_body.sendall(b"m")
                slow_head.sendall(b"X-A: b\r\n")
            said = _all(slow_body)
            assert said.startswith(b"HTTP/1.1 408 ")
            assert b'"slow"' in said
            assert _all(slow_head) == b""
            assert _all(silent) == b""
        assert time.monotonic() - began < 3


def test_a_head_that_is_too_long_is_refused(live: Any) -> None:
    """By the connection, before it is a request."""
    with live.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000) as connection:
        assert _all(connection)[:12] in (b"HTTP/1.1 400", b"")


def test_what_nobody_foresaw_says_nothing_of_the_inside(
    live: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of 500 with its type alone, and the server goes on."""

    def broken() -> Callable[[], None]:
        raise ZeroDivisionError("secret of the inside")

    monkeypatch.setattr(live.services.queue, "place", broken)
    with caplog.at_level("WARNING"):
        reply = live.ask("POST", "/v1/choose", ASKED)
        assert live.ask("GET", "/%1b%5b2Jx").status == 404
    assert reply.fault == (500, None, "internal_error")
    assert "ZeroDivisionError" in caplog.text
    assert "\x1b" not in caplog.text
    assert b"secret" not in reply.body
    assert live.ask("GET", "/healthz").status == 200


def _all(connection: socket.socket) -> bytes:
    said = b""
    try:
        while part := connection.recv(4096):
            said += part
    except ConnectionResetError:
        pass
    return said
