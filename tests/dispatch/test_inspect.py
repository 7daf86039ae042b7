"""`inspect`, `choose` and `compile`: what they print, in tables and as JSON, and how they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from dispatch.cli import app, choose
from dispatch.cli.inspect import inspect
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.text.vocabulary import Vocabulary
from kernel.trie import store
from kernel.trie.arrays import read_arrays
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.tab import TRIE, VOCABULARY

Load = Callable[[str], Vocabulary]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def spelled(found: object, row: int = 0) -> str:
    """Tokens of a row: « » a choice, | where scoring ends."""
    out = ""
    tokens = found.rows[row].tokens  # type: ignore[attr-defined]
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.scored and not token.scored:
            out += "|"
        out += f"«{token.text}»" if token.choice else f"[{token.text}]"
    return out


# -- inspect ---------------------------------------------------------------------------------------------------------


def test_tokens_choices_and_forced_runs_are_told_apart(tools: SimpleNamespace) -> None:
    """`move left;`, `move right;`, `more;`: `v` against `r` is a choice, then `left` against `right`."""
    vocabulary = tools.toy_vocabulary(["left", "right"])
    found = inspect([Literal("move left", ";"), Literal("move right", ";"), Literal("more", ";")], vocabulary)
    assert [spelled(found, n) for n in range(3)] == [
        "[m][o]«v»[e][ ]«left»|[;]",
        "[m][o]«v»[e][ ]«right»|[;]",
        "[m][o]«r»[e]|[;]",
    ]
    assert [(row.choices, row.forced) for row in found.rows] == [(2, 5), (2, 5), (1, 4)]
    assert found.warnings == ()
    assert found.errors == ()


def test_the_cost_is_that_of_a_decision_made(tools: SimpleNamespace) -> None:
    """Behind the prompt `m o`, `v e space` and `r`: six tokens, one pass; recurrent memory takes a pass a level."""
    found = inspect(
        [Literal("move left", ";"), Literal("move right", ";"), Literal("more", ";")],
        tools.toy_vocabulary(["left", "right"]),
    )
    assert found.cost is not None
    assert (found.cost.passes, found.cost.tokens) == (1, 6)
    assert found.cost.tokens_recurrent == 6
    assert found.cost.passes_recurrent is not None
    assert found.cost.passes_recurrent > 1


def test_one_opcode_costs_nothing(tools: SimpleNamespace) -> None:
    """There is no choice."""
    found = inspect([Literal("go", ";")], tools.toy_vocabulary())
    assert found.cost is not None
    assert (found.cost.passes, found.cost.tokens, found.rows[0].choices) == (0, 0, 0)


def test_a_control_marker_in_a_literal_is_told(load: Load) -> None:
    """On qwen2 `<|im_end|>` is a control token; in a literal it is spelled as text, and that is said."""
    found = inspect([Literal("say <|im_end|>"), Literal("say no")], load("qwen2"))
    (warning,) = found.warnings
    assert warning == (
        "'say <|im_end|>' holds '<|im_end|>', a control token of this model; it is spelled as plain text"
    )
    assert len(found.rows[0].tokens) > 3


def test_an_opcode_that_begins_another_is_told(load: Load) -> None:
    """`go` gets a TERMINATOR so that stopping is a choice."""
    found = inspect([Literal("go"), Literal("go north")], load("gpt-2"))
    assert found.warnings == ("'go' begins another opcode; it is ended with '\\n'",)
    assert spelled(found) == "[go]«\n»"


def test_what_does_not_round_trip_is_told_and_the_rest_is_shown(tools: SimpleNamespace) -> None:
    """A vocabulary that drops a letter: the one text is an error, the other two are laid out."""
    real = tools.toy_vocabulary()
    lossy = Vocabulary(
        real.pieces,
        real.attributes,
        lambda text, *flags: real._tokenize(text.translate(None, b"x\x01"), *flags),
        name="lossy",
    )
    found = inspect([Literal("ax"), Literal("bc"), Literal("bd")], lossy)
    (error,) = found.errors
    assert "lossy: text does not round-trip: expected b'ax'" in error
    assert [row.text for row in found.rows] == ["bc", "bd"]


def test_two_literals_with_one_id_sequence_are_told(tools: SimpleNamespace) -> None:
    """By name; the others are laid out."""
    vocabulary = tools.toy_vocabulary()
    real = vocabulary.plain
    vocabulary.plain = lambda text: real("a" if text in ("b", b"b") else text)
    found = inspect([Literal("a"), Literal("b"), Literal("c")], vocabulary)
    assert found.errors == (f"opcodes 'a' and 'b' have one id sequence {real('a')}",)
    assert [row.text for row in found.rows] == ["a", "c"]


def test_pieces_that_are_no_characters_are_shown_as_bytes(load: Load) -> None:
    """On qwen2 volcano and wave part in their last byte, and there is the choice."""
    found = inspect([Literal("lamp 🌋"), Literal("lamp 🌊")], load("qwen2"))
    assert spelled(found, 0).endswith("«<8b>»")
    assert spelled(found, 1).endswith("«<8a>»")


@pytest.mark.parametrize("wire", ["compact", "tagged"])
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_inspect_prints_every_opcode_and_the_cost(vocab_ggufs: dict[str, Path], name: str, wire: str) -> None:
    """The five keys of tetris, on a file without weights."""
    result = run("inspect", "tetris", "--opcodes", "moves", "--wire", wire, "--model", vocab_ggufs[name])
    assert result.exit_code == 0, result.output
    for key in ("left", "right", "rotate", "down", "drop"):
        assert key in result.stdout
    assert "one exact decision among all: passes 1," in result.stdout
    assert "5 opcodes of" in result.stdout


def test_inspect_prints_one_json_document(vocab_ggufs: dict[str, Path]) -> None:
    """Every opcode with its tokens; their texts join to the opcode's."""
    result = run("inspect", "home", "--model", vocab_ggufs["gpt-2"], "--json")
    document = json.loads(result.stdout)
    assert document["cartridge"] == "home"
    assert len(document["rows"]) == 24
    assert document["cost"]["passes"] == 1
    for row in document["rows"]:
        assert "".join(token["text"] for token in row["tokens"]) == row["text"]
        assert row["choices"] + row["forced"] == len(row["tokens"])


