"""Exact choices over chains of stages: the winner of brute force, found without laying out the product."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel.backends.llama_cpp import LlamaCppBackend, read_vocabulary
from kernel.backends.scripted import ScriptedBackend
from kernel.errors import UsageError
from kernel.memory.memory import Memory
from kernel.memory.rows import RowReader
from kernel.prompt import Part
from kernel.shape.schema import read_parameters
from kernel.shape.shape import Text, seq
from kernel.text.vocabulary import Vocabulary
from kernel.write import stages as stages_module
from kernel.write.staged_search import StagedSearch
from kernel.write.stages import Stages

CLOSER = "\n@toy\n"
SCHEMA = {
    "properties": {
        "x": {"type": "integer", "minimum": 0, "maximum": 30},
        "room": {"enum": ["kitchen", "bed", "bedroom"]},
        "y": {"type": "integer", "minimum": -3, "maximum": 12},
    },
    "required": ["x", "y"],
}


@pytest.fixture(scope="module")
def vocabulary(vocab_ggufs: dict[str, Path]) -> Vocabulary:
    return read_vocabulary(vocab_ggufs["gpt-2"])


def compiled(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any] = SCHEMA) -> Stages:
    monkeypatch.setattr(stages_module, "WHOLE", 16)
    shapes = [seq(" place ", read_parameters("place", schema).shape, CLOSER), Text(f" halt{CLOSER}")]
    return Stages(shapes, vocabulary)


def row_of(seed: int, size: int, before: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float32]]:
    rng = np.random.default_rng([seed, *before[-4:], len(before)])
    return (3 * rng.standard_normal(size)).astype(np.float32)


_scores: dict[int, dict[tuple[int, ...], float]] = {}
"""By seed: a second each."""


def _brute(vocabulary: Vocabulary, stages: Stages, prompt: list[int], seed: int) -> dict[tuple[int, ...], float]:
    """Return the log-probability of every opcode, each added up by itself."""
    if seed in _scores:
        return _scores[seed]
    rows, scores = RowReader(len(vocabulary)), _scores.setdefault(seed, {})
    closer = len(vocabulary.plain(f"0}}{CLOSER}")) - len(vocabulary.plain("0}"))
    normal: dict[tuple[int, ...], tuple[Any, float]] = {}
    for path in stages.paths():
        total = 0.0
        for at in range(len(path) - closer):
            before = (*prompt, *path[:at])
            if before not in normal:
                row = row_of(seed, len(vocabulary), before)
                normal[before] = row, rows.normaliser(row)
            total += float(normal[before][0][path[at]]) - normal[before][1]
        scores[path] = total
    return scores


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_seq", [2, 6, 40])
def test_the_winner_is_that_of_brute_force(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, seed: int, n_seq: int
) -> None:
    """Every opcode scored one by one from the rows; few sequences only make the search slower."""
    stages = compiled(vocabulary, monkeypatch)
    assert len(stages.stages) > 2
    prompt, rows = vocabulary.plain("Put it"), RowReader(len(vocabulary))
    scores = _brute(vocabulary, stages, prompt, seed)
    assert len(scores) == 31 * 4 * 16 + 1
    backend = ScriptedBackend(vocabulary, lambda before: row_of(seed, len(vocabulary), before), n_seq=n_seq)
    memory = Memory(backend)
    found = StagedSearch(memory, rows, stages, CLOSER).run(prompt)
    best = max(scores, key=lambda path: scores[path])
    assert found.ids == best
    assert found.log_probability == pytest.approx(scores[best], abs=1e-3)
    assert sorted(scores.values())[-2] <= found.open_log_probability + 1e-3
    again = StagedSearch(memory, rows, stages, CLOSER).run(prompt)
    assert again == found


def test_one_opcode_needs_no_model(vocabulary: Vocabulary) -> None:
    """What has no alternative is not evaluated."""
    backend = ScriptedBackend(vocabulary, lambda before: row_of(0, len(vocabulary), before))
    stages = Stages([Text(f" halt{CLOSER}")], vocabulary)
    found = StagedSearch(Memory(backend), RowReader(len(vocabulary)), stages, CLOSER).run(vocabulary.plain("a"))
    assert list(found.ids) == vocabulary.plain(f" halt{CLOSER}")
    assert backend.decoded == []


def test_an_open_argument_has_no_exact_choice(vocabulary: Vocabulary) -> None:
    """It is refused before anything is evaluated."""
    shape = seq(" say ", read_parameters("say", {"properties": {"t": {"type": "string"}}}).shape, "\n")
    backend = ScriptedBackend(vocabulary, lambda before: row_of(0, len(vocabulary), before))
    with pytest.raises(UsageError, match="has no whole-opcode score"):
        StagedSearch(Memory(backend), RowReader(len(vocabulary)), Stages([shape], vocabulary))


@pytest.mark.model
def test_a_real_model_finds_a_number_among_ten_thousand(smollm2_path: Path) -> None:
    """What the prompt has just said is the most probable opcode of 10^8."""
    backend = LlamaCppBackend(smollm2_path, n_ctx=1024, n_seq=40)
    vocabulary = backend.vocabulary
    number = {"type": "integer", "minimum": 0, "maximum": 9999}
    schema = {"properties": {"x": number, "y": number}, "required": ["x", "y"]}
    stages = Stages([seq(" place ", read_parameters("place", schema).shape, CLOSER)], vocabulary)
    told = ' place {"x":412,"y":97}\n@toy\n'
    prompt = vocabulary.prompt([Part(f"Say it again:{told}Say it again:{told}Say it again:")])
    memory = Memory(backend)
    found = StagedSearch(memory, RowReader(len(vocabulary)), stages, CLOSER).run(prompt)
    text = vocabulary.join(found.ids).decode()
    assert json.loads(text.split(" ", 2)[2].split("\n")[0]) == {"x": 412, "y": 97}
    assert memory.cost.passes < 40
    backend.close()
