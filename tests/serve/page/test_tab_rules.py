"""The kernel of the tab decides as this kernel does: both are asked the same, on a model that both can compute."""

from __future__ import annotations

import gzip
import hashlib
import math
import random
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.log.ledger import ledger_step
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.chooser import Chooser
from kernel.choose.decision import Decision
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule
from kernel.choose.score import Scorer
from kernel.choose.tab_nulls import nulls_asset
from kernel.memory.memory import Memory
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.tab import trie_asset, vocabulary_asset

Tab = Callable[..., Any]
PRIME = 1_000_003

FAKE = Path(__file__).with_name("fake.js")
BESIDE = """
const { made, bytes, failed } = await import("/fake.js");
const { kernel, engine, opcodes } = made(asked);
"""
DECIDE = "return kernel.decide({ ...asked.question, opcodes });"


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def row(size: int, ids: tuple[int, ...]) -> NDArray[np.float32]:
    """What the fake in the tab computes."""
    value = 17
    for each in ids:
        value = (value * 31 + each + 1) % PRIME
    return (8 * ((value * 7919 + np.arange(size, dtype=np.int64) * 104_729) % PRIME) / PRIME).astype(np.float32)


class Both:
    """The toy vocabulary in the tab and here."""

    def __init__(self, tab: Tab, vocabulary: Vocabulary) -> None:
        self.tab, self.vocabulary = tab, vocabulary
        tab.files["fake.js"] = FAKE  # type: ignore[attr-defined]
        self.asset = base64(vocabulary_asset(vocabulary))

    def there(self, script: str, opcodes: OpcodeSet | None = None, **asked: object) -> Any:
        """Run a script in the tab beside a fake model; it sees `asked`, `kernel`, `engine`, `opcodes`, `failed`."""
        asked["vocabulary"] = self.asset
        if opcodes is not None:
            asked["trie"] = base64(trie_asset(opcodes))
        return self.tab(f"async (asked) => {{ {BESIDE} {script} }}", asked)

    def decided(self, drawn: list[Question]) -> list[Any]:
        """Decide questions there, each on a kernel that knows nothing."""
        asked = [{**as_asked(each), "trie": base64(trie_asset(each.opcodes))} for each in drawn]
        script = """
        const answers = [];
        for (const { trie, ...question } of asked.questions) {
          const { kernel, opcodes } = made({ vocabulary: asked.vocabulary, trie });
          answers.push(await kernel.decide({ ...question, opcodes }));
        }
        return answers;
        """
        return list(self.there(script, questions=asked))

    def here(self, question: Question) -> Decision:
        """Decide here, on a memory that is empty."""
        size = len(self.vocabulary)
        backend = ScriptedBackend(self.vocabulary, lambda ids: row(size, ids))
        return Chooser(Memory(backend)).choose(question)


@pytest.fixture
def both(tab: Tab, tools: SimpleNamespace) -> Both:
    return Both(tab, tools.toy_vocabulary(["ab", "cd", "abc", "go", " north"]))


def opcodes_of(draw: random.Random, vocabulary: Vocabulary) -> OpcodeSet:
    """Texts of few letters, so that they share a lot and one begins another; some with a closer."""
    closer = draw.choice(["", "\n@x\n", ";"])
    begin = draw.choice(["", "a", "abc "])
    texts = {begin + "".join(draw.choices("abcd ", k=draw.randint(1, 5))) for _ in range(draw.randint(1, 24))}
    return OpcodeSet([Literal(text, closer, f"<{text}>") for text in sorted(texts, key=hash)], vocabulary)


