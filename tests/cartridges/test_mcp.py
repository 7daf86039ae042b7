"""Cartridges of MCP servers: what a server lists and says, how it hangs and dies, and what is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cartridges.kit.mcp import Command, make, recorded, serving
from cartridges.kit.mcp.stderr import FINISH_SECONDS, Tail
from kernel.contract import Cartridge
from kernel.errors import ActionFailedError, CartridgeError, UsageError
from kernel.opcode import Halt, Instruction
from kernel.opcode.mcp import listed, result_words

SERVER = Path(__file__).parents[1] / "data" / "mcp_server.py"
WAITED = 5.0


def started(*ways: str, **given: float) -> Cartridge:
    return serving(Command("wall", (sys.executable, "-S", str(SERVER), *ways)), **given)


def do(cartridge: Cartridge, method: str, **arguments: object) -> str:
    return cartridge.engine().apply(Instruction.of(cartridge.name, method, **arguments))


def until(true: Callable[[], bool]) -> bool:
    """Wait for something that another process does."""
    end = time.monotonic() + WAITED
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def children() -> set[str]:
    """Return the commands of the processes that this one has started and that still run."""
    said = subprocess.run(["ps", "-wwo", "stat=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {line for line in said.stdout.splitlines() if str(SERVER) in line and not line.startswith("Z")}


@pytest.fixture(scope="module")
def wall() -> Iterator[Cartridge]:
    """A server that behaves, and is ended by its `live`."""
    cartridge = started("rubbish", call_seconds=0.5)
    assert cartridge.live is not None
    yield cartridge
    cartridge.live.close()
    assert cartridge.live.now() is None


def test_every_tool_becomes_an_opcode_under_its_own_name(wall: Cartridge) -> None:
    """Two pages of a list; a line that is no message is passed over; what may destroy something is asked about."""
    opcodes = [opcode for opcode in wall.opcodes if not issubclass(opcode, Halt)]
    assert [opcode.method for opcode in opcodes] == ["paint", "look", "break", "grow", "hang", "die", "fail"]
    assert [opcode.method for opcode in opcodes if opcode.confirm] == ["break"]
    assert (wall.name, wall.version, wall.acts_outside, wall.takes_requests) == ("wall", "1.0--beta-", True, True)


def test_what_a_server_gives_is_the_result(wall: Cartridge) -> None:
    """Text as it is, JSON that is also given as a structure in one line; `Paint` is called by the server's own name."""
    assert do(wall, "paint", colour="red") == "painted \x1b[31mred"
    assert do(wall, "look") == '{"wall":"red"}'


def test_a_tool_that_fails_or_hangs_is_an_action_that_failed(wall: Cartridge) -> None:
    """`isError` and the time-out; the server answers the next call all the same."""
    with pytest.raises(ActionFailedError, match=r"^wall\.fail: the bucket is empty$"):
        do(wall, "fail")
    with pytest.raises(ActionFailedError, match=r"^wall\.hang: no answer in 0\.5 s$"):
        do(wall, "hang")
    assert do(wall, "look").startswith('{"wall":')


def test_a_server_that_dies_in_the_middle_of_a_call_fails_it_and_is_gone() -> None:
    """What it said last on its stderr stands in the error; nothing of it runs any more."""
    cartridge = started()
    assert cartridge.live is not None
    assert cartridge.live.now() is cartridge
    with pytest.raises(ActionFailedError, match=r"^wall\.die: the server has ended; it said: the wall fell on me$"):
        do(cartridge, "die")
    assert cartridge.live.now() is None
    with pytest.raises(ActionFailedError, match="the server has ended"):
        do(cartridge, "look")


