"""Tools as Python sees them: functions and lists become tools, and nothing runs before the hooks have seen it."""

from __future__ import annotations

import asyncio
import datetime
from enum import StrEnum
from typing import Literal

import pytest

from kernel import Call, Outcome, Tool, Tools
from kernel.errors import DeclinedError, OpcodeError, UsageError
from kernel.tools.functions import declared


class Unit(StrEnum):
    """Of a temperature."""

    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


def forecast(city: str, unit: Unit = Unit.CELSIUS) -> str:
    """Say how warm it will be.

    It asks nobody.

    Args:
        city: where; a town
            will do.
        unit (Unit): of the answer.

    Returns:
        city: no argument at all.
    """
    assert isinstance(unit, Unit)
    return f"{city}: 20 {unit.value}"


def test_a_function_is_declared_by_its_signature_and_docstring() -> None:
    """Types, defaults, and what the docstring says of each argument, over two lines too."""
    entry = declared(forecast)
    assert entry["name"] == "forecast"
    assert entry["description"] == "Say how warm it will be. It asks nobody."
    properties = entry["parameters"]["properties"]
    assert properties["city"] == {"description": "where; a town will do.", "type": "string"}
    assert properties["unit"]["description"] == "of the answer."
    assert entry["parameters"]["required"] == ["city"]


def test_the_function_gets_what_its_signature_says() -> None:
    """Out of JSON: a member of an enum, a date."""

    def days_until(day: datetime.date, since: datetime.date) -> int:
        return (day - since).days

    tools = Tools.of([forecast, days_until])
    assert tools.run(Call("forecast", {"city": "Rome", "unit": "fahrenheit"})) == "Rome: 20 fahrenheit"
    assert tools.run(Call("days_until", {"day": "2027-03-01", "since": "2027-02-27"})) == 2


def test_what_has_no_schema_is_refused_by_name() -> None:
    """A parameter without a name for its caller, and a type that JSON does not have."""

    def place(x: int, /) -> None: ...

    def many(*numbers: int) -> None: ...

    def odd(thing: object.__class__) -> None: ...  # type: ignore[name-defined]

    for function, said in ((place, "'x' has no name"), (many, "'numbers' has no name"), (odd, "odd: ")):
        with pytest.raises(OpcodeError, match=said):
            Tools.of([function])


def test_the_hook_sees_a_call_before_it_runs_and_may_stop_it() -> None:
    """What it raises comes out, and nothing was run."""
    seen: list[Call] = []
    ran: list[int] = []

    def stop(call: Call) -> None:
        seen.append(call)
        if call.arguments["n"] == 2:
            raise ValueError("not two")

    def note(n: int) -> None:
        ran.append(n)

    tools = Tools.of([note], on_call=stop)
    tools.run(Call("note", {"n": 1}))
    with pytest.raises(ValueError, match="not two"):
        tools.run(Call("note", {"n": 2}))
    assert [call.arguments["n"] for call in seen] == [1, 2]
    assert ran == [1]


def test_what_is_dangerous_runs_only_when_somebody_agrees() -> None:
    """Declined, agreed, and nobody there to ask."""
    gone: list[str] = []

    def delete(path: str) -> None:
        gone.append(path)

    call = Call("delete", {"path": "a"})
    with pytest.raises(DeclinedError, match="nobody can be asked"):
        Tools.of([delete], dangerous=["delete"]).run(call)
    with pytest.raises(DeclinedError, match="declined"):
        Tools.of([delete], dangerous=["delete"], confirm=lambda call: False).run(call)
    assert not gone
    Tools.of([delete], dangerous=["delete"], confirm=lambda call: call.name == "delete").run(call)
    assert gone == ["a"]
    with pytest.raises(UsageError, match="did you mean 'delete'"):
        Tools.of([delete], dangerous=["delet"])


def test_a_coroutine_is_awaited_and_a_function_runs_beside_the_loop() -> None:
    """`arun` takes both, `run` only the second."""

    async def slow(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    def quick(n: int) -> int:
        return n + 2

    tools = Tools.of([slow, quick])

    async def both() -> list[int]:
        return [await tools.arun(Call(name, {"n": 1})) for name in ("slow", "quick")]

    assert asyncio.run(both()) == [2, 3]
    with pytest.raises(UsageError, match=r"await tools\.arun"):
        tools.run(Call("slow", {"n": 1}))


def test_where_nothing_was_chosen_nothing_runs() -> None:
    """The outcome is said; a tool without a handler cannot be run either."""
    with pytest.raises(DeclinedError, match="'none'"):
        Tools.of([forecast]).run(Call("", outcome=Outcome.NONE))
    listed = Tools.openai([{"name": "beep", "description": "Beep."}])
    with pytest.raises(UsageError, match="beep: nothing carries it out"):
        listed.run(Call("beep"))


def test_lists_join_and_names_are_told_apart() -> None:
    """Two tools of one name are refused; a name that is none gets a suggestion."""
    tools = Tools.of([forecast]) + Tools.openai([{"name": "beep"}], {"beep": lambda: "beep!"})
    assert [tool.name for tool in tools] == ["forecast", "beep"]
    assert tools.run(Call("beep")) == "beep!"
    with pytest.raises(UsageError, match="two tools are called 'beep'"):
        tools + Tools.openai([{"name": "beep"}])
    with pytest.raises(UsageError, match="did you mean 'forecast'"):
        tools["forcast"]
    with pytest.raises(UsageError, match="no tool 'boop'"):
        Tools.openai([{"name": "beep"}], {"boop": lambda: None})


def test_a_tool_knows_its_opcode() -> None:
    """With the literal type of a signature held as an enum."""

    def lamp(state: Literal["on", "off"]) -> None: ...

    (tool,) = Tools.of([lamp])
    assert isinstance(tool, Tool)
    assert tool.opcode.arguments()[0].accepts("off")
    assert not tool.opcode.arguments()[0].accepts("dim")
