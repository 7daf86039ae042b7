"""What `import` writes: no text of a list becomes code, names do not meet, and it is all there or nothing is."""

from __future__ import annotations

import ast
import errno
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dispatch.cli.import_ import import_command
from dispatch.cli.new import new_command
from dispatch.loading import pycode
from dispatch.loading.folder import filled
from dispatch.loading.registry import load
from dispatch.loading.toolwriter import writable, write
from kernel.errors import CartridgeError, UsageError
from kernel.opcode.tools import function_name, method_of, read_tools

app = typer.Typer()
app.command("import")(import_command)
app.command("new")(new_command)

HOSTILE = ['"""', "'''", "\\", '"', "'", "\0", "\n", "\r", "\r\n", "\x85", "\u2028", "\u202e", "\u2066", "`", "{x}"]
PLACES = range(95, 106)


def run(*arguments: object, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), input=text)


def written(folder: Path, listed: list[dict[str, Any]], source: str = "tools.json") -> dict[str, str]:
    """Return the files that a tool list becomes, by name."""
    return {file.name: file.read_text("utf-8") for file in write(writable(read_tools(listed)), folder, source)}


def functions(text: str) -> dict[str, str | None]:
    """Return the docstrings of a module's functions, by name, and hold that there is nothing else in it but imports."""
    tree = ast.parse(text)
    assert all(isinstance(each, ast.FunctionDef | ast.ImportFrom) for each in tree.body[1:])
    return {each.name: ast.get_docstring(each, clean=False) for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
def test_no_description_ends_its_docstring(tmp_path: Path, hostile: str) -> None:
    """What could end a literal stands at each place around the cut: one function a tool, its text as it was cut."""
    listed = [{"name": f"t{at}", "description": "x" * at + hostile + ";print('RAN')#"} for at in PLACES]
    found = functions(written(tmp_path / "mytools", listed)["handlers.py"])
    assert found == {each["name"]: " ".join(each["description"].split())[:100] for each in listed}


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
def test_no_field_becomes_code(tmp_path: Path, hostile: str) -> None:
    """Name, title, default, enum, arguments, file: each may hold what ends a literal; only definitions are written."""
    bad = f'{hostile}\nprint("RAN")\ndef g():\n    {hostile}'
    part = {"enum": [bad, "b"], "title": bad, "description": bad, "default": bad}
    listed = [
        {"name": bad},
        {"name": "b", "inputSchema": {"properties": {bad: part, "c": part}, "required": [bad], "title": bad}},
    ]
    files = written(tmp_path / "mytools", listed, source=bad)
    assert sorted(functions(files["handlers.py"])) == sorted([function_name(method_of(bad)), "b"])
    assert functions(files["__init__.py"]) == {"make": "Return the cartridge."}
    assert [tool["name"] for tool in json.loads(files["tools.json"])["tools"]] == [bad, "b"]
    assert len(files["README.md"].splitlines()) == 8
    for name, text in files.items():  # Markdown, Python and JSON alike: nothing in them hides or turns around
        assert all(c.isprintable() or c == "\n" for c in text), name


def test_the_name_of_a_file_in_another_encoding_is_shown_in_escapes(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 come as halves of surrogate pairs, which no text file holds; a backtick ends no span."""
    files = written(tmp_path / "mytools", [{"name": "a"}], source="x\udcff`.json")
    assert r"imported from `x\udcff\x60.json`." in files["README.md"]
    assert (ast.get_docstring(ast.parse(files["__init__.py"])) or "").startswith(r"1 tools out of x\udcff`.json.")


def test_importing_what_was_written_prints_nothing(tmp_path: Path) -> None:
    """In a process of its own: the package is imported, its cartridge made, every tool called."""
    listed = [{"name": f"t{n}", "description": f"{bad}\nprint('RAN')\n{bad}"} for n, bad in enumerate(HOSTILE)]
    written(tmp_path / "mytools", listed)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mytools; engine = mytools.make().engine()\n"
        "for call in engine.legal(): assert engine.apply(call).endswith('is not filled in yet')\n"
        f"assert engine.summary() == {{'calls': {len(listed)}}}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("argument", "spelled"),
    [
        *((name, True) for name in ("city", "größe", "id", "match", "x" * 200)),
        *((name, False) for name in ("\ufb01", "e\u0301", "__debug__", "a-b", "class", "Any", "x" * 201, "")),
    ],
)
def test_an_argument_that_python_would_read_as_another_is_not_spelled(argument: str, spelled: bool) -> None:
    """Keywords, names that are normalised, names with a meaning: the function takes `**arguments`."""
    made = pycode.function("f", [pycode.Parameter("a", "int", True), pycode.Parameter(argument, "str", False)], "", "")
    text = pycode.source(ast.Module([made], []))
    assert (
        text.startswith(f"def f(*, a: int, {argument}:" if spelled else "def f(**arguments: Any)") or len(argument) > 99
    )
    assert ("**arguments" in text) is not spelled


def test_arguments_that_normalise_to_one_another_are_both_kept(tmp_path: Path) -> None:
    """The ligature and its two letters are two names of JSON and one of Python."""
    properties = {"\ufb01": {"type": "boolean"}, "fi": {"type": "boolean"}}
    text = written(tmp_path / "mytools", [{"name": "t", "inputSchema": {"properties": properties}}])["handlers.py"]
    assert "def t(**arguments: Any) -> Any:" in text


def test_tools_with_one_function_are_refused_whatever_their_order(tmp_path: Path) -> None:
    """Both are named, in each refusal; the tool beside them is written."""
    for number, names in enumerate(itertools.permutations(["a-b", "a_b", "print", "print-", "fine"])):
        found = writable(read_tools([{"name": name} for name in names]))
        assert [tool.name for tool in found.tools] == ["fine"]
        reasons = sorted(refusal.reason for refusal in found.refusals)
        assert all("'a-b', 'a_b' would all be 'a_b'" in reason for reason in reasons[:2]), reasons
        assert all("'print', 'print-' would all be 'print_'" in reason for reason in reasons[2:]), reasons
        if not number:
            write(found, tmp_path / "mytools", "tools.json")


@pytest.mark.parametrize("name", ["x" * 110, "x" * 200, "x" * 201, "x" * 100_000, "é" * 60], ids=len)
def test_a_long_name_works_or_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """At most 200 letters; a refusal names the tool without saying all of it, whatever its arguments."""
    arguments = {"properties": {"a-b": {"type": "boolean"}}}
    found = writable(read_tools([{"name": name, "inputSchema": arguments}, {"name": "fine"}]))
    if len(method_of(name)) <= 200:
        write(found, tmp_path / "mytools", "tools.json")
        assert len(found.tools) == 2
    else:
        (refusal,) = found.refusals
        assert name[:40] in refusal.reason
        assert "a tool's name may have 200" in refusal.reason
        assert len(refusal.reason) < 200


def test_what_json_cannot_hold_refuses_its_tool_only() -> None:
    """A default beyond all numbers would be read back as no JSON; the tool beside it stays."""
    bad = {"name": "bad", "inputSchema": {"properties": {"a": {"type": "boolean", "default": float("inf")}}}}
    found = writable(read_tools([bad, {"name": "fine"}]))
    assert [tool.name for tool in found.tools] == ["fine"]
    assert found.refusals[0].reason.startswith("bad: ")


def test_nothing_to_write_exits_with_1(tmp_path: Path) -> None:
    """An empty list, and one of which every tool is refused; nothing is left."""
    for listed in ("[]", '[{"name": "a-b"}, {"name": "a_b"}]'):
        done = run("import", "-", "-o", tmp_path / "mytools", text=listed)
        assert (done.exit_code, list(tmp_path.iterdir())) == (1, [])
        assert done.stderr.splitlines()[-1] == "error: stdin: there is no tool to import"


CUT = "x" * 99
BROKE_OUT: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    "name": ("tools.json", [{"name": 'a"""\nprint("RAN")\ndef g():\n    """'}], ["a_print__ran___def_g___________"]),
    "halves": (
        "tools.json",
        [{"name": "a", "description": CUT + "\\"}, {"name": "b-c", "description": ";print('RAN')#"}, {"name": "b_c"}],
        ["a"],
    ),
    "quote": ("tools.json", [{"name": "a", "description": CUT + '"b'}], ["a"]),
    "nul": ("tools.json", [{"name": "a", "description": "x\0y"}], ["a"]),
    "ligature": (
        "tools.json",
        [{"name": "a", "inputSchema": {"properties": {"\ufb01": {"enum": [1]}, "fi": {}}}}],
        ["a"],
    ),
    "debug": ("tools.json", [{"name": "a", "inputSchema": {"properties": {"__debug__": {"enum": [1]}}}}], ["a"]),
    "long": ("tools.json", [{"name": "x" * 110}], ["x" * 110]),
    "file": ('x""".json', [{"name": "a"}], ["a"]),
    "twins": ("tools.json", [{"name": "a-b"}, {"name": "a_b"}, {"name": "fine"}], ["fine"]),
}


@pytest.mark.parametrize("case", BROKE_OUT)
def test_lists_that_once_broke_out_load_and_print_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """Each ran code, or could not be read by Python, though `import` had exited with 0."""
    source, listed, functions_wanted = BROKE_OUT[case]
    (tmp_path / source).write_text(json.dumps(listed))
    done = run("import", tmp_path / source, "-o", tmp_path / f"once_{case}")
    assert done.exit_code == 0, done.stderr
    monkeypatch.setattr(sys, "path", [*sys.path])
    cartridge = load(str(tmp_path / f"once_{case}"))
    engine = cartridge.engine()
    for call in engine.legal():
        engine.apply(call)
    assert capsys.readouterr() == ("", "")
    handlers = sys.modules[f"once_{case}.handlers"]
    assert sorted(name for name in vars(handlers) if not name.startswith("__")) == sorted(
        ["annotations", "Any", *functions_wanted]
    )


# -- all of it or nothing ------------------------------------------------------------------------------------------


def commands(target: Path) -> list[tuple[object, ...]]:
    """Return the two commands that make a folder."""
    return [("import", "-", "-o", target), ("new", target.name, "--into", target.parent)]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("which", [0, 1])
def test_a_write_that_breaks_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, which: int
) -> None:
    """A full disk or Ctrl-C at the third file: neither the folder nor those that were made around it."""
    count = itertools.count()
    whole = Path.write_text

    def full(self: Path, *arguments: Any, **more: Any) -> int:
        if next(count) == 2:
            raise error
        return whole(self, *arguments, **more)

    monkeypatch.setattr(Path, "write_text", full)
    done = run(*commands(tmp_path / "deep" / "er" / "mytools")[which], text='[{"name": "ping"}]')
    assert done.exit_code == 1 or isinstance(error, KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", [0, 1])
def test_hostile_names_of_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    """Names that no module can have, that Python has, that no file system takes, folders that are files."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("link").symlink_to("nowhere")
    before = sorted(tmp_path.iterdir())
    for target in (
        "a\nb", "a`b", "\u202eab", "class", "json", "x" * 101, "x" * 5000, "link", "..", "file/box", "y" * 300 + "/box"
    ):  # fmt: skip
        done = run(*commands(Path(target))[which], text='[{"name": "ping"}]')
        assert (done.exit_code in (1, 2), done.exception.__class__) == (True, SystemExit), target
        assert "Traceback" not in done.stderr
        assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_appears_while_another_is_written_is_left_alone(tmp_path: Path) -> None:
    """The rename would replace an empty folder without a word."""
    with pytest.raises(CartridgeError, match="it is there by now"), filled(tmp_path / "mytools"):
        (tmp_path / "mytools").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["mytools"]
    with pytest.raises(UsageError, match="is there already"):
        write(writable(read_tools([{"name": "ping"}])), tmp_path / "mytools", "tools.json")


def test_a_tool_that_may_destroy_has_to_be_agreed_to(tmp_path: Path) -> None:
    """The hint of MCP is kept; beside a read-only one it means nothing, and an odd one is refused."""
    listed = [
        {"name": "wipe", "annotations": {"destructiveHint": True}},
        {"name": "peek", "annotations": {"destructiveHint": True, "readOnlyHint": True}},
        {"name": "add", "annotations": {"destructiveHint": False}},
        {"name": "plain", "annotations": None},
        {"name": "odd", "annotations": {"destructiveHint": "yes"}},
    ]
    found = read_tools(listed)
    assert [r.reason for r in found.refusals] == [
        "odd: $: annotations.destructiveHint: 'yes' is neither true nor false"
    ]
    again = read_tools(written(tmp_path / "mytools", listed)["tools.json"])
    for each in (found, again):
        assert {o.method: o.confirm for o in each.opcodes} == {
            "wipe": True,
            "peek": False,
            "add": False,
            "plain": False,
        }
