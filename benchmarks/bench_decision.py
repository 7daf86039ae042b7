"""One choice among opcodes: decisions a second, passes and tokens a decision, ours beside what others do.

The same model, prompts and texts for all; the contestants take turns at every decision, in an order that rotates, so
that a machine that slows down hits all of them. Each has a context of its own and keeps what two prompts share.
Passes, tokens and the share of time outside the model are taken at llama_decode for everybody. Building grammars and
tries of a set is not timed, except where the legal set differs from step to step (`offered`).

    python benchmarks/bench_decision.py --decisions 20 --threads 2 --out benchmarks/results/decision.json --resume
    python benchmarks/bench_decision.py --models smollm2 --sets tagged --decisions 10

Prompts are those of a Tetris game that the planner plays, behind a line of prose, which is the same in all of them;
among literals, a request names one. Sets: `tagged` and `compact`, five keys in both wire forms; `placements`, all 34 of
a J, L or T; `offered`, the planner's three of a piece, as `run tetris` decides; both again as `numbers`, in the texts
that they had before they were syllables (`3-1`, four tokens); `literals`, 1,000 names.

`ours calibrated` is the default rule on the prompts of the cartridge, `ours cold` the same at the beginning of a game:
the others of ours have made a hundred decisions before, and read most options then. `ours rotations` is what it was
before prompts could show a set: the list in every rotated order, each with a null prompt of its own. Its prompt is the
same text.

Peers: see benchmarks/README.md. Run it with nothing else on the machine.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_trie import make_texts
from decision_peers import CONTESTANTS, Calls, Case, Contestant, failed
from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from cartridges.tetris.view import shuffled
from dispatch.loading.registry import load
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.backends.llama_cpp import read_vocabulary
from kernel.models import catalogue as models
from kernel.opcode import commands, words
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal

MODELS = ("smollm2", "gemma3-270m")
SETS = ("tagged", "compact", "placements", "offered", "placements-numbers", "offered-numbers")
LITERALS = 1_000
PLACEMENTS = 34
"""Of a J, L or T on a board that is not too high."""
PROSE = (
    "An even surface takes every piece. Lay pieces flat, fill the lowest place first, and never cover an empty cell:\n"
    "a hole costs more than a cleared row is worth.\n\n"
)
MARKS = ("Best", "Other")
"""Of the lists of `ours rotations`."""
WARM = 2
"""Decisions that everybody makes before the clock runs."""
EARLIER = 100
"""Decisions of the same game that our contestants have behind them, because what they read of an option stays in memory
and a session is long; `ours cold` has none. The others keep nothing from one decision to the next but a prefix."""
TARGETS = {("smollm2", "tagged"): 3.0, ("smollm2", "compact"): 4.0, ("gemma3-270m", "tagged"): 3.0}
"""Decisions a second of `exact`, in those of GBNF."""


@dataclass
class Row:
    """What one contestant did with one set."""

    seconds: list[float] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    passes: int = 0
    tokens: int = 0
    decoding: float = 0.0
    failure: str = ""


def behind_prose(prompt: Prompt) -> Prompt:
    """Return a prompt that begins with the prose, and so do its null prompts and its other orders."""
    head = Part(PROSE)
    return Prompt(
        (head, *prompt.parts),
        tuple((head, *null) for null in prompt.nulls),
        tuple((head, *parts) for parts in prompt.rotations),
    )


def make_cases(name: str, vocabulary: Vocabulary, count: int, seed: int) -> tuple[list[Literal], list[Case]]:
    """Return a set's opcodes and so many decisions among them."""
    if name == "literals":
        return _named(vocabulary, count)
    said, _, numbers = name.partition("-")
    keys = name in ("tagged", "compact")
    cartridge = load("tetris", opcodes="moves" if keys else "place" if numbers else "syllables")
    wire = Wire([cartridge], form("tagged" if name == "tagged" else "compact"))
    instructions = commands(cartridge.name, cartridge.opcodes)
    place = {instruction: n for n, instruction in enumerate(instructions)}
    assert cartridge.planner is not None
    engine = cartridge.engine()
    engine.reset(seed)
    cases: list[Case] = []
    while len(cases) < count:
        assert engine.ended() is None
        options = cartridge.planner.rank(engine)
        offered = options[: cartridge.offered]
        prompt = behind_prose(cartridge.view.prompt(engine, offered))
        legal = [o.instruction for o in offered] if said == "offered" else list(engine.legal())
        if said != "placements" or len(legal) == PLACEMENTS:
            labels = [words(offered[n].instruction, cartridge.opcodes) for n in shuffled(offered, engine.state_hash())]
            best = labels.index(words(options[0].instruction, cartridge.opcodes))
            found = _case(vocabulary, prompt, sorted(place[instruction] for instruction in legal))
            cases.append(replace(found, rotated=behind_prose(rotated(labels, best))))
        engine.apply(options[0].instruction)
    return [wire.literal(instruction) for instruction in instructions], cases


