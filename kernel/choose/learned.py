"""What was learned from labelled requests: how much each opcode is meant, and whether any is, as arrays in a file.

A decision under the rule `learned` reads one prompt, and its score of an opcode o is

    prior * (log P(o | prompt) - null(o)) + weights(o) . (state, calibrated scores, ids of the request) + bias(o)

The calibrated score is the prior: an opcode without a single labelled request has no weights, and competes by it alone.
What the others score says more than how far they are behind: which room is meant may say that the light is.
`state` are the logits behind the prompt at some ids, less their mean. A model's logits are its last hidden state times
a matrix that stays the same, so as many of them as the state has dimensions hold all of it, and they are there anyway.
`null` is the mean over the null prompts that were read when it was learned, so that they need not be read again.

Whether anything is meant at all (`Evidence.meant`) is the log-odds of a multinomial logistic regression that tells what
asks for something from each kind of what does not. It sees the same state, the ids of the request and the pairs of them
that follow each other, and three numbers: largest calibrated score, logarithm of the sum of all likelihood ratios,
probability of the best opcode.

The file (see `kernel.trie.arrays`) holds numbers only. It says for which model, tokenizer and opcodes it was made, and
its arrays between which ids a request has to stand; for others it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernel.choose.known import centred, gained, single, terms
from kernel.choose.outcome import Thresholds, gains
from kernel.choose.rule import Floats
from kernel.errors import StoreError, UsageError
from kernel.memory.listed import Prompted
from kernel.memory.passes import Ids
from kernel.text.vocabulary import Vocabulary
from kernel.trie.arrays import Kind, read_arrays, write_arrays
from kernel.trie.opcodes import OpcodeSet

KIND = Kind(b"\x93CKLRNT\n", 3, "learned file", "learned", "learn it again")

SUFFIX = ".learned"

SIGNALS = 3
"""How many numbers stand beside the state and the ids of the request: top, total, share."""


@dataclass(frozen=True)
class Keys:
    """What a learned file belongs to, as fingerprints."""

    model: str
    tokenizer: str
    opcodes: str

    @classmethod
    def of(cls, model: str, vocabulary: Vocabulary, opcodes: OpcodeSet) -> Self:
        """Return the keys of a model by its fingerprint, its vocabulary, and opcodes."""
        return cls(model, vocabulary.fingerprint, unordered([literal.body for literal in opcodes.literals]))

    def as_json(self) -> dict[str, str]:
        """Return them by name."""
        return {"model": self.model, "tokenizer": self.tokenizer, "opcodes": self.opcodes}


def unordered(bodies: Sequence[str]) -> str:
    """Return `b2:` and a hash of the bodies of opcodes, the same in any order.

    >>> unordered([" go", " stop"]) == unordered([" stop", " go"]) != unordered([" stop go"])
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for body in sorted(bodies):
        digest.update(len(body.encode()).to_bytes(4) + body.encode())
    return f"b2:{digest.hexdigest()}"


