"""The story cartridge: what is written is a value of the schema, whatever the model wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from cartridges.story import SCHEMA, write
from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend, read_vocabulary
from kernel.backends.scripted import ScriptedBackend
from kernel.errors import OpcodeError
from kernel.vocab import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(vocab_ggufs: dict[str, Path]) -> Vocabulary:
    return read_vocabulary(vocab_ggufs["gpt-2"])


def noise(vocabulary: Vocabulary, seed: int) -> Kernel:
    """A model that wants something else each time, out of a seed; the same for the same ids before."""

    def row(before: tuple[int, ...]) -> Any:
        rng = np.random.default_rng([seed, len(before), *before[-3:]])
        return rng.standard_normal(len(vocabulary)).astype(np.float32)

    return Kernel(ScriptedBackend(vocabulary, row, n_ctx=1024))


@pytest.mark.parametrize("seed", range(6))
def test_any_model_writes_a_valid_value(vocabulary: Vocabulary, seed: int) -> None:
    """Noise instead of a model, greedy and sampled, with a budget that may run out: the value validates."""
    judge = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    kernel = noise(vocabulary, seed)
    for temperature in (0.0, 1.0):
        story = write(kernel, SCHEMA, "a parrot <|endoftext|>", max_tokens=120, temperature=temperature, seed=seed)
        judge.validate(story.value)
        assert json.loads(story.text) == story.value
        assert story.fault == ""
        assert len(story.written.ids) <= 120


def test_raw_text_is_judged_and_not_mended(vocabulary: Vocabulary) -> None:
    """What a model writes alone is shown as it is, with what is wrong with it."""
    story = write(noise(vocabulary, 1), {"type": "object"}, "a parrot", raw=True, max_tokens=12)
    assert story.value is None
    assert story.fault.startswith("no JSON")
    assert len(story.written.ids) == 12


def test_a_schema_that_cannot_be_held_is_refused(vocabulary: Vocabulary) -> None:
    """Before anything is evaluated, with its path and keyword."""
    kernel = noise(vocabulary, 1)
    with pytest.raises(OpcodeError, match=r"story: \$\.properties\.x: pattern: .*lookaround"):
        write(kernel, {"properties": {"x": {"type": "string", "pattern": "(?=a)"}}})
    with pytest.raises(OpcodeError, match="cannot be read"):
        write(kernel, Path("nowhere.json"))
    assert kernel.context.cost.passes == 0


@pytest.mark.model
def test_smollm2_writes_a_character(smollm2_path: Path) -> None:
    """Real weights, greedy: a whole character, none of it closed for the model."""
    with Kernel(LlamaCppBackend(smollm2_path, n_ctx=512, n_seq=4)) as kernel:
        story = write(kernel, SCHEMA, "a lighthouse keeper with a parrot", max_tokens=200)
    jsonschema.validate(story.value, json.loads(SCHEMA.read_text()))
    assert story.written.closed == 0
