"""Bulk tokenization against llama.cpp's single calls, with real vocabularies and texts made to break it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.backends.llama_cpp import read_vocabulary
from kernel.errors import BuildError
from kernel.text import bulk
from kernel.text.bulk import PartTokenizer, tokenize_bulk
from kernel.text.cuts import safe_cuts
from kernel.text.joined import Tables, tokenize_joined
from kernel.text.vocabulary import Vocabulary
from tests.conftest import VOCABS

SCRAPS = [
    *[" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "'", "'s", "'S", "'re", "'LL", "''", '"', "-", "--", "_", "__"],
    *[
        "{",
        "}",
        '":"',
        "0",
        "12",
        "1234",
        "99",
        "a",
        "ab",
        "the",
        "The",
        " the",
        " 12",
        "é",
        "ß",
        "日本",
        "\uff0c",
        "—",
    ],
    *["\u00a0", "\u2002", "\u3000", "²", "½", "٣", "🙂", "👩\u200d🚀", "e\u0301", "\u2581", "\u2581\u2581", "<0x0A>"],
    *["<unused99>", "<|im_end|>", "</h1>", "<table>", "\x00", "\x01", "\x7f", "\x1c", "\x85", "$", "+", "^", "`"],
    *[
        "\uff0c",
        "~",
        "|",
        "\\n",
        "don't",
        "I'll",
        "'s's",
        "9'd",
        "x'",
        "#",
        "//",
        "::",
        "...",
        "a1b2",
        "ñ",
        "İ",
        "ǅ",
        "Ⅻ",
    ],
]


def awkward(vocabulary: Vocabulary, count: int) -> list[str]:
    """Scraps in a row, random characters, and pieces of the vocabulary in a row."""
    random = Random(vocabulary.name)
    texts = ["".join(random.choices(SCRAPS, k=random.randint(1, 9))) for _ in range(count)]
    for _ in range(count // 4):
        ranges = [(1, 127), (1, 0x24FF), (0x3000, 0xD7FF), (0x1F300, 0x1FAFF)]
        texts.append("".join(chr(random.randint(*random.choice(ranges))) for _ in range(random.randint(1, 8))))
        texts.append(b"".join(random.choices(vocabulary.pieces, k=4)).decode(errors="ignore") or "x")
    return texts


def assert_same(vocabulary: Vocabulary, count: int) -> int:
    """Compare texts together with texts alone; return how many could be compared."""
    texts, expected = [], []
    for text in awkward(vocabulary, count):
        try:
            expected.append(vocabulary.literal(text))
        except BuildError:  # cannot be an opcode, alone or together
            continue
        texts.append(text)
    tables = Tables.of(vocabulary)
    assert tables is not None
    ids, counts = PartTokenizer(vocabulary, tables).block(texts)
    assert [part.tolist() for part in np.split(ids, np.cumsum(counts)[:-1])] == expected
    ids, counts = tokenize_joined(vocabulary, tables, [text.encode() for text in texts])
    assert [part.tolist() for part in np.split(ids, np.cumsum(counts)[:-1])] == expected
    return len(texts)


AT_HAND = sorted(path.stem.removeprefix("ggml-vocab-") for path in VOCABS.glob("ggml-vocab-*.gguf"))
LARGE = ("aquila", "command-r", "deepseek-llm", "gemma-4", "nomic-bert-moe", "qwen35")
"""Vocabularies of 100,000 tokens and more take seconds, so they are slow, but for qwen2 and llama-bpe."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in LARGE else ()) for n in AT_HAND or ["none"]]
)
@given(data=st.data())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_texts_together_have_the_ids_of_each_alone(
    name: str, data: st.DataObject, load: Callable[[str], Vocabulary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under every vocabulary at hand, cut or joined, in blocks of a few texts: scraps, pieces and any characters."""
    vocabulary = load(name)
    monkeypatch.setattr(bulk, "FEW", 0)
    monkeypatch.setattr(bulk, "BLOCK", data.draw(st.integers(1, 20)))
    monkeypatch.setattr(bulk, "MOSTLY", data.draw(st.sampled_from([0.0, 0.5, 1.0])))
    piece = st.integers(0, len(vocabulary) - 1).map(lambda i: vocabulary.pieces[i].decode(errors="ignore"))
    scrap = st.sampled_from(SCRAPS) | piece | st.text(max_size=4)
    texts = data.draw(st.lists(st.lists(scrap, min_size=1, max_size=8).map("".join), min_size=1, max_size=30))
    expected = []
    for text in list(texts):
        try:
            expected.append(vocabulary.literal(text))
        except BuildError:  # cannot be an opcode: then all are refused together
            with pytest.raises(BuildError):
                tokenize_bulk(vocabulary, texts)
            texts.remove(text)
    if texts:
        ids, offsets = tokenize_bulk(vocabulary, texts)
        assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == expected


@pytest.mark.parametrize("name", ["gpt-2", "starcoder", "qwen2", "llama-bpe"])
def test_awkward_texts_together_have_llama_cpps_ids(name: str, load: Callable[[str], Vocabulary]) -> None:
    """White space of all kinds, contractions, digits of three scripts, control bytes, markers as data."""
    assert assert_same(load(name), 1000) > 1250


@pytest.mark.parametrize(
    "name", ["llama-spm", "phi-3", "falcon", pytest.param("qwen35", marks=pytest.mark.slow), "bert-bge"]
)
def test_other_tokenizers_are_never_cut(name: str, load: Callable[[str], Vocabulary]) -> None:
    """An invented space, or rules that are not known here: every text alone."""
    vocabulary = load(name)
    assert not safe_cuts(vocabulary).any()
    texts = [f"word {n}" for n in range(100)]
    try:
        expected = [vocabulary.literal(text) for text in texts]
    except BuildError:
        with pytest.raises(BuildError):
            tokenize_bulk(vocabulary, texts)
        return
    ids, offsets = tokenize_bulk(vocabulary, texts)
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == expected


@pytest.mark.model
def test_default_model_agrees_on_awkward_and_on_plain_texts(smollm2_path: Path) -> None:
    """Every one of 2,000 JSON strings, and the awkward ones."""
    vocabulary = read_vocabulary(smollm2_path)
    assert assert_same(vocabulary, 1000) > 1250
    texts = [f'{{"item":"amber-otter-{n:05d}","room":"kitchen {n % 7}"}}' for n in range(2000)]
    ids, offsets = tokenize_bulk(vocabulary, texts)
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == [vocabulary.literal(text) for text in texts]


@pytest.mark.slow
@pytest.mark.model
def test_gemma_agrees_on_awkward_texts(gemma_path: Path) -> None:
    """No split into words there: cuts come from the pieces alone."""
    vocabulary = read_vocabulary(gemma_path)
    assert safe_cuts(vocabulary)[ord("r"), ord("-")]
    assert assert_same(vocabulary, 2000) > 2000