def rotated(labels: Sequence[str], best: int) -> Prompt:
    """Return options as a list, one of them marked as the best, in every rotated order; the null prompts mark none."""
    orders = [[*range(n, len(labels)), *range(n)] for n in range(len(labels))]

    def parts(order: Sequence[int], best: int) -> tuple[Part, ...]:
        lines = "".join(f"- {MARKS[n != best]}: {labels[n]}\n" for n in order)
        return (Part(f"{lines}Best move:", trusted=True),)

    first, *others = [parts(order, best) for order in orders]
    return Prompt(first, tuple(parts(order, -1) for order in orders), tuple(others))


def _named(vocabulary: Vocabulary, count: int) -> tuple[list[Literal], list[Case]]:
    names = [json.loads(text)["item"] for text in make_texts("names", LITERALS)]
    head = Part("The store keeps a thousand things. Answer with the full name of the thing.\n\n", trusted=True)

    def asked(request: str) -> tuple[Part, ...]:
        return head, Part("Request:", trusted=True), Part(f" {request}"), Part("\nName:", trusted=True)

    wanted = [names[n] for n in np.random.default_rng(1).integers(0, LITERALS, count)]
    prompts = [
        Prompt(asked(f"please bring the {name.replace('-', ' ')} from the shelf"), (asked("N/A"),)) for name in wanted
    ]
    everything = range(LITERALS)
    pairs = zip(prompts, wanted, strict=True)
    cases = [_case(vocabulary, prompt, everything, f" {name}") for prompt, name in pairs]
    return [Literal(f" {name}", "\n") for name in names], cases


def _case(vocabulary: Vocabulary, prompt: Prompt, legal: Sequence[int], wanted: str = "") -> Case:
    return Case(prompt, tuple(vocabulary.prompt(prompt.parts)), tuple(legal), wanted)


def play(
    players: dict[str, Contestant], literals: Sequence[Literal], cases: Sequence[Case], count: int
) -> dict[str, Row]:
    """Let everybody make the last `count` decisions, in turns, after WARM that are not counted."""
    rows = {name: Row() for name in players}
    earlier, cases = cases[: -count - WARM], cases[-count - WARM :]
    for name, player in players.items():
        try:
            player.use(literals)
            for case in earlier if player.keeps else ():
                player.choose(case)
        except Exception as error:
            rows[name].failure = failed(error)
    names = list(players)
    for number, case in enumerate(cases):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            row = rows[name]
            if row.failure:
                continue
            with Calls() as calls:
                start = time.perf_counter()
                try:
                    chosen = players[name].choose(case)
                except Exception as error:
                    row.failure = failed(error)
                    continue
                elapsed = time.perf_counter() - start
            if chosen not in {literals[i].body for i in case.legal}:
                row.failure = f"chose {chosen!r}, which is not legal"
            elif number >= WARM:
                row.seconds.append(elapsed)
                row.chosen.append(chosen)
                row.wanted.append(case.wanted)
                row.passes += calls.passes
                row.tokens += calls.tokens
                row.decoding += calls.seconds
    return rows