@dataclass(frozen=True)
class Learned:
    """What was learned for one model, one form of prompt and one set of opcodes. Columns are bodies in sorted order.

    Attributes:
        keys: what it belongs to.
        head, tail: ids before and behind the request.
        seen: int32, shape (k,): the ids whose logits are the state.
        weights: float64, shape (k + n + single words, n): on the state, the calibrated scores, the ids of the request;
            `bias` and `null`: float64, shape (n,).
        prior: how much calibrated scores count.
        meant_state: float64, shape (k, kinds), for being meant against each kind of request that nothing answers;
            `meant_signals`: shape (SIGNALS, kinds); `meant_bias`: shape (kinds,).
        words: int64, shape (w,), increasing: ids of requests and pairs of them, see `terms`; `meant_words`: shape
            (w, kinds).
        thresholds: the evidence that it takes to choose.
        about: what it was learned from, for people.
    """

    keys: Keys
    head: Ids
    tail: Ids
    seen: NDArray[np.int32]
    weights: Floats
    bias: Floats
    null: Floats
    prior: float
    meant_state: Floats
    meant_signals: Floats
    meant_bias: Floats
    words: NDArray[np.int64]
    meant_words: Floats
    thresholds: Thresholds = field(default_factory=Thresholds)
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """`b2:` and a hash of all numbers: equal ones decide alike."""
        digest = hashlib.blake2b(digest_size=16)
        numbers = (self.seen, self.weights, self.bias, self.null, self.meant_state, self.meant_signals, self.words)
        ends = np.array([self.prior, *self.head, *self.tail])
        for array in (*numbers, self.meant_words, self.meant_bias, ends):
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"b2:{digest.hexdigest()}"

    def order(self, orders: Sequence[Prompted]) -> Ids | None:
        """Return the first prompt that stands between the head and the tail, or None."""
        head, tail = len(self.head), len(self.tail)
        for ids in orders:
            if not isinstance(ids, tuple) or len(ids) <= head + tail:
                continue
            if ids[:head] == self.head and ids[len(ids) - tail :] == self.tail:
                return ids
        return None

    def request(self, ids: Ids) -> Ids:
        """Return what stands between the head and the tail."""
        return ids[len(self.head) : len(ids) - len(self.tail)]

    def scores(self, request: Ids, raw: Floats, state: Floats) -> Floats:
        """Return the score of every opcode, of which the highest wins; their softmax is the probability.

        Args:
            request: its ids.
            raw: float64, shape (n,): log-probabilities behind the prompt, in the order of the columns.
            state: float64, shape (k,).
        """
        said = np.isin(single(self.words), terms(request))
        known = np.concatenate([state, gained(raw, self.null), said])
        scores: Floats = self.prior * (raw - self.null) + known @ self.weights + self.bias
        return scores

    def meant(self, request: Ids, raw: Floats, scores: Floats, state: Floats) -> float:
        """Return the log-odds that one of the opcodes is meant.

        Args:
            request: its ids.
            raw, scores: float64, shape (n,), of every opcode in the order of the columns.
            state: float64, shape (k,).
        """
        below = np.exp(scores - scores.max())
        signals = np.array([*gains(raw, self.null), 1 / below.sum()])
        words = np.isin(self.words, terms(request))
        against = state @ self.meant_state + signals @ self.meant_signals + self.meant_words[words].sum(axis=0)
        return asked_for(against + self.meant_bias)

    def state(self, logits: NDArray[np.float32]) -> Floats:
        """Return the state out of the logits at `seen`."""
        return centred(logits)

    def columns(self, opcodes: OpcodeSet) -> NDArray[np.intp]:
        """Return the column of each opcode by its index."""
        known = self._columns.get(opcodes.fingerprint)
        if known is None:
            bodies = [literal.body for literal in opcodes.literals]
            known = np.argsort(np.argsort(np.array(bodies, object), kind="stable"))
            self._columns[opcodes.fingerprint] = known
        return known

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.intp]]:
        return {}

    def write(self, path: Path) -> None:
        """Write the file; raises StoreError where that cannot be."""
        about = json.dumps({"thresholds": self.thresholds.as_json(), **self.about}, sort_keys=True).encode()
        arrays: dict[str, NDArray[Any]] = {
            "head": np.asarray(self.head, np.int32),
            "tail": np.asarray(self.tail, np.int32),
            "seen": self.seen,
            "words": self.words,
            "numbers": np.array([self.prior, *self.meant_bias, *np.ravel(self.meant_signals)]),
            "bias": self.bias,
            "null": self.null,
            "about": np.frombuffer(about, np.uint8),
        }
        for name in ("weights", "meant_state", "meant_words"):
            scale, small = packed(getattr(self, name))
            arrays |= {name: small, f"{name}_scale": np.array([scale])}
        write_arrays(path, arrays, self.keys.as_json(), KIND)

    @classmethod
    def read(cls, path: Path, keys: Keys) -> Self:
        """Read a file that belongs to a model, its tokenizer and some opcodes.

        Raises:
            StoreError: it is none, is damaged, or was learned for others; the sentence says which.
        """
        try:
            found = read_arrays(path, keys.as_json(), KIND)
        except FileNotFoundError:
            raise StoreError(f"{str(path)!r}: there is no such learned file; `learn` writes one") from None
        try:
            return cls._of(keys, found)
        except (KeyError, ValueError, UsageError, TypeError) as error:
            raise StoreError(f"{str(path)!r} is no learned file of this program: {error}") from error

    @classmethod
    def _of(cls, keys: Keys, found: Mapping[str, NDArray[Any]]) -> Self:
        about = json.loads(found["about"].tobytes())
        wide = {
            name: float(found[f"{name}_scale"][0]) * found[name].view("<f2").astype(np.float64)
            for name in ("weights", "meant_state", "meant_words")
        }
        numbers = found["numbers"]
        seen, bias, null, words = found["seen"], found["bias"], found["null"], found["words"]
        k, n, kinds = len(seen), len(bias), (len(numbers) - 1) // (1 + SIGNALS)
        sizes = (len(null), len(wide["meant_state"]), len(wide["meant_words"]), len(numbers))
        if sizes != (n, k * kinds, len(words) * kinds, 1 + kinds * (1 + SIGNALS)) or not k or not n or not kinds:
            raise ValueError(f"arrays of {k} ids and {n} opcodes, and of {sizes}")
        prior, of_kinds, signals = float(numbers[0]), numbers[1 : 1 + kinds], numbers[1 + kinds :]
        if not all(np.isfinite(each).all() for each in (*wide.values(), bias, null, numbers)):
            raise ValueError("a number that is not finite")
        return cls(
            keys=keys,
            head=tuple(found["head"].tolist()),
            tail=tuple(found["tail"].tolist()),
            seen=seen,
            weights=wide["weights"].reshape(k + n + len(single(words)), n),
            bias=bias,
            null=null,
            prior=prior,
            meant_state=wide["meant_state"].reshape(k, kinds),
            meant_signals=signals.reshape(SIGNALS, kinds),
            meant_bias=of_kinds,
            words=words,
            meant_words=wide["meant_words"].reshape(len(words), kinds),
            thresholds=Thresholds.of(about.pop("thresholds")),
            about=about,
        )


def asked_for(against: Floats) -> float:
    """Return the log-odds of being meant at all, of those against each kind of request that nothing answers.

    >>> round(asked_for(np.array([2.0])), 6), round(asked_for(np.log([3.0, 3.0])), 6) == round(float(np.log(1.5)), 6)
    (2.0, True)
    """
    return -float(np.logaddexp.reduce(-against))


def packed(values: Floats) -> tuple[float, NDArray[np.uint8]]:
    """Return a scale, and the values divided by it as the bytes of float16; the largest becomes 1.

    >>> scale, small = packed(np.array([0.25, -0.5]))
    >>> scale, small.view("<f2").tolist()
    (0.5, [0.5, -1.0])
    """
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    return scale, (np.ravel(values) / scale).astype("<f2").view(np.uint8)