def test_inspect_fails_where_nothing_can_be_compiled(vocab_ggufs: dict[str, Path]) -> None:
    """A tokenizer that eats newlines and case cannot say an opcode exactly; each is named on stderr."""
    result = run("inspect", "tetris", "--opcodes", "moves", "--model", vocab_ggufs["bert-bge"])
    assert result.exit_code == 1
    assert result.stderr.count("text does not round-trip") == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "tetriss"], "no cartridge 'tetriss'; did you mean 'tetris'?"),
        (["inspect", "tetris", "--wire", "compat"], "no wire form 'compat'; did you mean 'compact'?"),
        (["inspect", "tetris", "--opcodes", "move"], "option opcodes 'move' is not there; did you mean 'moves'?"),
        (["inspect", "tetris", "--model", "smolm2"], "did you mean 'smollm2'?"),
        (["compile", "tetriss", "-o", "x"], "no cartridge 'tetriss'; did you mean 'tetris'?"),
        (["choose", "--prompt", "a", "--option", "b", "--rule", "exat"], "no rule 'exat'; did you mean 'exact'?"),
        (["choose", "--prompt", "a"], "nothing to choose from"),
        (["choose", "--prompt", "a", "--option", "b", "--rule", "calibrated"], "needs a --null prompt"),
        (["choose", "--prompt", "a", "--options", "/nowhere/list"], "'/nowhere/list'"),
        (["choose", "--prompt", "a", "--option", "b", "--rule", "calibrated:2"], "calibration=2.0 is outside 0..1"),
    ],
)
def test_misuse_is_one_line_and_exit_2(arguments: list[str], message: str) -> None:
    """No traceback, no model loaded, a suggestion where one is near."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


# -- choose ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def weightless(tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """`choose` gets a kernel whose every row is its own."""
    vocabulary = tools.toy_vocabulary(["shut", "opener"])

    def load_kernel(*_: object, **__: object) -> object:
        return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary))))

    monkeypatch.setattr(choose, "load_kernel", load_kernel)


@pytest.mark.usefixtures("weightless")
def test_choose_prints_a_table_and_the_choice() -> None:
    """Options as typed, the chosen one first; null only where there is one."""
    result = run("choose", "--prompt", "Open is", "--option", "shut", "--option", "opener")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["option", "probability", "log-p"]
    chosen = lines[1].split()[0]
    assert {chosen, lines[2].split()[0]} == {"shut", "opener"}
    assert lines[3].startswith(f"chosen: {chosen}  (rule exact, margin ")
    assert "passes 1," in lines[3]
    result = run("choose", "--prompt", "Open is", "--option", "shut", "--option", "opener", "--null", "It is")
    assert result.stdout.splitlines()[0].split() == ["option", "probability", "log-p", "null"]
    assert "rule calibrated" in result.stdout


@pytest.mark.usefixtures("weightless")
@pytest.mark.parametrize("rule", ["exact", "calibrated", "greedy", "sample"])
def test_choose_prints_one_strict_json_document(rule: str) -> None:
    """Probabilities add up to 1; what greedy does not know is null, never NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    arguments = ["choose", "--prompt", "Open is", "--option", "shut", "--option", "opener", "--null", "Is"]
    document = json.loads(run(*arguments, "--rule", rule, "--json").stdout, parse_constant=refuse)
    assert document["rule"] == rule
    assert document["text"] == document["options"][0]["text"]
    assert {row["text"] for row in document["options"]} == {"shut", "opener"}
    if rule == "greedy":
        assert document["options"][1]["probability"] is None
    else:
        assert sum(row["probability"] for row in document["options"]) == pytest.approx(1)


@pytest.mark.usefixtures("weightless")
def test_one_option_has_no_margin_and_no_pass() -> None:
    """An infinite margin is null in JSON."""
    document = json.loads(run("choose", "--prompt", "a", "--option", "b", "--json").stdout)
    assert (document["margin"], document["passes"], document["stop"]) == (None, 0, "forced")


