"""Checks options against the signature of the function that takes them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from kernel.errors import UsageError, did_you_mean


def takes(make: Callable[..., Any], name: str) -> bool:
    """Return whether a function has an option of that name, or takes any."""
    return name in (found := _names(make)) or ... in found


def names(make: Callable[..., Any]) -> set[str]:
    """Return the names of its options."""
    return {name for name in _names(make) if name is not ...}


def accepts(make: Callable[..., Any], name: str, value: object) -> bool:
    """Return whether a function takes an option of that name with that value, as far as its annotation says.

    >>> def make(size: typing.Literal["small", "large"] = "small") -> None: ...
    >>> accepts(make, "size", "large"), accepts(make, "size", "huge"), accepts(make, "shape", "round")
    (True, False, False)
    """
    if not takes(make, name):
        return False
    try:
        _value(value, _hints(make).get(name, Any), "")
    except UsageError:
        return False
    return True


def checked(make: Callable[..., Any], given: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the options as `make` is annotated to take them: text that says a number becomes that number.

    Args:
        where: begins the errors.
    Raises:
        UsageError: an option that `make` does not have, a value that it does not take, or one missing.

    >>> def make(size: int = 3) -> None: ...
    >>> checked(make, {"size": "5"}, "chess")
    {'size': 5}
    >>> checked(make, {"sise": "5"}, "chess")
    Traceback (most recent call last):
    kernel.errors.UsageError: chess has no option 'sise'; did you mean 'size'?
    """
    if unknown := [name for name in given if not takes(make, name)]:
        raise UsageError(f"{where} has no option {unknown[0]!r}{did_you_mean(unknown[0], names(make))}")
    if missing := [n for n, p in _names(make).items() if n is not ... and p.default is p.empty and n not in given]:
        raise UsageError(f"{where} needs the option {missing[0]!r}")
    hints = _hints(make)
    return {name: _value(value, hints.get(name, Any), f"{where}: option {name}") for name, value in given.items()}


def _names(make: Callable[..., Any]) -> dict[Any, inspect.Parameter]:
    """Return the options by name; `...` stands for any other name."""
    found: dict[Any, inspect.Parameter] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found[...] = parameter
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            found[name] = parameter
    return found


def _hints(make: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(make, include_extras=True)
    except Exception:  # an annotation that only a type checker can resolve says nothing here
        return {}


def _value(value: object, annotation: Any, where: str) -> Any:
    try:
        return TypeAdapter(annotation).validate_python(value)
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation):
        return value  # a type of the author's own, which only their make() can check
    except ValidationError as error:
        if typing.get_origin(annotation) is typing.Literal:
            known = [str(each) for each in typing.get_args(annotation)]
            raise UsageError(f"{where} {value!r} is not there{did_you_mean(str(value), known)}") from error
        raise UsageError(f"{where}={value!r}: {error.errors(include_url=False)[0]['msg']}") from error
