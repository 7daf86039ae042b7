"""Fits the weights by which arguments are chosen (kernel/tools/weights.py), on cases that are for development.

    python benchmarks/fit_calls.py --read 150      reads what the model says of the candidates, resumable
    python benchmarks/fit_calls.py --model smollm2 --model gemma3-270m --write      fits both together

For each field of a right call: its candidates, their signs, and which of them the leaderboard accepts; leaving a field
out is one more where that is accepted. The weights of each kind of field are those of a conditional logit (McFadden
1974) with a Gaussian prior; with --write they become kernel/tools/weights.py. Accuracy is told by five-fold
cross-validation over cases. The last line of stdout is one JSON document.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bfcl_cases import CACHE, Case, cases
from harness import make_parser, publish
from numpy.typing import NDArray
from scipy.optimize import minimize

from kernel.api import Kernel
from kernel.errors import KernelError
from kernel.opcode.tools import read_tools
from kernel.shape.argument import Argument
from kernel.shape.shape import EMPTY
from kernel.tools.evidence import Kind
from kernel.tools.fields import Field
from kernel.tools.filling import Filler
from kernel.tools.signs import NAMES, signs

SETS = ("simple_python", "live_simple", "live_multiple")
LONGEST = 500
"""Characters of a request that is read for this."""
PENALTY = 5.0
FOLDS = 5
PRIOR: dict[Kind, dict[str, float]] = {
    Kind.NUMBER: {
        "best": 0.6, "gain": 0.35, "contrast": 1.0, "near name": 2.0, "near about": 0.4, "example": -2.0, "out": -2.0,
    },
    Kind.STRING: {
        "best": 0.6, "gain": 0.3, "contrast": 0.7, "quote": 2.5, "name": 1.3, "clause": -1.0, "example": -2.5,
        "long": 0.5, "near name": 1.0, "near about": 0.4, "of name": -3.0, "of about": 0.5,
        "free": 0.8, "free clause": 1.0, "told": 2.5, "called": 2.5,
        "formed": 2.5, "joined": -2.0, "way": 2.0, "first": -4.0, "part": -2.5, "said": 2.0,
        "out": 2.6, "out spoken": -2.0,
    },
    Kind.LISTED: {"best": 0.4, "gain": 0.5, "contrast": 0.4, "said": 3.0, "yes": 2.0, "out": 1.0},
    Kind.OTHER: {"best": 0.3, "gain": 0.2, "contrast": 0.4, "list": 1.0, "long": 0.3, "near name": 0.4, "out": 2.5},
}  # fmt: skip
"""What is believed of the weights before there are cases: the fit moves them as far as the cases say."""
WEIGHTS = Path(__file__).resolve().parent.parent / "kernel" / "tools" / "weights.py"

Row = dict[str, Any]
Floats = NDArray[np.float64]


def main() -> None:
    """Read, fit, write."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", action="append", help="(default: smollm2)")
    parser.add_argument("--read", type=int, default=0, help="so many cases of each set at most")
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores, at most 8)")
    given = parser.parse_args()
    rows: list[Row] = []
    for model in given.model or ["smollm2"]:
        kept = CACHE / f"fit-{model}.pickle"
        known: dict[str, list[Row]] = pickle.loads(kept.read_bytes()) if kept.exists() else {}
        if given.read:
            _read(model, given.read, given.threads, known, kept)
        rows += [{**_signed(row), "model": model, "id": name} for name, several in known.items() for row in several]
    found = {kind: _fitted([row for row in rows if row["kind"] == kind], kind) for kind in Kind}
    for kind, (weights, right, whole) in found.items():
        print(f"{kind:8} {right} of {whole} right in cross-validation: {weights}")
    if given.write:
        WEIGHTS.write_text(_module({kind: each[0] for kind, each in found.items()}))
    told = {str(kind): {"right": right, "of": whole} for kind, (_, right, whole) in found.items()}
    publish("fit_calls", {"cases": len({row["id"] for row in rows}), "fields": len(rows), "kinds": told}, given.out)


def _read(model: str, most: int, threads: int | None, known: dict[str, list[Row]], kept: Path) -> None:
    several = [cases(name, dev=True)[:most] for name in SETS]
    turns = [case for row in range(most) for part in several for case in part[row : row + 1]]
    with Kernel.load(model, n_ctx=4096, threads=threads) as kernel:
        filler = Filler(kernel)
        for number, case in enumerate(turns):
            if case.id in known or len(case.request) > LONGEST:
                continue
            try:
                known[case.id] = _rows(filler, case)
            except KernelError as error:
                print(f"{case.id}: {error}")
                continue
            if number % 10 == 9:
                kept.write_bytes(pickle.dumps(known))
                print(f"{number + 1} of {len(turns)}", flush=True)
    kept.write_bytes(pickle.dumps(known))


