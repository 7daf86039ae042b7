"""Every cartridge on every tokenizer: each opcode reachable, exact in bytes, and chosen when a model wants it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.loading.registry import load
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.chooser import Chooser
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BuildError
from kernel.memory.memory import Memory
from kernel.opcode import commands
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet

NAMES = [
    "aquila", "baichuan", "bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
    "gpt-neox", "llama-bpe", "llama-spm", "mpt", "nomic-bert-moe", "phi-3", "qwen2", "qwen35", "refact", "starcoder",
]  # fmt: skip
"""The vocabularies that set-up keeps; a new one shows in `test_the_list_of_vocabularies_is_whole`."""

LARGE = ("aquila", "command-r", "deepseek-llm", "gemma-4", "nomic-bert-moe", "qwen35")
"""Vocabularies of 100,000 tokens and more take seconds, so they are slow, but for qwen2 and llama-bpe."""

REFUSED = {"bert-bge": "it lowers case and eats spaces", "nomic-bert-moe": "it folds newlines into spaces"}
"""Tokenizers of embedding models: they write nothing, and no text of ours survives them."""

SETS = {
    "tetris moves": lambda: load("tetris", opcodes="moves"),
    "tetris place": lambda: load("tetris", opcodes="place"),
    "tetris syllables": lambda: load("tetris"),
    "home": lambda: load("home"),
    "robot": lambda: load("robot"),
    "scavenger": lambda: load("scavenger"),
}


@functools.cache
def literals(form: str) -> dict[str, tuple[Literal, ...]]:
    """The texts of every set in one form."""
    out = {}
    for name, make in SETS.items():
        cartridge = make()
        wire = Wire([cartridge], FORMS[form])
        out[name] = tuple(wire.literal(instruction) for instruction in commands(cartridge.name, cartridge.opcodes))
    return out


class Wish:
    """A model that wants one list of ids behind a prompt."""

    def __init__(self, size: int, prompt: int) -> None:
        self.size = size
        self.prompt = prompt
        self.sequence: list[int] = []

    def row(self, ids: tuple[int, ...]) -> NDArray[np.float32]:
        """Answer as a backend asks."""
        done = len(ids) - self.prompt
        out = np.zeros(self.size, np.float32)
        out[0] = 0.5  # a row is never constant
        if list(ids[self.prompt :]) == self.sequence[:done] and done < len(self.sequence):
            out[self.sequence[done]] = 14
        return out


def paths(opcodes: OpcodeSet) -> dict[int, tuple[int, ...]]:
    """Every way from the root to a leaf, walked edge by edge."""
    out: dict[int, tuple[int, ...]] = {}
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        node, path = stack.pop()
        for edge in opcodes.trie.edges(node):
            longer = (*path, *opcodes.trie.tail(edge).tolist())
            if opcodes.trie.child(edge) < 0:
                out[opcodes.trie.leaf(edge)] = longer
            else:
                stack.append((opcodes.trie.child(edge), longer))
    return out


def in_both_forms(names: Sequence[str]) -> Iterator[Any]:
    """Yield every vocabulary in one form, which alternates, and in the other one among the slow tests."""
    for number, name in enumerate(names):
        for place, form in enumerate(FORMS):
            quick = number % len(FORMS) == place and name not in LARGE
            yield pytest.param(name, form, marks=() if quick else pytest.mark.slow)


def test_the_list_of_vocabularies_is_whole(vocab_ggufs: dict[str, Path]) -> None:
    """What set-up keeps is what is tested here."""
    assert sorted(vocab_ggufs) == NAMES


@pytest.mark.parametrize(("name", "form"), list(in_both_forms([name for name in NAMES if name not in REFUSED])))
def test_every_opcode_is_exact_and_chosen_when_it_is_wanted(
    load: Callable[[str], Vocabulary], name: str, form: str
) -> None:
    """Of both sets of tetris, home, robot and scavenger: the path's bytes are the text, none starts with BOS or holds a
    control id, and exact and greedy both take the opcode that the model wants, in one pass for exact."""
    vocab = load(name)
    prompt = vocab.plain("Do:")
    wish = Wish(len(vocab), len(prompt))
    for cartridge, texts in literals(form).items():
        opcodes = OpcodeSet(texts, vocab)
        found = paths(opcodes)
        assert sorted(found) == list(range(len(texts)))
        chooser = Chooser(Memory(ScriptedBackend(vocab, wish.row)))
        for leaf, literal in enumerate(texts):
            assert vocab.join(found[leaf]) == literal.text.encode(), (cartridge, literal)
            assert vocab.is_text[list(found[leaf])].all()
            wish.sequence = list(found[leaf])
            rule = RuleName.EXACT if leaf % 4 == 0 else RuleName.GREEDY
            d = chooser.choose(Question(PromptIds(tuple(prompt)), opcodes, rule=Rule(rule)))
            assert d.index == leaf, (cartridge, rule, literal.text, d.text)
            if rule is RuleName.EXACT:
                assert d.passes == 1


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LARGE else ()) for n in REFUSED])
def test_tokenizers_that_lose_text_refuse_and_say_what_came_back(load: Callable[[str], Vocabulary], name: str) -> None:
    """Expected and actual bytes stand in the message."""
    with pytest.raises(BuildError, match=r"text does not round-trip: expected b.*, its pieces join to b"):
        OpcodeSet(literals("compact")["home"], load(name))
