"""llama.cpp under the kernel: tiny models with random weights, of every kind of memory, and what it refuses."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel.backends.llama_cpp import LlamaCppBackend, default_threads, read_vocabulary
from kernel.errors import BackendError, ContextError, ModelError
from kernel.prompt import Part

ARCHES = ["llama", "gemma3", "lfm2", "mamba"]
SHARED = ["llama", "gemma3"]
STATES = ["lfm2", "mamba"]
TOLERANCE = 1e-3  # logits of these models spread by 2; the worst seen is 1.3e-4 (gemma3)
IDS = [264, 270, 312, 306, 263, 40, 41, 42]

Open = Callable[..., LlamaCppBackend]


@pytest.fixture
def open_model(precise: None, tiny_models: dict[str, Path]) -> Iterator[Open]:
    """Open a tiny model by architecture, with caches in float32."""
    made: list[LlamaCppBackend] = []

    def build(arch: str, **kwargs: Any) -> LlamaCppBackend:
        made.append(LlamaCppBackend(tiny_models[arch], **{"n_ctx": 256, "n_seq": 8, "threads": 1, **kwargs}))
        return made[-1]

    yield build
    for backend in made:
        backend.close()


def feed(backend: LlamaCppBackend, ids: Sequence[int], sequence: int = 0, start: int = 0) -> np.ndarray:
    """Evaluate ids in one pass; return a copy of the last row."""
    n = len(ids)
    backend.decode(ids, range(start, start + n), [[sequence]] * n, [n - 1])
    return backend.logits(n - 1).copy()


@pytest.mark.parametrize("arch", ARCHES)
def test_one_batch_and_one_by_one_agree(open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str) -> None:
    """The last row of one pass of eight ids equals that of eight passes in a context of its own."""
    row = feed(open_model(arch), IDS)
    assert row.shape == (321,)
    assert row == pytest.approx(fresh(tiny_models[arch], "precise").row(IDS), abs=TOLERANCE)
    assert row.std() > 1


@pytest.mark.parametrize("arch", ARCHES)
def test_tokens_are_shared_on_attention_only(open_model: Open, arch: str) -> None:
    """Where a state runs along, one token cannot stand on two sequences."""
    backend = open_model(arch)
    assert backend.shares_tokens == (arch in SHARED)
    assert (backend.n_ctx, backend.n_seq, backend.n_batch) == (256, 8, 256)
    assert len(backend.vocabulary) == 321
    starts_with_bos = backend.vocabulary.prompt([Part("go")])[0] == 318
    assert starts_with_bos == (arch == "gemma3")


@pytest.mark.parametrize("arch", STATES)
def test_partial_removal_is_refused_and_changes_nothing(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str
) -> None:
    """llama.cpp says False; what follows is evaluated behind all ids, as if nobody had asked."""
    backend = open_model(arch)
    feed(backend, IDS[:5])
    assert backend._api.llama_memory_seq_rm(backend._memory, 0, 3, -1) is False
    assert backend.remove(0, 3) is False
    row = feed(backend, IDS[5:], start=5)
    assert row == pytest.approx(fresh(tiny_models[arch], "precise").row(IDS), abs=TOLERANCE)


@pytest.mark.parametrize("arch", SHARED)
def test_partial_removal_leaves_the_beginning(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str
) -> None:
    """Eight ids, three kept, two others behind them; gemma3's window of 8 is not pruned."""
    backend = open_model(arch)
    feed(backend, IDS * 4)
    assert backend.remove(0, 3) is True
    row = feed(backend, [50, 51], start=3)
    assert row == pytest.approx(fresh(tiny_models[arch], "precise").row([*IDS[:3], 50, 51]), abs=TOLERANCE)


