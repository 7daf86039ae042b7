"""The front door: texts in, a decision out; on weights, what the model really prefers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel import api
from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Decision, Stop
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BuildError, ContextError, NoLegalOpcodeError, StoreError, UnknownModelError, UsageError
from kernel.prompt import Explained, Part, Prompt, explained
from kernel.trie import store
from kernel.trie.opcodes import Literal, OpcodeSet

HOME = ["heater warmer", "heater cooler", "music play"]


@pytest.fixture
def kernel(tools: SimpleNamespace) -> Kernel:
    """A kernel without weights; every row is its own."""
    vocabulary = tools.toy_vocabulary(["heater", "music", " heater", " music"])
    return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary))))


def test_a_choice_is_one_of_the_options_as_typed(kernel: Kernel) -> None:
    """The model reads a space before it, but nobody has to type or strip one."""
    d = kernel.choose("Command:", HOME)
    assert d.text in HOME
    assert set(d.probabilities) == set(HOME)
    assert sum(d.probabilities.values()) == pytest.approx(1.0)
    assert next(iter(d.probabilities)) == d.text
    assert d.passes == 1
    assert all(text.startswith(" ") for text in d.opcodes.texts)


def test_a_prompt_that_ends_in_a_space_gets_no_second_one(kernel: Kernel) -> None:
    """And an option that has its own space keeps it."""
    assert kernel.choose("Command: ", HOME).opcodes.texts == tuple(HOME)
    assert kernel.choose("Command:\n", HOME).opcodes.texts == tuple(HOME)
    assert kernel.choose("Command:", [" a", "b"]).opcodes.texts == (" a", " b")


def test_options_are_compiled_once(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same list is the same set; so many are remembered."""
    first = kernel.choose("Command:", HOME).opcodes
    assert kernel.choose("Other:", list(HOME)).opcodes is first
    monkeypatch.setattr(api, "SETS_KEPT", 2)
    kernel.choose("Command:", ["a", "b"])
    kernel.choose("Command:", ["a", "c"])
    assert kernel.choose("Command:", HOME).opcodes is not first


def test_the_default_rule_is_the_one_that_measures_best(kernel: Kernel) -> None:
    """Calibrated where there is a null to calibrate with."""
    assert kernel.choose("Do:", HOME).rule == "exact"
    assert kernel.choose("Do:", HOME, null="N/A:").rule == "calibrated"
    assert kernel.choose("Do:", HOME, null=["N/A:", "?:"]).rule == "calibrated"
    assert kernel.choose("Do:", HOME, rule="greedy").rule == "greedy"
    assert kernel.choose("Do:", HOME, rule=Rule(RuleName.SAMPLE, seed=1)).rule == "sample"


def test_a_decision_knows_what_the_model_read(kernel: Kernel) -> None:
    """The ids of the prompt and of the null prompts."""
    d = kernel.choose("Do:", HOME, null="N/A:")
    assert kernel.vocabulary.join(d.prompt) == b"Do:"
    assert [kernel.vocabulary.join(null) for null in d.nulls] == [b"N/A:"]


def test_one_option_is_no_question(kernel: Kernel) -> None:
    """Nothing is evaluated."""
    d = kernel.choose("Do:", ["this"])
    assert (d.text, d.stop, d.passes) == ("this", Stop.FORCED, 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("heater", UsageError, "no options to choose among; give a list"),
        ([1, 2], UsageError, "option 1 is no text"),
        ([None], UsageError, "option None is no text"),
        ([], UsageError, "no options to choose among"),
        (["a", ""], BuildError, "an option cannot be the empty string"),
        (["a", "b", "a"], BuildError, "option 'a' is given twice; leave one out"),
        (["a", " a"], BuildError, "option ' a' and 'a' are one; leave one out"),
    ],
)
def test_options_that_are_none_are_refused(
    kernel: Kernel, options: list[str], error: type[Exception], message: str
) -> None:
    """Before any pass."""
    with pytest.raises(error, match=message):
        kernel.choose("Do:", options)


def test_an_unknown_rule_is_misuse(kernel: Kernel) -> None:
    """With the rule that was probably meant."""
    with pytest.raises(UsageError, match="no rule 'exakt'; did you mean 'exact'"):
        kernel.choose("Do:", HOME, rule="exakt")
    with pytest.raises(UsageError, match="'calibrated' needs at least one null prompt"):
        kernel.choose("Do:", HOME, rule="calibrated")


def test_an_empty_prompt_is_refused(kernel: Kernel) -> None:
    """There would be no row to read."""
    with pytest.raises(ContextError, match="a prompt is empty"):
        kernel.choose("", HOME)