def questions(vocabulary: Vocabulary, seed: int, count: int) -> list[Question]:
    """Drawn questions: every rule, legal sets, null prompts, rotations, planners' scores."""
    draw, made = random.Random(seed), list[Question]()
    while len(made) < count:
        opcodes = opcodes_of(draw, vocabulary)
        prompts = [tuple(draw.choices(range(1, 90), k=draw.randint(1, 12))) for _ in range(4)]
        name = draw.choice(["greedy", "exact", "calibrated"])
        nulls = tuple(prompts[1 : draw.randint(2, 4)]) if name == "calibrated" else ()
        rotations = tuple(tuple(reversed(p)) for p in prompts[:2]) if draw.random() < 0.4 else ()
        legal = draw.sample(range(len(opcodes)), draw.randint(1, len(opcodes)))
        prior = None
        rule = Rule(name, calibration=draw.choice([1.0, 0.5]))  # type: ignore[arg-type]
        if draw.random() < 0.3 and name != "greedy":
            rule = Rule(name, planner_weight=2.0)  # type: ignore[arg-type]
            prior = np.array([draw.choice([math.nan, draw.uniform(-9, 9)]) for _ in range(len(opcodes))])
        subset = opcodes.subset_of(legal)
        made.append(Question(PromptIds(prompts[0], nulls, rotations), opcodes, subset, rule, prior))
    return made


def as_asked(question: Question) -> dict[str, object]:
    """Return a question as the tab takes it."""
    rule, prompt = question.by, question.prompt
    return {
        "prompt": {
            "main": list(prompt.main),
            "nulls": [list(each) for each in prompt.nulls],
            "rotations": [list(each) for each in prompt.rotations],
        },
        "legal": question.legal.leaves().tolist()[::-1],
        "rule": {"name": str(rule.name), "calibration": rule.calibration, "planner_weight": rule.planner_weight},
        "prior": None if question.prior is None else question.prior.tolist(),
        "ledger": True,
    }


def test_the_tab_chooses_what_the_kernel_chooses(both: Both) -> None:
    """A hundred drawn questions of all three rules: same opcode, scores, null scores, mass and counts."""
    drawn = questions(both.vocabulary, seed=7, count=100)
    for question, now in zip(drawn, both.decided(drawn), strict=True):
        made = both.here(question)
        told = f"{question.by} {question.opcodes.texts}"
        assert (now["index"], now["label"], tuple(now["ids"])) == (made.index, made.text, made.ids), told
        assert now["text"] == question.opcodes.texts[made.index]
        assert sorted(now["leaves"]) == sorted(made.leaves.tolist())
        assert (now["chosen"], now["forced"], now["stop"]) == (made.chosen_tokens, made.forced_tokens, made.stop)
        here = {leaf: at for at, leaf in enumerate(made.leaves.tolist())}
        order = [here[leaf] for leaf in now["leaves"]]
        for name in ("scores", "raw"):
            theirs, ours = np.array(now[name]), getattr(made, name)[order]
            known = ~np.isnan(theirs)
            assert known[now["leaves"].index(made.index)]
            assert theirs[known] == pytest.approx(ours[known], abs=2e-5), told
        assert (now["null"] is None) == (made.null is None)
        if made.null is not None:
            assert now["null"] == pytest.approx(made.null[order].tolist(), abs=2e-5), told
        if len(made.leaves) > 1:
            assert now["mass"] == pytest.approx(made.legal_mass, abs=1e-5)
            assert now["margin"] <= made.margin + 2e-5
        whole = np.isfinite(now["raw"]).all()
        if whole or question.by.name == "greedy":
            assert now["margin"] == pytest.approx(made.margin, abs=2e-5)
            assert np.array(now["shares"]) == pytest.approx(made.shares[order], abs=2e-5, nan_ok=True)


def test_best_first_reads_few_rows_of_many_opcodes(both: Both) -> None:
    """A hundred names of four letters behind a model that is sure: a branch that cannot win is not decoded."""
    texts = [a + b + c + d for a in "abcd" for b in "efgh" for c in "ijkl" for d in "mn"]
    opcodes = OpcodeSet(texts, both.vocabulary)
    asked = {"prompt": {"main": [5, 6, 7]}, "rule": {"name": "exact"}}
    now = both.there(DECIDE, opcodes, question=asked)
    made = both.here(Question(PromptIds((5, 6, 7)), opcodes, rule=Rule("exact")))  # type: ignore[arg-type]
    assert now["label"] == made.text
    assert now["rows"] < 40 < 1 + 4 + 16 + 64  # which is how many rows there are
    assert now["margin"] <= made.margin + 1e-5
    left_out = np.isnan(now["raw"])
    assert left_out.any()
    assert (
        made.scores[[made.leaves.tolist().index(leaf) for leaf in np.array(now["leaves"])[left_out]]]
        < made.scores.max()
    ).all()


