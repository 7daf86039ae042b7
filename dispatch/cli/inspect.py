"""`inspect`: shows a cartridge's opcodes in the tokens of a model, and what a decision among them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import typer
from numpy.typing import NDArray
from rich.text import Text

from dispatch.cli.common import AsJson, CartridgeName, Model, Opcodes, WireForm
from dispatch.cli.model import tokenizable
from dispatch.cli.output import failing, note, print_json, print_rows, say, shown
from dispatch.session.situation import open_opcodes
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.chooser import Chooser
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BuildError
from kernel.memory.memory import Memory
from kernel.prompt import Part
from kernel.text.vocabulary import CONTROL, Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet

SHOWN = 60
"""So many opcodes stand in the table; `--json` has all."""

STEM = 8
"""Tokens of the prompt that costs are counted behind; they are taken off again."""


@dataclass(frozen=True)
class Token:
    """One id of an opcode. `choice`: something else was legal there; `scored`: it counts in the comparison."""

    id: int
    text: str
    choice: bool
    scored: bool


@dataclass(frozen=True)
class Row:
    """One opcode in tokens. `choices` + `forced` = its tokens."""

    text: str
    tokens: tuple[Token, ...]
    choices: int
    forced: int


@dataclass(frozen=True)
class Cost:
    """What one decision among all of them takes, on memory that shares tokens and on memory that does not.

    `tokens` are those behind the prompt. None where the set is so large that it is searched: that depends on the model.
    """

    passes: int | None
    tokens: int | None
    passes_recurrent: int | None
    tokens_recurrent: int | None


@dataclass(frozen=True)
class Inspection:
    """What `inspect` finds."""

    vocabulary: str
    rows: tuple[Row, ...]
    cost: Cost | None
    warnings: tuple[str, ...]
    errors: tuple[str, ...]


def inspect_command(
    name: CartridgeName,
    model: Model = "smollm2",
    wire: WireForm = "compact",
    opcodes: Opcodes = None,
    as_json: AsJson = False,
) -> None:
    """Show what a cartridge's opcodes become on a model: tokens, where they branch, what is forced, passes, warnings.

    A vocabulary-only GGUF file will do for a model. Exits with 1 when the opcodes cannot be compiled.

    Example: inspect tetris --model smollm2
    """
    with failing():
        cartridge, literals, vocabulary = tokenizable(name, opcodes, wire, model)
        notes = [
            f"{method}: its arguments are open; it is chosen by how it begins, then written"
            for _, method in open_opcodes(cartridge)
        ]
        found = inspect(literals, vocabulary, notes)
    if as_json:
        print_json({"cartridge": cartridge.name, "wire": wire, **asdict(found)}, indent=None)
    else:
        _tell(found)
    for warning in found.warnings:
        note(f"warning: {warning}")
    for error in found.errors:
        note(f"error: {error}")
    raise typer.Exit(1 if found.errors else 0)


def inspect(literals: Sequence[Literal], vocabulary: Vocabulary, notes: Sequence[str] = ()) -> Inspection:
    """Compile literals and lay them out; what cannot be compiled is an error by name, the others are shown."""
    warnings, errors, good = list(notes), [], []
    for literal in literals:
        try:
            vocabulary.literal(literal.text)
            good.append(literal)
        except BuildError as error:
            errors.append(str(error))
        marked = [
            i for i in vocabulary.prompt([Part(literal.text, trusted=True)], start=False) if _is_control(vocabulary, i)
        ]
        if marked:
            pieces = ", ".join(dict.fromkeys(repr(vocabulary.pieces[i].decode(errors="replace")) for i in marked))
            warnings.append(
                f"{literal.text!r} holds {pieces}, a control token of this model; it is spelled as plain text"
            )
    opcodes = None
    while good and opcodes is None:
        try:
            opcodes = OpcodeSet(good, vocabulary)
        except BuildError as error:
            errors.append(str(error))
            if not error.pairs:
                break
            gone = {later for _, later in error.pairs}
            good = [literal for n, literal in enumerate(good) if n not in gone]
    if opcodes is None:
        return Inspection(vocabulary.name, (), None, tuple(warnings), tuple(errors))
    rows = tuple(_row(opcodes, leaf) for leaf in range(len(opcodes)))
    for row, text in zip(rows, opcodes.texts, strict=True):
        joined = vocabulary.join(token.id for token in row.tokens)
        if joined != text.encode():
            warnings.append(
                f"{text!r} begins another opcode; it is ended with {joined[len(text.encode()) :].decode()!r}"
            )
    return Inspection(vocabulary.name, rows, _cost(opcodes), tuple(warnings), tuple(errors))


def _is_control(vocabulary: Vocabulary, token: int) -> bool:
    return bool(int(vocabulary.attributes[token]) & CONTROL)


def _row(opcodes: OpcodeSet, leaf: int) -> Row:
    """Walk one opcode from the root and mark where something else is legal."""
    trie = opcodes.trie
    ids = trie.sequence(leaf).tolist()
    choices: set[int] = set()
    node = depth = 0
    while node >= 0:
        if len(trie.edges(node)) > 1:
            choices.add(depth)
        edge = trie.find(node, ids[depth])
        depth += len(trie.tail(edge))
        node = trie.child(edge)
    scored = int(opcodes.scored[leaf])
    pieces = opcodes.vocabulary.pieces
    tokens = tuple(Token(i, _readable(pieces[i]), n in choices, n < scored) for n, i in enumerate(ids))
    return Row(opcodes.labels[leaf], tokens, len(choices), len(ids) - len(choices))


def _readable(piece: bytes) -> str:
    """Return a piece as text, or its bytes in hexadecimal where it is no whole character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return f"<{piece.hex(' ')}>"


