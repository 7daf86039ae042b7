"""What every test may ask for: real tokenizers without weights, real weights where they are, and tiny models.

The tiny models have random weights and two or three layers, but a real tokenizer and the real graphs of llama.cpp:

    llama    attention only: a token may stand on several sequences, positions can be dropped
    gemma3   every other layer sees a window of 8 tokens
    lfm2     short convolutions beside attention: a state can be copied whole, never cut back
    mamba    state only
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.backends.llama_cpp import read_vocabulary
from kernel.choose.learned import Keys, Learned
from kernel.models import catalogue as models
from kernel.text.vocabulary import CONTROL, NORMAL, Vocabulary
from kernel.trie.opcodes import OpcodeSet

ROOT = Path(__file__).resolve().parent.parent
VOCABS = ROOT / ".cache" / "vocabs"

for _name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT"):
    # Whoever starts the suite in the background may ignore signals, and what we start inherits that.
    if (_number := getattr(signal, _name, None)) is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)

# Commands that tests start import all our modules: 0.9 seconds where their bytecode is kept, 1.3 where it is not.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    # Each worker keeps to cores of its own: llama.cpp's threads wait for each other, so sharing cores costs double.
    _cores = sorted(os.sched_getaffinity(0))
    _mine = _cores[int(os.environ["PYTEST_XDIST_WORKER"][2:]) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]
    os.sched_setaffinity(0, _mine or _cores)


CHECKED_ELSEWHERE = "cartridges/template/test_template.py::test_it_keeps_the_contract"
"""A test of the template that stands in every cartridge made of it; here `test_every_cartridge.py` checks the same."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that fork first, while this process is small; and let one test be slow.

    Its file knows no markers, since it is copied to authors. A fork copies the page tables of what has been loaded.
    """
    for item in items:
        if item.nodeid == CHECKED_ELSEWHERE:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: "forked" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of garbage collection: a tenth of the suite's time went into walking it again."""
    gc.collect()
    gc.freeze()


def missing(what: str) -> None:
    """Skip the test, or fail it in CI, where `make test` has set everything up before."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def vocab_ggufs() -> dict[str, Path]:
    """Vocabulary-only GGUF files by name (`gpt-2`, `qwen2`, `llama-spm`, ...): real tokenizers."""
    found = {path.stem.removeprefix("ggml-vocab-"): path for path in sorted(VOCABS.glob("ggml-vocab-*.gguf"))}
    if not found:
        missing(f"no vocabularies in {VOCABS}: run make setup")
    return found


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The default model."""
    if not models.catalogue()["smollm2"].pulled:
        missing("smollm2 is not pulled: run python -m kernel models pull smollm2")
    return models.resolve("smollm2", pull=False)


@pytest.fixture(scope="session")
def gemma_path() -> Path:
    """Gemma 3 270M; no part of the set-up, so a test that asks for it is skipped where it is missing."""
    if not models.catalogue()["gemma3-270m"].pulled:
        pytest.skip("gemma3-270m is not pulled: run python -m kernel models pull gemma3-270m")
    return models.resolve("gemma3-270m", pull=False)


Row = Callable[[tuple[int, ...]], NDArray[np.float32]]

WORDS = ["\n\n", ">\n", "The", "best", "go", "north", "south", "left", "right", "rotate", "drop", "move", "pick", "axe"]
SPACED = ["the", "best", "go", "north", "south", "left", "right", "rotate", "drop", "down", "move", "is", "place"]
CONTROLS = ["<|start|>", "<|end|>", "<|turn|>"]
EMBEDDING, HEADS, KV_HEADS, FEED = 48, 4, 2, 64