@pytest.mark.usefixtures("weightless")
def test_options_may_stand_in_a_file(tmp_path: Path) -> None:
    """One a line; those of the command line come first, and a long table is cut."""
    file = tmp_path / "options"
    file.write_text("".join(f"option {n}\n" for n in range(50)))
    document = json.loads(run("choose", "--prompt", "a", "--option", "b", "--options", file, "--json").stdout)
    assert len(document["options"]) == 51
    assert "and 21 more" in run("choose", "--prompt", "a", "--option", "b", "--options", file).stdout


@pytest.mark.usefixtures("weightless")
def test_an_empty_option_is_refused() -> None:
    """It fails in one line."""
    result = run("choose", "--prompt", "a", "--option", "b", "--option", "")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "an option cannot be the empty string" in result.stderr


# -- compile ---------------------------------------------------------------------------------------------------------


def test_compile_writes_a_file_that_gives_the_set_back(
    vocab_ggufs: dict[str, Path], load: Load, tmp_path: Path
) -> None:
    """With the keys that it printed; other keys are refused."""
    out = tmp_path / "home.trie"
    result = run("compile", "home", "--model", vocab_ggufs["gpt-2"], "-o", out, "--json")
    document = json.loads(result.stdout)
    assert (document["opcodes"], document["bytes"]) == (24, out.stat().st_size)
    stored = store.load(out, tokenizer=load("gpt-2").fingerprint, opcodes=document["fingerprint"])
    assert stored.trie.n_leaves == 24
    with pytest.raises(store.StoreError, match="compiled for tokenizer"):
        store.load(out, tokenizer=load("qwen2").fingerprint, opcodes=document["fingerprint"])


def test_compile_for_the_tab_writes_opcodes_and_vocabulary(
    vocab_ggufs: dict[str, Path], load: Load, tmp_path: Path
) -> None:
    """Both name the same tokenizer; the arrays are the sequences, the pieces and the texts."""
    out, vocabulary = tmp_path / "home.tab", load("gpt-2")
    result = run("compile", "home", "--model", vocab_ggufs["gpt-2"], "-o", out, "--tab")
    assert "24 opcodes" in result.stdout
    keys = {"tokenizer": vocabulary.fingerprint}
    found, words = read_arrays(out, keys, TRIE), read_arrays(out.with_suffix(".vocabulary"), keys, VOCABULARY)
    assert bytes(words["pieces"]) == b"".join(vocabulary.pieces)
    assert words["piece_ends"][-1] == sum(map(len, vocabulary.pieces))
    texts = bytes(found["texts"]).decode().split("@home\n")[:-1]
    first = found["ids"][: found["starts"][1]].tolist()
    assert (len(texts), vocabulary.join(first).decode()) == (24, f"{texts[0]}@home\n")


def test_a_set_taken_from_a_file_is_the_set_compiled(tools: SimpleNamespace, tmp_path: Path) -> None:
    """Trie and scored counts; a file of another number of opcodes is refused."""
    vocabulary = tools.toy_vocabulary(["left"])
    literals = [Literal("left", ";x"), Literal("right", ";x"), Literal("up")]
    made = OpcodeSet(literals, vocabulary)
    keys = {"tokenizer": vocabulary.fingerprint, "opcodes": made.fingerprint}
    store.save(tmp_path / "t", made.compiled, **keys)
    kept = store.load(tmp_path / "t", **keys)
    again = OpcodeSet(literals, vocabulary, compiled=kept)
    assert again.scored.tolist() == made.scored.tolist() == [1, 5, 2]
    assert [again.trie.sequence(n).tolist() for n in range(3)] == [made.trie.sequence(n).tolist() for n in range(3)]
    with pytest.raises(store.StoreError, match="of 3 opcodes is not of these 2"):
        OpcodeSet(literals[:2], vocabulary, compiled=kept)


@pytest.mark.parametrize(
    "other",
    [
        [Literal("left", ";x"), Literal("right", ";x")],
        [Literal("right", ";x"), Literal("left", ";x"), Literal("up")],
        [Literal("left;", "x"), Literal("right", ";x"), Literal("up")],
    ],
)
def test_the_fingerprint_is_of_texts_closers_and_order(tools: SimpleNamespace, other: list[Literal]) -> None:
    """Fewer, in another order, or cut elsewhere: another hash. A label changes nothing."""
    vocabulary = tools.toy_vocabulary()
    one = OpcodeSet([Literal("left", ";x"), Literal("right", ";x"), Literal("up", label="^")], vocabulary)
    unlabelled = OpcodeSet([Literal("left", ";x"), Literal("right", ";x"), Literal("up")], vocabulary)
    assert one.fingerprint == unlabelled.fingerprint
    assert one.fingerprint != OpcodeSet(other, vocabulary).fingerprint


def test_help_names_every_command() -> None:
    """In a process of its own, as a user starts it."""
    done = subprocess.run([sys.executable, "-m", "kernel", "--help"], capture_output=True, text=True, check=True)
    for command in ("run", "choose", "inspect", "compile", "call", "list", "new", "check", "import", "eval", "replay"):
        assert f" {command} " in done.stdout
