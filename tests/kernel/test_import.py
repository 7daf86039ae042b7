"""Tool lists: what is read, what is refused alone, how names become methods, what `import` writes."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dispatch.cli.import_ import import_command
from dispatch.loading.registry import load
from dispatch.wire.form import form
from dispatch.wire.open_arguments import ArgumentWriter
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.llama_cpp import read_vocabulary
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, IllegalInstructionError, OpcodeError
from kernel.opcode import NAME, Instruction, Opcode
from kernel.opcode.tools import method_of, read_tools
from kernel.shape.listing import texts
from kernel.shape.recogniser import Recogniser
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages

app = typer.Typer()
app.command()(import_command)

WEATHER = {
    "name": "get_weather",
    "description": "Current weather. In any city.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 40}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city"],
    },
}
TIMER = {
    "type": "function",
    "function": {
        "name": "set-timer",
        "description": "Start a timer.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 180}},
            "required": ["minutes"],
        },
    },
}
MISSPELT = {"name": "bad", "inputSchema": {"properties": {"c": {"type": "string", "maxlenght": 3}}}}


def test_one_awkward_tool_does_not_disable_the_others() -> None:
    """The cases of the public reports: no properties, no schema, a long cap, an enum, and one that is misspelt."""
    post = {"name": "post", "parameters": {"properties": {"text": {"type": "string", "maxLength": 2000}}}}
    mode = {"name": "set_mode", "parameters": {"properties": {"mode": {"enum": ["a", "b", "c"]}}, "required": ["mode"]}}
    ping = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    found = read_tools([ping, post, MISSPELT, mode, {"name": "calc"}])
    assert [opcode.method for opcode in found.opcodes] == ["ping", "post", "set_mode", "calc"]
    assert [refusal.tool for refusal in found.refusals] == ["bad"]
    assert "bad: $.properties.c: maxlenght: unknown keyword; did you mean 'maxLength'?" in found.refusals[0].reason
    by_name = {opcode.method: opcode for opcode in found.opcodes}
    for name in ("ping", "calc"):
        assert list(texts(form("tagged").shape("toy", by_name[name]))) == [f"<|call|>toy.{name} {{}}<|/call|>\n"]
    reader = Recogniser(by_name["post"].arguments()[0].shape)
    assert [reader.accepts(json.dumps("x" * n)) for n in (2000, 2001)] == [True, False]


@pytest.mark.parametrize(
    "source",
    [
        [WEATHER, TIMER],
        {"tools": [WEATHER, TIMER]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [WEATHER, TIMER]}},
        json.dumps([WEATHER, TIMER]),
    ],
)
def test_the_usual_forms_of_a_tool_list_are_read(source: Any) -> None:
    """OpenAI's and MCP's tools, as a list, under `tools`, as the answer of a server, as text."""
    found = read_tools(source)
    assert [(o.method, o.original, o.__doc__) for o in found.opcodes] == [
        ("get_weather", "get_weather", "Current weather. In any city."),
        ("set-timer", "set-timer", "Start a timer."),
    ]


@pytest.mark.parametrize("source", ["{", "3", '{"a": 1}', Path("nowhere.json"), "null"])
def test_what_is_no_tool_list_is_refused(source: Any) -> None:
    """One error, no traceback of json."""
    with pytest.raises(OpcodeError):
        read_tools(source)


def test_names_that_become_the_same_are_refused_whichever_comes_first() -> None:
    """All of them are named in each refusal; the others stay, in any order of loading."""
    names = ["shelf-scan", "shelf_scan", "shelf.scan", "shelf/scan", "scan", "再起動", "x" * 130]
    wanted = {"scan": "scan", "再起動": "u518d_u8d77_u52d5", "x" * 130: "x" * 130}
    for order in itertools.islice(itertools.permutations(names), 0, 5040, 97):
        found = read_tools([{"name": name} for name in order])
        assert {opcode.original: opcode.method for opcode in found.opcodes} == wanted
        assert sorted(refusal.tool for refusal in found.refusals) == [
            "shelf-scan",
            "shelf.scan",
            "shelf/scan",
            "shelf_scan",
        ]
        for refusal in found.refusals:
            assert "'shelf-scan', 'shelf.scan', 'shelf/scan', 'shelf_scan' would all be 'shelf_scan'" in refusal.reason


def test_every_method_is_a_name_that_the_wire_parses_back() -> None:
    """The text of each opcode is an instruction of its own server and tool."""
    names = ["a.b/c", "UPPER", "9lives", "über-tool", "再起動", "-x", "_y", "a b", "z" * 130]
    found = read_tools([{"name": name} for name in names])
    assert [opcode.original for opcode in found.opcodes] == names
    cartridges = [Cartridge(server, "1", "", found.opcodes, None, None) for server in ("one", "two")]  # type: ignore[arg-type]
    wire = Wire(cartridges, form("tagged"))
    for server, opcode in itertools.product(("one", "two"), found.opcodes):
        (text,) = texts(form("tagged").shape(server, opcode))
        assert wire.parse(text) == Instruction(server, opcode.method)


def test_a_method_is_always_a_name() -> None:
    """Whatever a server calls its tool."""
    for name in ["", "x", "...", "A.B", "日本", "🦙", "a🦙b", "3", "_", "-", "halt", "\n"]:
        assert NAME.fullmatch(method_of(name)), name
    assert method_of("日本") != method_of("本日")


def test_the_shared_halt_cannot_be_a_tool() -> None:
    """A tool of that name would end the session."""
    found = read_tools([{"name": "halt"}, {"name": "ping"}])
    assert [refusal.reason for refusal in found.refusals] == ["halt: $: name: 'halt' ends a session; rename the tool"]


def test_an_imported_opcode_checks_its_arguments() -> None:
    """Missing, unknown, wrong, doubled: each error names method and argument; types and order survive."""
    weather = read_tools([WEATHER]).opcodes[0]
    right = weather.from_arguments('{"unit":"celsius","city":"Köln"}')
    assert right.instruction("toy") == Instruction.of("toy", "get_weather", city="Köln", unit="celsius")
    for wrong, reason in [
        ('{"unit":"celsius"}', r"get_weather\.city: is missing"),
        ('{"city":"K","wind":1}', r"get_weather\.wind: there is no such argument; there is: city, unit"),
        ('{"city":1}', r"get_weather\.city: 1 does not satisfy"),
        ('{"city":"K","unit":"kelvin"}', r"get_weather\.unit: 'kelvin' does not satisfy"),
        ('{"city":"K","city":"L"}', "an argument comes twice"),
        ('{"city":NaN}', "NaN is no JSON number"),
        ("[1]", "no object of arguments"),
    ]:
        with pytest.raises(OpcodeError, match=reason):
            weather.from_arguments(wrong)


def test_a_key_of_a_map_that_comes_twice_counts_once() -> None:
    """No grammar can tell, so the last one counts, as everywhere in JSON; an argument must not come twice."""
    tool = {"name": "t", "parameters": {"properties": {"m": {"type": "object"}, "n": {"type": "integer"}}}}
    opcode = read_tools([tool]).opcodes[0]
    assert opcode.from_arguments('{"m":{"a":1,"a":2}}').values == {"m": {"a": 2}}
    with pytest.raises(OpcodeError, match=r"an argument comes twice in \['n', 'n'\]"):
        opcode.from_arguments('{"n":1,"n":2}')


def test_a_schema_may_be_a_dict_a_text_or_a_file(tmp_path: Path) -> None:
    """All three give the same opcode."""
    schema = {"properties": {"times": {"enum": [1, "1"]}}, "required": ["times"]}
    file = tmp_path / "beep.json"
    file.write_text(json.dumps(schema))
    for source in (schema, json.dumps(schema), file, str(file)):
        beep = Opcode.from_json_schema("beep", source)
        assert [value.instruction("toy").args for value in beep.instances()] == [{"times": 1}, {"times": "1"}]
    with pytest.raises(OpcodeError, match="cannot be read"):
        Opcode.from_json_schema("beep", tmp_path / "gone.json")
    with pytest.raises(OpcodeError, match="no JSON"):
        Opcode.from_json_schema("beep", "{")


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; modules that a test imports from it are forgotten."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path  # type: ignore[misc]
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("mytools", "others"):
            del sys.modules[name]
    importlib.invalidate_caches()


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=text)


def test_import_writes_a_cartridge_that_runs(folder: Path) -> None:
    """Files, report, and the calls of what was written; what is filled in is what it answers."""
    Path("tools.json").write_text(json.dumps([WEATHER, TIMER, MISSPELT]))
    result = run("tools.json", "-o", "mytools")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"mytools/{name}" for name in ("README.md", "__init__.py", "handlers.py", "tools.json")
    ]
    assert "refused: bad: $.properties.c: maxlenght" in result.stderr
    assert "2 tools written, 1 refused" in result.stderr
    handlers = folder / "mytools" / "handlers.py"
    handlers.write_text(handlers.read_text().replace("'get_weather is not filled in yet'", "[city, unit]"))
    cartridge = load("./mytools")
    engine = cartridge.engine()
    engine.reset(0)
    assert engine.apply(Instruction.of("mytools", "get_weather", city="Oslo")) == '["Oslo",null]'
    assert engine.apply(Instruction.of("mytools", "set-timer", minutes=5)) == "set-timer is not filled in yet"
    assert engine.summary() == {"calls": 2}
    assert len(engine.legal()) == 180
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match=r"mytools.set-timer.minutes: 181 does not satisfy"):
        engine.apply(Instruction.of("mytools", "set-timer", minutes=181))
    with pytest.raises(IllegalInstructionError, match="did you mean 'set-timer'"):
        engine.apply(Instruction.of("mytools", "set-time", minutes=1))
    assert engine.state_hash() == before
    assert engine.copy().state_hash() == before


def test_import_says_what_is_wrong(folder: Path) -> None:
    """A folder that is there, a name that cannot be, no tool, --strict, a file that is none: one line, exit 1 or 2."""
    Path("tools.json").write_text(json.dumps([TIMER, MISSPELT]))
    Path("none.json").write_text("[]")
    assert run("tools.json", "-o", "mytools").exit_code == 0
    for arguments, code, message in [
        (("tools.json", "-o", "mytools"), 2, "is there already"),
        (("tools.json", "-o", "my-tools"), 2, "cannot name a cartridge"),
        (("tools.json", "-o", "strict", "--strict"), 2, "1 refused, the first: bad"),
        (("none.json", "-o", "others"), 1, "there is no tool to import"),
        (("gone.json", "-o", "others"), 1, "cannot be read"),
    ]:
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert message in result.stderr
        assert len(result.stderr.splitlines()) <= 2
    assert not (folder / "others").exists()


def test_import_reads_stdin_and_prints_json(folder: Path) -> None:
    """One document with files, names, refusals and notes."""
    del folder
    tool = {"name": "a.b", "parameters": {"type": "dict", "properties": {"x": {"type": "float", "title": "X"}}}}
    result = run("-", "-o", "mytools", "--json", text=json.dumps([tool, MISSPELT]))
    report = json.loads(result.stdout)
    assert report["tools"] == {"a.b": "a_b"}
    assert [entry["tool"] for entry in report["refused"]] == ["bad"]
    assert {
        "tool": "a.b",
        "path": "$.properties.x",
        "keyword": "type",
        "text": "'float' is read as 'number'",
    } in report["notes"]
    assert json.loads(Path("mytools/tools.json").read_text())["tools"][0]["inputSchema"]["type"] == "object"


def test_a_tool_without_its_function_is_named(folder: Path) -> None:
    """A handler that was renamed is missed when the cartridge is made, not when it is called."""
    Path("tools.json").write_text(json.dumps([TIMER]))
    run("tools.json", "-o", "mytools")
    file = folder / "mytools" / "handlers.py"
    file.write_text(file.read_text().replace("def set_timer", "def renamed"))
    with pytest.raises(CartridgeError, match="has no function 'set_timer'"):
        load("./mytools")


def test_a_request_becomes_a_call(folder: Path, vocab_ggufs: dict[str, Path]) -> None:
    """The method is chosen by whole-opcode scores, the arguments are written behind it, the text parses back."""
    del folder
    vocabulary = read_vocabulary(vocab_ggufs["gpt-2"])
    Path("tools.json").write_text(json.dumps([WEATHER, TIMER]))
    run("tools.json", "-o", "mytools")
    cartridge = load("./mytools")
    wish = vocabulary.plain('<|call|>mytools.set-timer {"minutes":120}<|/call|>\n')

    def row(before: tuple[int, ...]) -> Any:
        out = np.zeros(len(vocabulary), np.float32)
        for length in range(len(wish)):
            if length == 0 or list(before[-length:]) == wish[:length]:
                out[wish[length]] = 5 + length
        return out

    kernel = Kernel(ScriptedBackend(vocabulary, row))
    engine = cartridge.engine()
    prompt = cartridge.view.prompt(engine, (), "two hours please")
    call = ArgumentWriter(kernel).call(Wire([cartridge], form("tagged")), prompt, rule=Rule(RuleName.EXACT))
    assert call.instruction == Instruction.of("mytools", "set-timer", minutes=120)
    assert call.decision is not None
    assert sorted(call.decision.texts) == ["get_weather", "set-timer"]
    assert call.written.closed == 0
    assert Matcher(Stages([form("tagged").shape("mytools", cartridge.opcodes[1])], vocabulary)).ending()
