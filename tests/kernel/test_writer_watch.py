"""Who watches what is written: each choice with its row, as it is made; what a watcher raises ends the writing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.backends.scripted import ScriptedBackend
from kernel.memory.memory import Memory
from kernel.shape.shape import listed, seq
from kernel.write.stages import Stages
from kernel.write.writer import write, write_freely

Step = tuple[tuple[int, ...], list[int], NDArray[np.float64]]


class Seen:
    """Keeps what it is shown; `most` steps are allowed."""

    def __init__(self, most: int = 99) -> None:
        self.steps: list[Step] = []
        self.most = most

    def __call__(
        self, ids: tuple[int, ...], legal: NDArray[np.int32], row: NDArray[np.float32], normaliser: float
    ) -> None:
        """Keep a step, or raise."""
        if len(self.steps) == self.most:
            raise InterruptedError
        self.steps.append((ids, legal.tolist(), row.astype(np.float64) - normaliser))


@pytest.fixture
def memory(tools: SimpleNamespace) -> Memory:
    vocabulary = tools.toy_vocabulary()
    return Memory(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary))))


def test_every_choice_is_seen_with_its_row(memory: Memory, tools: SimpleNamespace) -> None:
    """Of `ab-x`, `ac-x`: one choice, behind the forced `a`. What is seen is the model's row behind prompt and path."""
    vocabulary = memory.backend.vocabulary
    prompt = [3]
    stages = Stages([seq(listed(("ab", "ac")), "-x")], vocabulary)
    seen = Seen()
    written = write(memory, stages, prompt, watch=seen)
    plain = write(memory, stages, prompt)
    assert (written.text, written.ids) == (plain.text, plain.ids)
    ((path, legal, row),) = seen.steps
    a, b, c = (vocabulary.plain(each)[0] for each in "abc")
    assert (path, sorted(legal)) == ((a,), sorted([b, c]))
    expected = tools.log_softmax(tools.hashed_row(len(vocabulary))((*prompt, a)))
    np.testing.assert_allclose(row, expected, atol=1e-5)
    assert written.ids[1] == max((b, c), key=lambda token: row[token])


def test_free_writing_is_seen_as_well(memory: Memory) -> None:
    """Each id is a choice among all."""
    seen = Seen()
    written = write_freely(memory, [3], max_tokens=4, watch=seen)
    assert [path for path, _, _ in seen.steps] == [written.ids[:n] for n in range(len(written.ids))]
    assert {len(legal) for _, legal, _ in seen.steps} == {len(memory.backend.vocabulary)}


def test_a_watcher_that_raises_ends_the_writing_and_leaves_a_whole_memory(memory: Memory) -> None:
    """The next text is that of a fresh memory."""
    stages = Stages([seq(listed(("ab", "ac", "bd")), listed(("x", "y")), "\n")], memory.backend.vocabulary)
    before = write(memory, stages, [3, 4])
    with pytest.raises(InterruptedError):
        write(memory, stages, [3, 4], watch=Seen(most=1))
    assert write(memory, stages, [3, 4]).ids == before.ids
    assert not memory.lock._is_owned()  # type: ignore[attr-defined]
