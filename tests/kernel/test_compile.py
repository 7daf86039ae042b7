"""From texts to a trie: prefixes that stay reachable, clashes by name, and how many ids of each opcode count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel.backends.llama_cpp import read_vocabulary
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.score import Scorer
from kernel.errors import BuildError, NoLegalOpcodeError
from kernel.memory.memory import Memory
from kernel.memory.passes import Work
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet

Load = Callable[[str], Vocabulary]
SIX = ["go", "go north", "pick", "pickaxe", "say", "saying"]
LAMPS = ["lamp.set 🦙", "lamp.set 🌋", "lamp.set 🌊", "lamp.set 門"]
several = pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "starcoder"])


def pieces(opcodes: OpcodeSet, leaf: int) -> list[str]:
    return [opcodes.vocabulary.pieces[i].decode() for i in opcodes.trie.sequence(leaf).tolist()]


def paths(opcodes: OpcodeSet) -> set[tuple[int, ...]]:
    """Every way from the root to a leaf, walked edge by edge."""
    out, stack = set(), [(0, ())]
    while stack:
        node, path = stack.pop()
        for edge in opcodes.trie.edges(node):
            longer = (*path, *opcodes.trie.tail(edge).tolist())
            child = opcodes.trie.child(edge)
            if child < 0:
                out.add(longer)
            else:
                stack.append((child, longer))
    return out


def wanting(sequence: list[int], prompt: int, size: int) -> Callable[[tuple[int, ...]], NDArray[np.float32]]:
    """A model that wants this one list of ids behind a prompt of so many, and nothing else."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.zeros(size, np.float32)
        done = len(ids) - prompt
        out[0] = 0.5  # a row is never constant
        if list(ids[prompt:]) == sequence[:done] and done < len(sequence):
            out[sequence[done]] = 12
        return out

    return row


def assert_each_is_chosen_when_wanted(texts: list[str], vocabulary: Vocabulary) -> None:
    opcodes = OpcodeSet(texts, vocabulary)
    prompt = vocabulary.plain("Do: ")
    for wish in range(len(texts)):
        sequence = opcodes.trie.sequence(wish).tolist()
        backend = ScriptedBackend(vocabulary, wanting(sequence, len(prompt), len(vocabulary)))
        scorer = Scorer(Memory(backend))
        tree = scorer.tree(opcodes, opcodes.everything)
        assert tree is not None
        scores = scorer.score(Work((tuple(prompt),), tree))
        assert scores.leaves[int(scores.log_probabilities[0].argmax())] == wish, texts[wish]


@several
def test_each_of_six_options_that_begin_each_other_is_reachable(load: Load, name: str) -> None:
    """`go` and `go north`, `pick` and `pickaxe`, `say` and `saying`: whichever the model wants has the best score."""
    assert_each_is_chosen_when_wanted(SIX, load(name))


@pytest.mark.model
def test_each_of_six_options_is_reachable_on_smollm2(smollm2_path: Path) -> None:
    """There `saying` is `s` + `aying`, and `pickaxe` has three pieces."""
    vocabulary = read_vocabulary(smollm2_path)
    opcodes = OpcodeSet(SIX, vocabulary)
    assert pieces(opcodes, 5) == ["s", "aying"]
    assert pieces(opcodes, 3) == ["pick", "ax", "e"]
    assert_each_is_chosen_when_wanted(SIX, vocabulary)
    assert_each_is_chosen_when_wanted(LAMPS, vocabulary)


def test_stopping_is_a_token_where_stopping_is_a_choice(load: Load) -> None:
    """On gpt-2 `go` and `pick` begin another option and get a TERMINATOR; `say` does not and gets none."""
    opcodes = OpcodeSet(SIX, load("gpt-2"))
    assert [pieces(opcodes, i) for i in range(6)] == [
        ["go", "\n"],
        ["go", " north"],
        ["pick", "\n"],
        ["pick", "axe"],
        ["say"],
        ["s", "aying"],
    ]
    assert opcodes.scored.tolist() == [2, 2, 2, 2, 1, 2]
    assert list(opcodes.texts) == SIX


def test_say_and_ing_is_a_path_only_where_the_tokenizer_makes_it_one(load: Load) -> None:
    """On llama-spm `saying` is `say` + `ing`, so `say` gets a TERMINATOR; on gpt-2 that path does not exist."""
    spm, gpt2 = load("llama-spm"), load("gpt-2")
    assert pieces(OpcodeSet(SIX, spm), 4) == ["say", "\n"]
    assert pieces(OpcodeSet(SIX, spm), 5) == ["say", "ing"]
    say, ing = gpt2.literal("say"), gpt2.literal("ing")
    assert gpt2.join([*say, *ing]) == b"saying"
    assert (*say, *ing) not in paths(OpcodeSet(SIX, gpt2))