def test_the_ledger_is_that_of_the_log(both: Both) -> None:
    """Its rows are those that the log's own function picks from the same row, with the same ranks."""
    drawn = questions(both.vocabulary, seed=11, count=25)
    for question, now in zip(drawn, both.decided(drawn), strict=True):
        trie, ids = question.opcodes.trie, tuple(now["ids"])
        assert len(now["ledger"]) == now["chosen"]
        for step in now["ledger"]:
            path, size = ids[: step["at"]], len(both.vocabulary)
            legal = sorted(
                {
                    int(trie.sequence(leaf)[len(path)])
                    for leaf in now["leaves"]
                    if tuple(trie.sequence(leaf)[: len(path)]) == path
                }
            )
            values = row(size, (*question.prompt.main, *path))
            normaliser = float(np.log(np.exp(values.astype(np.float64)).sum()))
            expected = ledger_step(
                step["at"], values, normaliser, np.array(legal), ids[step["at"]], both.vocabulary.pieces.__getitem__
            )
            assert (step["legal"], step["mass"]) == (expected.legal, pytest.approx(expected.mass, abs=2e-6))
            assert [(r["id"], r["legal"], r["rank"]) for r in step["rows"]] == [
                (r.id, r.legal, r.rank) for r in expected.rows
            ]
            assert [r["logprob"] for r in step["rows"]] == pytest.approx([r.logprob for r in expected.rows], abs=2e-6)


def test_what_a_null_prompt_said_is_kept(both: Both) -> None:
    """The second decision reads no null prompt again, and neither does one over fewer opcodes."""
    opcodes = OpcodeSet(["left", "right", "rot"], both.vocabulary)
    script = """
    const prompt = { main: [5, 6], nulls: [[5, 7], [5, 8]] };
    const counts = [];
    for (const legal of [null, null, [0, 1]]) counts.push((await kernel.decide({ prompt, opcodes, legal })).rows);
    return counts;
    """
    first, second, fewer = both.there(script, opcodes)
    assert second < first
    assert fewer <= second


@pytest.mark.parametrize("rotated", [False, True])
def test_a_set_is_read_as_a_list(both: Both, rotated: bool) -> None:
    """Lines come in the order of their ids, each once: as one list, or in every rotated order."""
    prompt = {"main": {"lead": [1, 2], "lines": [[9], [3, 4], [9]], "question": [5]}, "nulls": [[7]]}
    opcodes = OpcodeSet(["a", "b"], both.vocabulary)
    now = both.there(
        DECIDE,
        opcodes,
        question={"prompt": prompt, "rotated": rotated},
    )
    assert now["prompt"]["main"] == [1, 2, 3, 4, 9, 5]
    assert now["prompt"]["rotations"] == ([[1, 2, 9, 3, 4, 5]] if rotated else [])


FAULTS = """
const refused = [];
const prompt = { main: [5, 6] };
const ask = (more = {}) => kernel.decide({ prompt, opcodes, rule: { name: "exact" }, ...more });
for (const patch of asked.patches) {
  engine.patch = patch;
  kernel.memory.last = null;
  refused.push(await failed(() => ask()));
}
engine.patch = {};
for (const more of asked.questions) refused.push(await failed(() => ask(more)));
const stopped = ask({ prompt: { main: Array.from({ length: 200 }, (_, n) => n % 90) } });
await null; kernel.stop();
refused.push(await failed(() => stopped));
return { refused, after: (await ask()).index };
"""


