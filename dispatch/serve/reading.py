"""Reads the body of a request: JSON, then the fields of a declared form; an error names the field that is at fault."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

from dispatch.serve.errors import RequestError
from kernel.errors import short

M = TypeVar("M", bound="Form")


class Form(BaseModel):
    """What a route takes; a field that it does not know is an error, never left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


async def read(request: Request, form: type[M]) -> M:
    """Return the body as a form; raises RequestError."""
    return fitted(json_of(await request.body()), form)


def json_of(body: bytes) -> Any:
    """Return a body as JSON; raises RequestError for anything else, and for halves of characters."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError("a text has half of a surrogate pair, which is no character", code="invalid_json") from None
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is no JSON: {error}", code="invalid_json") from None
    return found


def fitted(found: Any, form: type[M]) -> M:
    """Return JSON as a form; raises RequestError for the first field that does not fit."""
    if not isinstance(found, dict):
        raise RequestError(f"a request is a JSON object, not {short(found)}", code="invalid_json")
    try:
        return form.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    field = path_of(first["loc"])
    if first["type"] == "extra_forbidden":
        raise RequestError(f"there is no field {field!r} here", param=field, code="unknown_field")
    if first["type"] == "missing":
        raise RequestError(f"{field} is missing", param=field, code="missing_field")
    raise RequestError(f"{field}: {first['msg']}, not {short(first['input'])}", param=field, code="invalid_value")


def path_of(places: tuple[int | str, ...]) -> str:
    """Return the way to a field as OpenAI writes it.

    >>> path_of(("messages", 0, "content"))
    'messages[0].content'
    """
    text = ""
    for place in places:
        text += f"[{place}]" if isinstance(place, int) else f".{place}"
    return text.removeprefix(".")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
