"""Compiled tries on disk: what comes back, what is refused, and what a killed writer leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernel.errors import StoreError
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Compiled, Literal
from kernel.trie.store import compile_cached, load, save
from kernel.trie.trie import Trie

KEYS = {"tokenizer": "b2:aa", "opcodes": "b2:bb"}
SEQUENCES = [[5, 6, 7], [5, 6, 8, 9], [4]]


def compiled(sequences: list[list[int]]) -> Compiled:
    return Compiled(Trie.of(sequences), np.array([len(ids) for ids in sequences], np.int32))


def write(path: Path) -> bytes:
    save(path, compiled(SEQUENCES), **KEYS)
    return path.read_bytes()


def refused(path: Path, data: bytes, match: str) -> None:
    path.write_bytes(data)
    with pytest.raises(StoreError, match=match) as caught:
        load(path, **KEYS)
    assert path.name in str(caught.value)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    """Every array of the trie, the scored counts beside it, and the sequences by leaf."""
    path = tmp_path / "a" / "b.trie"
    write(path)
    stored = load(path, **KEYS)
    trie = Trie.of(SEQUENCES)
    for name in Trie.ARRAYS:
        assert getattr(stored.trie, name).tolist() == getattr(trie, name).tolist()
    assert [stored.trie.sequence(i).tolist() for i in range(3)] == SEQUENCES
    assert stored.trie.longest == 4
    assert stored.scored.tolist() == [3, 4, 1]


def test_loaded_arrays_are_read_only_views_of_the_file(tmp_path: Path) -> None:
    """A mapped trie cannot be changed by accident, and outlives the file being replaced."""
    path = tmp_path / "x.trie"
    write(path)
    trie = load(path, **KEYS).trie
    with pytest.raises(ValueError, match="read-only"):
        trie.edge_ids[0] = 1
    save(path, compiled([[1]]), **KEYS)
    assert trie.children(0).tolist() == [4, 5]


def test_other_tokenizer_and_other_opcodes_are_refused_by_name(tmp_path: Path) -> None:
    """The message holds both fingerprints."""
    path = tmp_path / "x.trie"
    write(path)
    with pytest.raises(StoreError, match="compiled for tokenizer 'b2:aa', not 'b2:zz'; compile it again"):
        load(path, tokenizer="b2:zz", opcodes="b2:bb")
    with pytest.raises(StoreError, match="compiled for opcodes 'b2:bb', not 'b2:yy'; compile it again"):
        load(path, tokenizer="b2:aa", opcodes="b2:yy")


def test_missing_file_is_not_damage(tmp_path: Path) -> None:
    """The caller tells 'not there' from 'not right'."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.trie", **KEYS)


def test_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """A folder is neither there nor not there."""
    with pytest.raises(StoreError, match="cannot be read"):
        load(tmp_path, **KEYS)


def test_foreign_file_is_refused(tmp_path: Path) -> None:
    """An empty file, a GGUF, text, a pickle and another format number."""
    path = tmp_path / "x.trie"
    good = write(path)
    refused(path, b"", "is not a compiled trie")
    refused(path, b"GGUF" + bytes(100), "begins with b'GGUF")
    refused(path, b"\x80\x04\x95" + bytes(500), "is not a compiled trie")
    refused(path, good[:8] + b"\x01" + good[9:], "has format 1; this program reads 2")


def test_file_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    """However much of it a full disk or a copy left."""
    path = tmp_path / "x.trie"
    good = write(path)
    for end in range(len(good)):
        refused(path, good[:end], r"cut off|is not a compiled trie|bytes of")
    refused(path, good + b"\0", "bytes of")


