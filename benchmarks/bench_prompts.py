"""How does the form of a prompt change what a small model chooses? Tetris lists and heads before a request.

`tetris`: three options as a list in shuffled order, one marked as the best, in several forms of a line and of the
question; `eval --forms` tries forms of options without an order.
`requests`: labelled requests behind nothing, a list of commands or worked examples, each from both ends, and behind
several of these heads, averaged. Columns: the rule `exact`; `calibrated` with one null prompt (of Tetris: the same list
with none best; of a request: `N/A`); with all (Tetris: averaged over the rotations; a request: every one of the guide).

    python benchmarks/bench_prompts.py --model gemma3-270m --out benchmarks/results/prompts-gemma3-270m.json

All on the half `dev` of the labelled cases. What is kept does not depend on the machine's speed, so it may be busy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from harness import make_parser, publish
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dispatch.loading.registry import load
from dispatch.session.evaluate import CLOSER
from dispatch.session.guides import guide_of
from kernel.api import Kernel
from kernel.choose.question import Question
from kernel.contract import Case
from kernel.prompt import NOTHING, Explained, Part, Prompt, behind
from kernel.trie.opcodes import Literal

FORMS: dict[str, tuple[tuple[str, str], str, str]] = {
    "`- Best: 3-1` / `- Other: 0-0`, `Best move:`": (("Best", "Other"), "Best move:", "{}"),
    "`- best: 3-1` / `- good: 0-0`, `Best move:`": (("best", "good"), "Best move:", "{}"),
    "`- Best: 3-1` / `- Other: 0-0`, `- Best:`": (("Best", "Other"), "- Best:", "{}"),
    "`- Best: place 3 1` / `- Other: place 0 0`, `Best move:`": (("Best", "Other"), "Best move:", "place {}"),
}
"""Marks of the best line and of the others, the question, and how a placement is said."""
HEADS = {
    "none": ("none",),
    "list": ("list",),
    "list from its end": ("list back",),
    "examples": ("examples",),
    "examples from their end": ("examples back",),
    "list from its end, examples": ("list back", "examples"),
    "all four (kept)": ("list", "list back", "examples", "examples back"),
}
"""The heads of a prompt that are averaged."""
Floats = NDArray[np.float64]
Row = dict[str, Any]


def scores(kernel: Kernel, prompt: Prompt, options: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the log-probability of every option behind a prompt, and its mean behind the null prompts."""
    opcodes = kernel.compile([Literal(text, CLOSER) for text in options])
    decision = kernel.decide(Question(kernel.ids(prompt), opcodes))
    assert decision.null is not None, "every prompt here has a null prompt"
    order = np.argsort(decision.leaves)
    return decision.raw[order], decision.null[order]


def as_list(labels: Sequence[str], best: int, marks: tuple[str, str], question: str) -> Prompt:
    """Return options as a list with an order; in the null prompt none is the best."""

    def parts(at: int) -> tuple[Part, ...]:
        lines = "".join(f"- {marks[n != at]}: {label}\n" for n, label in enumerate(labels))
        return (Part(f"{lines}{question}", trusted=True),)

    return Prompt(parts(best), (parts(-1),))


def tetris(kernel: Kernel, form: tuple[tuple[str, str], str, str], cases: Sequence[Case]) -> dict[str, int]:
    """Return how often each column picks the best of three, over the cases."""
    marks, question, said = form
    right = {"exact": 0, "calibrated": 0, "all": 0}
    for case in cases:
        names = [text.strip() for text in case.options]
        labels = [said.format(name if said == "{}" else name.replace("-", " ")) for name in names]
        best, compared = case.options.index(case.answer), []
        for n in range(len(labels)):
            turned = labels[n:] + labels[:n]
            prompt = as_list(turned, turned.index(labels[best]), marks, question)
            raw, null = scores(kernel, prompt, [f" {label}" for label in labels])
            compared.append(raw - null)
            if not n:
                right["exact"] += int(np.argmax(raw)) == best
                right["calibrated"] += int(np.argmax(raw - null)) == best
        right["all"] += int(np.argmax(np.mean(compared, axis=0))) == best
    return right


def texts(guide: Sequence[Explained]) -> dict[str, str]:
    """Return the heads by name."""
    lists = [f"- {each.phrase}: {each.words}\n" for each in guide]
    shown = [
        f"Request: {each.phrase[0].upper()}{each.phrase[1:]}, {each.when}\nCommand: {each.words}\n" for each in guide
    ]
    heads = {"list": f"Commands:\n{''.join(lists)}\n", "list back": f"Commands:\n{''.join(lists[::-1])}\n"}
    return {"none": "", **heads, "examples": "".join(shown), "examples back": "".join(shown[::-1])}


def requests(kernel: Kernel, guide: Sequence[Explained], cases: Sequence[Case], heads: Mapping[str, str]) -> list[Row]:
    """Return a row for each of HEADS: how often each column is right."""
    options = cases[0].options
    answers = [options.index(case.answer) for case in cases]
    raw: dict[str, Floats] = {}
    nulls: dict[tuple[str, int], Floats] = {}
    for name, head in heads.items():
        blank = behind(head, NOTHING)
        several = tuple(behind(head, each.request) for each in guide)
        raw[name] = np.array([scores(kernel, Prompt(behind(head, c.request), several), options)[0] for c in cases])
        for which, each in enumerate(((blank,), several)):
            nulls[name, which] = scores(kernel, Prompt(blank, each), options)[1]

    def right(compared: Floats) -> int:
        return int(np.sum(np.argmax(compared, axis=1) == answers))

    rows = []
    for title, names in HEADS.items():
        exact = right(raw[names[0]]) if len(names) == 1 else None
        one, every = (right(np.mean([raw[n] - nulls[n, which] for n in names], axis=0)) for which in (0, 1))
        rows.append({"form": title, "right": {"exact": exact, "calibrated": one, "all": every}})
    return rows


def measure(kernel: Kernel, count: int) -> list[Row]:
    """Return a row a form of prompt: of so many Tetris states, and of the requests to the house."""
    made = load("tetris").cases, load("home").cases
    states, asked = ([case for case in cases() if case.split == "dev"] for cases in made if cases is not None)
    lists = [
        {"set": "tetris", "form": title, "right": tetris(kernel, form, states[:count])} for title, form in FORMS.items()
    ]
    guide = guide_of([load("home")])
    heads = [{"set": "home", **row} for row in requests(kernel, guide, asked, texts(guide))]
    return [{**row, "cases": count} for row in lists] + [{**row, "cases": len(asked)} for row in heads]


def main() -> None:
    """Measure, print a table and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2", help="(default: %(default)s)")
    parser.add_argument("--states", type=int, default=40, help="of Tetris (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores, at most 8)")
    args = parser.parse_args()
    with Kernel.load(args.model, threads=args.threads) as kernel:
        rows = measure(kernel, args.states)
    table = Table("set", "form", "exact", "one null", "all", box=None)
    for row in rows:
        shares = ("" if n is None else f"{100 * n / row['cases']:.0f} %" for n in row["right"].values())
        table.add_row(row["set"], row["form"], *shares)
    Console(width=130).print(table)
    publish("prompts", {"model": args.model, "split": "dev", "rows": rows}, args.out)


if __name__ == "__main__":
    main()
