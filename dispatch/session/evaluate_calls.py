"""Lets a model answer labelled requests to tools, and counts what is right: the tool, its arguments, both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from dispatch.session.metrics import Share
from kernel.api import Kernel
from kernel.choose.outcome import Outcome
from kernel.contract import Cartridge
from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.tools import Tool, Tools


class FailedCall(BaseModel):
    """A request that was not answered right."""

    model_config = ConfigDict(frozen=True)

    id: str
    request: str
    right: str
    said: str
    outcome: Outcome


class CallResult(BaseModel):
    """What a model did on one split of labelled requests to tools."""

    model_config = ConfigDict(frozen=True)

    model: str
    set: str
    split: str
    tool: Share
    """Right tools."""
    arguments: Share
    """Right arguments, where the tool is right."""
    all: Share
    """Both."""
    passes: float
    """Median of a call."""
    tokens: float
    """Median tokens evaluated of a call."""
    failed: tuple[FailedCall, ...]


def evaluate_calls(
    kernel: Kernel,
    cartridge: Cartridge,
    *,
    model: str,
    name: str,
    split: str = "test",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CallResult:
    """Answer the labelled requests of a cartridge of tools.

    Args:
        model, name: of model and set, for the result.
        split: `test`, `dev` or `all`.
    """
    cases = [case for case in (cartridge.call_cases or tuple)() if split in ("all", case.split)]
    tools = Tools(Tool(opcode) for opcode in cartridge.opcodes if issubclass(opcode, SchemaOpcode))
    named, right, costs = [], [], []
    failed: list[FailedCall] = []
    for number, case in enumerate(cases, 1):
        call = kernel.call(tools, case.request)
        named.append(call.name == case.tool)
        right.append(named[-1] and case.accepts(call.arguments))
        costs.append((call.passes, call.tokens))
        if not right[-1]:
            said = f"{call.name}({_listed(call.arguments)})" if call else ""
            wanted = {key: values[0] for key, values in case.arguments.items() if values[0] is not None}
            failed.append(
                FailedCall(
                    id=case.id,
                    request=case.request,
                    right=f"{case.tool}({_listed(wanted)})",
                    said=said,
                    outcome=call.outcome,
                )
            )
        progress(number, len(cases))
    return CallResult(
        model=model,
        set=name,
        split=split,
        tool=Share.made(named),
        arguments=Share.made(each for each, known in zip(right, named, strict=True) if known),
        all=Share.made(right),
        passes=_median([passes for passes, _ in costs]),
        tokens=_median([tokens for _, tokens in costs]),
        failed=tuple(failed),
    )


def _listed(arguments: Any) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _median(values: Sequence[int]) -> float:
    return float(statistics.median(values)) if values else 0.0
