"""Bulk tokenization against single calls, on made-up tokenizers that follow the rules of llama.cpp's two families."""

from __future__ import annotations

import re
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from kernel.errors import BuildError
from kernel.text import bulk, joined
from kernel.text.cuts import safe_cuts
from kernel.text.joined import Tables, tokenize_joined
from kernel.text.vocabulary import BYTE, NORMAL, USER_DEFINED, Vocabulary


@pytest.fixture(autouse=True)
def cut_even_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of texts is enough for a test to go through the cutting."""
    monkeypatch.setattr(bulk, "FEW", 1)


CONTRACTION = r"'s|'t|'re|'ve|'m|'ll|'d"
GPT2 = rf"{CONTRACTION}| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
LLAMA3 = (
    rf"(?i:{CONTRACTION})|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{{1,3}}| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = {
    "gpt2/gpt-2": [GPT2],
    "gpt2/smollm": [r"[0-9]", GPT2],
    "gpt2/llama-bpe": [LLAMA3],
    "gpt2/qwen2": [LLAMA3.replace("{1,3}", "{1,1}")],
}
ALPHABET = "as12-' \n"
USER: list[list[str]] = [[], ["--"], ["s-"], ["<b>", "1\n"]]


def split(pattern: str, text: str) -> list[str]:
    """Cut at every match; what no match covers is a word of its own."""
    out, at = [], 0
    for match in re.finditer(pattern, text, re.ASCII):
        out += [text[at : match.start()], match.group()]
        at = match.end()
    return [word for word in [*out, text[at:]] if word]


def merged(symbols: list[str], rank: dict[str, int]) -> list[str]:
    """Merge the neighbours whose union has the best rank, leftmost first, until there are none."""
    while True:
        found = [(rank[a + b], i) for i, (a, b) in enumerate(pairwise(symbols)) if a + b in rank]
        if not found:
            return symbols
        _, i = min(found)
        symbols = [*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :]]


def vocabulary(scheme: str, merges: list[str], user: list[str] | None = None, space_prefix: bool = False) -> Vocabulary:
    """A tokenizer over single bytes, merged pieces and user-defined pieces."""
    user = user or []
    merges = [piece for piece in merges if piece not in user]
    pieces = [bytes([b]) for b in range(256)] + [p.encode() for p in merges] + [p.encode() for p in user]
    attributes = [NORMAL if scheme.startswith("gpt2") else BYTE] * 256
    attributes += [NORMAL] * len(merges) + [USER_DEFINED] * len(user)
    ids = {piece.encode(): 256 + i for i, piece in enumerate([*merges, *user])}
    rank = {piece: i for i, piece in enumerate([*merges, *user])}

    def raw(text: str) -> list[str]:
        parts = [text]
        for piece in sorted(user, key=len, reverse=True):
            parts = [q for p in parts for q in ([p] if p in user else re.split(f"({re.escape(piece)})", p)) if q]
        out: list[str] = []
        for part in parts:
            if part in user:
                out.append(part)
                continue
            words = [part]
            for pattern in WORDS.get(scheme, []):
                words = [w for word in words for w in split(pattern, word)]
            for word in words:
                out += merged(list(word), rank)
        return out

    def tokenize(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        symbols = raw((" " if space_prefix else "") + text.decode())
        return [i for s in symbols for i in ([ids[s.encode()]] if s.encode() in ids else list(s.encode()))]

    return Vocabulary(pieces, np.array(attributes, np.int32), tokenize, scheme=scheme)


def parts(ids: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [part.tolist() for part in np.split(ids, offsets[1:-1])]


def alone(vocab: Vocabulary, texts: list[str]) -> list[list[int]]:
    return [vocab.literal(text) for text in texts]


def together(vocab: Vocabulary, texts: list[str]) -> list[list[int]]:
    tables = Tables.of(vocab)
    assert tables is not None
    ids, counts = bulk.PartTokenizer(vocab, tables).block(texts)
    cut = parts(ids, np.cumsum([0, *counts]))
    ids, counts = tokenize_joined(vocab, tables, [text.encode() for text in texts])
    assert parts(ids, np.cumsum([0, *counts])) == cut
    return cut


@pytest.mark.parametrize("user", USER, ids=str)
@pytest.mark.parametrize("scheme", [*WORDS, "llama/default"])
def test_texts_together_have_the_ids_that_each_has_alone(scheme: str, user: list[str]) -> None:
    """Random texts under vocabularies that merge almost every pair of characters, in a random order of ranks."""
    random = Random(f"{scheme} {user}")
    every = ["".join(chars) for size in (2, 3) for chars in product(ALPHABET, repeat=size)]
    for share in (0.9, 0.4, 0.05):
        merges = random.sample(every, int(share * len(every)))
        vocab = vocabulary(scheme, merges, user)
        texts = ["".join(random.choices(ALPHABET, k=random.randint(1, 8))) for _ in range(150)]
        assert together(vocab, texts) == alone(vocab, texts)


@pytest.mark.parametrize("scheme", ["gpt2/gpt-2", "gpt2/smollm", "gpt2/llama-bpe", "gpt2/qwen2", "llama/default"])
def test_awkward_texts_have_the_ids_that_each_has_alone(scheme: str) -> None:
    """Contractions, runs of white space, digits, other alphabets, split characters, control bytes."""
    texts = [
        "it's",
        "'s's",
        "x'",
        "''s",
        "a  b",
        "a \n b",
        "  12",
        "1234",
        "a1b2",
        "é-é",
        "日本 12",
        "-'-",
        "\x00a\x00",
        "a" * 40,
    ]
    vocab = vocabulary(scheme, ["it", "'s", " b", "12", "--", "é-", "aa", "aaaa"], ["<b>"])
    assert together(vocab, texts) == alone(vocab, texts)


def test_letters_and_digits_are_cut_apart_and_letters_are_not() -> None:
    """What the four patterns and the pair rule promise, by hand."""
    table = {name: safe_cuts(vocabulary(name, ["ab", "a-"])) for name in [*WORDS, "llama/default", "gpt2/falcon"]}

    def cut(name: str, pair: str) -> bool:
        return bool(table[name][ord(pair[0]), ord(pair[1])])

    assert all(cut(name, "a1") and cut(name, "1a") and cut(name, 'b"') for name in WORDS)
    assert not any(cut(name, "ab") for name in table)
    assert not any(cut(name, " a") for name in WORDS)
    assert [cut(name, "-a") for name in WORDS] == [True, True, False, False]
    assert [cut(name, "'s") for name in WORDS] == [False] * 4
    assert [cut(name, "12") for name in WORDS] == [False, True, False, True]
    assert cut("llama/default", "ba")
    assert not cut("llama/default", "a-")
    assert not table["gpt2/falcon"].any()  # a pattern that is not known by name


def test_user_defined_piece_forbids_cuts_inside_it() -> None:
    """It is split off before words are, wherever it stands."""
    safe = safe_cuts(vocabulary("gpt2/gpt-2", [], ["x1-"]))
    assert not safe[ord("x"), ord("1")]
    assert not safe[ord("1"), ord("-")]
    assert safe[ord("-"), ord("1")]


def test_piece_that_swallows_white_space_forbids_every_cut() -> None:
    """A user-defined piece with the strip attribute reaches across white space."""
    vocab = vocabulary("gpt2/gpt-2", [], ["<b>"])
    vocab.attributes[-1] |= 1 << 8
    assert not safe_cuts(vocab).any()


def test_invented_space_forbids_every_cut() -> None:
    """Where the tokenizer puts a space before each text, parts are no texts; the ids are right all the same."""
    vocab = vocabulary("llama/default", ["ab", " a"], space_prefix=True)
    assert not safe_cuts(vocab).any()
    ids, offsets = bulk.tokenize_bulk(vocab, ["ab-", "b a"])
    assert parts(ids, offsets) == alone(vocab, ["ab-", "b a"])


def test_reserved_piece_that_no_merge_reaches_does_not_forbid_a_cut() -> None:
    """`<r99>` is in the vocabulary, but neither `<r9` nor `9>` is, so digits never merge."""
    vocab = vocabulary("llama/default", ["ab"])
    vocab.pieces.append(b"<r99>")
    vocab.attributes = np.append(vocab.attributes, np.int32(8))
    assert safe_cuts(vocab)[ord("9"), ord("9")]
    vocab.pieces += [b"<r9", b"9>"]
    vocab.attributes = np.append(vocab.attributes, np.int32([4, 4]))
    assert not safe_cuts(vocab)[ord("9"), ord("9")]


@pytest.mark.parametrize("mostly", [0.0, 1.0], ids=["joined", "cut"])
@pytest.mark.parametrize("scheme", WORDS)
def test_runtime_that_splits_no_words_gives_the_ids_that_each_text_has_alone(
    scheme: str, mostly: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a runtime does not split as the name says, pieces that hold two bytes still forbid the cut between them."""
    monkeypatch.setattr(bulk, "MOSTLY", mostly)
    monkeypatch.setattr(bulk, "BLOCK", 50)
    random = Random(scheme)
    every = ["".join(chars) for size in (2, 3) for chars in product(ALPHABET, repeat=size)]
    for share in (0.6, 0.05, 0.01):
        vocab = vocabulary("", random.sample(every, int(share * len(every))))
        vocab.scheme = scheme
        texts = ["".join(random.choices(ALPHABET, k=random.randint(1, 8))) for _ in range(250)]
        ids, offsets = bulk.tokenize_bulk(vocab, texts)
        assert parts(ids, offsets) == alone(vocab, texts)