def test_a_long_prompt_is_cut_back_far_beyond_the_window(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any
) -> None:
    """gemma3's window is 8 ids, the memory still holds all 600: 100 are kept, one is new."""
    backend = open_model("gemma3", n_ctx=1024, n_batch=16, n_seq=2)
    for start in range(0, 600, 10):
        feed(backend, range(start % 300, start % 300 + 10), start=start)
    assert backend.remove(0, 100) is True
    row = feed(backend, [50], start=100)
    assert row == pytest.approx(fresh(tiny_models["gemma3"], "precise").row([*range(100), 50]), abs=TOLERANCE)


@pytest.mark.parametrize("arch", ARCHES)
def test_whole_removal_is_never_refused(open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str) -> None:
    """From position 0 on, also of a sequence that is empty; a removal behind the end is nothing and fine."""
    backend = open_model(arch)
    feed(backend, IDS)
    assert backend.remove(0, len(IDS)) is True
    assert backend.remove(0, 0) is True
    assert backend.remove(5, 0) is True
    assert feed(backend, [60, 61]) == pytest.approx(fresh(tiny_models[arch], "precise").row([60, 61]), abs=TOLERANCE)


@pytest.mark.parametrize("arch", ARCHES)
def test_copies_go_their_own_way(open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str) -> None:
    """A copy of the whole prompt continues beside it, in one pass, and both are as if alone; the source goes on."""
    backend, alone = open_model(arch), fresh(tiny_models[arch], "precise")
    feed(backend, IDS)
    backend.copy(0, 3, len(IDS))
    backend.copy(0, 5, len(IDS))
    backend.decode([50, 51, 60], [8, 9, 8], [[3], [3], [5]], [1, 2])
    assert backend.logits(1) == pytest.approx(alone.row([*IDS, 50, 51]), abs=TOLERANCE)
    assert backend.logits(2) == pytest.approx(alone.row([*IDS, 60]), abs=TOLERANCE)
    backend.remove(3, 0)
    backend.remove(5, 0)
    assert feed(backend, [70], start=8) == pytest.approx(alone.row([*IDS, 70]), abs=TOLERANCE)


@pytest.mark.parametrize("arch", SHARED)
def test_the_beginning_of_a_sequence_is_copied(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str
) -> None:
    """Three of eight positions."""
    backend = open_model(arch)
    feed(backend, IDS)
    backend.copy(0, 2, 3)
    row = feed(backend, [50], sequence=2, start=3)
    assert row == pytest.approx(fresh(tiny_models[arch], "precise").row([*IDS[:3], 50]), abs=TOLERANCE)


@pytest.mark.parametrize("arch", SHARED)
def test_shared_tokens_serve_all_their_sequences(
    open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str
) -> None:
    """One pass: a prompt on three sequences, two branches behind it, all rows as if alone."""
    backend, alone = open_model(arch), fresh(tiny_models[arch], "precise")
    backend.decode([10, 11, 20, 21, 30], [0, 1, 2, 3, 2], [[0, 1, 2], [0, 1, 2], [1], [1], [2]], [1, 3, 4])
    for index, ids in {1: [10, 11], 3: [10, 11, 20, 21], 4: [10, 11, 30]}.items():
        assert backend.logits(index) == pytest.approx(alone.row(ids), abs=TOLERANCE)


@pytest.mark.parametrize("arch", ARCHES)
def test_clear_forgets_everything(open_model: Open, tiny_models: dict[str, Path], fresh: Any, arch: str) -> None:
    """All sequences; position 0 is free again."""
    backend = open_model(arch)
    feed(backend, IDS)
    feed(backend, IDS[::-1], sequence=4)
    backend.clear()
    assert feed(backend, IDS[2:]) == pytest.approx(fresh(tiny_models[arch], "precise").row(IDS[2:]), abs=TOLERANCE)


def test_the_vocabulary_is_that_of_the_file(open_model: Open, tiny_models: dict[str, Path]) -> None:
    """Read with weights or without, the fingerprint is one; the scheme comes from the metadata."""
    vocabulary = open_model("llama").vocabulary
    alone = read_vocabulary(tiny_models["llama"])
    assert vocabulary.fingerprint == alone.fingerprint
    assert vocabulary.scheme == alone.scheme == "gpt2/gpt-2"
    assert vocabulary.eog == {319}
    assert [vocabulary.pieces[i] for i in (318, 319, 320)] == [b"<|start|>", b"<|end|>", b"<|turn|>"]
    assert [vocabulary.pieces[i] for i in vocabulary.plain("go north")] == [b"go", b" north"]