def told_row(name: str, rows: dict[str, Row]) -> dict[str, Any]:
    """Return a row as the JSON has it."""
    row = rows[name]
    if row.failure:
        return {"contestant": name, "failure": row.failure}
    count, seconds = len(row.seconds), np.asarray(row.seconds)
    out: dict[str, Any] = {
        "contestant": name,
        "decisions": count,
        "decisions_per_second": round(count / float(seconds.sum()), 2),
        "median_ms": round(1000 * float(np.median(seconds)), 2),
        "p99_ms": round(1000 * float(np.percentile(seconds, 99)), 2),
        "passes": round(row.passes / count, 2),
        "tokens": round(row.tokens / count, 1),
        "outside_model": round(1 - row.decoding / float(seconds.sum()), 4),
    }
    if any(row.wanted):
        out["right"] = round(sum(a == b for a, b in zip(row.chosen, row.wanted, strict=True)) / count, 3)
    for other in ("ours greedy", "ours exact", "ours rotations"):
        if other in rows and not rows[other].failure:
            pairs = zip(row.chosen, rows[other].chosen, strict=True)
            out[f"as_{other.split()[1]}"] = round(sum(a == b for a, b in pairs) / count, 3)
    for other in ("gbnf", "gbnf whole", "gbnf stopped"):
        if other in rows and not rows[other].failure:
            out[f"times_{other.replace(' ', '_')}"] = round(sum(rows[other].seconds) / float(seconds.sum()), 2)
    return out


def show(model: str, name: str, rows: list[dict[str, Any]], console: Console) -> None:
    """Print one set's table."""
    table = Table("", title=f"{model}, {name}", title_justify="left", box=None)
    columns = {
        "decisions_per_second": "a second", "median_ms": "median ms", "p99_ms": "p99 ms", "passes": "passes",
        "tokens": "tokens", "outside_model": "outside", "right": "right", "as_greedy": "as greedy",
        "as_exact": "as exact",
        "times_gbnf": "x gbnf", "times_gbnf_whole": "x whole", "times_gbnf_stopped": "x stopped",
    }  # fmt: skip
    for title in columns.values():
        table.add_column(title, justify="right")
    for row in rows:
        if "failure" in row:
            table.add_row(row["contestant"], row["failure"])
        else:
            table.add_row(row["contestant"], *(f"{row.get(key, '')}" for key in columns))
    console.print(table)
    if (target := TARGETS.get((model, name))) is None:
        return
    exact = next((row for row in rows if row["contestant"] == "ours exact"), {})
    for key, what in (("times_gbnf", "of bodies"), ("times_gbnf_whole", "of whole instructions")):
        if key in exact:
            verdict = "reached" if exact[key] >= target else "behind"
            console.print(f"exact: {exact[key]} times GBNF {what}, target {target}: {verdict}")


def main() -> None:
    """Measure what is asked for."""
    parser = make_parser(__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="with commas (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="with commas (default: %(default)s)")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help="with commas (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of every contestant (default: %(default)s)")
    parser.add_argument("--decisions", type=int, default=50, help="of a set (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep the sets that the file of --out has already")
    parser.add_argument("--seed", type=int, default=7, help="of the game (default: %(default)s)")
    options = parser.parse_args()
    console = Console(width=150)
    results: list[dict[str, Any]] = earlier(options.out) if options.resume else []
    packages = [one.package for one in CONTESTANTS.values() if one.package]
    done = {(each["model"], each["set"]) for each in results}
    for model in options.models.split(","):
        if all((model, name) in done for name in options.sets.split(",")):
            continue
        path = models.resolve(model)
        vocabulary = read_vocabulary(path)
        players: dict[str, Contestant] = {}
        absent: dict[str, Row] = {}
        for name in options.contestants.split(","):
            try:
                players[name] = CONTESTANTS[name](path, options.threads)
            except Exception as error:
                absent[name] = Row(failure=failed(error))
        for name in options.sets.split(","):
            if (model, name) in done:
                continue
            before = EARLIER if name != "literals" else 0
            literals, cases = make_cases(name, vocabulary, before + options.decisions + WARM, options.seed)
            rows = play(players, literals, cases, options.decisions) | absent
            table = [told_row(contestant, rows) for contestant in options.contestants.split(",")]
            show(model, name, table, console)
            results.append({"model": model, "set": name, "legal": len(cases[0].legal), "rows": table})
            if options.out:
                publish("decision", {"results": results}, options.out, packages, told=False)
        del players
    publish("decision", {"results": results}, options.out, packages)


def earlier(file: Path | None) -> list[dict[str, Any]]:
    """Return what a run with the same arguments has left in a file."""
    if file is None or not file.is_file():
        return []
    found = json.loads(file.read_text("utf-8"))
    return list(found["results"]) if found["arguments"] == sys.argv[1:] else []


if __name__ == "__main__":
    main()