@several
def test_the_paths_are_the_compiled_texts_and_no_others(load: Load, name: str) -> None:
    """Walk every path: as many as opcodes, each with the bytes of its text, a TERMINATOR at most behind it."""
    opcodes = OpcodeSet([*SIX, *LAMPS], load(name))
    found = sorted(opcodes.vocabulary.join(path).decode().removesuffix("\n") for path in paths(opcodes))
    assert found == sorted([*SIX, *LAMPS])


def test_raise_a_does_not_lead_to_c(tools: SimpleNamespace) -> None:
    """`raise a b` and `lower a c` share a middle; what may follow depends on the whole path, not on the last id."""
    opcodes = OpcodeSet(["raise a b", "lower a c"], tools.toy_vocabulary(["raise", "lower"]))
    assert {opcodes.vocabulary.join(p) for p in paths(opcodes)} == {b"raise a b", b"lower a c"}


@several
def test_one_character_over_several_tokens_is_reachable(load: Load, name: str) -> None:
    """Three emoji and a character: each is chosen when the model wants it, though they part inside the character."""
    assert_each_is_chosen_when_wanted(LAMPS, load(name))


def test_emoji_part_at_their_last_byte_and_cannot_end_before_it(load: Load) -> None:
    """On qwen2 volcano and wave share two pieces that are no whole character; every leaf is whole again."""
    vocabulary = load("qwen2")
    opcodes = OpcodeSet(LAMPS, vocabulary)
    volcano, wave = opcodes.trie.sequence(1).tolist(), opcodes.trie.sequence(2).tolist()
    assert volcano[:-1] == wave[:-1]
    assert vocabulary.join(volcano[:-1]).endswith(b" \xf0\x9f\x8c")
    assert vocabulary.pieces[volcano[-1]] == b"\x8b"
    assert vocabulary.pieces[wave[-1]] == b"\x8a"
    for leaf, text in enumerate(LAMPS):
        assert vocabulary.join(opcodes.trie.sequence(leaf).tolist()).decode() == text


def test_no_opcodes_are_refused(tools: SimpleNamespace) -> None:
    """A cartridge that declares nothing is wrong before any model is asked."""
    with pytest.raises(BuildError, match="no opcodes to compile"):
        OpcodeSet([], tools.toy_vocabulary())


def test_the_empty_string_is_refused(tools: SimpleNamespace) -> None:
    """Nothing to say is no instruction."""
    with pytest.raises(BuildError, match="an opcode cannot be the empty string"):
        OpcodeSet(["go", ""], tools.toy_vocabulary())


def test_a_text_twice_is_named(tools: SimpleNamespace) -> None:
    """The text and both places."""
    with pytest.raises(BuildError, match="opcode 'go' is declared twice") as caught:
        OpcodeSet(["go", "stop", "go"], tools.toy_vocabulary())
    assert caught.value.pairs == ((0, 2),)


def test_two_literals_with_one_text_are_named(tools: SimpleNamespace) -> None:
    """Body and closer cut elsewhere: what is said is the same."""
    with pytest.raises(BuildError, match=r"opcode 'go\\n' is declared twice"):
        OpcodeSet([Literal("go", "\n"), Literal("go\n")], tools.toy_vocabulary())


@pytest.mark.parametrize("order", [["go", "go\n", "stop"], ["stop", "go\n", "go"]])
def test_a_pair_that_the_end_does_not_tell_apart_is_named(tools: SimpleNamespace, order: list[str]) -> None:
    """`go` + TERMINATOR is `go` and a newline, which is another opcode: both are named, the beginning first."""
    with pytest.raises(
        BuildError, match=r"opcode 'go' is the beginning of 'go\\n' even with '\\n' behind it"
    ) as caught:
        OpcodeSet(order, tools.toy_vocabulary(["go"]))
    assert caught.value.pairs == ((order.index("go"), order.index("go\n")),)


def test_two_ids_of_one_text_are_two_ids(tools: SimpleNamespace) -> None:
    """A tokenizer that spells two texts with one list of ids would make them one opcode: both are named."""
    pieces_ = [b"a", b"b", b"\n"]
    vocabulary = Vocabulary(pieces_, np.full(3, NORMAL, np.int32), lambda text, *_: [0], name="blind")
    vocabulary.plain = lambda text: [0]  # type: ignore[method-assign,assignment]
    with pytest.raises(BuildError, match=r"opcodes 'a' and 'b' have one id sequence \[0\]"):
        OpcodeSet(["a", "b"], vocabulary)


def test_a_closer_is_not_scored(tools: SimpleNamespace) -> None:
    """`left` is one id, `up` two letters; the closer `;end` behind them is four more, and none of them counts."""
    vocabulary = tools.toy_vocabulary(["left"])
    opcodes = OpcodeSet([Literal("left", ";end"), Literal("up", ";end")], vocabulary)
    assert [len(opcodes.trie.sequence(i)) for i in range(2)] == [5, 6]
    assert opcodes.scored.tolist() == [1, 2]


