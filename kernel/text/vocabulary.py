"""The vocabulary of the live model: the bytes of each token id, which ids are text, and tokenization that is exact.

    id      piece         attribute
    198     b"\\n"         NORMAL     text
    314     b" I"         NORMAL     text
    2       b"<|im_end|>" CONTROL    never part of an opcode, and never made from data

`literal` tokenizes an opcode, `plain` any data, `prompt` the parts of a prompt. The first two raise BuildError unless
the pieces of the ids join to exactly the bytes of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError, UsageError
from kernel.prompt import Piece
from kernel.text.attributes import BYTE as BYTE
from kernel.text.attributes import CONTROL as CONTROL
from kernel.text.attributes import NORMAL as NORMAL
from kernel.text.attributes import UNKNOWN as UNKNOWN
from kernel.text.attributes import UNUSED as UNUSED
from kernel.text.attributes import USER_DEFINED as USER_DEFINED
from kernel.textfile import utf8

# What stands before a literal when the tokenizer invents a space at the start of a text (SentencePiece does):
# its own tokens are cut off again. Several, because a vocabulary may fuse one of them with what follows.
SENTINELS = ("\n", "\x01", "|", "0")

Tokenize = Callable[[bytes, bool, bool], list[int]]
"""(text, add_special, parse_special) -> ids, as `llama_tokenize` does it."""


class Vocabulary:
    """Pieces, attributes and tokenizer of one model.

    Args:
        pieces: bytes of each id, control ids as their marker text; length n_vocab.
        attributes: int32, shape (n_vocab,); bits as above.
        tokenize: the runtime's own tokenizer.
        eog: ids that end a generation (end of sequence, end of turn).
        scheme: how the tokenizer splits and merges, `model/pre` of the GGUF file (`gpt2/qwen2`); "" when unknown.
        name: where it comes from, for messages.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        attributes: NDArray[np.int32],
        tokenize: Tokenize,
        *,
        eog: Iterable[int] = (),
        scheme: str = "",
        name: str = "vocabulary",
    ) -> None:
        self.pieces = list(pieces)
        self.attributes = attributes
        self.eog = frozenset(eog)
        self.scheme = scheme
        self.name = name
        self._tokenize = tokenize

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def is_text(self) -> NDArray[np.bool_]:
        """Bool, shape (n_vocab,): False for control, unused, unknown and empty ids, which no literal may hold."""
        hidden = (self.attributes & (CONTROL | UNUSED | UNKNOWN)) != 0
        empty = np.fromiter((not piece for piece in self.pieces), np.bool_, len(self.pieces))
        mask: NDArray[np.bool_] = ~(hidden | empty)
        return mask

    @cached_property
    def fingerprint(self) -> str:
        """`b2:` and a hash of the scheme and of every piece and attribute: models with equal ones share compiled tries.

        The scheme counts, because equal pieces may be put together by different rules (qwen2 and qwen35).
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.scheme.encode() + b"\0")
        digest.update(np.asarray([len(p) for p in self.pieces], np.int32).tobytes())
        digest.update(b"".join(self.pieces))
        digest.update(np.ascontiguousarray(self.attributes, np.int32).tobytes())
        return f"b2:{digest.hexdigest()}"

    def join(self, ids: Iterable[int]) -> bytes:
        """Return the bytes that the ids stand for."""
        pieces = self.pieces
        return b"".join(pieces[i] for i in ids)

    def plain(self, text: str | bytes) -> list[int]:
        """Tokenize data: no BOS, no invented space, markers of control tokens stay ordinary text.

        Falls back to nothing: raises BuildError when no tokenization joins to exactly the bytes of `text`.
        """
        data = utf8(text) if isinstance(text, str) else text
        if not data:
            return []
        ids = self._tokenize(data, False, False)
        if self._exact(ids, data):
            return ids
        for sentinel in SENTINELS:
            head = self._tokenize(sentinel.encode(), False, False)
            both = self._tokenize(sentinel.encode() + data, False, False)
            if both[: len(head)] == head and self._exact(both[len(head) :], data):
                return both[len(head) :]
        raise BuildError(
            f"{self.name}: text does not round-trip: expected {data!r}, "
            f"its pieces join to {self.join(ids)!r} (ids {ids[:12]})"
        )

    def literal(self, text: str) -> list[int]:
        """Tokenize the text of an opcode; as `plain`, and empty text and ids that are not text are refused."""
        if not text:
            raise BuildError(f"{self.name}: an opcode cannot be the empty string")
        return self.plain(text)

    def prompt(self, parts: Sequence[Piece], *, start: bool = True) -> list[int]:
        """Tokenize a prompt. Only trusted parts may yield control ids.

        Neighbouring parts without control text are tokenized as one run, so that words meet as the model
        has learned them; `start` puts BOS first where the model wants it. What the vocabulary cannot spell (some
        lack the bytes of rare characters) is left out or marked unknown as its own tokenizer does it: nobody chooses
        a prompt, so no error. A literal is refused instead.
        """
        runs: list[tuple[str, bool]] = []
        for part in parts:
            if not part.text:
                continue
            special = part.trusted and self._has_control(part.text)
            if runs and not special and not runs[-1][1]:
                runs[-1] = (runs[-1][0] + part.text, False)
            else:
                runs.append((part.text, special))
        ids: list[int] = []
        for index, (text, special) in enumerate(runs):
            if index == 0 and start:
                ids += self._tokenize(utf8(text, UsageError), True, special)
            elif special:
                ids += self._tokenize(utf8(text, UsageError), False, True)
            else:
                ids += self._data(text)
        return ids

    def _data(self, text: str) -> list[int]:
        try:
            return self.plain(text)
        except BuildError:
            return self._tokenize(utf8(text, UsageError), False, False)

    def _has_control(self, text: str) -> bool:
        return bool(np.any((self.attributes[self._tokenize(utf8(text, UsageError), False, True)] & CONTROL) != 0))

    def _exact(self, ids: list[int], data: bytes) -> bool:
        return self.join(ids) == data and bool(self.is_text[ids].all())