def test_an_unknown_model_is_misuse() -> None:
    """With the name that was probably meant."""
    with pytest.raises(UnknownModelError, match="did you mean 'smollm2'"):
        Kernel.load("smollm")


def test_a_compiled_set_and_a_subset_decide(kernel: Kernel) -> None:
    """As a session uses it: literals with a closer, some of them legal."""
    opcodes = kernel.compile([Literal(" heater warmer", "\n@home\n"), Literal(" music play", "\n@home\n"), " halt"])
    prompt = Prompt((Part("Do:", trusted=True),), ((Part("N/A:", trusted=True),),))
    d = kernel.decide(Question(kernel.ids(prompt), opcodes, opcodes.subset([" halt", " music play\n@home\n"])))
    assert d.text == " music play\n@home\n"
    assert sorted(d.leaves.tolist()) == [1, 2]
    with pytest.raises(NoLegalOpcodeError, match="was never compiled; did you mean ' halt'"):
        opcodes.subset([" halp"])


def test_ids_decide_as_text_does(kernel: Kernel) -> None:
    """What a replay gives back."""
    d = kernel.choose("Do:", HOME, null="N/A:")
    again = kernel.decide(Question(PromptIds(d.prompt, d.nulls), d.opcodes))
    np.testing.assert_array_equal(again.scores, d.scores)


def test_a_large_set_is_compiled_once_for_all_processes(
    tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The second kernel maps what the first has written; a damaged file is named and made anew; options of a choice
    are not kept."""
    monkeypatch.setattr(api, "KEPT_FROM", 100)
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path))
    vocabulary = tools.toy_vocabulary(["item"])

    def fresh() -> Kernel:
        return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary))))

    texts = [Literal(f"item {n:03}", ";\n") for n in range(200)]
    first = fresh().compile(texts)
    (file,) = (tmp_path / "tries").glob("*.trie")
    with monkeypatch.context() as patch:
        patch.setattr("kernel.trie.opcodes.tokenize_bulk", None)  # would fail if it were called
        second = fresh().compile(texts)
    np.testing.assert_array_equal(second.trie.ids, first.trie.ids)
    np.testing.assert_array_equal(second.scored, first.scored)
    assert fresh().compile(texts[:150]).trie.n_leaves == 150, "another set, another file"

    file.write_bytes(file.read_bytes()[:-100])
    third = fresh().compile(texts)
    assert "compiling anew" in caplog.text
    np.testing.assert_array_equal(third.trie.ids, first.trie.ids)

    before = len(list((tmp_path / "tries").iterdir()))
    fresh().choose("Do:", [f"other {n:03}" for n in range(200)], rule="greedy")
    assert len(list((tmp_path / "tries").iterdir())) == before


def test_a_shipped_set_is_mapped_once_and_only_where_it_fits(
    tools: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next kept set comes from the file; other opcodes, another tokenizer and no file are refused."""
    vocabulary = tools.toy_vocabulary(["item"])
    texts = [Literal(f"item {n}", ";\n") for n in range(9)]

    def taking(file: str, words: Sequence[str] = ("item",)) -> Kernel:
        vocabulary = tools.toy_vocabulary(list(words))
        kernel = Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary))))
        kernel.take(tmp_path / file)
        return kernel

    made = OpcodeSet(texts, vocabulary)
    store.save(tmp_path / "items", made.compiled, tokenizer=vocabulary.fingerprint, opcodes=made.fingerprint)
    kernel = taking("items")
    kernel.choose("Do:", ["this", "that"], rule="exact")  # options of a choice are no set to keep
    with monkeypatch.context() as patch:
        patch.setattr("kernel.trie.opcodes.tokenize_bulk", None)  # would fail if it were called
        np.testing.assert_array_equal(kernel.compile(texts).trie.ids, made.trie.ids)
    assert len(kernel.compile(texts[:5])) == 5, "the file was for one set"
    for file, words, literals, said in (
        ("items", ["item"], texts[:8], "was compiled for opcodes "),
        ("items", ["items"], texts, "was compiled for tokenizer "),
        ("none", ["item"], texts, "there is no file .*none'; the command `compile` writes one"),
    ):
        with pytest.raises(StoreError, match=said):
            taking(file, words).compile(literals)


