"""Does the tab of a browser choose what this kernel chooses, and how fast?

A real Chromium loads the model from a server on this machine, in ranges, into WebAssembly. Prompts of `tetris`,
`home` and `choose` are put to the kernel in the tab and to this one, each with one thread, under each rule. Where both
choose differently, the margin is told: below the tolerance of `replay --decide` both answers are the model's.

The tab has one sequence, so what a prompt shows as a set is read as a list there, in one order or in all rotated ones.
What it chooses of `tetris` is therefore compared twice: with this kernel on the same list, and on the set. `home` is
the request alone, and the request behind the guide's examples with their null prompts, which the tab gets as a page
would.

    make browser
    python benchmarks/bench_tab.py --out benchmarks/results/tab.json
"""

from __future__ import annotations

import gzip
import math
import random
import statistics
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table
from tab_host import browsing, hosting

from cartridges.home import make as make_home
from cartridges.tetris import make as make_tetris
from dispatch.session.completions import cases as completions
from dispatch.session.evaluate import CLOSER
from kernel.api import Kernel
from kernel.choose.decision import TOLERANCE, Decision
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.choose.score import Scorer
from kernel.choose.tab_nulls import nulls_asset
from kernel.contract import Case
from kernel.memory.listed import Listed, Prompted, flat_of
from kernel.models import catalogue as models
from kernel.prompt import Lines, Piece, Prompt, asked
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.tab import trie_asset, vocabulary_asset

GREEDY, EXACT, CALIBRATED = RuleName.GREEDY, RuleName.EXACT, RuleName.CALIBRATED
LIST, SET = "the same list", "the set"
MANY = 100_000

LOAD = """async (asked) => {
  const { TabKernel } = await import("/kernel.js");
  const get = async (name) => (await fetch(`/${name}`)).arrayBuffer();
  globalThis.bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const at = {};
  const begun = performance.now();
  const onProgress = (what, done, total) => { if (done >= total) at[what] = performance.now() - begun; };
  globalThis.kernel = await TabKernel.load({
    model: "/model.gguf", vocabulary: await get("vocabulary"), onProgress,
    wllama: { module: "/wllama.js", wasm: "/wllama.wasm" },
  });
  globalThis.sets = new Map();
  return { at, ms: performance.now() - begun };
}"""

TAKE = "({ set, trie }) => { sets.set(set, kernel.opcodes(bytes(trie))); }"

DECIDE = """async ({ set, prompt, ...more }) => {
  const opcodes = sets.get(set);
  const begun = performance.now();
  const ids = await kernel.ids(prompt);
  const made = await kernel.decide({ ...more, opcodes, prompt: ids });
  return { ...made, ids, ms: performance.now() - begun };
}"""

FRESH = "() => { kernel.chooser.nulls.known.clear(); return kernel.memory.forget(); }"

NULLS = "({ set, asset }) => kernel.takeNulls(sets.get(set), bytes(asset))"

OPEN = """async ({ trie }) => {
  const buffer = bytes(trie);
  const begun = performance.now();
  const opcodes = kernel.opcodes(buffer);
  const parts = opcodes.parts(opcodes.legal(), 0, opcodes.size, 0).length;
  return { ms: performance.now() - begun, parts };
}"""


@dataclass(frozen=True)
class Task:
    """Cases to decide under some rules.

    Attributes:
        name: in the table.
        cases: what both are asked.
        against: what this kernel reads, and how that is called: the set, or the lists that the tab reads.
        rotated: sets are read in every rotated order.
        shipped: the tab gets what the null prompts said, as a page would get it.
    """

    name: str
    cases: Sequence[Case]
    rules: Sequence[RuleName]
    against: Sequence[str] = ("",)
    rotated: bool = False
    shipped: bool = False


