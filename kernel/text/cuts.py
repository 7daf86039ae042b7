"""Where a text may be cut so that the ids of its parts, one after the other, are the ids of the whole.

    {"item":"amber-otter-07"}            a text, and where it is cut under the splitting pattern of smollm:
    {"|item|":"|amber|-|otter|-|0|7|"}   parts come again in other texts, and each different part is tokenized once

A cut between two bytes is *safe* when two things are proven. Everything else is not cut.

1. No token spans it. Tokenizers merge neighbours, and each merge makes a piece of the vocabulary; so no merge reaches
   across where no piece that a merge can make holds the two bytes next to each other. This is read off the pieces.
   Pieces that are split off before everything else (user-defined ones) forbid cuts inside them in the same way.
2. The words on each side are those of the whole. Byte-pair encoding (`gpt2/...`) splits a text into words first. A cut
   is safe where a word always ends in the named splitting pattern; the patterns look forward only, so what stands
   before the start of a word does not matter. SentencePiece (`llama/...`) splits into no words; but there is no cut
   where it puts a space before each text.

What is taken from the runtime without a proof is that it merges neighbours and that it splits by the pattern that
`Vocabulary.scheme` names. The patterns are known for ASCII; for a name that is not known here there is no safe cut. The
tests compare every vocabulary at hand with single calls of its tokenizer.
"""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray

from kernel.text.vocabulary import NORMAL, USER_DEFINED, Vocabulary

Table = NDArray[np.bool_]

STRIPS = 1 << 7 | 1 << 8
"""Attributes of pieces that swallow the white space beside them (LSTRIP, RSTRIP in `enum llama_token_attr`)."""
MARK = "\u2581".encode()
"""What SentencePiece writes for a space."""

LETTER = string.ascii_letters.encode()
DIGIT = string.digits.encode()
SPACE = b" "
OTHER = string.punctuation.encode()
NOT_FOLLOWING = bytes(range(0x80, 0xC0))  # continuation bytes: inside a character
ANY = bytes(set(range(256)) - set(NOT_FOLLOWING))

# Which splitting pattern each name stands for in llama.cpp (llama-vocab.cpp, `tokenizer.ggml.pre`).
WORDS = frozenset({"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "modern-bert", "exaone4", "granite-docling"})
"""'s|'t|'re|'ve|'m|'ll|'d| ?L+| ?N+| ?[^\\s L N]+|\\s+(?!\\S)"""
WORDS_AND_DIGITS = frozenset(
    {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}
)
"""First every number character alone, then as WORDS within what is between them."""
PREFIXED_DIGITS = frozenset({"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "solar-open", "hunyuan", "grok-2"})
"""(?i:'s|...)|[^\\r\\n L N]?L+|N| ?[^\\s L N]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"""
PREFIXED = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "lfm2", "pixtral", "dbrx", "smaug-bpe", "glm4"}
)
"""As PREFIXED_DIGITS, with N{1,3}."""


def safe_cuts(vocabulary: Vocabulary) -> Table:
    """Return a table: bool, shape (256, 256), True where a text may be cut between bytes a and b.

    Which rules apply is read off `vocabulary.scheme`; one that is not known here gives no cut at all.
    """
    model, _, pre = vocabulary.scheme.partition("/")
    user_defined = (vocabulary.attributes & USER_DEFINED) != 0
    safe = np.zeros((256, 256), np.bool_)
    if ((vocabulary.attributes & STRIPS)[user_defined] != 0).any():
        return safe
    if model == "gpt2":
        safe = _word_ends(pre)
    elif model == "llama" and vocabulary.join(vocabulary._tokenize(b"a", False, False)) == b"a":
        safe[:, list(ANY)] = True
    if safe.any():
        safe &= ~_pairs([vocabulary.pieces[i] for i in np.flatnonzero(user_defined)])
        safe &= ~_merged_pairs(vocabulary)
    return safe


def _word_ends(pre: str) -> Table:
    """Return where a word always ends, for a splitting pattern known by name."""
    safe = np.zeros((256, 256), np.bool_)
    if pre not in WORDS | WORDS_AND_DIGITS | PREFIXED | PREFIXED_DIGITS:
        return safe

    def allow(before: bytes, after: bytes) -> None:
        safe[np.ix_(list(before), list(after))] = True

    allow(LETTER, OTHER + DIGIT + SPACE)
    allow(DIGIT, OTHER + LETTER + SPACE)
    allow(OTHER, DIGIT + SPACE)
    if pre in WORDS | WORDS_AND_DIGITS:  # elsewhere a letter takes the mark before it into its word
        allow(OTHER.replace(b"'", b""), LETTER)
    if pre in WORDS_AND_DIGITS | PREFIXED_DIGITS:
        allow(DIGIT, DIGIT)
    if pre in WORDS_AND_DIGITS:
        allow(DIGIT, ANY)
        allow(bytes(range(256)), DIGIT)
    return safe


def _merged_pairs(vocabulary: Vocabulary) -> Table:
    """Return which pairs of neighbouring bytes stand in a piece that a merge can make."""
    attributes = vocabulary.attributes
    plain = (attributes & NORMAL) != 0
    rest = [vocabulary.pieces[i] for i in np.flatnonzero(~plain & ((attributes & USER_DEFINED) == 0))]
    rest += [b"<0x%02X>" % byte for byte in range(256)]
    known = {*vocabulary.pieces, *rest}
    # thousands of reserved pieces such as <unused99> are in the vocabulary, but no two pieces merge into one of them
    joints = [
        text[at - 1 : at + 1]
        for text in rest
        for at in range(1, len(text))
        if _is_symbol(text[:at], known) and _is_symbol(text[at:], known)
    ]
    return _pairs([*(vocabulary.pieces[i] for i in np.flatnonzero(plain).tolist()), *joints])


def _is_symbol(text: bytes, known: set[bytes]) -> bool:
    """Whether a merge can take this as one of its two sides: one character, or a piece."""
    return text in known or len(text) == 1 or len(text.decode(errors="replace")) == 1


def _pairs(texts: list[bytes]) -> Table:
    """Return the pairs of neighbouring bytes in texts, with spaces also as SentencePiece writes them."""
    seen = np.zeros(1 << 16, np.bool_)
    whole = b"\0".join(texts)
    for text in (whole, whole.replace(b" ", MARK)):
        flat = np.frombuffer(text, np.uint8)
        seen[flat[:-1].astype(np.uint16) << 8 | flat[1:]] = True
    return seen.reshape(256, 256)