def byte_symbols() -> list[str]:
    """The printable character that stands for each byte in vocabularies of the GPT-2 kind."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


def tokens_and_merges() -> tuple[list[str], list[str]]:
    """Bytes, then each word grown from the left (`lef` from `le` and `f`), a space before it last; then controls."""
    symbols = byte_symbols()
    tokens, merges = list(symbols), []
    for word in [*WORDS, *SPACED]:
        letters = [symbols[b] for b in word.encode()]
        steps = [("".join(letters[:i]), letters[i]) for i in range(1, len(letters))]
        if word in SPACED:
            steps.append((symbols[32], "".join(letters)))
        for left, right in steps:
            if left + right not in tokens:
                tokens.append(left + right)
                merges.append(f"{left} {right}")
    return [*tokens, *CONTROLS], merges


def write_model(
    path: Path, arch: str, *, seed: int = 1, layers: int = 2, pre: str = "gpt-2", bos: bool | None = None
) -> None:
    """Write a GGUF file with random weights of one architecture.

    Args:
        pre: names the splitting pattern.
        bos: whether an id stands in front of prompts; gemma3 has one unless told otherwise.
    """
    tokens, merges = tokens_and_merges()
    out = gguf.GGUFWriter(path, arch)
    out.add_vocab_size(len(tokens))
    out.add_context_length(4096)
    out.add_embedding_length(EMBEDDING)
    out.add_block_count(layers)
    out.add_feed_forward_length(FEED if arch != "mamba" else 0)
    out.add_head_count(HEADS if arch != "mamba" else 0)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(pre)
    out.add_token_list(tokens)
    out.add_token_merges(merges)
    out.add_token_types([gguf.TokenType.NORMAL] * (len(tokens) - 3) + [gguf.TokenType.CONTROL] * 3)
    out.add_bos_token_id(len(tokens) - 3)
    out.add_eos_token_id(len(tokens) - 2)
    out.add_add_bos_token(arch == "gemma3" if bos is None else bos)  # both kinds of model
    recurrent = {"lfm2": lambda i: i % 2 == 0, "mamba": lambda i: True}.get(arch, lambda i: False)
    if arch == "lfm2":
        out.add_shortconv_l_cache(3)
    if arch == "gemma3":
        out.add_sliding_window(8)
        out.add_sliding_window_pattern([i % 2 == 0 for i in range(layers)])
    if arch == "mamba":
        out.add_ssm_conv_kernel(4)
        out.add_ssm_inner_size(2 * EMBEDDING)
        out.add_ssm_state_size(8)
        out.add_ssm_time_step_rank(4)
    else:
        out.add_head_count_kv([0 if recurrent(i) else KV_HEADS for i in range(layers)])

    random = np.random.default_rng(seed)

    def add(name: str, *shape: int, around: float = 0.0, spread: float | None = None) -> None:
        spread = 1 / np.sqrt(shape[-1]) if spread is None else spread
        out.add_tensor(name, (around + spread * random.standard_normal(shape)).astype(np.float32))

    def norm(name: str, size: int) -> None:
        add(name, size, around=1.0, spread=0.2)

    add("token_embd.weight", len(tokens), EMBEDDING, spread=0.3)
    norm("token_embd_norm.weight" if arch == "lfm2" else "output_norm.weight", EMBEDDING)
    head = EMBEDDING // HEADS
    for i in range(layers):
        block = f"blk.{i}"
        norm(f"{block}.attn_norm.weight", EMBEDDING)
        if arch == "mamba":
            _mamba_block(add, out, block)
            continue
        if recurrent(i):
            add(f"{block}.shortconv.conv.weight", EMBEDDING, 3)
            add(f"{block}.shortconv.in_proj.weight", 3 * EMBEDDING, EMBEDDING)
            add(f"{block}.shortconv.out_proj.weight", EMBEDDING, EMBEDDING)
        else:
            add(f"{block}.attn_q.weight", EMBEDDING, EMBEDDING)
            add(f"{block}.attn_k.weight", KV_HEADS * head, EMBEDDING)
            add(f"{block}.attn_v.weight", KV_HEADS * head, EMBEDDING)
            add(f"{block}.attn_output.weight", EMBEDDING, EMBEDDING)
            if arch != "llama":
                norm(f"{block}.attn_q_norm.weight", head)
                norm(f"{block}.attn_k_norm.weight", head)
        if arch == "gemma3":
            norm(f"{block}.post_attention_norm.weight", EMBEDDING)
            norm(f"{block}.post_ffw_norm.weight", EMBEDDING)
        norm(f"{block}.ffn_norm.weight", EMBEDDING)
        add(f"{block}.ffn_gate.weight", FEED, EMBEDDING)
        add(f"{block}.ffn_up.weight", FEED, EMBEDDING)
        add(f"{block}.ffn_down.weight", EMBEDDING, FEED)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def _mamba_block(add: Callable[..., None], out: gguf.GGUFWriter, block: str) -> None:
    inner, state, rank = 2 * EMBEDDING, 8, 4
    add(f"{block}.ssm_in.weight", 2 * inner, EMBEDDING)
    add(f"{block}.ssm_conv1d.weight", inner, 4)
    add(f"{block}.ssm_conv1d.bias", inner, spread=0.1)
    add(f"{block}.ssm_x.weight", rank + 2 * state, inner)
    add(f"{block}.ssm_dt.weight", inner, rank)
    add(f"{block}.ssm_dt.bias", inner, spread=0.1)
    out.add_tensor(f"{block}.ssm_a", -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1)) / 4)
    add(f"{block}.ssm_d", inner, around=1.0, spread=0.1)
    add(f"{block}.ssm_out.weight", EMBEDDING, inner)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """GGUF files with random weights by architecture: llama, gemma3, lfm2, mamba."""
    folder = tmp_path_factory.mktemp("tiny")
    paths = {arch: folder / f"tiny-{arch}.gguf" for arch in ("llama", "gemma3", "lfm2", "mamba")}
    for seed, (arch, path) in enumerate(paths.items()):
        write_model(path, arch, seed=seed, layers=3 if arch == "lfm2" else 2)
    return paths


@pytest.fixture(scope="session")
def load(vocab_ggufs: dict[str, Path]) -> Callable[[str], Vocabulary]:
    """Read a real vocabulary by name, once."""
    return functools.cache(lambda name: read_vocabulary(vocab_ggufs[name]))


class Fresh:
    """A second context on a model that knows one sequence and one token a pass, straight on the C functions.

    Nothing of the kernel is in it: what it says is what the model says. `rewind` keeps the ids that the last list and
    the next one begin with, which saves time on large attention models; else the memory is cleared each time.
    """

    def __init__(self, path: Path, *, n_ctx: int = 512, threads: int = 1, rewind: bool = False) -> None:
        import llama_cpp

        self.api = llama_cpp
        params = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx, context.n_threads, context.n_threads_batch = n_ctx, threads, threads
        self.context = llama_cpp.llama_init_from_model(self.model, context)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.rewind = rewind
        self.held: tuple[int, ...] = ()
        self._rows: dict[tuple[int, ...], NDArray[np.float32]] = {}

    def row(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The logits after `ids`, evaluated one by one (the rows on the way are kept)."""
        ids = tuple(ids)
        if ids not in self._rows:
            start = min(_shared(ids, self.held), len(ids) - 1) if self.rewind else 0
            assert self.api.llama_memory_seq_rm(self.memory, 0, start, -1)
            for count in range(start + 1, len(ids) + 1):
                one = (self.api.llama_token * 1)(ids[count - 1])
                assert self.api.llama_decode(self.context, self.api.llama_batch_get_one(one, 1)) == 0
                pointer = self.api.llama_get_logits_ith(self.context, -1)
                self._rows[ids[:count]] = np.ctypeslib.as_array(pointer, shape=(self.n_vocab,)).copy()
            self.held = ids
        return self._rows[ids]

    def close(self) -> None:
        """Free the context and the model."""
        self.api.llama_free(self.context)
        self.api.llama_model_free(self.model)