@pytest.mark.parametrize("arch", ["llama", "gemma3", "lfm2", "mamba"])
def test_all_rules_run_on_every_kind_of_memory(tiny_models: dict[str, Path], tools: SimpleNamespace, arch: str) -> None:
    """Random weights, real graphs: exact has the plain sums, `learned` what was taught of them and of the plain row,
    and each rule returns an option."""
    options = ["go north", "go south", "rotate left", "drop"]
    with Kernel(LlamaCppBackend(tiny_models[arch], n_ctx=256, n_seq=8, threads=1)) as kernel:
        opcodes = kernel.choose("The best", options).opcodes
        learned = tools.made_up(kernel.backend.fingerprint, opcodes)
        kernel.teach(learned)
        for prompt in ("The best move is", "The best", "The best move is"):
            for rule in RuleName:
                d = kernel.choose(prompt, options, null="The", rule=Rule(rule))
                assert (d.text in options, d.rule) == (True, rule)
        d = kernel.choose("The best move is", options)
        by_it = kernel.choose("The best move is", options, rule="learned")
    plain = tools.Fresh(tiny_models[arch], n_ctx=256)
    sequences = [opcodes.trie.sequence(leaf).tolist() for leaf in range(4)]
    expected = np.array(tools.plain_scores(plain.row, list(d.prompt), sequences, opcodes.scored.tolist()))
    state = plain.row(d.prompt)[learned.seen].astype(float)
    plain.close()
    np.testing.assert_allclose(d.raw, expected[d.leaves], atol=0.3)
    by_column = sorted(range(4), key=lambda leaf: opcodes.texts[leaf])
    calibrated = expected[by_column] - learned.null
    known = np.concatenate([state - state.mean(), calibrated - calibrated.mean(), np.isin([1, 20], list(d.prompt))])
    own = 0.8 * calibrated + known @ learned.weights + learned.bias
    for leaf, score in zip(by_it.leaves.tolist(), by_it.scores.tolist(), strict=True):
        assert score == pytest.approx(own[by_column.index(leaf)], abs=0.3)


# -- real weights ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[Kernel]:
    """The default model on one thread."""
    with Kernel(LlamaCppBackend(smollm2_path, n_ctx=512, threads=1)) as kernel:
        yield kernel


@pytest.mark.model
@pytest.mark.parametrize("options", [["Lima", "Oslo", "Paris"], ["Paris", "Lima", "Oslo"], ["Oslo", "Paris", "Lima"]])
def test_the_capital_is_found_in_any_order(smollm2: Kernel, tools: SimpleNamespace, options: list[str]) -> None:
    """And its log-probability is that of an independent read of the last row."""
    d = smollm2.choose("The capital of France is", options)
    assert d.text == "Paris"
    fresh = tools.Fresh(Path(smollm2.backend._path), n_ctx=64)  # type: ignore[attr-defined]
    row: NDArray[np.float64] = tools.log_softmax(fresh.row(d.prompt))
    fresh.close()
    for leaf, value in zip(d.leaves.tolist(), d.raw.tolist(), strict=True):
        (token,) = d.opcodes.trie.sequence(leaf).tolist()
        assert value == pytest.approx(row[token], abs=0.5)


@pytest.mark.model
def test_whole_options_are_compared_where_greedy_falls_for_the_first_token(smollm2: Kernel) -> None:
    """The opposite of open is ` shut` (-8.3), not ` opener` (-14.3), as greedy has it; both name their rule."""
    options = ["opener", "shut"]
    exact = smollm2.choose("The opposite of open is", options)
    greedy = smollm2.choose("The opposite of open is", options, rule="greedy")
    assert (exact.text, exact.rule, exact.passes) == ("shut", "exact", 1)
    assert (greedy.text, greedy.rule) == ("opener", "greedy")
    raw = dict(zip(exact.texts, exact.raw.tolist(), strict=True))
    assert raw["shut"] == pytest.approx(-8.3, abs=0.5)
    assert raw["opener"] == pytest.approx(-14.3, abs=0.5)


@pytest.mark.model
def test_markers_that_the_tokenizer_splits_are_chosen_all_the_same(smollm2: Kernel) -> None:
    """`<|call|>` is five tokens here; the choice among five levels is made on the full row, its small mass is told."""
    levels = [Literal(f'<|call|>kiln.heat {{"level":{n}}}', "<|/call|>\n") for n in range(1, 6)]
    opcodes = smollm2.compile(levels)
    assert len(smollm2.vocabulary.plain("<|call|>")) == 5
    d = smollm2.decide(
        Question(
            smollm2.ids(Prompt((Part("Level 3 of 5, please.\n", trusted=True),))), opcodes, rule=Rule(RuleName.EXACT)
        )
    )
    assert d.text in opcodes.texts
    assert 0 < d.legal_mass <= 1
    assert (d.passes, d.chosen_tokens) == (1, 1)
    assert len(d.ids) == d.chosen_tokens + d.forced_tokens


@pytest.mark.model
@pytest.mark.parametrize("wish", ["go", "go north", "pick", "pickaxe", "say", "saying"])
def test_an_option_that_begins_another_can_be_told(smollm2: Kernel, wish: str) -> None:
    """A prompt that repeats the wish, one a line, makes the model say it, short or long."""
    six = ["go", "go north", "pick", "pickaxe", "say", "saying"]
    prompt = f"{wish}\n" * 12
    assert smollm2.choose(prompt, six).text == wish