def _cost(opcodes: OpcodeSet) -> Cost:
    """Count by making the decision, on a runtime without weights."""
    size = len(opcodes.vocabulary)

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.zeros(size, np.float32)
        out[0] = 1.0
        return out

    counts: list[int | None] = []
    for shares in (True, False):
        backend = ScriptedBackend(opcodes.vocabulary, row, n_ctx=8192, n_batch=8192, shares_tokens=shares)
        chooser = Chooser(Memory(backend))
        if len(opcodes) > 1 and chooser.scorer.tree(opcodes, opcodes.everything) is None:
            counts += [None, None]
            continue
        decision = chooser.choose(Question(PromptIds((0,) * STEM), opcodes, rule=Rule(RuleName.EXACT)))
        counts += [decision.passes, max(0, decision.tokens_evaluated - STEM)]
    return Cost(*counts)


def _tell(found: Inspection) -> None:
    rows = [(row.text, _spelled(row), str(row.choices), str(row.forced)) for row in found.rows[:SHOWN]]
    print_rows(["opcode", "tokens", "choices", "forced"], rows, len(found.rows) - SHOWN)
    tokens = [len(row.tokens) for row in found.rows]
    if not tokens:
        return
    say("")
    say("« » a choice   | behind it nothing is scored: it is forced and never evaluated   ␣ a space")
    say(f"vocabulary {found.vocabulary}: {len(tokens)} opcodes of {min(tokens)} to {max(tokens)} tokens")
    if (cost := found.cost) is None:
        return
    if cost.passes is None:
        say("one exact decision among all: searched best first, so passes depend on what the model says")
        return
    say(
        f"one exact decision among all: passes {cost.passes}, tokens evaluated behind the prompt {cost.tokens} "
        f"(recurrent or hybrid memory: {cost.passes_recurrent} and {cost.tokens_recurrent})"
    )


def _spelled(row: Row) -> Text:
    line = Text()
    for n, token in enumerate(row.tokens):
        if n and row.tokens[n - 1].scored and not token.scored:
            line.append("| ", "dim")
        text = shown(token.text).replace(" ", "␣")
        style = "bold" if token.choice else "" if token.scored else "dim"
        line.append(f"«{text}»" if token.choice else text, style).append(" ")
    return line
