"""Handles Ctrl-C and kill: the first signal ends a session before its next decision, the second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

if TYPE_CHECKING:  # every command catches signals, and few have a session
    from dispatch.session.session import Session

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

came: list[int] = []
"""The signals that came while this command ran."""


def catch() -> None:
    """Let the signals raise KeyboardInterrupt from now on, but for those that the parent has ignored (nohup, `&`)."""
    for number in _heard():
        signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    came.append(number)
    raise KeyboardInterrupt


def _heard() -> list[int]:
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


class Interrupts:
    """Handles the signals while it is entered.

    Nothing is at stake before there is a session, and while a person is asked: then the first signal raises
    KeyboardInterrupt too. From then until `over`, the log is being ended, and further signals are only counted.

    Attributes:
        number: of the last signal, or None.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._session: Session | None = None
        self._asking = self._ending = False
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """128 and the number of the signal, as shells have it; 0 without a signal."""
        return 0 if self.number is None else 128 + self.number

    def stop(self, session: Session) -> None:
        """Let the first signal stop this from now on."""
        self._session = session

    def over(self) -> None:
        """Let every signal raise from now on: the session has ended and its log is closed."""
        self._session, self._ending = None, False

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Let the first signal break into what is done inside."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # the only one that may
            self._before = {number: signal.signal(number, self._handle) for number in _heard()}
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        came.append(number)
        first, self.number = self.number is None, number
        if self._ending:
            return
        if self._session is None or self._asking or not first:
            self._ending = self._session is not None
            raise KeyboardInterrupt
        self._session.stop("stopped by a person" if number == signal.SIGINT else f"stopped by signal {number}")
