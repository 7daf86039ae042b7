"""`mcp`: what MCP's own client sees of served cartridges, in this process and over the pipes of another one."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jsonschema
import pytest
import typer
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ElicitResult
from typer.testing import CliRunner

from dispatch.cli.mcp import mcp_command
from dispatch.log.reader import LogReader
from dispatch.log.records import Ending
from dispatch.mcp.server import made
from dispatch.mcp.tools import Tools
from dispatch.session.players import Choice
from dispatch.session.session import Session
from dispatch.session.situation import Situation
from kernel.api import Kernel
from kernel.contract import Cartridge, Option
from kernel.errors import ActionFailedError, UsageError
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Prompt, asked
from tests.dispatch.conftest import scripted

ROOT = Path(__file__).resolve().parents[2]

app = typer.Typer()
app.command()(mcp_command)


class Knock(Opcode):
    """Knock."""


class Force(Opcode):
    """Force it open."""

    confirm = True


class Jam(Opcode):
    """Jam it."""


class Door:
    """Counts what was done to it; jamming fails."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.done: list[str] = []

    def legal(self) -> Sequence[Instruction]:
        return [Instruction.of("door", method) for method in ("knock", "force", "jam")] if self.ended() is None else []

    def apply(self, instruction: Instruction) -> str:
        print("a door that talks to stdout")
        if instruction.method == "jam":
            raise ActionFailedError("door.jam: it will not")
        self.done.append(instruction.method)
        return f"{len(self.done)} done"

    def copy(self) -> Self:
        twin = type(self)()
        twin.done = self.done.copy()
        return twin

    def state_hash(self) -> str:
        return repr(self.done)

    def ended(self) -> str | None:
        return "open" if len(self.done) == 3 else None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"done": len(self.done)}


class DoorView:
    """Shows nothing."""

    def prompt(self, engine: Door, options: Sequence[Option], request: str = "") -> Prompt:
        return asked(request)

    def render(self, engine: Door) -> str:
        return ""


DOOR = Cartridge("door", "1", "A door.", (Knock, Force, Jam), Door, DoorView(), takes_requests=True, acts_outside=True)


class Obeys:
    """Does what the request names."""

    name = "scripted"
    asked = ""

    def choose(self, situation: Situation) -> Choice:
        said = situation.prompt.parts[1].text.split()[-1]  # type: ignore[union-attr]
        return Choice(Instruction.of("door", said))

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        pass


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return scripted()


@pytest.fixture
def tools(kernel: Kernel) -> Tools:
    return Tools(Session([DOOR], Obeys()), kernel)


def talk(tools: Tools, what: Callable[[Client], Awaitable[Any]], **given: Any) -> Any:
    """Let a client say something to a server of these tools, in this process."""

    async def said() -> Any:
        async with Client(made("door", tools), **given) as client:
            return await what(client)

    return asyncio.run(said())


def ask(request: str, **more: object) -> Callable[[Client], Awaitable[Any]]:
    return lambda client: client.call_tool("request", {"request": request, **more})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_sees_two_tools_and_what_they_may_do(tools: Tools, mode: str) -> None:
    """In both eras of the protocol; the schemas are ones, and the hints say that the door may be destroyed."""
    found = talk(tools, lambda client: client.list_tools(), mode=mode).tools
    assert [tool.name for tool in found] == ["request", "choose"]
    for tool in found:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    assert "door: A door." in (found[0].description or "")
    hints = [tool.annotations.model_dump(exclude_none=True) for tool in found]
    assert hints == [
        {"read_only_hint": False, "destructive_hint": True, "open_world_hint": True},
        {"read_only_hint": True, "open_world_hint": False},
    ]


def test_a_request_is_carried_out_and_the_state_stays(tools: Tools) -> None:
    """Each call is one turn of one session; the text is the structured content as JSON."""

    async def twice(client: Client) -> list[Any]:
        return [await client.call_tool("request", {"request": "please knock"}) for _ in range(2)]

    first, second = talk(tools, twice)
    assert (first.structured_content["result"], second.structured_content["result"]) == ("1 done", "2 done")
    assert json.loads(first.content[0].text) == first.structured_content
    assert first.structured_content["instruction"] == {"cartridge": "door", "method": "knock", "arguments": {}}
    assert (first.is_error, first.structured_content["done"]) == (False, True)


@pytest.mark.parametrize(
    ("action", "done", "why"),
    [
        ("accept", True, ""),
        ("decline", False, "nothing was done: declined"),
        ("cancel", False, "nothing was done: nobody has agreed to it"),
        (None, False, "nothing was done: nobody has agreed to it"),
    ],
)
def test_what_somebody_has_to_agree_to_is_asked_of_the_person_behind_the_client(
    tools: Tools, action: Any, done: bool, why: str
) -> None:
    """A client that cannot ask is one where nobody has agreed."""
    asked_of: list[str] = []

    async def answer(context: object, params: Any) -> ElicitResult:
        asked_of.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    given = {} if action is None else {"elicitation_callback": answer}
    found = talk(tools, ask("now force"), mode="legacy", **given).structured_content
    assert (found["done"], found["why"]) == (done, why)
    assert asked_of == ([] if action is None else ["door.force(): shall it be done?"])
    assert tools.session.engines["door"].summary() == {"done": int(done)}
    assert tools.session.pending is None


def test_what_is_agreed_to_beforehand_is_not_asked(tools: Tools) -> None:
    """`--yes`."""
    tools.session.yes = True
    assert talk(tools, ask("now force")).structured_content["done"] is True


