"""What may answer a chat: the commands of a cartridge, the tools of the request, a value of a schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dispatch.serve.commands import Commands
from dispatch.serve.errors import RequestError
from dispatch.serve.form import ChatForm
from dispatch.serve.services import Services
from dispatch.serve.toolset import Toolset
from dispatch.serve.values import Asked
from kernel.errors import did_you_mean, short


@dataclass(frozen=True)
class Selection:
    """What may answer.

    Attributes:
        choice: `auto`, `required` or `none`, as `tool_choice` says it.
        commands: of the cartridge that is asked as a model; `only` are those that may be called, None is all.
        toolset: of the tools that the request brings.
        asked: the schema of a value.
    """

    choice: str
    commands: Commands | None = None
    only: Sequence[str] | None = None
    toolset: Toolset | None = None
    asked: Asked | None = None


def select(services: Services, form: ChatForm) -> Selection:
    """Return what may answer; raises RequestError, which names the field at fault."""
    commands = services.commands.get(form.model)
    if commands is None and form.model != services.model:
        known = [services.model, *services.commands]
        raise RequestError(
            f"there is no model {short(form.model)} here{did_you_mean(form.model, known)}",
            status=404,
            param="model",
            code="model_not_found",
        )
    choice, only = _choice(form.tool_choice)
    if commands is not None:
        _check_plain(form, services.model)
        commands.check(only)
        return Selection(choice, commands, only)
    if not form.tools:
        if choice == "required":
            raise RequestError("tool_choice: there are no tools", param="tool_choice", code="invalid_value")
        found = Selection(choice)
    else:
        toolset = services.toolsets.of(form.tools)
        found = Selection(choice, toolset=toolset if only is None else toolset.only(only, "tool_choice"))
    if form.response_format is not None:
        found = replace(found, asked=services.schemas.of(form.response_format))
    return found


def _check_plain(form: ChatForm, model: str) -> None:
    """Refuse what a cartridge that is asked as a model would have to leave out."""
    name = form.model
    if form.tools:
        why = f"the model {name!r} has commands of its own; leave them out, or ask the model {model!r}"
        raise RequestError(f"tools: {why}", param="tools", code="unsupported")
    if form.response_format is not None and form.response_format.type != "text":
        why = f"the model {name!r} answers with calls; ask the model {model!r}"
        raise RequestError(f"response_format: {why}", param="response_format", code="unsupported")
    if form.temperature:
        why = f"the model {name!r} chooses among whole commands by its rule; serve --rule sample draws"
        raise RequestError(f"temperature: {why}", param="temperature", code="unsupported")
    for place, message in enumerate(form.messages):
        if message.get("role") in ("system", "developer"):
            field = f"messages[{place}].role"
            why = f"the model {name!r} reads a request and its own guide, and no further instructions"
            raise RequestError(f"{field}: {why}", param=field, code="unsupported")


def _choice(given: str | dict[str, Any] | None) -> tuple[str, Sequence[str] | None]:
    """Return `auto`, `required` or `none`, and the names that may be called, None for all."""
    if isinstance(given, dict):
        if given.get("type") != "allowed_tools":
            return "required", [_named(given)]
        inner = given.get("allowed_tools")
        tools = inner.get("tools") if isinstance(inner, dict) else None
        mode = inner.get("mode", "auto") if isinstance(inner, dict) else None
        if not isinstance(tools, list) or not tools or mode not in ("auto", "required"):
            raise RequestError(
                "tool_choice.allowed_tools has a mode, auto or required, and a list of tools",
                param="tool_choice",
                code="invalid_value",
            )
        return mode, [_named(entry) for entry in tools]
    if given not in (None, "auto", "required", "none"):
        raise RequestError(
            f"tool_choice: {short(given)} is none of auto, required, none", param="tool_choice", code="invalid_value"
        )
    return given or "auto", None


def _named(entry: Any) -> str:
    """Return the name of `{"type": "function", "function": {"name": ...}}`."""
    function = entry.get("function") if isinstance(entry, dict) and entry.get("type") == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise RequestError(f"tool_choice: {short(entry)} names no function", param="tool_choice", code="invalid_value")
    return name