def tasks(count: int) -> Iterator[Task]:
    """Yield what is compared; `count` prompts of each set."""
    tetris, home = make_tetris(), make_home()
    assert tetris.cases is not None
    assert home.cases is not None
    states = [case for case in tetris.cases() if case.split == "test"][:count]
    requests = [case for case in home.cases() if case.split == "test"][:count]
    alone = [replace(case, prompt=asked(case.request)) for case in requests]
    yield Task("tetris", states, (CALIBRATED,), against=(LIST, SET))
    yield Task("choose", [case for case in completions() if case.split == "test"][:count], (EXACT, CALIBRATED, GREEDY))
    yield Task("home, the request alone", alone, (CALIBRATED, EXACT, GREEDY))
    yield Task("home, behind the examples", [one_head(each) for each in requests], (CALIBRATED,), shipped=True)
    yield Task("tetris", states, (EXACT,), against=(LIST, SET))
    yield Task("tetris, every order", states[: count // 3], (CALIBRATED,), against=(SET,), rotated=True)


def one_head(case: Case) -> Case:
    """Return a request behind the third of its four heads, the worked examples, with the null prompts of that head."""
    head = case.prompt.rotations[1]
    nulls = tuple(null for null in case.prompt.nulls if null[0] == head[0])
    return replace(case, prompt=Prompt(head, nulls))


def as_json(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as the tab takes it."""

    def piece(part: Piece) -> dict[str, Any]:
        texts = {"texts": list(part.texts)} if isinstance(part, Lines) else {"text": part.text}
        return {**texts, "trusted": part.trusted}

    def pieces(parts: Sequence[Piece]) -> list[dict[str, Any]]:
        return [piece(part) for part in parts]

    return {
        "parts": pieces(prompt.parts),
        "nulls": [pieces(parts) for parts in prompt.nulls],
        "rotations": [pieces(parts) for parts in prompt.rotations],
    }


def as_lists(prompt: PromptIds, *, from_end: bool = False) -> PromptIds:
    """Return a prompt whose sets are lists in one order, that of their lines' ids, read from the end if so asked."""

    def flat(each: Prompted) -> Prompted:
        if not isinstance(each, Listed):
            return each
        lines = sorted(each.lines, key=lambda line: line[::-1]) if from_end else each.lines
        return (*each.lead, *(token for line in lines for token in line), *each.question)

    return PromptIds(flat(prompt.main), tuple(map(flat, prompt.nulls)), tuple(map(flat, prompt.rotations)))


def same_ids(prompt: PromptIds, there: dict[str, Any]) -> bool:
    """Return whether the tab tokenized a prompt as this kernel does."""

    def equal(here: Prompted, theirs: Any) -> bool:
        if not isinstance(here, Listed):
            return list(here) == list(theirs)
        lines = {tuple(line) for line in theirs["lines"]}
        return (here.lead, here.question, set(here.lines)) == (tuple(theirs["lead"]), tuple(theirs["question"]), lines)

    pairs = [(prompt.main, there["main"]), *zip(prompt.nulls, there["nulls"], strict=True)]
    return all(equal(*pair) for pair in [*pairs, *zip(prompt.rotations, there["rotations"], strict=True)])


class Beside:
    """The kernel here and the one in the tab, asked the same."""

    def __init__(self, kernel: Kernel, model: Path, evaluate: Callable[..., Any]) -> None:
        self.kernel, self.model, self.evaluate = kernel, model, evaluate
        self.sent: dict[int, OpcodeSet] = {}

    def rows(self, task: Task, rule: RuleName) -> Iterator[dict[str, Any]]:
        """Decide all cases of a task, both with nothing in memory and nothing known; yield rows of the results."""
        self.kernel.backend.clear()
        self.kernel, self.sent = Kernel(self.kernel.backend), {}
        self.evaluate(FRESH)
        there = [self.there(task, rule, case) for case in task.cases]
        for against in task.against:
            self.kernel.backend.clear()
            self.kernel = Kernel(self.kernel.backend)
            here = [self.here(rule, case, lists=against == LIST) for case in task.cases]
            yield row_of(task, rule, against, list(zip(task.cases, here, there, strict=True)))

    def there(self, task: Task, rule: RuleName, case: Case) -> dict[str, Any]:
        """Return what the tab decides, and whether it read the same ids."""
        opcodes, ids = self.compiled(case), self.kernel.ids(case.prompt)
        if id(opcodes) not in self.sent:
            self.evaluate(TAKE, {"set": id(opcodes), "trie": b64encode(trie_asset(opcodes)).decode()})
            self.sent[id(opcodes)] = opcodes  # kept, so that its id is not given to another one
            if task.shipped:
                nulls = [flat_of(null) for null in ids.nulls]
                asset = nulls_asset(Scorer(self.kernel.memory), opcodes, nulls, self.model)
                self.evaluate(NULLS, {"set": id(opcodes), "asset": b64encode(asset).decode()})
        asked = {"set": id(opcodes), "prompt": as_json(case.prompt), "rule": {"name": str(rule)}}
        made: dict[str, Any] = self.evaluate(DECIDE, {**asked, "rotated": task.rotated})
        return {**made, "alike": same_ids(ids, made["ids"])}

    def here(self, rule: RuleName, case: Case, *, lists: bool) -> tuple[Decision, float]:
        """Return what this kernel decides, and the milliseconds that it took."""
        opcodes, ids = self.compiled(case), self.kernel.ids(case.prompt)
        question = Question(as_lists(ids) if lists else ids, opcodes, rule=Rule(rule))
        begun = time.perf_counter()
        made = self.kernel.decide(question)
        return made, 1000 * (time.perf_counter() - begun)

    def compiled(self, case: Case) -> OpcodeSet:
        """Return the options of a case."""
        return self.kernel.compile([Literal(option, CLOSER) for option in case.options])


Pair = tuple[Case, tuple[Decision, float], dict[str, Any]]


def row_of(task: Task, rule: RuleName, against: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return a row of the results."""
    apart = [
        {"case": case.id, "here": here.text, "there": there["label"], "margin": round(here.margin, 4)}
        for case, (here, _), there in pairs
        if here.index != there["index"]
    ]
    steady = pairs[1:]  # the first reads what stays

    def mean(values: Iterator[float]) -> float:
        return round(statistics.mean(values), 2)

    return {
        "task": f"{task.name}, against {against}" if against else task.name,
        "rule": str(rule),
        "prompts": len(pairs),
        "same": len(pairs) - len(apart),
        "within_tolerance": sum(each["margin"] <= TOLERANCE for each in apart),
        "apart": apart,
        "shift": shift_of(pairs),
        "tokenized_alike": sum(there["alike"] for *_, there in pairs),
        "right_here": sum(case.options[here.index] == case.answer for case, (here, _), _ in pairs),
        "right_there": sum(case.options[there["index"]] == case.answer for case, _, there in pairs),
        "here": {
            "ms": round(statistics.median(ms for _, (_, ms), _ in steady), 1),
            "passes": mean(here.passes for _, (here, _), _ in steady),
            "tokens": mean(here.tokens_evaluated for _, (here, _), _ in steady),
        },
        "there": {
            "ms": round(statistics.median(there["ms"] for *_, there in steady), 1),
            "first_ms": round(pairs[0][2]["ms"], 1),
            "decodes": mean(there["decodes"] for *_, there in steady),
            "rows": mean(there["rows"] for *_, there in steady),
            "tokens": mean(there["tokens"] for *_, there in steady),
        },
    }


def orders(kernel: Kernel, count: int) -> list[dict[str, Any]]:
    """Ask this kernel what a list costs in place of a set: in the order of ids, and in one that no mark decides.

    The line that is marked as the best begins with other ids than the rest, so the first order gives it one place
    always; the second sorts by the ids from the end, where the option stands. States of the half `dev`.
    """
    tetris = make_tetris()
    assert tetris.cases is not None
    states = [case for case in tetris.cases() if case.split == "dev"][:count]
    found = []
    for rule in (CALIBRATED, EXACT):
        said: dict[str, list[str]] = {}
        for name in ("set", "list, order of ids", "list, order of options"):
            said[name] = []
            for case in states:
                opcodes = kernel.compile([Literal(option, CLOSER) for option in case.options])
                ids = kernel.ids(case.prompt)
                if name != "set":
                    ids = as_lists(ids, from_end=name.endswith("options"))
                said[name].append(case.options[kernel.decide(Question(ids, opcodes, rule=Rule(rule))).index])
        for name, texts in said.items():
            right = sum(text == case.answer for text, case in zip(texts, states, strict=True))
            same = sum(text == other for text, other in zip(texts, said["set"], strict=True))
            found.append({"rule": str(rule), "read": name, "states": count, "right": right, "as_the_set": same})
    return found


def shift_of(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return by how much the log-probabilities of opcodes differ that both have evaluated to their end."""
    found: list[float] = []
    for _, (here, _), there in pairs:
        ours = dict(zip(here.leaves.tolist(), here.raw.tolist(), strict=True))
        found += [abs(ours[leaf] - raw) for leaf, raw in zip(there["leaves"], there["raw"], strict=True)]
    known = [value for value in found if math.isfinite(value)]
    return {"median": round(statistics.median(known), 4), "largest": round(max(known), 4)}


def large(kernel: Kernel, evaluate: Callable[..., Any]) -> dict[str, Any]:
    """Return how large an asset of many opcodes is, and how soon the tab can use it."""
    draw = random.Random(3)
    texts = sorted({" " + "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(MANY + 100)})[:MANY]
    asset = trie_asset(kernel.compile(texts, keep=False))
    opened = [evaluate(OPEN, {"trie": b64encode(asset).decode()})["ms"] for _ in range(5)]
    return {
        "opcodes": MANY,
        "bytes": len(asset),
        "gzip_bytes": len(gzip.compress(asset, 6)),
        "usable_ms": round(statistics.median(opened), 1),
        "first_usable_ms": round(opened[0], 1),
    }


def main() -> None:
    """Compare, and publish."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2", help="name or path (default: %(default)s)")
    parser.add_argument("--prompts", type=int, default=34, help="of each set (default: %(default)s)")
    parser.add_argument("--only", default="", help="tasks whose name holds this")
    options = parser.parse_args()
    path = models.resolve(options.model)
    with Kernel.load(options.model, threads=1) as kernel:
        vocabulary = vocabulary_asset(kernel.vocabulary)
        rows: list[dict[str, Any]] = []
        found: dict[str, Any] = {"model": options.model, "threads": 1, "tolerance": TOLERANCE}
        with hosting({"model.gguf": path, "vocabulary": vocabulary}) as host, browsing(host.address) as (page, foreign):
            loaded = page.evaluate(LOAD)
            found["browser"] = page.context.browser.version if page.context.browser else ""
            found["load"] = {
                "ms": round(loaded["ms"]),
                **{f"{what}_ms": round(ms) for what, ms in loaded["at"].items()},
                "ranges": host.ranges,
                "bytes": {n: host.sent[n] for n in ("model.gguf", "wllama.wasm", "wllama.js", "vocabulary")},
                "vocabulary_gzip_bytes": len(gzip.compress(vocabulary, 6)),
            }
            found["large"] = large(kernel, page.evaluate)
            found["orders"] = orders(kernel, options.prompts)
            beside = Beside(kernel, path, page.evaluate)
            for task in tasks(options.prompts):
                if options.only in task.name:
                    for row in (row for rule in task.rules for row in beside.rows(task, rule)):
                        rows.append(row)
                        print(f"{row['task']}, {row['rule']}: {row['same']} of {row['prompts']}", flush=True)
                        found |= {"rows": rows, "requests_elsewhere": foreign}
                        publish("tab", found, options.out, ("playwright",), told=False)
    show(rows)
    publish("tab", found, options.out, ("playwright",))


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("task", "rule", "same", "apart within the tolerance", "ms here", "ms in the tab", "decodes", "tokens")
    for row in rows:
        same, there = f"{row['same']} of {row['prompts']}", row["there"]
        cells = [row["task"], row["rule"], same, row["within_tolerance"], row["here"]["ms"], there["ms"]]
        table.add_row(*map(str, [*cells, there["decodes"], there["tokens"]]))
    Console().print(table)


if __name__ == "__main__":
    main()