def test_equal_pieces_under_other_splitting_rules_are_another_vocabulary(
    tiny_models: dict[str, Path], tools: Any, tmp_path: Path
) -> None:
    """Compiled ids must not pass from one to the other."""
    other = tmp_path / "other.gguf"
    tools.write_model(other, "llama", seed=0, pre="smollm")
    a, b = read_vocabulary(tiny_models["llama"]), read_vocabulary(other)
    assert a.pieces == b.pieces
    assert b.scheme == "gpt2/smollm"
    assert a.fingerprint != b.fingerprint


def test_models_are_told_apart_by_their_weights(open_model: Open, tools: Any, tmp_path: Path) -> None:
    """Equal files have equal fingerprints, other weights another one."""
    paths = [tmp_path / f"{n}.gguf" for n in range(3)]
    for path, seed in zip(paths, (7, 7, 8), strict=True):
        tools.write_model(path, "llama", seed=seed)
    prints = [LlamaCppBackend(path, n_ctx=256, n_seq=2, threads=1).fingerprint for path in paths]
    assert prints[0] == prints[1] != prints[2]
    assert prints[0].startswith("b2:")


def test_only_wanted_rows_are_there(open_model: Open) -> None:
    """A row that was not asked for is an error, not somebody else's row."""
    backend = open_model("llama")
    backend.decode([10, 11, 12], [0, 1, 2], [[1]] * 3, [0, 1, 2])
    backend.decode([10, 11, 12], [0, 1, 2], [[0]] * 3, [1])
    assert backend.logits(1).shape == (321,)
    with pytest.raises(BackendError, match="no logits for token 2 of the last pass"):
        backend.logits(2)


@pytest.mark.parametrize("count", [0, 17])
def test_a_batch_must_fit(open_model: Open, count: int) -> None:
    """Empty or too large."""
    backend = open_model("llama", n_batch=16)
    with pytest.raises(BackendError, match=f"a batch of {count} tokens; between 1 and 16 fit"):
        backend.decode([5] * count, range(count), [[0]] * count, [])


@pytest.mark.parametrize("arch", ["llama", "gemma3", "lfm2"])
def test_a_full_memory_is_an_error(open_model: Open, arch: str) -> None:
    """256 cells and one more token: the kernel never gets here, but if it did the runtime's code is shown."""
    backend = open_model(arch)
    feed(backend, [5] * 256)
    with pytest.raises(BackendError, match="llama_decode of 1 tokens returned 1"):
        backend.decode([5], [256], [[0]], [0])


def test_an_unknown_token_is_an_error(open_model: Open) -> None:
    """An id beyond the vocabulary is refused by llama.cpp, not read out of somebody's memory."""
    with pytest.raises(BackendError, match=r"returned -1: .*invalid token"):
        open_model("llama").decode([321], [0], [[0]], [0])


@pytest.mark.parametrize("n_seq", [1, 257])
def test_sequences_have_limits(tiny_models: dict[str, Path], n_seq: int) -> None:
    """Two at least, for the prompt and the tree; 256 is llama.cpp's own limit."""
    with pytest.raises(BackendError, match=rf"n_seq={n_seq} is outside 2\.\.256"):
        LlamaCppBackend(tiny_models["llama"], n_seq=n_seq)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("n_ctx", "n_batch", "n_seq"), [(256, 3, 64), (8, None, 256), (300, 1, 2)])
