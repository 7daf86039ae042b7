"""The rule `learned`: what its file holds and refuses, how it decides, what is learned from labelled requests."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Decision
from kernel.choose.learned import Keys, Learned, unordered
from kernel.choose.outcome import Thresholds
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Case
from kernel.errors import LogitsError, StoreError, UsageError
from kernel.learn.features import Features, features
from kernel.learn.fit import Fit, Settings, accuracy
from kernel.prompt import Explained, explained
from kernel.trie.opcodes import Literal, OpcodeSet

WORDS = ("lamp on", "lamp off", "door lock")
GUIDE = tuple(Explained(each, f"do {each}", "one wants it", f"please {each}") for each in WORDS)
OPTIONS = tuple(f" {each}" for each in WORDS)


@pytest.fixture(scope="module")
def kernel(tools: SimpleNamespace) -> Kernel:
    """A model without weights: every list of ids has a row of its own."""
    vocabulary = tools.toy_vocabulary(["Request:", "Command:", " lamp", " door"])
    return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=2048))


def compiled(kernel: Kernel, closer: str = "\n") -> OpcodeSet:
    return kernel.compile([Literal(option, closer) for option in OPTIONS])


def cases(*asked: tuple[str, str]) -> list[Case]:
    """Labelled requests behind the guide; an empty answer is nothing."""
    return [
        Case(str(n), explained(request, GUIDE), OPTIONS, f" {answer}" if answer else "", "dev", request)
        for n, (request, answer) in enumerate(asked)
    ]


def by_leaf(decision: Decision, name: str) -> dict[int, float]:
    """The numbers of an array of a decision by opcode."""
    return dict(zip(decision.leaves.tolist(), getattr(decision, name).tolist(), strict=True))


def taught(kernel: Kernel, **changes: object) -> Learned:
    """A file that was made by hand: nothing is learned, the prior counts once."""
    found = features(kernel, cases(("Brr", "lamp on")))
    k, n = len(found.seen), len(found.bodies)
    plain = Learned(
        keys=found.keys,
        head=found.head,
        tail=found.tail,
        seen=found.seen,
        weights=np.zeros((k + n + 2, n)),
        bias=np.zeros(n),
        null=found.null,
        prior=1.0,
        meant_state=np.zeros((k, 1)),
        meant_signals=np.zeros((3, 1)),
        meant_bias=np.array([0.5]),
        words=np.array([3, 40], np.int64),
        meant_words=np.array([[0.25], [-2.0]]),
        thresholds=Thresholds(top=None, meant=-1.0, margin=0.1),
        about={"answered": 1},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_file_gives_back_what_was_written(kernel: Kernel, tmp_path: Path) -> None:
    """Numbers to the precision of float16; ids, thresholds and keys exactly."""
    random = np.random.default_rng(1)
    known = taught(kernel)
    known = replace(known, weights=random.normal(0, 1e-3, known.weights.shape), bias=np.array([1 / 3, -2.0, 1e-9]))
    known.write(tmp_path / "x.learned")
    found = Learned.read(tmp_path / "x.learned", known.keys)
    assert (found.keys, found.head, found.tail, found.thresholds) == (
        known.keys,
        known.head,
        known.tail,
        known.thresholds,
    )
    assert found.about == {"answered": 1}
    assert found.bias.tolist() == known.bias.tolist()
    assert np.abs(found.weights - known.weights).max() < 1e-3 * np.abs(known.weights).max()
    assert found.words.tolist() == [3, 40]
    assert found.meant_words.tolist() == [[0.25], [-2.0]]
    again = tmp_path / "y.learned"
    found.write(again)
    assert Learned.read(again, known.keys).fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "b2:other"}, r"was learned for model 'scripted', not 'b2:other'; learn it again"),
        ({"tokenizer": "b2:other"}, r"was learned for tokenizer 'b2:"),
        ({"opcodes": unordered([" lamp on"])}, r"was learned for opcodes 'b2:"),
    ],
)
def test_a_file_of_another_model_or_of_other_opcodes_is_refused(
    kernel: Kernel, tmp_path: Path, change: dict[str, str], sentence: str
) -> None:
    """The sentence says what it was learned for."""
    known = taught(kernel)
    known.write(tmp_path / "x.learned")
    with pytest.raises(StoreError, match=sentence):
        Learned.read(tmp_path / "x.learned", replace(known.keys, **change))


def test_a_damaged_file_is_refused_wherever_it_is_damaged(kernel: Kernel, tmp_path: Path) -> None:
    """Any byte changed, or cut off anywhere: a StoreError and never another one, and nothing is unpickled."""
    known = taught(kernel)
    path = tmp_path / "x.learned"
    known.write(path)
    data = path.read_bytes()
    harmless = 0
    for at in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            Learned.read(path, known.keys)
            harmless += 1  # padding between arrays
        except StoreError:
            pass
        path.write_bytes(data[:at])
        with pytest.raises(StoreError):
            Learned.read(path, known.keys)
    assert harmless < 20
    with pytest.raises(StoreError, match="there is no such learned file"):
        Learned.read(tmp_path / "none.learned", known.keys)


@pytest.mark.parametrize("change", [{"null": np.zeros(2)}, {"bias": np.array([0.0, math.nan, 0.0])}])
def test_a_file_whose_arrays_do_not_belong_together_is_refused(
    kernel: Kernel, tmp_path: Path, change: dict[str, object]
) -> None:
    """Whole by its checksums, and still no file of ours."""
    known = taught(kernel, **change)
    known.write(tmp_path / "x.learned")
    with pytest.raises(StoreError, match="is no learned file of this program"):
        Learned.read(tmp_path / "x.learned", known.keys)


def test_with_nothing_learned_the_calibrated_score_decides(kernel: Kernel) -> None:
    """One prompt, the examples; its scores are those of `calibrated` behind that prompt alone; one pass."""
    learned, opcodes = taught(kernel), compiled(kernel)
    prompt = kernel.ids(explained("It is dark", GUIDE))
    decision = kernel.decide(Question(prompt, opcodes, learned=learned))
    assert decision.rule == "learned"
    assert (decision.passes, decision.rotations, decision.nulls) == (1, (), ())
    examples = prompt.rotations[1]
    nulls = tuple(null for null in prompt.nulls if null[: len(learned.head)] == learned.head)  # type: ignore[index]
    plain = kernel.decide(Question(replace(prompt, main=examples, rotations=(), nulls=nulls), opcodes))
    assert plain.rule == "calibrated"
    assert by_leaf(decision, "scores") == pytest.approx(by_leaf(plain, "scores"))
    assert by_leaf(decision, "raw") == pytest.approx(by_leaf(plain, "raw"))
    assert decision.index == plain.index


def test_the_score_is_the_prior_and_what_state_scores_and_words_weigh(kernel: Kernel) -> None:
    """Against the definition, with the logits read straight from the model."""
    random = np.random.default_rng(2)
    learned = taught(kernel)
    learned = replace(learned, weights=random.normal(0, 0.1, learned.weights.shape), bias=np.array([0.1, 0.2, 0.3]))
    learned = replace(learned, prior=1.5)
    prompt = kernel.ids(explained("It is dark", GUIDE))
    decision = kernel.decide(Question(prompt, compiled(kernel), learned=learned))
    backend = kernel.backend
    assert isinstance(backend, ScriptedBackend)
    row: NDArray[np.float64] = backend.row(tuple(decision.prompt))[learned.seen].astype(float)  # type: ignore[arg-type]
    state = row - row.mean()
    columns = np.argsort(np.argsort(np.array(OPTIONS)))
    calibrated = np.zeros(3)
    calibrated[columns[decision.leaves]] = decision.raw
    calibrated -= learned.null
    request = list(learned.request(tuple(decision.prompt)))  # type: ignore[arg-type]
    for place, leaf in enumerate(decision.leaves.tolist()):
        column = int(columns[leaf])
        known = np.concatenate([state, calibrated - calibrated.mean(), np.isin([3, 40], request)])
        expected = 1.5 * calibrated[column] + known @ learned.weights[:, column]
        assert decision.scores[place] == pytest.approx(expected + learned.bias[column])
    assert sum(decision.probabilities.values()) == pytest.approx(1)


def test_few_legal_opcodes_are_compared_by_the_scores_that_they_have_among_all(kernel: Kernel) -> None:
    """What all of the few begin with counts as well, and what is not legal is known to be better."""
    learned, opcodes = taught(kernel), compiled(kernel)
    prompt = kernel.ids(explained("It is dark", GUIDE))
    whole = kernel.decide(Question(prompt, opcodes, learned=learned))
    scores, best = by_leaf(whole, "scores"), whole.index
    others = [leaf for leaf in range(3) if leaf != best]
    few = kernel.decide(Question(prompt, opcodes, opcodes.subset_of(others), learned=learned, beyond=True))
    assert by_leaf(few, "scores") == pytest.approx({leaf: scores[leaf] for leaf in others})
    assert few.preferred == best
    assert few.preferred_by == pytest.approx(scores[best] - max(scores[leaf] for leaf in others))
    assert few.passes == 1


def test_whether_anything_is_meant_depends_on_words_and_signals(kernel: Kernel) -> None:
    """The log-odds by hand; below its threshold the judge says that nothing is."""
    opcodes = compiled(kernel)
    prompt = kernel.ids(explained("It is dark", GUIDE))
    base = taught(kernel)
    ids = base.request(base.order((prompt.main, *prompt.rotations)) or ())
    words = np.array(sorted({ids[0], ids[-1]}), np.int64)
    learned = replace(
        base, words=words, meant_words=np.ones((len(words), 1)), meant_signals=np.array([[2.0], [0.0], [-1.0]])
    )
    decision = kernel.decide(Question(prompt, opcodes, learned=learned, judge=learned.thresholds))
    top = float(decision.scores.max())
    assert decision.evidence.top == pytest.approx(top)
    expected = 0.5 + len(words) + 2 * top - float(decision.shares.max())
    assert decision.evidence.meant == pytest.approx(expected)
    quiet = replace(learned, meant_bias=np.array([0.5]) - expected - 1.5)
    held = kernel.decide(Question(prompt, opcodes, learned=quiet, judge=quiet.thresholds))
    assert (held.outcome.value, held.evidence.meant) == ("none", pytest.approx(-1.5))


@pytest.mark.parametrize("logit", [math.nan, math.inf, -math.inf])
def test_a_state_that_is_no_finite_number_decides_nothing(tools: SimpleNamespace, logit: float) -> None:
    """A typed error before any score would be NaN; `exact` reads the options only, and decides all the same."""
    vocabulary = tools.toy_vocabulary(["lamp"])
    row = tools.hashed_row(len(vocabulary))

    def spoilt(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out: NDArray[np.float32] = row(ids).copy()
        out[0] = logit  # a line break, which begins no option
        return out

    kernel = Kernel(ScriptedBackend(vocabulary, spoilt, n_ctx=2048))
    opcodes = compiled(kernel)
    learned = tools.made_up(kernel.backend.fingerprint, opcodes)
    assert learned.seen[0] == 0
    prompt = kernel.ids(explained("Dark", GUIDE))
    with pytest.raises(LogitsError, match="reads a logit behind the prompt that is no finite number; use 'calibrated'"):
        kernel.decide(Question(prompt, opcodes, learned=learned))
    exact = kernel.decide(Question(PromptIds(prompt.main), opcodes))
    assert (exact.rule, exact.text.rstrip()) in [("exact", option) for option in OPTIONS]


def test_opcodes_that_are_all_impossible_are_an_error(tools: SimpleNamespace) -> None:
    """Of the legal ones none has a finite log-probability, and nothing is chosen; one beside them that has is."""
    vocabulary = tools.toy_vocabulary()
    row = tools.hashed_row(len(vocabulary))
    impossible = vocabulary.plain("a")[0]

    def without(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out: NDArray[np.float32] = row(ids).copy()
        out[impossible] = -np.inf
        return out

    kernel = Kernel(ScriptedBackend(vocabulary, without))
    opcodes = kernel.compile(["ax", "ay", "b"])
    learned = tools.made_up(kernel.backend.fingerprint, opcodes)
    assert impossible not in learned.seen
    prompt = PromptIds(tuple(vocabulary.plain("P")))
    with pytest.raises(LogitsError, match="none of 2 legal opcodes has a finite log-probability"):
        kernel.decide(Question(prompt, opcodes, opcodes.subset_of([0, 1]), learned=learned))
    assert kernel.decide(Question(prompt, opcodes, learned=learned)).text == "b"


def test_a_prompt_that_was_not_learned_behind_is_misuse(kernel: Kernel) -> None:
    """So is the rule without anything learned; a kernel that was taught finds it by the opcodes, in any form."""
    opcodes = compiled(kernel, "\n@home\n")
    with pytest.raises(UsageError, match="the prompt is none that was learned behind"):
        Question(kernel.ids(explained("Dark", GUIDE[:2])), opcodes, learned=taught(kernel))
    prompt = kernel.ids(explained("Dark", GUIDE))
    with pytest.raises(UsageError, match="needs what was learned of these opcodes"):
        kernel.decide(Question(prompt, opcodes, rule=Rule(RuleName.LEARNED)))
    learned = taught(kernel)
    with pytest.raises(StoreError, match="learned for the model 'b2:other'"):
        kernel.teach(replace(learned, keys=replace(learned.keys, model="b2:other")))
    fresh = Kernel(kernel.backend)
    fresh.teach(learned)
    assert fresh.learned_of(opcodes) is learned
    assert fresh.learned_of(opcodes, kernel.ids(explained("Dark", GUIDE[:2]))) is None
    assert fresh.decide(Question(prompt, opcodes, rule=Rule(RuleName.LEARNED))).rule == "learned"


def made_up(labels: NDArray[np.intp], n: int = 4, k: int = 24, seed: int = 0) -> Features:
    """Features in which the state says what is meant, and the calibrated scores say nothing."""
    random = np.random.default_rng(seed)
    centres = random.normal(0, 1, (n + 1, k))
    states = centres[labels] + random.normal(0, 0.6, (len(labels), k))
    requests = tuple((7, 9) if label < 0 else (7, int(random.integers(10, 14))) for label in labels.tolist())
    return Features(
        Keys("m", "t", "o"),
        tuple(f" o{n}" for n in range(n)),
        (1,),
        (2,),
        np.arange(k, dtype=np.int32),
        requests,
        random.normal(-5, 1, (len(labels), n)),
        states.astype(np.float32),
        np.full((2, n), -5.0),
    )


def test_what_the_state_says_is_learned_and_holds_for_requests_that_were_not_seen() -> None:
    """Scores that know nothing are right one time in four; cross-validated they are right nine times in ten."""
    labels = np.arange(160) % 5 - 1
    fit = Fit(made_up(labels), labels)
    crossed = fit.crossed()
    assert accuracy(fit.calibrated, labels) < 0.45
    assert accuracy(crossed.scores, labels) > 0.9
    answered = labels >= 0
    assert crossed.meant[answered].mean() > 1 > -1 > crossed.meant[~answered].mean()
    thresholds = fit.thresholds()
    right = answered & (crossed.scores.argmax(axis=1) == labels)
    assert thresholds.meant is not None
    assert (crossed.meant[right] < thresholds.meant).mean() <= 0.05
    assert (crossed.meant[~answered] < thresholds.meant).mean() > 0.9


def test_kinds_on_both_sides_of_what_asks_for_something_are_told_apart_kind_by_kind(tmp_path: Path) -> None:
    """On one line of states what asks lies in the middle: one log-odds cannot part it, one against each kind can."""
    labels = np.where(np.arange(150) % 3, -1, 0)
    kinds = ["", "low", "high"] * 50
    found = made_up(labels, n=2)
    place = np.array([0.0, -4.0, 4.0] * 50) + np.random.default_rng(3).normal(0, 0.5, 150)
    line = np.outer(place, np.arange(24) - 11.5).astype(np.float32)
    found = replace(found, states=line, requests=((7, 8),) * 150)
    asked = labels >= 0

    def parted(fit: Fit) -> float:
        meant = fit.crossed().meant
        return float((meant[asked][:, None] > meant[~asked][None, :]).mean())

    assert parted(Fit(found, labels)) < 0.8
    assert parted(Fit(found, labels, kinds=kinds)) > 0.95
    learned = Fit(found, labels, kinds=kinds).learned()
    learned.write(tmp_path / "x.learned")
    again = Learned.read(tmp_path / "x.learned", found.keys)
    assert again.meant_state.shape == (24, 2)
    scores = np.zeros(2)
    state = line[4].astype(float)
    one, other = (each.meant((7, 8), found.raw[4], scores, state) for each in (learned, again))
    assert one == pytest.approx(other, abs=0.05)


def test_a_fit_decides_as_its_file_does(tmp_path: Path) -> None:
    """Prior, weights and bias of the whole fit, written, read, applied to the requests that it was fitted to."""
    labels = np.arange(100) % 5 - 1
    found = made_up(labels)
    Fit(found, labels).learned().write(tmp_path / "x.learned")
    learned = Learned.read(tmp_path / "x.learned", found.keys)
    states = found.states.astype(float) - found.states.astype(float).mean(axis=1, keepdims=True)
    scores = np.array([learned.scores(*each) for each in zip(found.requests, found.raw, states, strict=True)])
    assert accuracy(scores, labels) > 0.95
    meant = [
        learned.meant(ids, raw, s, state)
        for ids, raw, s, state in zip(found.requests, found.raw, scores, states, strict=True)
    ]
    assert np.mean((np.array(meant) > 0) == (labels >= 0)) > 0.95


def test_an_opcode_without_a_request_stays_at_its_prior() -> None:
    """No weights and no bias: the calibrated score is all it has."""
    labels = np.arange(90) % 3
    learned = Fit(made_up(labels), labels).learned()
    assert np.abs(learned.weights[:, 3]).max() == 0.0
    assert learned.bias[3] == 0.0
    assert np.abs(learned.weights[:, 0]).max() > 0
    assert learned.thresholds == Thresholds()
    assert learned.meant_bias.tolist() == [0.0]


def test_commands_that_share_a_word_learn_from_each_other() -> None:
    """What tells on from off is learned of the red lamp; the blue one has few requests, and is right more often."""
    bodies = (" blue off", " blue on", " red off", " red on")
    labels = np.array([0, 1] * 2 + [2, 3] * 40 + [0, 1] * 40)
    taught = np.arange(len(labels)) < 84
    random = np.random.default_rng(1)
    colour, switch = random.normal(0, 1, (2, 24)), random.normal(0, 0.5, (2, 24))
    states = colour[labels // 2] + switch[labels % 2] + random.normal(0, 0.7, (len(labels), 24))
    made = replace(
        made_up(labels), bodies=bodies, states=states.astype(np.float32), raw=np.full((len(labels), 4), -5.0)
    )
    known = replace(made, states=made.states[taught], raw=made.raw[taught], requests=made.requests[:84])

    def right(shared: float) -> float:
        learned = Fit(known, labels[taught], Settings(shared=shared)).learned()
        rows = np.flatnonzero(~taught)
        scores = [learned.scores(made.requests[row], made.raw[row], learned.state(made.states[row])) for row in rows]
        return accuracy(np.array(scores), labels[rows])

    assert right(2.0) > right(0.0) + 0.05


def test_without_an_answered_request_there_is_nothing_to_learn() -> None:
    """Thresholds alone are not learned."""
    with pytest.raises(UsageError, match="no labelled request with an answer"):
        Fit(made_up(np.array([-1, -1])), np.array([-1, -1]))


def test_features_are_what_the_scorer_says(kernel: Kernel) -> None:
    """A row each request, behind the examples; the null prompts are the guide's requests behind them."""
    found = features(kernel, cases(("It is dark", "lamp on"), ("Nonsense", "")))
    assert found.bodies == (" door lock", " lamp off", " lamp on")
    assert (found.raw.shape, found.nulls.shape, len(found.requests)) == ((2, 3), (3, 3), 2)
    text = kernel.vocabulary.join([*found.head, *found.requests[0], *found.tail]).decode()
    assert text.startswith("Request: Do lamp on, one wants it\nCommand: lamp on\n")
    assert text.endswith("Request: It is dark\nCommand:")
    assert found.labels([" lamp on", ""]).tolist() == [2, -1]
    learned = Fit(found, found.labels([" lamp on", " door lock"])).learned()
    decision = kernel.decide(Question(kernel.ids(explained("It is dark", GUIDE)), compiled(kernel), learned=learned))
    columns = learned.columns(compiled(kernel))
    assert decision.raw.tolist() == pytest.approx([found.raw[0][columns[leaf]] for leaf in decision.leaves.tolist()])
