"""llama.cpp through llama-cpp-python's C bindings: full rows, several sequences, no sampler. Imports it on use."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.backends import gguf
from kernel.errors import BackendError, ContextError, ModelError
from kernel.text.vocabulary import Vocabulary

_notes = logging.getLogger(__name__)

MAX_SEQUENCES = 256  # LLAMA_MAX_SEQ: the C side has a bitset of this size


class _Log:
    """What the C library says: printed when that is asked for; its first complaint is kept for our messages."""

    ERROR = 4  # GGML_LOG_LEVEL_ERROR

    def __init__(self) -> None:
        self.verbose = False
        self.complaint = ""
        self.callback: Any = None

    def hear(self, level: int, text: bytes, _: object) -> None:
        if not self.verbose and level != self.ERROR:
            return  # thousands of lines for one vocabulary
        line = text.decode(errors="replace")
        if self.verbose:
            sys.stderr.write(line)
        if level == self.ERROR and not self.complaint:
            self.complaint = " ".join(line.split())

    def why(self) -> str:
        """Return the complaint, to end a message with, and forget it."""
        complaint, self.complaint = self.complaint, ""
        return f": {complaint}" if complaint else ""


_log = _Log()


def _bindings() -> Any:
    # libgomp's threads spin at each barrier; when another process holds a core they spin against each other.
    # A short spin, then sleep: set before the library loads, and only where the user has not chosen.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    import llama_cpp

    if _log.callback is None:  # kept, because the C side keeps only a pointer to it
        _log.callback = llama_cpp.llama_log_callback(_log.hear)
        llama_cpp.llama_log_set(_log.callback, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
    return llama_cpp


class _Model:
    """Owns a loaded model and frees it with itself; whoever uses the C pointer holds this object.

    `stated` are the special tokens that the file names.
    """

    def __init__(self, api: Any, pointer: Any, stated: frozenset[int]) -> None:
        self.pointer, self.stated = pointer, stated
        weakref.finalize(self, api.llama_model_free, pointer).atexit = False


def _load(path: Path, verbose: bool, *, vocab_only: bool = False, gpu_layers: int = 0) -> tuple[Any, _Model]:
    metadata = gguf.read_metadata(path)
    gguf.check_vocabulary(path, metadata)
    api = _bindings()
    _log.verbose, _log.complaint = verbose, ""
    params = api.llama_model_default_params()
    params.vocab_only = vocab_only
    params.n_gpu_layers = gpu_layers
    pointer = api.llama_model_load_from_file(str(path).encode(), params)
    if not pointer:
        raise ModelError(f"{str(path)!r}: llama.cpp cannot load it{_log.why()}")
    return api, _Model(api, pointer, gguf.stated_ids(metadata))


def read_vocabulary(path: Path, *, verbose: bool = False) -> Vocabulary:
    """Read the vocabulary of a GGUF file without its weights; a vocabulary-only file will do."""
    api, model = _load(path, verbose, vocab_only=True)
    return _vocabulary(api, model, path.name)


def _vocabulary(api: Any, model: _Model, name: str) -> Vocabulary:
    vocab = api.llama_model_get_vocab(model.pointer)
    size = api.llama_vocab_n_tokens(vocab)
    buffer = ctypes.create_string_buffer(256)
    pieces: list[bytes] = []
    for token in range(size):
        length = api.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = api.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        pieces.append(buffer.raw[:length])
    attributes = np.fromiter((api.llama_vocab_get_attr(vocab, t) for t in range(size)), np.int32, size)
    scheme = "/".join(_metadata(api, model.pointer, f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    eog = [t for t in np.flatnonzero(attributes != 4).tolist() if api.llama_vocab_is_eog(vocab, t)]

    def tokenize(text: bytes, add_special: bool, parse_special: bool, _keep: _Model = model) -> list[int]:
        capacity = len(text) + 8
        while True:
            out = (ctypes.c_int32 * capacity)()
            count: int = api.llama_tokenize(vocab, text, len(text), out, capacity, add_special, parse_special)
            if count >= 0:
                return out[:count]
            capacity = -count

    guessed = [token for token in tokenize(b"", True, False) if token not in model.stated]
    if guessed:  # llama.cpp has a default where the file says nothing
        told = ", ".join(f"{token} ({pieces[token].decode(errors='replace')!r})" for token in guessed)
        _notes.warning("%s: token %s, which the file does not name as special, is put before no prompt", name, told)

    def stated(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        return tokenize(text, add_special and not guessed, parse_special)

    return Vocabulary(pieces, attributes, stated, eog=eog, scheme=scheme, name=name)


def _metadata(api: Any, model: Any, key: str) -> str:
    """Return one text of the GGUF file's metadata, or "" when it is not there."""
    buffer = ctypes.create_string_buffer(256)
    length = api.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if length >= 0 else ""