def test_faults_are_told_and_the_next_decision_is_that_of_a_fresh_kernel(both: Both) -> None:
    """Rows that lie, a prompt too long, rules that are none, a stop: a code and a sentence; then all is well."""
    opcodes = OpcodeSet(["left", "right", "rot"], both.vocabulary)
    size = len(both.vocabulary)
    patches = [
        {3: math.nan},
        {3: math.inf},
        {3: -1.0},
        dict.fromkeys(range(size), 0.0),
        dict.fromkeys(range(size), 0.25),
    ]
    asked: list[dict[str, object]] = [
        {"prompt": {"main": [1] * 300}},
        {"prompt": {"main": []}},
        {"rule": {"name": "sample"}},
        {"rule": {"name": "calibrated"}},
        {"legal": []},
        {"legal": [7]},
    ]
    told = both.there(FAULTS, opcodes, patches=patches, questions=asked)
    codes = [code for code, _ in told["refused"]]
    assert codes == ["row"] * 5 + ["context"] + ["usage"] * 5 + ["stopped"]
    words = ["NaN", "Infinity", "-1", "no probability", "one probability", "needs 300 tokens", "no tokens", "no rule"]
    words += ["one null", "No opcode is legal", "no opcode 7", "stopped"]
    for (_, message), word in zip(told["refused"], words, strict=True):
        assert word in message
        assert message.endswith(".")
    assert told["after"] == both.here(Question(PromptIds((5, 6)), opcodes, rule=Rule("exact"))).index  # type: ignore[arg-type]


def test_a_memory_that_cannot_be_cut_is_cleared(both: Both) -> None:
    """A hybrid model refuses to drop tokens: the tab evaluates anew, counts it, and chooses the same."""
    opcodes = OpcodeSet(["left", "right", "rot"], both.vocabulary)
    script = """
    const answers = [];
    for (const refuses of [false, true]) {
      engine.refuses = refuses;
      answers.push(await kernel.decide({ prompt: { main: [5, 6], nulls: [[5]] }, opcodes }));
    }
    return answers;
    """
    plain, refused = both.there(script, opcodes)
    assert refused["index"] == plain["index"]
    assert refused["refused"] > 0
    assert plain["refused"] == 0


def test_bytes_that_are_not_ours_are_refused(both: Both, tools: SimpleNamespace) -> None:
    """Foreign, cut, damaged, of another version or vocabulary: each says what to do."""
    opcodes = OpcodeSet(["left", "right"], both.vocabulary)
    whole = trie_asset(opcodes)
    other = trie_asset(OpcodeSet(["left", "right"], tools.toy_vocabulary(["left"])))
    damaged = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (8, 20, len(whole) - 64)]
    given = [
        b"PK\x03\x04 not ours",
        whole[:12],
        whole[:40],
        whole[:-1],
        *damaged,
        other,
        vocabulary_asset(both.vocabulary),
    ]
    script = "return Promise.all(asked.given.map((each) => failed(() => kernel.opcodes(bytes(each)))));"
    told = both.there(script, given=[base64(each) for each in given])
    assert [code for code, _ in told] == ["asset"] * 7 + ["vocabulary", "asset"]
    said = ["not a set", "after 12 bytes", "cut off in its header", "bytes of", "has format 0", "damaged in its header"]
    said += ["damaged in", "compiled for the vocabulary", "not a set of opcodes"]
    for (_, message), word in zip(told, said, strict=True):
        assert word in message


def test_twenty_thousand_opcodes_are_small_and_soon_there(tab: Tab, load: Callable[[str], Vocabulary]) -> None:
    """Twenty bytes each as they are sent, and usable at once: nothing is parsed but a short header."""
    draw, vocabulary = random.Random(3), load("gpt-2")
    texts = sorted({"".join(draw.choices("abcdefghijklmnop", k=8)) for _ in range(20_100)})[:20_000]
    opcodes = OpcodeSet(texts, vocabulary)
    asset = trie_asset(opcodes)
    assert len(gzip.compress(asset, 6)) < 400_000
    tab.files["large.trie"] = asset  # type: ignore[attr-defined]
    script = """async (fingerprint) => {
      const { Opcodes } = await import("/opcodes.js");
      const buffer = await (await fetch("/large.trie")).arrayBuffer();
      const begun = performance.now();
      const opcodes = new Opcodes(buffer, fingerprint);
      const first = opcodes.next(opcodes.legal(), []);
      return { ms: performance.now() - begun, size: opcodes.size, first, text: opcodes.text(77) };
    }"""
    told = tab(script, vocabulary.fingerprint)
    assert told["first"] == opcodes.trie.children(0).tolist()
    assert (told["size"], told["text"]) == (len(opcodes), texts[77])
    assert (
        told["ms"] < 1000
    )  # some 10 ms on an idle machine; benchmarks/bench_tab.py measures it, and a hundred thousand