@pytest.fixture(scope="session")
def fresh() -> Iterator[Callable[..., Fresh]]:
    """Give the plainest evaluation of a model file; one a file and kind, rows are kept."""
    made: dict[tuple[Path, str], Fresh] = {}

    def give(path: Path, kind: str = "") -> Fresh:
        if (path, kind) not in made:
            made[path, kind] = Fresh(path)
        return made[path, kind]

    yield give
    for each in made.values():
        each.close()


@pytest.fixture
def precise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts keep float32 and no fused attention, so that the order of evaluation hardly shows in the numbers."""
    import llama_cpp

    real = llama_cpp.llama_context_default_params

    def parameters() -> Any:
        params = real()
        params.flash_attn_type = 0  # LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.type_k = params.type_v = 0  # GGML_TYPE_F32
        return params

    monkeypatch.setattr(llama_cpp, "llama_context_default_params", parameters)


def log_softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = row.astype(np.float64)
    return wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())


def plain_scores(
    row: Row, prompt: Sequence[int], sequences: Sequence[Sequence[int]], scored: Sequence[int]
) -> list[float]:
    """The definition, opcode by opcode: the sum of log-probabilities of the ids that count.

    What all begin with does not count. From there on an opcode counts through its last scored id, or through the id
    that tells it from all others if that comes later.
    """
    if len(sequences) == 1:
        return [0.0]
    together = min(_shared(a, b) for a in sequences for b in sequences)
    sums = []
    for i, (ids, count) in enumerate(zip(sequences, scored, strict=True)):
        apart = max(_shared(ids, other) for j, other in enumerate(sequences) if j != i)
        end = max(count, apart + 1)
        parts = (log_softmax(row((*prompt, *ids[:at])))[ids[at]] for at in reversed(range(together, end)))
        sums.append(float(sum(parts)))
    return sums


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def toy_vocabulary(words: Sequence[str] = (), controls: Sequence[str] = ("<|end|>",)) -> Vocabulary:
    """Printable ASCII, newline, longer words (the longest match wins), control tokens last."""
    pieces = [b"\n", *(bytes([b]) for b in range(32, 127)), *(w.encode() for w in words)]
    known = {piece: i for i, piece in enumerate(pieces)}
    markers = {c.encode(): len(pieces) + i for i, c in enumerate(controls)}
    longest = max(map(len, [*known, *markers]))

    def tokenize(text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        table = {**known, **markers} if parse_special else known
        ids, at = [], 0
        while at < len(text):
            size = next(n for n in range(longest, 0, -1) if text[at : at + n] in table and at + n <= len(text))
            ids.append(table[text[at : at + size]])
            at += size
        return ids

    attributes = np.array([NORMAL] * len(pieces) + [CONTROL] * len(controls), np.int32)
    return Vocabulary([*pieces, *markers], attributes, tokenize, eog=markers.values(), name="toy")


def hashed_row(size: int, seed: int = 0) -> Row:
    """A model without weights: every list of ids has a row of its own, the same on every call."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        digest = hashlib.blake2b(repr((seed, ids)).encode(), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(digest)).normal(0, 3, size).astype(np.float32)

    return row