@pytest.mark.model
def test_the_same_question_scores_the_same_whatever_is_in_memory(smollm2: Kernel) -> None:
    """A long, improbable option: with the prompt in one pass, and with the prompt in memory, as alone with another.

    The kind of fault: scores that depend on how many tokens a pass holds; with flash attention they moved by 0.8 here.
    """
    options = ["x" * 30 + "ℵ", *(f"{letter} lamp in the room" for letter in "abcdefghijkl")]
    prompt = "Request: turn the light on\nCommand: ok"
    smollm2.memory.reset()
    first, again = smollm2.choose(prompt, options), smollm2.choose(prompt, options)
    assert first.tokens_evaluated > again.tokens_evaluated
    np.testing.assert_allclose(first.raw, again.raw, atol=0.05)
    smollm2.memory.reset()
    two = smollm2.choose(prompt, options[:2])
    shared = {text: float(value) for text, value in zip(first.texts, first.raw, strict=True) if text in two.texts}
    np.testing.assert_allclose([shared[text] for text in two.texts], two.raw, atol=0.05)


@pytest.mark.model
def test_what_does_not_fit_leaves_the_session_as_it_was(smollm2_path: Path) -> None:
    """In 256 cells: 250 ids and an opcode of ten, then 300 ids are refused; the next answer is as before."""
    options = ["north by the long and winding road over the hills", "south"]
    with Kernel(LlamaCppBackend(smollm2_path, n_ctx=256, n_batch=64, threads=1)) as kernel:
        before = kernel.choose("Go", options)
        word = kernel.vocabulary.plain(" go")
        assert len(word) == 1
        for count in (250, 300):
            with pytest.raises(ContextError, match=rf"{count} prompt ids.*n_ctx is 256"):
                kernel.decide(Question(PromptIds(tuple(word * count)), before.opcodes))
        after = kernel.choose("Go", options)
    assert after.ids == before.ids
    np.testing.assert_allclose(after.raw, before.raw, atol=0.5)


def test_the_null_prompts_of_a_guide_are_read_once_for_all_sessions(tmp_path: Path, tools: SimpleNamespace) -> None:
    """Twelve commands, 24 null prompts, nine commands legal at first: then all of them cost nothing more, and another
    kernel evaluates the two heads and their trees only and says the same. Without a folder nothing is kept.
    """
    vocabulary = tools.toy_vocabulary(["go", "take"])
    guide = tuple(
        Explained(f"{verb} {n}", f"{verb} number {n}", "it is time", f"{verb}, {n}")
        for verb in ("go", "take")
        for n in range(6)
    )
    literals = [Literal(f" {each.words}", "\n") for each in guide]
    prompts = [explained(request, guide, short=True) for request in ("now", "then")]

    def decide(cache: Path | None) -> list[Decision]:
        kernel = Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=4096), cache=cache)
        opcodes = kernel.compile(literals)
        subsets = [opcodes.subset_of(range(9)), opcodes.everything]
        return [
            kernel.decide(Question(kernel.ids(prompt), opcodes, subset))
            for prompt, subset in zip(prompts, subsets, strict=True)
        ]

    anew, kept, without = decide(tmp_path), decide(tmp_path), decide(None)
    assert len(list((tmp_path / "nulls").iterdir())) == 1
    heads = sum(len(vocabulary.prompt(parts)) for parts in heads_of(prompts[0]))
    assert kept[0].tokens_evaluated < heads + 50 < anew[0].tokens_evaluated
    assert anew[1].tokens_evaluated == kept[1].tokens_evaluated < 100
    for several in zip(anew, kept, without, strict=True):
        assert several[0].scores.tolist() == several[1].scores.tolist() == several[2].scores.tolist()


def heads_of(prompt: Prompt) -> list[tuple[Part, ...]]:
    """Return the prompt and its other orders."""
    return [prompt.parts, *prompt.rotations]


@pytest.mark.model
def test_a_program_may_ask_how_a_choice_ends(smollm2: Kernel) -> None:
    """A request of the house is chosen; one that has nothing to do with it is not, and says what was likeliest."""
    options = ["heater warmer", "heater cooler", "music play"]

    def ends(request: str, judge: Thresholds | None) -> Outcome:
        null = ["Request: N/A\nCommand:"]
        return smollm2.choose(f"Request: {request}\nCommand:", options, null=null, judge=judge).outcome

    assert ends("I'm freezing", Thresholds()) is Outcome.CHOSEN
    assert ends("what is the capital of France", None) is Outcome.CHOSEN
    assert ends("what is the capital of France", Thresholds()) is Outcome.NONE
