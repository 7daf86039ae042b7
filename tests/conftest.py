"""What every test may ask for: real tokenizers without weights, and real weights where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel import models

VOCABS = Path(__file__).resolve().parent.parent / ".cache" / "vocabs"

if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    # Each worker keeps to cores of its own: llama.cpp's threads wait for each other, so sharing cores costs double.
    _cores = sorted(os.sched_getaffinity(0))
    _mine = _cores[int(os.environ["PYTEST_XDIST_WORKER"][2:]) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]
    os.sched_setaffinity(0, _mine or _cores)


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