def _rows(filler: Filler, case: Case) -> list[Row]:
    """Return the signs of the candidates of each field of the right call, and which are accepted."""
    function = next(each for each in case.functions if each["name"] == case.wanted)
    opcodes = read_tools([function]).opcodes
    if not opcodes:
        return []
    answer, found = case.answer[0][case.wanted], []
    for field, evidence in filler.read(opcodes[0], case.request):
        accepted = answer.get(field.path[0], [""]) if len(field.path) == 1 else None
        if accepted is None:
            continue
        right = [any(_equal(each.value, value) for value in accepted if value != "") for each in evidence.candidates]
        right.append("" in accepted and not field.required)
        told = {"name": field.path, "about": field.argument.description, "required": field.required}
        told["schema"] = dict(field.schema)
        found.append({"kind": str(evidence.kind), "field": told, "evidence": evidence, "right": np.array(right)})
    return [{**row, "request": case.request} for row in found]


def _signed(row: Row) -> Row:
    """Return a row with the signs of its candidates, by the words and lists of today."""
    told = row["field"]
    argument = Argument(told["name"][-1], EMPTY, told["required"], description=told["about"])
    field = Field(told["name"], argument, told["schema"], told["required"])
    matrix, right = signs(row["request"], field, row["evidence"]).astype(np.float32), row["right"]
    if field.required:
        matrix, right = matrix[:-1], right[:-1]
    return {**row, "signs": matrix, "right": right}


def _equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, bool) is not isinstance(theirs, bool) or isinstance(ours, str) is not isinstance(theirs, str):
        return False
    return bool(_plain(ours) == _plain(theirs))


def _plain(value: Any) -> Any:
    """Return a value as the leaderboard compares it: texts without spaces and marks, in small letters."""
    if isinstance(value, str):
        return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _fitted(rows: Sequence[Row], kind: Kind) -> tuple[dict[str, float], int, int]:
    """Return the weights, and how many fields are right in cross-validation, of how many where something is right."""
    usable = [row for row in rows if row["right"].any()]
    if not usable:
        return PRIOR[kind], 0, 0
    names = sorted({row["id"] for row in usable})
    np.random.default_rng(0).shuffle(names)
    fold = {name: at % FOLDS for at, name in enumerate(names)}
    right = 0
    for number in range(FOLDS):
        weights = _weights([row for row in usable if fold[row["id"]] != number], kind)
        held = [row for row in usable if fold[row["id"]] == number]
        right += sum(bool(row["right"][int(np.argmax(row["signs"] @ weights))]) for row in held)
    weights = _weights(usable, kind)
    return {n: round(float(w), 3) for n, w in zip(NAMES, weights, strict=True) if abs(w) >= 0.001}, right, len(usable)


def _weights(rows: Sequence[Row], kind: Kind) -> Floats:
    prior = np.array([PRIOR[kind].get(name, 0.0) for name in NAMES])
    open_ = [row for row in rows if not row["right"].all()]
    if not open_:
        return prior
    spread = np.concatenate([row["signs"] for row in open_]).std(0) + 1e-6

    def loss(weights: Floats) -> tuple[float, Floats]:
        moved = weights - prior * spread
        total, slope = PENALTY * float(moved @ moved) / 2, PENALTY * moved
        for row in open_:
            scaled = row["signs"] / spread
            values = scaled @ weights
            shares = np.exp(values - values.max())
            shares /= shares.sum()
            mine = shares * row["right"]
            total -= float(np.log(mine.sum() + 1e-12))
            slope = slope - (mine / (mine.sum() + 1e-12) - shares) @ scaled
        return total, slope

    # words of a field in the request never speak for leaving it out, nor that a description names a value for it; many
    # answers accept a value as well as none, so leaving out is not made stronger than it was believed to be
    most = {"out spoken": 0.0, "out about": 0.0, "example": -2.0, "said": 3.0, "out": PRIOR[kind].get("out", 0.0)}
    # nobody writes a mail or a note in these cases, so what they say of long texts is not believed
    least = {name: PRIOR[kind].get(name, 0.0) for name in ("free", "free clause", "told", "called")}
    bounds = [
        (least[name] * spread[at] if name in least else None, most[name] * spread[at] if name in most else None)
        for at, name in enumerate(NAMES)
    ]
    best: Floats = minimize(loss, prior * spread, bounds=bounds, jac=True, method="L-BFGS-B").x
    weights: Floats = best / spread
    return weights


def _module(found: dict[Kind, dict[str, float]]) -> str:
    lines = [
        '"""The weights of the signs in `signs.py`, by kind of field; written by benchmarks/fit_calls.py."""\n',
        "from __future__ import annotations\n",
        "from collections.abc import Mapping\n",
        "from kernel.tools.evidence import Kind\n",
        "WEIGHTS: Mapping[Kind, Mapping[str, float]] = {",
    ]
    for kind, weights in found.items():
        lines.append(f"    Kind.{kind.name}: {{")
        lines += [f"        {json.dumps(name)}: {weight}," for name, weight in weights.items()]
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    main()
