"""Large sets: what is compiled all at once is what each text gives alone, kept on disk or not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel.errors import BuildError
from kernel.text.vocabulary import Vocabulary
from kernel.trie import opcodes as module
from kernel.trie import store
from kernel.trie.opcodes import TERMINATOR, Literal, OpcodeSet
from kernel.trie.store import compile_cached

Load = Callable[[str], Vocabulary]


def literals(count: int) -> list[Literal]:
    """Texts of many lengths, some that begin another one, some without a closer, some with more than ASCII."""
    pick = random.Random(3)
    words = ["go", "north", "ümlaut", "🦙", "shelf", "{", "}", '"x"', "7", "42", "item-"]
    texts = dict.fromkeys(" ".join(pick.choices(words, k=pick.randint(1, 7))) for _ in range(3 * count))
    return [Literal(t, pick.choice(["", "\n@toy\n", "<|/call|>\n"])) for t in [*texts][:count]]


@pytest.mark.parametrize("block", [1 << 16, 100])
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm", "qwen2"])
def test_ids_and_scored_counts_are_those_of_each_text_alone(
    load: Load, name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted back from the end, byte by byte; an opcode with a TERMINATOR counts whole. Blocks leave no seam."""
    monkeypatch.setattr(module, "BLOCK", block)
    vocabulary = load(name)
    some = literals(2_000)
    opcodes = OpcodeSet(some, vocabulary)
    end = vocabulary.literal(TERMINATOR)
    ended = 0
    for leaf, literal in enumerate(some):
        ids = opcodes.trie.sequence(leaf).tolist()
        alone = vocabulary.literal(literal.text)
        expected = len(ids)
        if ids == [*alone, *end]:
            ended += 1
        else:
            assert ids == alone
            left = len(literal.closer.encode())
            while expected > 1 and left >= len(vocabulary.pieces[ids[expected - 1]]):
                expected -= 1
                left -= len(vocabulary.pieces[ids[expected]])
        assert int(opcodes.scored[leaf]) == expected, literal
    assert ended > 50


def test_a_clash_among_many_is_named(load: Load) -> None:
    """Both texts and both places."""
    some = literals(2_000)
    with pytest.raises(BuildError, match="is declared twice") as caught:
        OpcodeSet([*some, some[1234]], load("gpt-2"))
    assert caught.value.pairs == ((1234, 2000),)


def test_a_folder_keeps_the_last_sets_only(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of five are left, the last ones; each is the set that it was."""
    monkeypatch.setattr(store, "FILES_KEPT", 3)
    vocabulary = load("gpt-2")
    some = literals(300)
    for count in range(100, 105):
        compile_cached(some[:count], vocabulary, tmp_path)
        time.sleep(0.01)
    assert len(list(tmp_path.glob("*.trie"))) == 3
    kept = compile_cached(some[:104], vocabulary, tmp_path)
    np.testing.assert_array_equal(kept.scored, OpcodeSet(some[:104], vocabulary).scored)


def test_an_empty_set_is_refused_with_a_folder_too(load: Load, tmp_path: Path) -> None:
    """As without."""
    with pytest.raises(BuildError, match="no opcodes to compile"):
        compile_cached([], load("gpt-2"), tmp_path)