def test_a_token_that_straddles_body_and_closer_counts(tools: SimpleNamespace) -> None:
    """`}<` holds the last byte of the body: `{`, `1`, `}<` count, `x`, `>` do not."""
    opcodes = OpcodeSet([Literal("{1}", "<x>"), Literal("{2}", "<x>")], tools.toy_vocabulary(["}<"]))
    assert pieces(opcodes, 0) == ["{", "1", "}<", "x", ">"]
    assert opcodes.scored.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("name", "scored", "ids"), [("gpt-2", 9, 16), ("qwen2", 9, 14), ("llama-bpe", 9, 13), ("llama-spm", 10, 17)]
)
def test_scored_ids_of_a_call_counted_by_hand(load: Load, name: str, scored: int, ids: int) -> None:
    """On gpt-2 `kil n . heat  {" level ": 1 }` count and `< | / call | > newline` do not.

    qwen2 and llama-bpe fuse `}<`, which counts; llama-spm cuts `he at`.
    """
    bodies = [f'kiln.heat {{"level":{n}}}' for n in (1, 2)]
    opcodes = OpcodeSet([Literal(body, "<|/call|>\n") for body in bodies], load(name))
    assert opcodes.scored.tolist() == [scored, scored]
    assert len(opcodes.trie.sequence(0)) == ids


def test_everything_counts_up_to_an_end(tools: SimpleNamespace) -> None:
    """`go;` begins `go;north;`, so it gets a TERMINATOR, which is scored: to stop is a decision of the model."""
    opcodes = OpcodeSet([Literal("go", ";"), Literal("go;north", ";")], tools.toy_vocabulary(["go", "north"]))
    assert pieces(opcodes, 0) == ["go", ";", "\n"]
    assert pieces(opcodes, 1) == ["go", ";", "north", ";"]
    assert opcodes.scored.tolist() == [3, 3]


def test_a_body_without_a_byte_still_has_one_scored_id(tools: SimpleNamespace) -> None:
    """A closer alone is said with its first id."""
    opcodes = OpcodeSet([Literal("", ";"), Literal("go", ";")], tools.toy_vocabulary())
    assert opcodes.scored.tolist() == [1, 2]


def test_subsets_are_looked_up_by_text(tools: SimpleNamespace) -> None:
    """Order and repetition change nothing."""
    opcodes = OpcodeSet(["left", "right", "drop"], tools.toy_vocabulary())
    assert opcodes.subset(["drop", "left"]).key == opcodes.subset(["left", "drop", "left"]).key
    assert sorted(opcodes.subset(["drop", "left"]).leaves().tolist()) == [0, 2]
    assert opcodes.subset(["drop", "right", "left"]) is opcodes.everything


def test_as_many_legal_texts_as_opcodes_need_not_be_all(tools: SimpleNamespace) -> None:
    """`left` three times is `left`, not the whole set of three."""
    opcodes = OpcodeSet(["left", "right", "drop"], tools.toy_vocabulary())
    assert opcodes.subset(["left", "left", "left"]).leaves().tolist() == [0]


def test_an_empty_legal_set_is_refused(tools: SimpleNamespace) -> None:
    """A phase that disables every opcode never means that all are allowed."""
    opcodes = OpcodeSet(["left", "right"], tools.toy_vocabulary())
    with pytest.raises(NoLegalOpcodeError, match="the legal set is empty"):
        opcodes.subset([])
    with pytest.raises(NoLegalOpcodeError, match="0 of 2 opcodes are legal"):
        opcodes.subset_of([])


def test_an_unknown_legal_text_is_refused(tools: SimpleNamespace) -> None:
    """With the text that was probably meant."""
    opcodes = OpcodeSet(["left", "right"], tools.toy_vocabulary())
    with pytest.raises(NoLegalOpcodeError, match="'lefd' is legal but was never compiled; did you mean 'left'"):
        opcodes.subset(["right", "lefd"])


@settings(max_examples=60, deadline=None)
@given(
    bodies=st.lists(st.text("ab{}", min_size=1, max_size=5), min_size=1, max_size=8, unique=True),
    closer=st.sampled_from(["", "<", "<x>", ";\n"]),
    words=st.lists(st.text("ab{}<x>;", min_size=2, max_size=3), max_size=6, unique=True),
)
def test_scored_ids_hold_the_body_and_no_more(
    tools: SimpleNamespace, bodies: list[str], closer: str, words: list[str]
) -> None:
    """Random texts and pieces: the scored ids cover the body, and without the last of them they would not."""
    vocabulary = tools.toy_vocabulary(words)
    try:
        opcodes = OpcodeSet([Literal(body, closer) for body in bodies], vocabulary)
    except BuildError:
        return
    for leaf, body in enumerate(bodies):
        ids = opcodes.trie.sequence(leaf).tolist()
        text = vocabulary.join(ids).decode()
        count = int(opcodes.scored[leaf])
        if text == body + closer:
            assert len(vocabulary.join(ids[:count])) >= len(body) > len(vocabulary.join(ids[: count - 1]))
        else:
            assert text == body + closer + "\n"
            assert count == len(ids)
