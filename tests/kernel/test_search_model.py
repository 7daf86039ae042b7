"""Exact on ten thousand literals and real weights: the winner is that of brute force, and how many passes it takes.

    python -m pytest tests/kernel/test_search_model.py -m model -s

SAMPLES sets how many sub-lists are compared (200 by default).
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.choose import score
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.choose.score import Scorer
from kernel.memory.grow import grow
from kernel.memory.memory import Memory
from kernel.memory.passes import Work
from kernel.trie.opcodes import Literal, OpcodeSet

pytestmark = [pytest.mark.model, pytest.mark.slow]

SAMPLES = int(os.environ.get("SAMPLES", "200"))
TOLERANCE = 1.0
"""A sum of some seven log-probabilities moves by up to so much between wide batches and single tokens (0.5 is usual),
so winners closer than this may change places."""

PLACES = ["kitchen", "bedroom", "bathroom", "hall", "garage", "garden", "attic", "cellar", "office", "porch"]
THINGS = ["lamp", "heater", "fan", "radio", "kettle", "door", "blind", "camera", "speaker", "vacuum"]
DEEDS = ["switch on", "switch off", "turn up", "turn down", "open", "close", "start", "stop", "check", "reset"]
WHEN = ["now", "at noon", "at night", "in an hour", "tomorrow", "on Monday", "every day", "once", "later", "never"]
PROMPTS = [
    "Request: it is too dark to read in the bedroom\nCommand:",
    "Request: make some tea\nCommand:",
    "Request: nobody is home, close everything\nCommand:",
    "Request: I would like to hear the news\nCommand:",
    "Request: the floor of the hall is dirty\nCommand:",
]


@pytest.fixture(scope="module")
def kernel(smollm2_path: Path) -> Iterator[Kernel]:
    threads = int(os.environ.get("THREADS", "0")) or None
    with Kernel(LlamaCppBackend(smollm2_path, n_ctx=4096, threads=threads)) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Ten thousand different commands."""
    return [
        f" {deed} the {place} {thing} {when}" for deed in DEEDS for place in PLACES for thing in THINGS for when in WHEN
    ]


def brute(kernel: Kernel, prompt: list[int], opcodes: OpcodeSet, indices: list[int]) -> dict[int, float]:
    """Score every leaf of a sub-list whole, in the widest batches."""
    subset = opcodes.subset_of(indices)
    tree = grow(opcodes.trie, subset, opcodes.scored, 1_000_000)
    assert tree is not None
    scores = Scorer(kernel.memory).score(Work((tuple(prompt),), tree))
    return dict(zip(scores.leaves.tolist(), scores.log_probabilities[0].tolist(), strict=True))


def test_ten_thousand_literals_have_the_winner_of_brute_force(
    kernel: Kernel, texts: list[str], monkeypatch: pytest.MonkeyPatch, smollm2_path: Path, tools: SimpleNamespace
) -> None:
    """Sub-lists of 20 to 50 out of 10,000, all through the search: same winner, same score, and a true bound.

    Where two are so close that the width of the batches decides, the two are evaluated one token at a time.
    """
    opcodes = kernel.compile([Literal(text, "\n") for text in texts])
    assert len(opcodes) == 10_000
    monkeypatch.setattr(score, "TREE_LIMIT", 0)
    pick = random.Random(7)
    passes, tokens, close = [], [], 0
    alone = tools.Fresh(smollm2_path, rewind=True)
    for number in range(SAMPLES):
        indices = pick.sample(range(len(texts)), pick.randint(20, 50))
        prompt = kernel.vocabulary.plain(PROMPTS[number % len(PROMPTS)])
        d = kernel.decide(Question(PromptIds(tuple(prompt)), opcodes, opcodes.subset_of(indices), Rule(RuleName.EXACT)))
        expected = brute(kernel, prompt, opcodes, indices)
        best = max(expected, key=lambda leaf: expected[leaf])
        ranked = sorted(expected.values())
        if d.index != best:
            assert ranked[-1] - expected[d.index] < TOLERANCE, (number, texts[best], texts[d.index])
            pair = [opcodes.trie.sequence(leaf).tolist() for leaf in (d.index, best)]
            ours, theirs = tools.plain_scores(alone.row, prompt, pair, opcodes.scored[[d.index, best]].tolist())
            assert ours > theirs - 0.1, (number, texts[best], texts[d.index])
            close += 1
        assert d.scores[d.position] == pytest.approx(expected[d.index], abs=TOLERANCE)
        assert d.margin <= ranked[-1] - ranked[-2] + 2 * TOLERANCE  # a lower bound
        passes.append(d.passes)
        tokens.append(d.tokens_evaluated)
    alone.close()
    print(
        f"\n{SAMPLES} sub-lists: {SAMPLES - close} same winner, {close} settled one token at a time; passes median "
        f"{statistics.median(passes)}, most {max(passes)}; tokens median {statistics.median(tokens)}"
    )
    assert close <= max(3, SAMPLES // 6)


@pytest.mark.parametrize("prompt", PROMPTS[:2])
def test_all_ten_thousand_at_once(kernel: Kernel, texts: list[str], prompt: str) -> None:
    """The search says how many passes it took; no opcode that it looked into beats its winner."""
    d = kernel.choose(prompt, [text.strip() for text in texts], rule="exact")
    known = np.count_nonzero(~np.isnan(d.scores))
    print(
        f"\n10,000 literals: {d.text!r} in {d.passes} passes, {d.tokens_evaluated} tokens; {known} scored whole, "
        f"margin at least {d.margin:.2f}"
    )
    assert d.scores[d.position] == np.nanmax(d.scores)
    assert d.margin >= 0
    near = [int(leaf) for leaf in d.leaves[np.random.default_rng(1).integers(0, 10_000, 40)]]
    prompt_ids = kernel.vocabulary.prompt([]) or list(d.prompt)
    memory = Memory(kernel.backend)
    memory.reset()
    expected = brute(kernel, prompt_ids, d.opcodes, [*near, d.index])
    assert max(expected, key=lambda leaf: expected[leaf]) == d.index
