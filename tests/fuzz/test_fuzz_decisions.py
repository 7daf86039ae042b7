"""Random opcodes, legal sets, prompts, rules and memories, on a runtime whose rows may lie: no choice is illegal.

Each decision is legal or a typed error, whatever the model says: NaN, infinities, constant and overflowing rows, a
memory that refuses or is too small, a runtime that fails in the middle of a pass. After an error the next decision is
that of a fresh kernel. The seed is printed; FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Decision
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BackendError, KernelError

WORDS = ["go", "north", "south", "say", "ing", "pick", "axe", " ", "\n", "@x", "0", "1", "17", '"', "<|end|>"]
A_SEED = int(os.environ.get("FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
RULES = list(RuleName)
MEMORIES = [
    {"n_ctx": 4096, "n_seq": 64},
    {"n_ctx": 4096, "n_seq": 64, "shares_tokens": False},
    {"n_ctx": 300, "n_seq": 4},
    {"n_ctx": 300, "n_seq": 8, "shares_tokens": False},
    {"n_ctx": 4096, "n_batch": 16, "n_seq": 16},
    {"n_ctx": 40, "n_seq": 2},
]


class Liar(ScriptedBackend):
    """Rows that are a function of the ids, one in some spoilt; one pass in some fails."""

    def __init__(self, tools: SimpleNamespace, draw: random.Random, **limits: object) -> None:
        vocabulary = tools.toy_vocabulary([w for w in WORDS if w.isalpha()])
        self.honest = tools.hashed_row(len(vocabulary), draw.randrange(9))
        self.spoilt = draw.choice([0.0, 0.0, 0.05, 0.5])
        self.failing = draw.choice([0.0, 0.0, 0.02])
        self.draw = draw
        super().__init__(vocabulary, self.lying, **limits)  # type: ignore[arg-type]

    def lying(self, ids: tuple[int, ...]) -> NDArray[np.float32]:
        """Return a row, spoilt now and then, and always in the same way for the same ids."""
        row = self.honest(ids).copy()
        draw = random.Random(repr((ids, self.spoilt)))
        if draw.random() >= self.spoilt:
            return row  # type: ignore[no-any-return]
        value = draw.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0])
        some = draw.choice([slice(None), slice(0, None, 2), slice(draw.randrange(len(row)), None)])
        row[some] = value
        return row  # type: ignore[no-any-return]

    def decode(self, *args: object) -> None:
        """See Backend; fails now and then."""
        if self.draw.random() < self.failing:
            raise BackendError("the runtime failed, as it was told to")
        super().decode(*args)  # type: ignore[arg-type]


def text(draw: random.Random) -> str:
    return "".join(draw.choices(WORDS, k=draw.randint(1, 5)))


def question(draw: random.Random, kernel: Kernel, texts: list[str], tools: SimpleNamespace) -> Question:
    opcodes = kernel.compile(texts)
    legal = opcodes.subset_of(draw.sample(range(len(opcodes)), draw.randint(1, len(opcodes))))
    ids = [tuple(draw.choices(range(len(kernel.vocabulary)), k=draw.randint(1, 30))) for _ in range(4)]
    rule = Rule(draw.choice(RULES), temperature=draw.choice([1e-9, 1.0, 1e9]), planner_weight=draw.choice([0.0, 2.0]))
    prior = np.array([draw.choice([np.nan, -1.0, 1e9]) for _ in texts])
    prompt = PromptIds(ids[0], tuple(ids[1 : 1 + draw.randint(1, 2)]), tuple(ids[3:] if draw.random() < 0.3 else []))
    taught = tools.made_up("fuzz", opcodes) if rule.name is RuleName.LEARNED else None
    return Question(prompt, opcodes, legal, rule, prior, draw.randrange(99), beyond=draw.random() < 0.3, learned=taught)


def held(decision: Decision, asked: Question) -> None:
    """Assert what every decision holds, whatever the rows said."""
    legal = set(asked.legal.leaves().tolist())
    assert decision.index in legal
    assert set(decision.leaves.tolist()) == legal
    assert decision.ids == tuple(asked.opcodes.trie.sequence(decision.index).tolist())
    assert asked.opcodes.vocabulary.join(decision.ids).startswith(asked.opcodes.texts[decision.index].encode())
    assert not np.isnan(decision.scores[decision.position])
    assert not np.isnan(decision.margin)
    assert np.nansum(decision.shares) <= 1 + 1e-6


def decide(tools: SimpleNamespace, seed: int, decisions: int) -> tuple[int, int]:
    """Make so many decisions; return how many were made and how many were typed errors."""
    draw, made, refused = random.Random(seed), 0, 0
    while made + refused < decisions:
        backend = Liar(tools, draw, **draw.choice(MEMORIES))
        kernel = Kernel(backend)
        for _ in range(draw.randint(1, 4)):
            texts = list({text(draw) for _ in range(draw.randint(1, 12))})
            for _ in range(draw.randint(1, 8)):
                asked = None
                try:
                    asked = question(draw, kernel, texts, tools)
                    held(kernel.decide(asked), asked)
                    made += 1
                except KernelError:
                    refused += 1
                    if asked is None:  # the texts cannot be told apart or spelled
                        break
        backend.failing = 0.0
        try:  # after whatever went wrong, the answer is that of a fresh kernel
            asked = question(draw, kernel, ["go", "south"], tools)
            again = kernel.decide(asked)
        except KernelError:
            continue
        fresh = Kernel(ScriptedBackend(backend.vocabulary, backend.lying, n_ctx=4096, n_seq=64)).decide(asked)
        assert again.index == fresh.index
    return made, refused


def test_nothing_illegal_is_chosen(tools: SimpleNamespace) -> None:
    """500 decisions."""
    print(f"FUZZ_SEED={A_SEED}")
    made, refused = decide(tools, A_SEED, 500)
    assert made > 70
    assert refused > 10, "some of the worlds are broken on purpose"


@pytest.mark.slow
def test_nothing_illegal_is_chosen_in_200_000_decisions(tools: SimpleNamespace) -> None:
    """Minutes."""
    print(f"FUZZ_SEED={A_SEED}")
    made, refused = decide(tools, A_SEED + 1, 200_000)
    assert made > 50_000
    assert refused > 5_000