def test_any_changed_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Flip every byte in turn; only padding between arrays may change unseen, and then the arrays are the same."""
    path = tmp_path / "x.trie"
    good = write(path)
    unseen = 0
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        try:
            stored = load(path, **KEYS)
        except StoreError:
            continue
        unseen += 1
        assert [stored.trie.sequence(i).tolist() for i in range(3)] == SEQUENCES
        assert stored.scored.tolist() == [3, 4, 1]
    data = sum(len(getattr(Trie.of(SEQUENCES), name)) * 4 for name in Trie.ARRAYS) + 12
    assert unseen < len(good) - data


def test_array_of_objects_is_never_written(tmp_path: Path) -> None:
    """No type that would need a pickle."""
    with pytest.raises(StoreError, match=r"array 'scored' is object"):
        save(tmp_path / "x.trie", Compiled(Trie.of([[1]]), np.array(["a", None], object)), **KEYS)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the last moment: the old file still loads, and no temporary file stays."""
    path = tmp_path / "x.trie"
    write(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        save(path, compiled([[1]]), **KEYS)
    assert load(path, **KEYS).trie.n_leaves == 3
    assert [p.name for p in tmp_path.iterdir()] == ["x.trie"]


KILLED = """
    import os, sys, time
    from pathlib import Path
    import numpy as np
    from kernel.trie import arrays, store
    from kernel.trie.opcodes import Compiled
    from kernel.trie.trie import Trie
    write = arrays._write
    def slow(file, *rest):
        write(file, *rest)
        file.truncate(100)
        file.flush()
        print("half", flush=True)
        time.sleep(60)
    arrays._write = slow
    two = Compiled(Trie.of([[1], [2]]), np.ones(2, np.int32))
    store.save(Path(sys.argv[1]), two, tokenizer="b2:aa", opcodes="b2:bb")
"""


def test_killed_writer_leaves_nothing_that_a_later_run_trips_over(tmp_path: Path) -> None:
    """kill -9 in the middle of a write: the old file loads; the next writer removes the leftover, but not before."""
    path = tmp_path / "x.trie"
    write(path)
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"half\n"
    half = {file.suffix for file in tmp_path.iterdir()}
    assert half == {".trie", ".tmp", ".lock"}
    save(tmp_path / "y.trie", compiled([[1]]), **KEYS)  # the other writer is alive: its file is left alone
    assert len(list(tmp_path.iterdir())) == 4
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert load(path, **KEYS).trie.n_leaves == 3
    save(path, compiled([[1]]), **KEYS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.trie", "y.trie"]


def test_foreign_hidden_files_are_left_alone(tmp_path: Path) -> None:
    """Only names that `save` makes are leftovers."""
    for name in (".notes.tmp", ".notes.lock"):
        (tmp_path / name).write_text("mine")
    write(tmp_path / "x.trie")
    for name in (".notes.tmp", ".notes.lock"):
        assert (tmp_path / name).read_text() == "mine"


def test_readers_and_writers_at_once_always_see_a_whole_file(tmp_path: Path) -> None:
    """Four writers replace one file for a while; a reader loads one of the four each time."""
    path = tmp_path / "x.trie"
    tries = [compiled([[n + 1, k] for k in range(50 * (n + 1))]) for n in range(4)]
    save(path, tries[0], **KEYS)
    stop = time.monotonic() + 0.5
    failures: list[BaseException] = []

    def again(trie: Compiled) -> None:
        try:
            while time.monotonic() < stop:
                save(path, trie, **KEYS)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=again, args=(trie,)) for trie in tries]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        trie = load(path, **KEYS).trie
        first = int(trie.ids[0])
        assert trie.n_leaves == 50 * first
        seen.add(first)
    assert not failures
    assert seen
    assert [p.name for p in tmp_path.iterdir()] == ["x.trie"]


class Tokenizing:
    """A toy vocabulary that counts the calls of its tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.calls, self._inner = vocabulary, 0, vocabulary._tokenize
        vocabulary._tokenize = self._tokenize

    def _tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        self.calls += 1
        return self._inner(text, add_special, parse_special)


def test_cache_builds_once_and_again_when_refused(tmp_path: Path, tools: SimpleNamespace) -> None:
    """The second call maps the file; a damaged one is noted and built anew; another tokenizer has its own file."""
    notes: list[str] = []
    texts = [Literal("go", ";"), "stay", "go north"]
    toy = Tokenizing(tools.toy_vocabulary(["go"]))
    for _ in range(2):
        opcodes = compile_cached(texts, toy.vocabulary, tmp_path, note=notes.append)
        assert opcodes.texts == ("go;", "stay", "go north")
        assert [len(opcodes.trie.sequence(leaf)) for leaf in range(3)] == [2, 4, 7]
        assert opcodes.scored.tolist() == [1, 4, 7]
        assert (toy.calls, notes) == (3, [])
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-7])
    assert compile_cached(texts, toy.vocabulary, tmp_path, note=notes.append).trie.n_leaves == 3
    assert toy.calls == 6
    assert "compiling anew" in notes[0]
    other = Tokenizing(tools.toy_vocabulary(["stay"]))
    compile_cached(texts, other.vocabulary, tmp_path, note=notes.append)
    assert (other.calls, len(notes), len(list(tmp_path.iterdir()))) == (3, 1, 2)


def test_cache_that_cannot_be_kept_is_noted_and_the_trie_is_right(tmp_path: Path, tools: SimpleNamespace) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "cache").write_text("")
    notes: list[str] = []
    opcodes = compile_cached(["a", "b", "c"], tools.toy_vocabulary(), tmp_path / "cache", note=notes.append)
    assert opcodes.trie.n_leaves == 3
    assert len(notes) == 2
    assert "cannot be read" in notes[0]
    assert "cannot be written" in notes[1]


WITHOUT_UNIX = """
    import importlib, pkgutil, sys
    from pathlib import Path
    for name in ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "readline"):
        sys.modules[name] = None
    import kernel
    for module in pkgutil.walk_packages(kernel.__path__, "kernel."):
        if module.name != "kernel.__main__":
            importlib.import_module(module.name)
    import numpy as np
    from kernel.trie import opcodes, store, trie
    made = opcodes.Compiled(trie.Trie.of([[1], [2]]), np.ones(2, np.int32))
    keys = {"tokenizer": "b2:aa", "opcodes": "b2:bb"}
    for _ in range(2):
        store.save(Path(sys.argv[1]), made, **keys)
    print(store.load(Path(sys.argv[1]), **keys).trie.n_leaves)
"""


def test_kernel_needs_no_module_that_only_unix_has(tmp_path: Path) -> None:
    """Every module of it is imported and a trie is saved twice and loaded where fcntl and its like are missing."""
    script = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(WITHOUT_UNIX), str(tmp_path / "x.trie")]
    done = subprocess.run(script, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert [p.name for p in tmp_path.iterdir()] == ["x.trie"]