def test_cut_that_only_the_name_of_the_pattern_allows_is_not_made() -> None:
    """A letter ends its word before a mark, yet `a-` is a piece, so nothing is proven there; `b-` is no part of one."""
    safe = safe_cuts(vocabulary("gpt2/gpt-2", ["a-", "x-ray"]))
    assert not safe[ord("a"), ord("-")]
    assert not safe[ord("x"), ord("-")]
    assert safe[ord("b"), ord("-")]


@pytest.mark.parametrize("mostly", [0.0, 1.0], ids=["joined", "cut"])
def test_many_blocks_and_many_different_parts_give_the_same_ids(mostly: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, small calls and a memory that is emptied often; cut to the end, and joined after the first."""
    monkeypatch.setattr(bulk, "MOSTLY", mostly)
    monkeypatch.setattr(bulk, "BLOCK", 7)
    monkeypatch.setattr(joined, "CALL", 10)
    monkeypatch.setattr(bulk, "KEPT", 20)
    vocab = vocabulary("gpt2/smollm", ["aa", "ab", "ba", "-a"])
    texts = [f'{"ab" * (n % 9)}-{n}"{"a" * n}' for n in range(60)]
    ids, offsets = bulk.tokenize_bulk(vocab, texts)
    assert ids.dtype == np.int32
    assert parts(ids, offsets) == alone(vocab, texts)


def test_each_different_part_goes_to_the_tokenizer_once() -> None:
    """A thousand texts of two words and a number: two calls for all of them."""
    vocab = vocabulary("gpt2/smollm", ["ab"])
    calls: list[bytes] = []
    inner = vocab._tokenize

    def counted(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        calls.append(text)
        return inner(text, add_special, parse_special)

    vocab._tokenize = counted
    texts = [f"ab-ba-{n}" for n in range(1000)]
    bulk.tokenize_bulk(vocab, texts)
    assert len(calls) <= 2


@pytest.mark.parametrize("scheme", ["", "gpt2/smollm"])
def test_text_that_cannot_be_an_opcode_is_refused_as_alone(scheme: str) -> None:
    """An empty text, and one whose pieces do not join to its bytes; cut or not."""
    vocab = vocabulary(scheme, ["ab"])
    with pytest.raises(BuildError, match="cannot be the empty string"):
        bulk.tokenize_bulk(vocab, ["ab", ""])
    inner = vocab._tokenize
    vocab._tokenize = lambda text, *flags: [i for i in inner(text, *flags) if i != ord("~")]
    with pytest.raises(BuildError, match="does not round-trip: expected b'a~b'"):
        bulk.tokenize_bulk(vocab, ["ab", "a~b"])


def test_no_texts_give_no_ids() -> None:
    """The compiler refuses an empty set by its own words."""
    ids, offsets = bulk.tokenize_bulk(vocabulary("gpt2/smollm", []), [])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


def test_progress_is_told_after_a_second_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves 0.6 seconds a look: the first block is silent, later ones report."""
    clock = iter(np.arange(0.0, 1000.0, 0.6))
    monkeypatch.setattr(bulk.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(bulk, "BLOCK", 2)
    told: list[tuple[int, int]] = []
    vocab = vocabulary("gpt2/smollm", [])
    bulk.tokenize_bulk(vocab, ["a1", "a2", "a3", "a4", "a5"], progress=lambda *at: told.append(at))
    assert told == [(4, 5), (5, 5)]
