"""Who may ask: the tokens of a run, and the names that the server answers to.

A browser page of another origin can reach a server on this machine. What keeps it out: it cannot choose the Host
header, cannot hide its Origin, and cannot read the page that holds the token of the run.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from kernel.errors import UsageError
from kernel.textfile import read_text

COOKIE = "kernel-bearer"
"""Holds the bearer token in a browser, which cannot send it as a header when it opens a page."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

SHORTEST = 16
"""Characters of a bearer token."""


def _token() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        host: the address that the server is bound to.
        names: further names that a Host header may have.
        bearer: the token that every request has to bring; None on the loopback address, where none is asked for.
        token: of this run; what acts through the page has to bring it, and only the page knows it.
    """

    host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    bearer: str | None = field(default=None, repr=False)
    token: str = field(default_factory=_token, repr=False)

    def __post_init__(self) -> None:
        if self.bearer is None and not is_local(self.host):
            raise UsageError(f"--host {self.host}: whoever reaches it could ask; give --token-file FILE with a secret")
        if self.bearer is not None and (len(self.bearer) < SHORTEST or not self.bearer.isascii()):
            raise UsageError(f"a token has at least {SHORTEST} characters, all of ASCII")

    def answers_to(self, host: str) -> bool:
        """Return whether the server has the name of a Host header (a port behind it counts for nothing).

        Rebinding needs a name of the attacker's; so a server that other machines reach answers to every address that is
        a number, and to the names that it was given.

        >>> Access().answers_to("localhost:8117"), Access().answers_to("evil.example:8117")
        (True, False)
        >>> Access("0.0.0.0", frozenset({"house.lan"}), "a" * 16).answers_to("192.168.1.7:8117")
        True
        """
        name = _without_port(host).lower()
        if name in LOCAL_NAMES or name in self.names or name == self.host.lower():
            return True
        return not is_local(self.host) and _is_number(name)

    def knows(self, bearer: str | None) -> bool:
        """Return whether a bearer token is the one that is asked for; without one nothing is asked for."""
        return self.bearer is None or (bearer is not None and _same(bearer, self.bearer))

    def acts(self, token: str | None) -> bool:
        """Return whether a token is that of this run."""
        return token is not None and _same(token, self.token)


def read_token(path: Path) -> str:
    """Return the secret in a file, white space around it left out; raises UsageError."""
    return read_text(path, UsageError, repr(str(path))).strip()


def is_local(host: str) -> bool:
    """Return whether an address is reached from this machine only.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("::")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())
