"""What labelled requests to the house teach, measured on requests that were held out.

For each model all labelled requests of `home` are read once. What the half `dev` teaches is measured on the half `test`
and on the set that is kept apart: accuracy, what the learned thresholds hold back, and the area under the curve of what
asks for something against what does not. Two questions more, on `dev` alone:

- Does a learned null prompt (weights on the guide's requests, none negative, 1 in all) beat their mean? Five-fold
  cross-validation of the calibrated scores.
- Do corrections help? A month of use: what the sets `cases` and `hints` teach stands at its beginning. The requests of
  `more` come in an order by chance, 180 of them. Those of 20 that are answered wrongly are corrected, and learned from
  before the next 20 come. Beside it what would have been right without corrections; two orders.

    python benchmarks/bench_learned.py [-m MODEL ...] [--out FILE]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from harness import make_parser, publish
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

from cartridges.home import make
from dispatch.session.metrics import wilson
from kernel.api import Kernel
from kernel.choose.rule import Floats
from kernel.contract import Case
from kernel.learn.features import Features, features
from kernel.learn.fit import Fit
from kernel.prompt import explained

BATCH, BATCHES, MONTHS = 20, 9, 2


class Label(NamedTuple):
    """The set and the half in which a request stands, its answer with a space before it, its kind."""

    set: str
    split: str
    answer: str
    kind: str


def labelled() -> list[tuple[Label, Case]]:
    """Return all labelled requests of the house, and behind them those of its guide."""
    cartridge = make()
    assert cartridge.cases is not None
    sets = {"cases": cartridge.cases(), **{name: more() for name, more in cartridge.more_cases.items()}}
    found = [(Label(name, case.split, case.answer, case.kind), case) for name, each in sets.items() for case in each]
    options = found[0][1].options
    for each in cartridge.guide:
        case = Case(each.words, explained(each.request, cartridge.guide), options, f" {each.words}", "", each.request)
        found.append((Label("guide", "guide", case.answer, ""), case))
    return found


def rows_of(found: Features, rows: NDArray[np.intp]) -> Features:
    """Return some of the requests."""
    requests = tuple(found.requests[row] for row in rows.tolist())
    return replace(found, requests=requests, raw=found.raw[rows], states=found.states[rows])


def share(hits: NDArray[np.bool_]) -> dict[str, Any]:
    """Return how many of how many, with the 95 % interval."""
    correct, cases = int(hits.sum()), len(hits)
    low, high = wilson(correct, cases)
    return {"correct": correct, "cases": cases, "low": low, "high": high}


def held_out(found: Features, labels: list[Label]) -> dict[str, Any]:
    """Learn from `dev` and the guide, and measure on the rest."""
    columns = found.labels([label.answer for label in labels])
    split, sets = (np.array([label[at] for label in labels]) for at in (1, 0))
    taught = np.concatenate([np.flatnonzero(split == "dev"), np.flatnonzero(split == "guide")])
    why = [labels[row].kind for row in taught.tolist()]
    fit = Fit(rows_of(found, taught), columns[taught], of_guide=int((split == "guide").sum()), kinds=why)
    learned = fit.learned(fit.thresholds())
    test = np.flatnonzero(split == "test")
    right, held, meant, before = [], [], [], []
    for row in test.tolist():
        raw, state = found.raw[row], learned.state(found.states[row])
        scores = learned.scores(found.requests[row], raw, state)
        best = np.sort(scores)
        meant.append(learned.meant(found.requests[row], raw, scores, state))
        low = learned.thresholds.meant is not None and meant[-1] < learned.thresholds.meant
        held.append(low or best[-1] - best[-2] < (learned.thresholds.margin or 0.0))
        right.append(int(scores.argmax()) == columns[row])
        before.append(int((raw - found.null).argmax()) == columns[row])
    asked, kinds = columns[test] >= 0, np.array([labels[row].kind for row in test.tolist()])
    done, good, plain = ~np.array(held), np.array(right), np.array(before)
    out: dict[str, Any] = {"taught": int((columns[taught] >= 0).sum()), "nothing": int((columns[taught] < 0).sum())}
    for name in ("cases", "hints", "fresh"):
        these = (sets[test] == name) & asked
        out[name] = {
            "calibrated": share(plain[these]),
            "learned": share(good[these]),
            "acted_on": share(done[these]),
            "right_of_acted_on": share(good[these & done]),
            "right_held_back": share(~done[these & good]),
        }
    out["nothing_done"] = {kind: share(~done[kinds == kind]) for kind in ("nonsense", "beyond", "negated", "vague")}
    out["area"] = float(roc_auc_score(asked, meant))
    return out


def learned_null(found: Features, labels: list[Label]) -> dict[str, Any]:
    """Cross-validate calibrated scores with the mean of the null prompts, and with weights that are fitted."""
    columns = found.labels([label.answer for label in labels])
    rows = np.flatnonzero((columns >= 0) & np.array([label.split == "dev" for label in labels]))
    raw, right = found.raw[rows], columns[rows]

    def loss(p: Floats, part: NDArray[np.intp]) -> float:
        weights = np.exp(p[1:] - p[1:].max())
        scores = np.exp(p[0]) * (raw[part] - weights / weights.sum() @ found.nulls)
        return float((np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(part)), right[part]]).mean())

    fold = np.random.default_rng(0).permutation(len(rows)) % 5
    hits = np.zeros(len(rows), bool)
    for number in range(5):
        inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        p = minimize(loss, np.zeros(1 + len(found.nulls)), (inside,), method="L-BFGS-B").x
        weights = np.exp(p[1:] - p[1:].max())
        hits[outside] = (raw[outside] - weights / weights.sum() @ found.nulls).argmax(axis=1) == right[outside]
    return {"mean": share((raw - found.null).argmax(axis=1) == right), "learned": share(hits)}


def month(found: Features, labels: list[Label], seed: int) -> dict[str, Any]:
    """Answer the requests of `more` 20 by 20, and learn from those that had to be corrected."""
    columns = found.labels([label.answer for label in labels])
    known = [row for row, label in enumerate(labels) if label.split == "dev" and label.set in ("cases", "hints")]
    coming = [row for row, label in enumerate(labels) if label.set == "more"]
    np.random.default_rng(seed).shuffle(coming)
    first = answers(found, columns, known)
    now, without, corrected = first, [], []
    for at in range(0, BATCH * BATCHES, BATCH):
        part = np.array(coming[at : at + BATCH])
        without.append(int((first[part] == columns[part]).sum()))
        corrected.append(int((now[part] == columns[part]).sum()))
        known = [*known, *part[now[part] != columns[part]].tolist()]
        now = answers(found, columns, known)
    return {"without": without, "corrected": corrected, "corrections": BATCH * len(without) - sum(corrected)}


def answers(found: Features, columns: NDArray[np.intp], known: list[int]) -> NDArray[np.intp]:
    """Return what is answered to every request by what some teach."""
    rows = np.array(known)
    learned = Fit(rows_of(found, rows), columns[rows]).learned()
    scores = [
        learned.scores(request, raw, learned.state(seen))
        for request, raw, seen in zip(found.requests, found.raw, found.states, strict=True)
    ]
    best: NDArray[np.intp] = np.array(scores).argmax(axis=1)
    return best


def measured(found: Features, labels: list[Label]) -> dict[str, Any]:
    """Return all that is measured of a model."""
    return {
        "held_out": held_out(found, labels),
        "null": learned_null(found, labels),
        "batch": BATCH,
        "months": [month(found, labels, seed) for seed in range(MONTHS)],
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("-m", "--model", action="append", help="model; several may be given")
    options = parser.parse_args()
    cases = labelled()
    found = {}
    for model in options.model or ["smollm2", "gemma3-270m"]:
        with Kernel.load(model) as kernel:
            read = features(kernel, [case for _, case in cases])
        found[model] = measured(read, [label for label, _ in cases])
    publish("learned", {"models": found}, options.out, ["scikit-learn"])


if __name__ == "__main__":
    main()