def default_threads() -> int:
    """Return the cores this process may use, at most 8: small models gain nothing beyond."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, available))


class LlamaCppBackend:
    """A GGUF model on llama.cpp.

    Args:
        path: the GGUF file.
        n_ctx: cells of the memory, shared by all sequences; llama.cpp rounds up.
        n_batch: tokens a pass may hold; None means n_ctx.
        n_seq: sequences that can live at once, at most 256.
        threads: CPU threads; None means every core this process may use, at most 8.
        gpu_layers: layers to offload, when llama.cpp was built for it.
        flash_attention: on a CPU its scores depend on how many tokens a pass holds (benchmarks/bench_shift.py).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_ctx: int = 2048,
        n_batch: int | None = None,
        n_seq: int = 128,
        threads: int | None = None,
        gpu_layers: int = 0,
        flash_attention: bool = False,
        verbose: bool = False,
    ) -> None:
        if not 2 <= n_seq <= MAX_SEQUENCES:
            raise BackendError(f"n_seq={n_seq!r} is outside 2..{MAX_SEQUENCES}")
        if n_batch is not None and n_batch < 1:
            raise BackendError(f"n_batch={n_batch!r} is no batch; 1 or more tokens, or None for n_ctx")
        if n_ctx < 8:
            raise ContextError(f"n_ctx={n_ctx!r} is too small for a decision; 512 or more will do")
        path = Path(path)
        self._api, self._model = _load(path, verbose, gpu_layers=gpu_layers)
        self.name = path.stem
        self._path = path
        api = self._api
        params = api.llama_context_default_params()
        # llama.cpp aborts the process when its batch is smaller than n_seq; ours may be, it only fills less of it
        params.n_ctx = max(n_ctx, n_seq)
        self.n_batch = min(n_batch or params.n_ctx, params.n_ctx)
        params.n_batch = max(self.n_batch, n_seq)
        params.n_ubatch = max(min(self.n_batch, 512), n_seq)
        params.n_seq_max = n_seq
        params.n_threads = params.n_threads_batch = threads or default_threads()
        params.kv_unified = True
        params.swa_full = True  # a pruned window could not be rolled back
        params.flash_attn_type = int(flash_attention)
        params.no_perf = True
        self._ctx = api.llama_init_from_model(self._model.pointer, params)
        if not self._ctx:
            raise BackendError(
                f"{str(path)!r}: llama.cpp cannot make a context of n_ctx={n_ctx}, n_seq={n_seq}{_log.why()}"
            )
        self._free = weakref.finalize(self, api.llama_free, self._ctx)
        self._free.atexit = False
        self.vocabulary = _vocabulary(api, self._model, path.name)
        self.n_ctx = int(api.llama_n_ctx(self._ctx))
        self.n_seq = n_seq
        pointer = self._model.pointer
        self.shares_tokens = not (api.llama_model_is_recurrent(pointer) or api.llama_model_is_hybrid(pointer))
        self._memory = api.llama_get_memory(self._ctx)
        self._batch = _Batch(api, self.n_batch)

    @property
    def fingerprint(self) -> str:
        """`b2:` and a hash of the file's size, head and tail: names the weights without reading them all."""
        size = self._path.stat().st_size
        digest = hashlib.blake2b(str(size).encode(), digest_size=16)
        with self._path.open("rb") as file:
            digest.update(file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read(1 << 20))
        return f"b2:{digest.hexdigest()}"

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        outputs: Sequence[int],
    ) -> None:
        """See Backend."""
        if not self._ctx:
            raise BackendError(f"{self.name!r} is closed; open it anew")
        _log.complaint = ""
        code = self._api.llama_decode(self._ctx, self._batch.fill(tokens, positions, sequences, outputs))
        if code:
            raise BackendError(f"llama_decode of {len(tokens)} tokens returned {code}{_log.why()}")

    def logits(self, index: int) -> NDArray[np.float32]:
        """See Backend."""
        pointer = self._api.llama_get_logits_ith(self._ctx, index) if self._ctx else None
        if not pointer:
            raise BackendError(f"llama.cpp has no logits for token {index} of the last pass")
        return np.ctypeslib.as_array(pointer, shape=(len(self.vocabulary),))

    def remove(self, sequence: int, start: int) -> bool:
        """See Backend."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def copy(self, source: int, target: int, end: int, begin: int = 0) -> None:
        """See Backend."""
        # A recurrent state can only be copied whole; the caller has asked for it at its end.
        self._api.llama_memory_seq_cp(self._memory, source, target, begin, end if self.shares_tokens else -1)

    def clear(self) -> None:
        """See Backend."""
        self._api.llama_memory_clear(self._memory, True)

    def close(self) -> None:
        """Free the context; the model goes when nobody holds its vocabulary any more."""
        self._free()
        self._ctx = self._memory = None  # what llama.cpp is asked about no memory does nothing


class _Batch:
    """A `llama_batch` over numpy memory that lives as long as this object."""

    def __init__(self, api: Any, capacity: int) -> None:
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._counts = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        self._pointers = np.zeros(capacity, np.uintp)
        self._sequences = np.zeros(0, np.int32)
        int32 = ctypes.POINTER(ctypes.c_int32)
        self._batch = api.llama_batch()
        self._batch.token = self._tokens.ctypes.data_as(int32)
        self._batch.pos = self._positions.ctypes.data_as(int32)
        self._batch.n_seq_id = self._counts.ctypes.data_as(int32)
        self._batch.seq_id = self._pointers.ctypes.data_as(ctypes.POINTER(int32))
        self._batch.logits = self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))

    def fill(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        outputs: Sequence[int],
    ) -> Any:
        count = len(tokens)
        if not 0 < count <= len(self._tokens):
            raise BackendError(f"a batch of {count} tokens; between 1 and {len(self._tokens)} fit")
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        lengths = np.fromiter(map(len, sequences), np.int32, count)
        self._counts[:count] = lengths
        self._sequences = np.fromiter((s for each in sequences for s in each), np.int32, int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        self._pointers[:count] = self._sequences.ctypes.data + 4 * starts
        self._wanted[:count] = 0
        self._wanted[list(outputs)] = 1
        self._batch.n_tokens = count
        return self._batch