def test_null_prompts_can_be_read_elsewhere(both: Both, tmp_path: Path) -> None:
    """What was read here of all opcodes answers in the tab for some of them; other opcodes and weights are refused."""
    opcodes = OpcodeSet(["left", "leave", "right", "rot", "go", "go north"], both.vocabulary)
    model, size, nulls = tmp_path / "model.gguf", len(both.vocabulary), [(5, 7), (5, 8, 9)]
    model.write_bytes(b"GGUF")
    scorer = Scorer(Memory(ScriptedBackend(both.vocabulary, lambda ids: row(size, ids))))
    asset = nulls_asset(scorer, opcodes, nulls, model)
    other = nulls_asset(scorer, OpcodeSet(["left", "rot"], both.vocabulary), nulls, model)
    script = """
    const prompt = { main: [5, 6], nulls: asked.nulls };
    const slow = await kernel.decide({ prompt, opcodes, legal: [0, 1, 4, 5] });
    const shipped = made(asked);
    shipped.engine.weights = asked.weights;
    shipped.kernel.takeNulls(shipped.opcodes, bytes(asked.asset));
    const quick = await shipped.kernel.decide({ prompt, opcodes: shipped.opcodes, legal: [0, 1, 4, 5] });
    const refused = [await failed(() => shipped.kernel.takeNulls(shipped.opcodes, bytes(asked.other)))];
    shipped.engine.weights = "sha256:another";
    refused.push(await failed(() => shipped.kernel.takeNulls(shipped.opcodes, bytes(asked.asset))));
    return { slow, quick, refused };
    """
    told = both.there(
        script,
        opcodes,
        nulls=[list(null) for null in nulls],
        asset=base64(asset),
        other=base64(other),
        weights=f"sha256:{hashlib.sha256(b'4GGUFGGUF').hexdigest()}",
    )
    assert told["quick"]["index"] == told["slow"]["index"]
    assert told["quick"]["null"] == pytest.approx(told["slow"]["null"], abs=2e-5)
    assert told["quick"]["rows"] < told["slow"]["rows"] // 2
    assert [code for code, _ in told["refused"]] == ["vocabulary", "vocabulary"]
    assert "other opcodes" in told["refused"][0][1]
    assert "another model" in told["refused"][1][1]


def test_the_model_alone_writes_what_the_mask_would_have_removed(both: Both) -> None:
    """The most probable token each time, worked out here; each says whether a mask would have removed it."""
    opcodes = OpcodeSet(["left", "right"], both.vocabulary)
    script = """
    const steps = [];
    const done = await kernel.write({ prompt: [5, 6], maxTokens: 6, opcodes }, (step) => steps.push(step));
    return { steps, done };
    """
    told, ids = both.there(script, opcodes), list[int]()
    size = len(both.vocabulary)
    while len(ids) < 6 and (best := int(row(size, (5, 6, *ids)).argmax())) not in both.vocabulary.eog:
        ids.append(best)
    assert told["done"] == {"ids": ids, "closed": len(ids) == 6}
    assert [step["id"] for step in told["steps"]] == ids
    held = [opcodes.trie.sequence(leaf).tolist() for leaf in range(2)]
    expected = [not any(each[: at + 1] == ids[: at + 1] for each in held) for at in range(len(ids))]
    assert [step["left"] for step in told["steps"]] == expected
    assert all(step["step"]["rows"][0]["rank"] == 1 for step in told["steps"])
