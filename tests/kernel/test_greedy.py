"""The baseline against the plainest walk: one id after the other, the most probable legal one."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.backends.scripted import ScriptedBackend
from kernel.choose.greedy import longest_legal, walk
from kernel.choose.question import PromptIds, Question
from kernel.errors import BuildError, LogitsError
from kernel.memory.memory import Memory
from kernel.memory.rows import RowReader
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.subset import Subset

PROMPT = "Go: "


@settings(max_examples=100, deadline=None)
@given(
    bodies=st.lists(st.text("abc", min_size=1, max_size=5), min_size=2, max_size=12, unique=True),
    closer=st.sampled_from(["", ";", ";x"]),
    legal=st.sets(st.integers(0, 11), min_size=2),
    seed=st.integers(0, 10_000),
    shares=st.booleans(),
)
def test_a_walk_is_the_choice_of_one_id_after_the_other(
    tools: SimpleNamespace, bodies: list[str], closer: str, legal: set[int], seed: int, shares: bool
) -> None:
    """Random texts, subsets, rows and both kinds of memory: same leaf, same sums, same narrowest margin."""
    vocabulary = tools.toy_vocabulary(["ab", "bc"])
    try:
        opcodes = OpcodeSet([Literal(body, closer) for body in bodies], vocabulary)
    except BuildError:
        return
    leaves = [leaf for leaf in sorted(legal) if leaf < len(opcodes)]
    if len(leaves) < 2:
        return
    row = tools.hashed_row(len(vocabulary), seed)
    prompt = vocabulary.plain(PROMPT)

    paths = {leaf: opcodes.trie.sequence(leaf).tolist() for leaf in leaves}
    taken: list[int] = []
    total = share = 0.0
    margin = math.inf
    while len(paths) > 1:
        ids = sorted({path[len(taken)] for path in paths.values()})
        best = ids[0]
        if len(ids) > 1:
            values = dict(zip(ids, tools.log_softmax(row((*prompt, *taken)))[ids].tolist(), strict=True))
            best = max(ids, key=lambda i: (values[i], -i))
            total += values[best]
            share += values[best] - math.log(sum(map(math.exp, values.values())))
            margin = min(margin, values[best] - max(v for i, v in values.items() if i != best))
        taken.append(best)
        paths = {leaf: path for leaf, path in paths.items() if path[: len(taken)] == taken}

    memory = Memory(ScriptedBackend(vocabulary, row, shares_tokens=shares))
    walked = walk(
        memory, RowReader(len(vocabulary)), Question(PromptIds(tuple(prompt)), opcodes, Subset.of(opcodes.trie, leaves))
    )
    assert [walked.leaf] == list(paths)
    assert walked.log_probability == pytest.approx(total, abs=1e-5)
    assert walked.log_share == pytest.approx(share, abs=1e-5)
    assert walked.margin == pytest.approx(margin, abs=1e-5)
    assert memory.held[: len(prompt)] == prompt


def test_forced_runs_cost_no_pass(tools: SimpleNamespace) -> None:
    """`long way north;` and `long way south;` part once: one pass, though there are fifteen ids."""
    vocabulary = tools.toy_vocabulary()
    opcodes = OpcodeSet(["long way north;", "long way south;"], vocabulary)
    backend = ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)))
    walk(Memory(backend), RowReader(len(vocabulary)), Question(PromptIds(tuple(vocabulary.plain(PROMPT))), opcodes))
    assert len(backend.decoded) == 1
    assert len(backend.decoded[0]) == len(PROMPT) + len("long way ")


def test_ties_go_to_the_lowest_id(tools: SimpleNamespace) -> None:
    """Whatever the order in which they were declared."""
    vocabulary = tools.toy_vocabulary()
    row = np.zeros(len(vocabulary), np.float32)
    row[0] = 1.0
    for texts in (["b", "a"], ["a", "b"]):
        opcodes = OpcodeSet(texts, vocabulary)
        memory = Memory(ScriptedBackend(vocabulary, lambda ids: row))
        walked = walk(memory, RowReader(len(vocabulary)), Question(PromptIds(tuple(vocabulary.plain(PROMPT))), opcodes))
        assert texts[walked.leaf] == "a"


def test_a_walk_into_nothing_gives_its_sequence_back(tools: SimpleNamespace) -> None:
    """The second branch has no finite logit: an error, and the next walk finds a clean memory."""
    vocabulary = tools.toy_vocabulary()
    opcodes = OpcodeSet(["aa", "ab", "ba", "bb"], vocabulary)
    prompt = vocabulary.plain(PROMPT)
    rows = tools.hashed_row(len(vocabulary))
    dead = True

    def row(ids: tuple[int, ...]) -> np.ndarray:
        out = rows(ids)
        if dead and len(ids) > len(prompt):
            out[vocabulary.plain("ab")] = -np.inf
        return out

    backend = ScriptedBackend(vocabulary, row)
    memory, reader = Memory(backend), RowReader(len(vocabulary))
    with pytest.raises(LogitsError, match="none of 2 legal ids has a finite logit"):
        walk(memory, reader, Question(PromptIds(tuple(prompt)), opcodes))
    assert backend.sequence(1) == []
    dead = False
    fresh = Memory(ScriptedBackend(vocabulary, row))
    expected = walk(fresh, RowReader(len(vocabulary)), Question(PromptIds(tuple(prompt)), opcodes))
    assert walk(memory, reader, Question(PromptIds(tuple(prompt)), opcodes)) == expected


def test_the_longest_legal_opcode_is_counted(tools: SimpleNamespace) -> None:
    """In ids: 1, 2 and 4."""
    opcodes = OpcodeSet(["x", "ab", "long"], tools.toy_vocabulary())
    assert longest_legal(opcodes.everything) == 4
    assert longest_legal(opcodes.subset_of([0, 1])) == 2
