"""The engines that bench_trie.py compares: each turns a list of literal texts into the legal next ids of a step.

Every one is used as its own documentation does it, in the fastest form that we found for literal lists, with its
limits raised where it would refuse. All get the same texts and the same vocabulary, and none is asked to tokenize
with anything but the model's own tokenizer.
"""

# ruff: noqa: D102 - what the methods do stands once, in Engine

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.text.bulk import tokenize_bulk
from kernel.text.joined import Tables
from kernel.text.vocabulary import Vocabulary
from kernel.trie.ordering import Ordering
from kernel.trie.trie import Trie


class Engine:
    """What the benchmark calls. `by_ids` engines allow the one tokenization of a text, the others every one."""

    package = ""
    by_ids = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make what is made once a model, not once a list of texts."""
        self.vocabulary = vocabulary
        self.parts: dict[str, float] = {}

    def compile(self, texts: Sequence[str]) -> None:
        """Make what is made once a list of texts."""
        raise NotImplementedError

    def reset(self) -> None:
        """Go to the beginning of a text."""
        raise NotImplementedError

    def mask(self) -> None:
        """Compute the legal next ids; the result stays in the engine."""
        raise NotImplementedError

    def allowed(self) -> set[int]:
        """Return the result of the last `mask`; not timed."""
        raise NotImplementedError

    def advance(self, token: int) -> None:
        """Take one legal id."""
        raise NotImplementedError

    def width(self) -> int:
        """Return how many ids the last `mask` allows; 0 where that is not at hand."""
        return 0

    def choose(self, row: NDArray[np.float32]) -> int | None:
        """Return the legal id of the last `mask` with the highest logit; None where an engine leaves that to others."""
        return None

    def sequences(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ids of all texts, where the engine has them (`by_ids`)."""
        raise NotImplementedError

    def _timed(self, part: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        self.parts[part] = time.perf_counter() - start
        return result


class Ours(Engine):
    """This project: bulk tokenization, a path-compressed trie in arrays."""

    by_ids = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        Tables.of(vocabulary)

    def compile(self, texts: Sequence[str]) -> None:
        ids, offsets = self._timed("tokenize", lambda: tokenize_bulk(self.vocabulary, texts))

        def build() -> Trie:
            ordering = Ordering.of(ids, offsets)
            assert not ordering.duplicates()
            assert not ordering.prefixes()
            return Trie.build(ids, offsets, ordering)

        self.trie = self._timed("build", build)
        self._offsets = offsets
        self.reset()

    def reset(self) -> None:
        self._node = 0
        self._tail: list[int] = []
        self._at = 0

    def mask(self) -> None:
        if self._at < len(self._tail):  # inside an edge: one id is forced
            self._legal: Sequence[int] | NDArray[np.int32] = self._tail[self._at : self._at + 1]
        else:
            self._legal = self.trie.children(self._node)

    def advance(self, token: int) -> None:
        if self._at >= len(self._tail):
            edge = self.trie.find(self._node, token)
            self._tail, self._at, self._node = self.trie.tail(edge).tolist(), 0, self.trie.child(edge)
        self._at += 1

    def allowed(self) -> set[int]:
        return set(map(int, self._legal))

    def width(self) -> int:
        return len(self._legal)

    def choose(self, row: NDArray[np.float32]) -> int | None:
        return int(self._legal[int(row[self._legal].argmax())])

    def sequences(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return self.trie.ids, self._offsets


class Dicts(Engine):
    """Nested dicts, as in the predecessor: one call of the tokenizer a text, one dict a node."""

    by_ids = True

    def compile(self, texts: Sequence[str]) -> None:
        tokenize = self.vocabulary._tokenize
        self._all = self._timed("tokenize", lambda: [tokenize(text.encode(), False, False) for text in texts])

        def build() -> dict[int, Any]:
            root: dict[int, Any] = {}
            for ids in self._all:
                node = root
                for token in ids:
                    child = node.get(token)
                    if child is None:
                        child = node[token] = {}
                    node = child
            return root

        self._root = self._timed("build", build)

    def reset(self) -> None:
        self._node = self._root

    def mask(self) -> None:
        self._legal = list(self._node)

    def advance(self, token: int) -> None:
        self._node = self._node[token]

    def width(self) -> int:
        return len(self._legal)

    def choose(self, row: NDArray[np.float32]) -> int | None:
        return int(max(self._legal, key=row.__getitem__))

    def allowed(self) -> set[int]:
        return set(self._legal)

    def sequences(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        offsets = np.cumsum([0, *map(len, self._all)])
        return np.fromiter((i for ids in self._all for i in ids), np.int32, int(offsets[-1])), offsets


class Marisa(Engine):
    """marisa-trie over ids, each id one character; the legal next ids are those of all keys below."""

    package = "marisa-trie"
    by_ids = True
    BASE = 0x10000  # above the surrogates; 262,144 ids fit below 0x110000

    def compile(self, texts: Sequence[str]) -> None:
        import marisa_trie

        tokenize = self.vocabulary._tokenize
        base = self.BASE

        def keys() -> list[str]:
            return ["".join([chr(base + i) for i in tokenize(text.encode(), False, False)]) for text in texts]

        self._keys = self._timed("tokenize", keys)
        self._trie = self._timed("build", lambda: marisa_trie.Trie(self._keys))

    def reset(self) -> None:
        self._prefix = ""

    def mask(self) -> None:
        at = len(self._prefix)
        self._legal = {key[at] for key in self._trie.iterkeys(self._prefix)}

    def advance(self, token: int) -> None:
        self._prefix += chr(self.BASE + token)

    def allowed(self) -> set[int]:
        return {ord(char) - self.BASE for char in self._legal}

    def sequences(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        offsets = np.cumsum([0, *map(len, self._keys)])
        return np.fromiter((ord(c) - self.BASE for key in self._keys for c in key), np.int32, int(offsets[-1])), offsets


class BitMask(Engine):
    """What engines with a bit for each id share."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._bits = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)

    def allowed(self) -> set[int]:
        flat = np.unpackbits(self._bits.view(np.uint8), bitorder="little")
        return set(np.flatnonzero(flat[: len(self.vocabulary)]).tolist())


class LLGuidance(BitMask):
    """llguidance: one terminal of all texts, limits raised (it refuses 100,000 as it comes).

    Without forcing, which makes its masks whole and a step several times faster than its default.
    """

    package = "llguidance"
    head = '%llguidance {"no_forcing": true}\n'

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        import llguidance
        import llguidance.numpy

        class Wrapped:
            eos_token_id = min(vocabulary.eog)
            bos_token_id = None
            special_token_ids = np.flatnonzero(~vocabulary.is_text).tolist()
            tokens = [  # noqa: RUF012 - only read
                piece if text else b"\xff" + piece
                for piece, text in zip(vocabulary.pieces, vocabulary.is_text, strict=True)
            ]

            def __call__(self, text: str | bytes) -> list[int]:
                return vocabulary._tokenize(text if isinstance(text, bytes) else text.encode(), False, False)

        self._fill = llguidance.numpy.fill_next_token_bitmask
        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Wrapped()))

    def compile(self, texts: Sequence[str]) -> None:
        from llguidance import LLMatcher
        from llguidance._lib import LLParserLimits

        grammar = f"{self.head}start: T\nT: " + " | ".join(map(json.dumps, texts))
        big = 2**31
        limits = LLParserLimits(
            max_items_in_row=big,
            initial_lexer_fuel=2**40,
            step_lexer_fuel=2**40,
            step_max_items=big,
            max_lexer_states=big,
            max_grammar_size=big,
        )
        self._matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar), limits=limits)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error()[:200])

    def reset(self) -> None:
        self._matcher.reset()

    def mask(self) -> None:
        self._fill(self._matcher, self._bits)

    def advance(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise RuntimeError(self._matcher.get_error()[:200])


class XGrammar(BitMask):
    """xgrammar: one EBNF rule of all texts."""

    package = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        if importlib.util.find_spec("torch") is None:
            _pretend_torch()
        import xgrammar

        self._xgrammar = xgrammar
        pieces = [piece if text else b"" for piece, text in zip(vocabulary.pieces, vocabulary.is_text, strict=True)]
        info = xgrammar.TokenizerInfo(
            pieces, xgrammar.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[min(vocabulary.eog)]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=2, cache_enabled=False)

    def compile(self, texts: Sequence[str]) -> None:
        grammar = self._compiler.compile_grammar("root ::= " + " | ".join(map(json.dumps, texts)))
        self._matcher = self._xgrammar.GrammarMatcher(grammar)

    def reset(self) -> None:
        self._matcher.reset()

    def mask(self) -> None:
        self._full = not self._matcher.fill_next_token_bitmask(self._bits)

    def advance(self, token: int) -> None:
        if not self._matcher.accept_token(token):
            raise RuntimeError(f"token {token} refused")

    def allowed(self) -> set[int]:
        return set(range(len(self.vocabulary))) if self._full else super().allowed()


class Outlines(Engine):
    """outlines-core: a regular expression of all texts."""

    package = "outlines-core"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        import outlines_core

        self._outlines = outlines_core
        tokens: dict[bytes, list[int]] = {}
        for token in np.flatnonzero(vocabulary.is_text).tolist():
            tokens.setdefault(vocabulary.pieces[token], []).append(token)
        self._tokens = outlines_core.Vocabulary(min(vocabulary.eog), tokens)

    def compile(self, texts: Sequence[str]) -> None:
        self._index = self._outlines.Index("|".join(map(re.escape, texts)), self._tokens)

    def reset(self) -> None:
        self._guide = self._outlines.Guide(self._index)

    def mask(self) -> None:
        self._legal = self._guide.get_tokens()

    def advance(self, token: int) -> None:
        self._guide.advance(token, False)

    def allowed(self) -> set[int]:
        return set(self._legal)


class GLRMask(BitMask):
    """glrmask: one terminal of all texts, its default way to compute masks."""

    package = "glrmask"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        import glrmask

        self._glrmask = glrmask
        texts = np.flatnonzero(vocabulary.is_text).tolist()
        self._vocab = glrmask.Vocab.from_id_to_bytes({token: vocabulary.pieces[token] for token in texts})

    def compile(self, texts: Sequence[str]) -> None:
        grammar = self._glrmask.Grammar.from_lark("start: T\nT: " + " | ".join(map(json.dumps, texts)))
        self._constraint = grammar.compile(self._vocab)
        self._row = np.zeros(max(self._bits.size, self._constraint.mask_len()), np.int32)

    def reset(self) -> None:
        self._state = self._constraint.start()

    def mask(self) -> None:
        self._state.fill_mask(self._row)

    def advance(self, token: int) -> None:
        if not self._state.commit_token(token):
            raise RuntimeError(f"token {token} refused")

    def allowed(self) -> set[int]:
        self._bits[0] = self._row[: self._bits.size]
        return super().allowed()


def _pretend_torch() -> None:
    """Let xgrammar be imported without torch and transformers: it names them, and nothing used here calls them."""
    import tvm_ffi  # noqa: F401 - looks for torch when imported, so it comes first

    class Pretended(types.ModuleType):
        __path__: list[str] = []  # noqa: RUF012

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    torch = Pretended("torch")
    torch.int32 = "int32"  # type: ignore[attr-defined]
    torch.tensor = lambda *_, **__: None  # type: ignore[attr-defined]
    sys.modules["torch"] = torch
    for name in ("torch.utils", "torch.utils.cpp_extension", "transformers"):
        sys.modules[name] = Pretended(name)


ENGINES: dict[str, type[Engine]] = {
    "ours": Ours,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "outlines-core": Outlines,
    "glrmask": GLRMask,
    "marisa-trie": Marisa,
    "dicts": Dicts,
}