def test_small_batches_and_contexts_open(
    open_model: Open, arch: str, n_ctx: int, n_batch: int | None, n_seq: int
) -> None:
    """llama.cpp itself would abort the process when a batch is smaller than the number of sequences."""
    backend = open_model(arch, n_ctx=n_ctx, n_batch=n_batch, n_seq=n_seq)
    assert backend.n_ctx == {256: 256, 8: 256, 300: 512}[n_ctx]
    assert backend.n_batch == (n_batch or 256)
    feed(backend, [5] * min(backend.n_batch, 20), sequence=n_seq - 1)


def test_a_batch_of_nothing_is_refused(tiny_models: dict[str, Path]) -> None:
    """With what would do."""
    with pytest.raises(BackendError, match="n_batch=0 is no batch; 1 or more tokens"):
        LlamaCppBackend(tiny_models["llama"], n_batch=0)


def test_a_tiny_context_is_refused(tiny_models: dict[str, Path]) -> None:
    """Before anything is loaded."""
    with pytest.raises(ContextError, match="n_ctx=4 is too small for a decision"):
        LlamaCppBackend(tiny_models["llama"], n_ctx=4)


def test_missing_foreign_and_damaged_files_are_told_apart(tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """Each in one line that names the file."""
    with pytest.raises(ModelError, match=r"none\.gguf': No such file or directory; give a GGUF file"):
        LlamaCppBackend(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="Is a directory"):
        LlamaCppBackend(tmp_path)
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(b"PK\x03\x04 a zip file")
    with pytest.raises(ModelError, match=r"foreign.gguf' is not a GGUF file: it begins with b'PK\\x03\\x04'"):
        read_vocabulary(foreign)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_models["llama"].read_bytes()[:20_000])
    with pytest.raises(ModelError, match=r"cut\.gguf': llama\.cpp cannot load it: .*not within the file bounds"):
        LlamaCppBackend(cut)


def test_the_library_speaks_only_when_asked(tiny_models: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Neither its report while loading nor its complaints disturb a screen; `verbose` shows both."""
    quiet = LlamaCppBackend(tiny_models["llama"], n_ctx=256, n_seq=2, threads=1)
    with pytest.raises(BackendError):
        quiet.decode([999], [0], [[0]], [0])
    quiet.close()
    assert capfd.readouterr() == ("", "")
    loud = LlamaCppBackend(tiny_models["llama"], n_ctx=256, n_seq=2, threads=1, verbose=True)
    loud.close()
    assert "llama_model_loader" in capfd.readouterr().err
    read_vocabulary(tiny_models["llama"])
    assert capfd.readouterr() == ("", "")


def test_closing_twice_is_closing_once(open_model: Open) -> None:
    """The vocabulary lives on; a pass is refused instead of reading freed memory."""
    backend = open_model("llama")
    feed(backend, IDS)
    backend.close()
    backend.close()
    assert backend.vocabulary.plain("go") == [264]
    with pytest.raises(BackendError, match="'tiny-llama' is closed; open it anew"):
        feed(backend, IDS)
    with pytest.raises(BackendError, match="no logits"):
        backend.logits(0)
    backend.remove(0, 0)
    backend.clear()


def test_a_vocabulary_outlives_its_backend(tiny_models: dict[str, Path]) -> None:
    """Its tokenizer holds the model; without both the model is freed."""
    backend = LlamaCppBackend(tiny_models["llama"], n_ctx=256, n_seq=2, threads=1)
    model, vocabulary = weakref.ref(backend._model), backend.vocabulary
    del backend
    gc.collect()
    assert vocabulary.plain("go north") == [264, 270]
    assert model() is not None
    del vocabulary
    gc.collect()
    assert model() is None


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (3, 3), (8, 8), (64, 8)])
def test_default_threads_are_the_cores_of_this_process(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
) -> None:
    """Those that it may run on, not those of the machine; eight at most."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(cores)), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    assert default_threads() == threads


@pytest.mark.parametrize(("cores", "threads"), [(None, 1), (6, 6), (64, 8)])
def test_default_threads_where_a_process_has_no_cores_of_its_own(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, threads: int
) -> None:
    """macOS and Windows say only how many cores the machine has, and sometimes not even that."""
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert default_threads() == threads
