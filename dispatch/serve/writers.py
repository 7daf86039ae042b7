"""What writes calls behind a kernel; it keeps what it has compiled."""

from __future__ import annotations

from dispatch.wire.open_arguments import ArgumentWriter
from kernel.api import Kernel


class Writers:
    """The writer of calls of a kernel, made when the first call is written; on the kernel's thread."""

    def __init__(self) -> None:
        self._made: tuple[Kernel, ArgumentWriter] | None = None

    def of(self, kernel: Kernel) -> ArgumentWriter:
        """Return the writer, which keeps what it has compiled."""
        if self._made is None or self._made[0] is not kernel:
            self._made = kernel, ArgumentWriter(kernel)
        return self._made[1]
