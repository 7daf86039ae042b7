"""The text from the first open argument on, held by a grammar engine over the model's own vocabulary.

This is the only module that imports llguidance. The engine is told to leave tokenization alone, so every token whose
bytes are right is legal, also one that straddles the boundary of an argument. Control, unused, unknown and empty ids
are never legal.
"""

from __future__ import annotations

import weakref

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from numpy.typing import NDArray

from kernel.errors import BackendError, BuildError
from kernel.shape.shape import Shape
from kernel.text.vocabulary import Vocabulary
from kernel.write.grammar import grammar

Mask = NDArray[np.int32]

LIMITS = LLParserLimits(
    max_items_in_row=100_000, step_max_items=2_000_000, step_lexer_fuel=5_000_000, initial_lexer_fuel=5_000_000
)
"""Work of the engine for one token; wider than its own limits, which an object of a thousand optional keys exceeds."""

_tokenizers: weakref.WeakKeyDictionary[Vocabulary, LLTokenizer] = weakref.WeakKeyDictionary()


class _Wrapper:
    """A vocabulary as the engine wants it: what is not text gets the byte 0xFF in front, which makes it special."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenize = vocabulary._tokenize
        text = vocabulary.is_text.tolist()
        self.tokens = [p if ok else b"\xff" + p for p, ok in zip(vocabulary.pieces, text, strict=True)]
        # An end of its own, so that no id of the model's stands for the end of a text: that is a fact, not a choice.
        self.tokens.append(b"\xff<end>")
        self.eos_token_id = len(vocabulary)
        self.special_token_ids = [i for i, ok in enumerate(text) if not ok] + [len(vocabulary)]

    def __call__(self, text: bytes | str) -> list[int]:
        return self._tokenize(text.encode() if isinstance(text, str) else text, False, False)


def tokenizer(vocabulary: Vocabulary) -> LLTokenizer:
    """Return the engine's view of a vocabulary, made once for each."""
    known = _tokenizers.get(vocabulary)
    if known is None:
        wrapper = _Wrapper(vocabulary)
        known = _tokenizers[vocabulary] = LLTokenizer(wrapper, slices=LLTokenizer.json_slices())  # type: ignore[arg-type]
    return known


class Grammar:
    """A compiled shape; `start` gives a slot at its beginning.

    Raises BuildError when the engine cannot hold it.
    """

    def __init__(self, shape: Shape, vocabulary: Vocabulary) -> None:
        self.shape = shape
        self.vocabulary = vocabulary
        self.source = grammar(shape)
        source = LLMatcher.grammar_from_lark(self.source)
        self._matcher = LLMatcher(tokenizer(vocabulary), source, log_level=0, limits=LIMITS)
        if self._matcher.is_error():
            raise BuildError(f"the grammar engine cannot hold this: {self._matcher.get_error().splitlines()[0]}")
        self.buffer = np.empty(len(vocabulary) // 32 + 1, np.int32)
        self.address = self.buffer.ctypes.data

    def start(self) -> Slot:
        """Return a slot at the beginning of the text."""
        return Slot(self, self._matcher.deep_copy())


class Slot:
    """How far a text has come; `take` and `back` move it."""

    __slots__ = ("_matcher", "grammar")

    def __init__(self, grammar: Grammar, matcher: LLMatcher) -> None:
        self.grammar = grammar
        self._matcher = matcher

    def mask(self) -> Mask:
        """Return the legal ids as bits, int32, shape (n_vocab // 32 + 1,), until the next call for this grammar.

        Bits from n_vocab on mean nothing. Raises BackendError when the engine gives up.
        """
        grammar = self.grammar
        self._matcher.unsafe_compute_mask_ptr(grammar.address, grammar.buffer.nbytes)
        if self._matcher.is_error():
            raise BackendError(f"the grammar engine gives up: {self._matcher.get_error().splitlines()[0]}")
        return grammar.buffer

    def legal(self) -> NDArray[np.int32]:
        """Return the legal next ids, int32, ascending."""
        bits = np.unpackbits(self.mask().view(np.uint8), bitorder="little", count=len(self.grammar.vocabulary))
        return np.flatnonzero(bits).astype(np.int32)

    def take(self, token: int) -> bool:
        """Move on by one id; False when it is not legal, and then the slot is of no more use."""
        return self._matcher.consume_token(token)

    def back(self, count: int) -> None:
        """Take back the last ids."""
        if not self._matcher.rollback(count):
            raise ValueError(f"the grammar engine cannot take back {count} ids: {self._matcher.get_error()}")

    @property
    def ended(self) -> bool:
        """Whether the text is complete; its closing mark leaves nothing to add."""
        return self._matcher.is_accepting()

    def forced(self) -> list[int]:
        """Return ids that stand for bytes without alternative, tokenized as the model would see them."""
        return [] if self.ended else [int(token) for token in self._matcher.compute_ff_tokens()]