def test_a_list_that_changes_makes_another_cartridge() -> None:
    """The server says so, the next look at it asks for the list; a list that has not changed changes nothing."""
    cartridge = started()
    live = cartridge.live
    assert live is not None
    do(cartridge, "grow")
    assert until(lambda: live.now() is not cartridge)
    grown = live.now()
    assert grown is not None
    assert [o.method for o in grown.opcodes][-2:] == ["sing", "halt"]
    assert do(grown, "sing") == "sing is done"
    do(grown, "grow")  # says again that it has changed, with the same list
    do(grown, "look")
    assert live.now() is grown
    live.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("no-such-program",), "cannot be started: 'no-such-program': No such file or directory"),
        ((str(SERVER.parent),), "cannot be started: .*: Permission denied"),
        ((sys.executable, str(SERVER), "dead"), "has ended before it answered; it said: no wall here"),
        ((sys.executable, str(SERVER), "silent"), "has not answered in 0.4 s"),
        (("sh", "-c", "echo rubbish; sleep 50"), "0.4 s; it wrote 'rubbish' to stdout, which is no message of MCP"),
    ],
)
def test_a_server_that_does_not_start_says_why_and_leaves_no_process(
    words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong command, one that ends, one that hangs, one that writes what is no protocol."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)  # the SDK's patience with one that hangs
    with pytest.raises(CartridgeError, match=why):
        serving(Command("wall", words), start_seconds=0.4)
    assert not {line for line in children() if line.split()[-1] in ("dead", "silent")}


def test_only_what_is_named_of_the_environment_reaches_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret of ours stays here; a variable of the settings is there."""
    monkeypatch.setenv("SECRET", "swordfish")
    said = 'import os, sys; sys.exit(f\'{os.environ.get("SECRET")} {os.environ.get("TOKEN")}\')'
    with pytest.raises(CartridgeError, match=r"it said: None mine$"):
        serving(Command("wall", (sys.executable, "-c", said), {"TOKEN": "mine"}))


def test_the_last_words_of_a_server_are_read_before_they_are_told() -> None:
    """What is written just before the end is there behind `finish`; a file that others hold open is not waited for."""
    for n in range(100):
        tail = Tail()
        tail.file.write(f"first\nline {n}\n\n")
        tail.close()
        tail.finish()
        assert tail.last == f"line {n}"
    held = Tail()
    other = os.dup(held.file.fileno())
    held.close()
    begun = time.monotonic()
    held.finish()
    os.close(other)
    assert FINISH_SECONDS <= time.monotonic() - begun < WAITED


def test_a_log_makes_the_cartridge_again_without_the_server(wall: Cartridge) -> None:
    """The same opcodes, in the same words; a call says that nobody is there, an answer is recalled."""
    again = recorded(wall.name, wall.version, **{n: str(v) for n, v in wall.options.items()})
    assert [(o.method, o.confirm, o.__doc__) for o in again.opcodes] == [
        (o.method, o.confirm, o.__doc__) for o in wall.opcodes
    ]
    assert again.live is None
    with pytest.raises(ActionFailedError, match="there is no server behind a log"):
        do(again, "look")
    engine, other = again.engine(), wall.engine()
    engine.recall(Instruction.of("wall", "look"), "white")
    other.recall(Instruction.of("wall", "look"), "white")
    assert engine.state_hash() == other.state_hash()
    assert recorded(again.name, again.version, str(again.options["mcp"])).options == again.options


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"name": "a", "url": "http://127.0.0.1/mcp"}, "'a' is reached by a URL; only commands are started"),
        ({"name": "a"}, "is no command with its arguments"),
        ({"name": "a", "command": "x", "args": "y"}, "args: 'y' is no list"),
        ({"name": "a", "command": "x", "args": [1]}, "is no command with its arguments"),
        ({"name": "a", "command": "x", "env": {"A": 1}}, "env: {'A': 1} is no object of strings"),
    ],
)
def test_an_entry_that_is_none_names_its_field(entry: dict[str, object], why: str) -> None:
    """Nothing is started."""
    with pytest.raises(UsageError, match=why):
        make(json.dumps(entry))


def test_hints_that_are_not_there_mean_what_the_protocol_says() -> None:
    """Without `readOnlyHint` a tool may write, and without `destructiveHint` what it writes over is gone."""
    hints = [None, {"readOnlyHint": True}, {"destructiveHint": False}, {"readOnlyHint": False}, {"title": "x"}, []]
    found = listed([{"name": str(n), "annotations": each} for n, each in enumerate(hints)])
    assert [tool["annotations"]["destructiveHint"] for tool in found] == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": []}, ""),
        ({}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}, "[image image/png]"),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}, "inside"),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AA"}}]}, "[resource file:///a]"),
        ({"content": [{"type": "resource_link", "uri": "file:///b"}]}, "[resource_link file:///b]"),
        ({"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}, "3"),
        ({"content": "what", "structuredContent": {"result": 3}}, '{"result":3}'),
    ],
)
def test_every_kind_of_content_is_said_in_text(result: dict[str, object], said: str) -> None:
    """Bytes of pictures and files are no text for a model or a log."""
    assert result_words(result) == said