def made_up(model: str, opcodes: OpcodeSet, seed: int = 0) -> Learned:
    """What might have been learned of some opcodes, behind any prompt: numbers are drawn; 16 logits are the state."""
    random, n, k = np.random.default_rng(seed), len(opcodes), 16
    return Learned(
        keys=Keys.of(model, opcodes.vocabulary, opcodes),
        head=(),
        tail=(),
        seen=np.linspace(0, len(opcodes.vocabulary) - 1, k).astype(np.int32),
        weights=random.normal(0, 0.1, (k + n + 2, n)),
        bias=random.normal(0, 0.5, n),
        null=random.normal(-3, 1, n),
        prior=0.8,
        meant_state=random.normal(0, 0.1, (k, 1)),
        meant_signals=random.normal(0, 1, (3, 1)),
        meant_bias=np.array([0.5]),
        words=np.array([1, 20], np.int64),
        meant_words=random.normal(0, 1, (2, 1)),
    )


def program(path: str) -> ModuleType:
    """Import a file of this checkout that stands in no package, such as `scripts/browser.py`."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    """What tests of several files work out with."""
    return SimpleNamespace(
        Fresh=Fresh,
        plain_scores=plain_scores,
        toy_vocabulary=toy_vocabulary,
        hashed_row=hashed_row,
        log_softmax=log_softmax,
        made_up=made_up,
        write_model=write_model,
        program=program,
    )
