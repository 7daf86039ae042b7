"""What a tab cannot do, as the page reads it."""

from __future__ import annotations

from kernel.errors import UsageError


class ConflictError(UsageError):
    """It is not possible now."""


class FieldError(UsageError):
    """A field of what was asked cannot be held; `param` names it."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param
