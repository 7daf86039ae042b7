"""Errors as OpenAI's clients read them: an HTTP status, and an object that names the field that is at fault."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

from kernel.errors import (
    BackendError,
    ContextError,
    KernelError,
    LogitsError,
    ModelError,
    NotThereError,
    UnknownCartridgeError,
    UnknownModelError,
)

INVALID = "invalid_request_error"


class RequestError(KernelError):
    """A request that is not answered; becomes `{"error": {"message", "type", "param", "code"}}`.

    Attributes:
        status: of HTTP.
        param: the field at fault, such as `messages[0].role`; None where it is none.
        code: a short name of the fault, for programs.
        headers: further headers of the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    @property
    def kind(self) -> str:
        """OpenAI's `type` of an error of this status."""
        kinds = {401: "authentication_error", 403: "permission_error", 421: "permission_error"}
        kinds |= {404: "not_found_error", 429: "rate_limit_error"}
        return "server_error" if self.status >= 500 else kinds.get(self.status, INVALID)


def as_request_error(error: Exception, param: str | None = None) -> RequestError:
    """Return what a client is told of an error of the kernel; what nobody foresaw is told by its type alone."""
    match error:
        case RequestError():
            return error
        case ContextError():
            return RequestError(str(error), param=param or "messages", code="context_length_exceeded")
        case UnknownModelError() | UnknownCartridgeError() | NotThereError():
            return RequestError(str(error), status=404, param=param, code="not_found")
        case BackendError() | LogitsError() | ModelError():
            return RequestError(str(error), status=500, code=type(error).__name__)
        case KernelError():
            return RequestError(str(error), param=param, code=type(error).__name__)
    return RequestError(f"the server failed: {type(error).__name__}", status=500, code="internal_error")


def answer(error: RequestError) -> JSONResponse:
    """Return an error as a response."""
    return JSONResponse(document(error), status_code=error.status, headers=error.headers)


def document(error: RequestError) -> dict[str, dict[str, str | None]]:
    """Return an error as OpenAI writes it."""
    return {"error": {"message": str(error), "type": error.kind, "param": error.param, "code": error.code}}