def test_a_failure_is_told_and_the_session_goes_on_until_its_rules_end_it(tools: Tools) -> None:
    """What fails outside is no error of the protocol; behind the end every call is one."""

    async def all_of_it(client: Client) -> list[Any]:
        words = ["jam", "knock", "knock", "knock", "knock"]
        return [await client.call_tool("request", {"request": word}) for word in words]

    found = talk(tools, all_of_it)
    assert [each.is_error for each in found] == [False, False, False, False, True]
    told = found[0].structured_content
    assert (told["done"], told["result"]) == (False, "door.jam: it will not")
    assert found[4].content[0].text == "the session has ended: open; start the server again"


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("request", {}, "request: .*Field required"),
        ("request", {"request": ""}, "request: '': String should have at least 1 character"),
        ("request", {"request": 3}, "request: 3: Input should be a valid string"),
        ("request", {"request": "x", "yes": True}, "yes: True: Extra inputs are not permitted"),
        ("choose", {"prompt": "a", "options": ["b"]}, "options: .*at least 2 items"),
        ("choose", {"prompt": "a", "options": ["b", "b"]}, "option"),
        ("open", {}, "there is no tool 'open'; there is: request, choose"),
    ],
)
def test_arguments_that_are_none_are_an_error_in_one_line(
    tools: Tools, tool: str, arguments: dict[str, object], why: str
) -> None:
    """The client's model reads it; nothing was done."""
    found = talk(tools, lambda client: client.call_tool(tool, arguments))
    assert found.is_error
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(found.content[0].text)
    assert tools.session.tally.decisions == 0


def test_choose_answers_as_the_kernel_does(tools: Tools, kernel: Kernel) -> None:
    """Small letters are likelier than digits, for this model."""
    wanted = {"prompt": "say:", "options": ["123", "abc"]}
    found = talk(tools, lambda client: client.call_tool("choose", wanted)).structured_content
    direct = kernel.choose("say:", ["123", "abc"])
    assert (found["text"], found["outcome"]) == ("abc", "chosen")
    assert found["probabilities"] == {t: round(p, 6) for t, p in direct.probabilities.items()}


COMMAND = """
import sys
from tests.dispatch.conftest import without_models
without_models()
import dispatch.cli
sys.argv = ["kernel", *sys.argv[1:]]
dispatch.cli.main()
"""


def started(*arguments: object) -> list[str]:
    """Return the command of a process that serves, with scripted models in the place of real ones."""
    return [sys.executable, "-c", COMMAND, "mcp", *map(str, arguments)]


def test_nothing_but_the_protocol_is_on_stdout_and_the_log_has_the_session(tmp_path: Path) -> None:
    """Over the pipes of another process, with a cartridge that prints; the end of stdin ends both."""
    (tmp_path / "talks.py").write_text(
        "from tests.dispatch.test_mcp_command import *\n\n\ndef make() -> Cartridge:\n    return DOOR\n"
    )
    log = tmp_path / "log"
    words = started(tmp_path / "talks.py", "--log", log, "--always")

    async def said() -> Any:
        with (tmp_path / "stderr").open("w") as errors:
            program = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
            async with Client(stdio_client(program, errlog=errors)) as client:
                return await client.call_tool("request", {"request": "knock"})

    found = asyncio.run(said())
    assert found.structured_content["outcome"] == "chosen", found
    with LogReader(log) as reader:
        assert [record.request for record in reader] == ["knock"]
        assert reader.outcome is not None
        assert (reader.outcome.ending, reader.outcome.detail) == (Ending.LIMIT, "no more requests")


SERVED = """
import sys
from tests.dispatch.conftest import scripted
from tests.dispatch.test_mcp_command import DOOR, Obeys
from dispatch.mcp.server import serve
from dispatch.mcp.tools import Tools
from dispatch.session.session import Session
serve("door", Tools(Session([DOOR], Obeys()), scripted()))
"""


def test_the_client_of_npm_is_answered(tmp_path: Path) -> None:
    """Another SDK, in another language, asks the person behind it; a cartridge that prints disturbs nothing."""
    node, sdk = shutil.which("node"), ROOT / ".cache" / "mcp" / "node_modules" / "@modelcontextprotocol" / "sdk"
    if node is None or not sdk.is_dir():
        said = "the SDK of npm is not here: make setup-mcp"
        if os.environ.get("KERNEL_NEEDS_MCP"):
            pytest.fail(said)
        pytest.skip(said)
    client = ROOT / "tests" / "data" / "mcp" / "client.mjs"
    words = [node, str(client), str(sdk), sys.executable, "-c", SERVED]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["server"]["name"] == "door"
    assert [tool["name"] for tool in found["tools"]] == ["request", "choose"]
    assert [each["structuredContent"]["result"] for each in found["told"]] == ["1 done", "2 done"]
    assert found["asked"] == ["door.force(): shall it be done?"]


def test_a_signal_ends_it_at_once_and_its_log_with_it(tmp_path: Path) -> None:
    """Although it waits for a line on stdin that never comes."""
    log = tmp_path / "log"
    server = subprocess.Popen(
        started("home", "--log", log), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None
    assert server.stdout is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    server.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
    )
    server.stdin.flush()
    assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "home"
    begun = time.monotonic()
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 128 + signal.SIGTERM
    assert time.monotonic() - begun < 5
    server.stdin.close()
    server.stdout.close()
    with LogReader(log) as reader:
        assert list(reader) == []
        assert reader.outcome is not None
        assert reader.outcome.ending is Ending.INTERRUPTED


def test_arguments_of_the_command_are_checked_before_a_client_is_waited_for() -> None:
    """One line on stderr, exit code 2."""
    done = CliRunner().invoke(app, ["hom"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "did you mean 'home'" in done.stderr


def test_no_tool_is_called_twice_at_a_time(tools: Tools) -> None:
    """The arguments are read before the session is waited for."""
    with tools.lock, pytest.raises(UsageError, match="request"):
        tools.call("request", {}, lambda instruction: None)
