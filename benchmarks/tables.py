"""Writes the tables of README and docs out of the files in results/, so that no measured number is typed by hand.

Between `<!-- table: NAME -->` and `<!-- end of table -->` stands what the function NAME returns. Run this after a
benchmark has written its results anew; tests/test_readme.py holds that nothing is left to write, and that no measured
number stands outside such tables.

    python benchmarks/tables.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("measured", "choosing", "tools")))
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

MODELS = ("smollm2", "gemma3-270m")
RULES = ("greedy", "exact", "calibrated")
SETS = {
    "tagged": "five keys, tagged",
    "compact": "five keys, compact",
    "placements": "34 placements",
    "offered": "three offered",
    "placements-numbers": "34 placements, as numbers",
    "offered-numbers": "three offered, as numbers",
    "literals": "1,000 names",
}
CONTESTANTS = {
    "ours greedy": "greedy",
    "ours exact": "exact",
    "ours calibrated": "calibrated",
    "ours cold": "calibrated, cold",
    "ours rotations": "calibrated, rotations",
    "gbnf whole": "GBNF",
    "gbnf": "GBNF bodies",
    "gbnf stopped": "GBNF stopped",
    "llguidance": "llguidance",
    "guidance": "guidance",
}
PEERS = ("gbnf whole", "gbnf", "llguidance", "guidance")
ENGINES = {"dicts": "nested dicts", "marisa-trie": "marisa-trie over ids"}

Row = dict[str, Any]
Line = list[str]
Lines = Iterator[Line]
TABLES: dict[str, Callable[[], Lines]] = {}


def table(made: Callable[[], Lines]) -> Callable[[], Lines]:
    """Let a function be the table of its name."""
    TABLES[made.__name__] = made
    return made


@cache
def result(name: str) -> Any:
    """Return what stands in a results file."""
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def percent(part: float, whole: float = 1, digits: int = 0) -> str:
    """Return a share, e.g. `49 %`."""
    return f"{100 * part / whole:.{digits}f} %"


def span(part: int, whole: int, low: float, high: float) -> str:
    """Return a share with its 95 % interval, e.g. `49 % (38-60)`."""
    return f"{percent(part, whole)} ({100 * low:.0f}-{100 * high:.0f})"


def right(row: Row) -> str:
    """Return the share of right answers of a row of `eval`."""
    return span(row["correct"], row["cases"], row["low"], row["high"])


def seconds(value: float) -> str:
    """Return a time in the unit that it is easy to read in."""
    return f"{value:.1f} s" if value >= 1 else f"{value:.2f} s" if value >= 0.1 else f"{1000 * value:.1f} ms"


def best(cells: Sequence[str], values: Sequence[float]) -> Line:
    """Return the cells with those of the highest value in bold."""
    return [f"**{cell}**" if value == max(values) else cell for cell, value in zip(cells, values, strict=True)]


# Rules, prompts and models


def by_rule(name: str, rules: Sequence[str] = RULES) -> Iterator[tuple[str, str, list[Row | None]]]:
    """Yield (model, set, a row a rule) of a file of `eval`; None for a rule that was not measured there."""
    found = {(row["model"], row["set"], row["rule"]): row for row in result(name)["results"]}
    for model, of in dict.fromkeys((model, of) for model, of, _ in found):
        yield model, of, [found.get((model, of, rule)) for rule in rules]


@table
def rules() -> Lines:
    """Accuracy by rule of every model and set of eval.json."""
    yield ["model", "set (cases, chance)", *RULES, "tokens a decision"]
    for model, of, measured in by_rule("eval"):
        rows = [row for row in measured if row is not None]
        cells = best([right(row) for row in rows], [row["correct"] for row in rows])
        title = f"{of} ({rows[0]['cases']}, {percent(rows[0]['chance'])})"
        yield [model, title, *cells, ", ".join(f"{row['tokens']:.0f}" for row in rows)]


@table
def states() -> Lines:
    """Labelled states, the planner's best marked: options as a set, and what was kept of them as rotated lists."""
    yield ["model", "set", "prompt", "cases", "chance", "rule", "right (95 %)", "tokens"]
    for file, shown in (("eval-states-lists", "rotated lists"), ("eval-states", "a set")):
        for row in result(file)["results"]:
            cells = [str(row["cases"]), percent(row["chance"]), row["rule"], right(row), f"{row['tokens']:.0f}"]
            yield [row["model"], row["set"], shown, *cells]


@table
def several() -> Lines:
    """Accuracy where several cartridges take requests, and of the request without their guides."""
    yield ["model", "cartridges (requests, commands)", *RULES, "learned", "calibrated, request alone"]
    for model, of, rows in by_rule("eval-several", (*RULES, "learned")):
        cells = best([right(row) if row else "" for row in rows], [row["correct"] if row else -1 for row in rows])
        title = f"{of} ({rows[0]['cases']}, {1 / rows[0]['chance']:.0f})" if rows[0] else of
        yield [model, title, *cells, f"{result('eval-several')['alone'][model][of]} %"]


@table
def requests() -> Lines:
    """What is right and what is held back at the shipped thresholds, beside the default without anything learned."""
    yield [
        "model",
        "requests (that ask, that do not)",
        "rule",
        "right",
        "right, held back",
        "nothing done",
        "area",
        "tokens",
    ]
    for row in result("eval-requests")["results"]:
        held = row["held"]
        shown = [
            span(of["count"], of["of"], of["low"], of["high"]) for of in (held["held_right"], held["nothing_done"])
        ]
        title = f"{row['set'].split(',')[0]} ({row['cases']}, {held['nothing_done']['of']})"
        yield [
            row["model"],
            title,
            row["rule"],
            right(row),
            *shown,
            f"{held['separation']:.2f}",
            f"{row['tokens']:.0f}",
        ]


def held_out() -> Iterator[tuple[str, Row]]:
    """Yield what each model has learned of `home`, on held-out requests."""
    for model, found in result("learned")["models"].items():
        yield model, found["held_out"]


@table
def learned() -> Lines:
    """Accuracy of what was learned, and what its thresholds hold back."""
    yield [
        "model",
        "held-out set (requests)",
        "calibrated, one head",
        "learned",
        "acted on",
        "right of these",
        "right, held back",
    ]
    for model, found in held_out():
        for name in ("cases", "hints", "fresh"):
            row = found[name]
            cells = best(
                [right(row[rule]) for rule in ("calibrated", "learned")],
                [row[r]["correct"] for r in ("calibrated", "learned")],
            )
            title = f"{'home' if name == 'cases' else name} ({row['learned']['cases']})"
            yield [
                model,
                title,
                *cells,
                *(right(row[each]) for each in ("acted_on", "right_of_acted_on", "right_held_back")),
            ]


@table
def refused() -> Lines:
    """How often nothing is done where nothing is asked for."""
    kinds = ("nonsense", "beyond", "negated", "vague")
    yield ["model", *kinds, "area under the curve"]
    for model, found in held_out():
        yield [model, *(right(found["nothing_done"][kind]) for kind in kinds), f"{found['area']:.2f}"]


@table
def null_weights() -> Lines:
    """What null prompts are worth with weights that are learned, beside their mean, on requests that were left out."""
    yield ["model", "requests", "mean of the null prompts", "learned weights"]
    for model, found in result("learned")["models"].items():
        row = found["null"]
        cells = best([right(row[n]) for n in ("mean", "learned")], [row[n]["correct"] for n in ("mean", "learned")])
        yield [model, str(row["mean"]["cases"]), *cells]


@table
def months() -> Lines:
    """How much of what comes is answered rightly without corrections and with them, by thirds of a month."""
    yield ["model", "requests", "as it began", "with what was corrected", "first third", "second", "last", "corrected"]
    for model, found in result("learned")["models"].items():
        each = found["months"]
        names = ("without", "corrected")
        rows = {name: [sum(batch) for batch in zip(*(m[name] for m in each), strict=True)] for name in names}
        asked = [found["batch"] * len(each)] * len(rows["without"])
        third = -(-len(asked) // 3)
        parts = [slice(at, at + third) for at in range(0, len(asked), third)]
        cells = [" -> ".join(percent(sum(rows[name][part]), sum(asked[part])) for name in names) for part in parts]
        total = [percent(sum(rows[name]), sum(asked)) for name in names]
        yield [
            model,
            str(sum(asked) // len(each)),
            *total,
            *cells,
            str(round(sum(m["corrections"] for m in each) / len(each))),
        ]


@table
def rules_in_full() -> Lines:
    """Every row of eval.json and eval-several.json."""
    yield ["model", "set", "cases", "chance", "rule", "right (95 %)", "passes", "tokens"]
    for row in result("eval")["results"] + result("eval-several")["results"]:
        cost = [f"{row['passes']:.1f}", f"{row['tokens']:.0f}"]
        yield [row["model"], row["set"], str(row["cases"]), percent(row["chance"]), row["rule"], right(row), *cost]


def prompts(model: str, of: str) -> list[Row]:
    """Return the rows of one model's results of bench_prompts.py that are of one set."""
    return [row for row in result(f"prompts-{model}")["rows"] if row["set"] == of]


def forms(of: str, columns: Sequence[str]) -> Lines:
    """How each form of prompt of a set did."""
    yield ["form", *(f"{model}: {columns[0]}" if not n else columns[n] for model in MODELS for n in range(3))]
    for rows in zip(*(prompts(model, of) for model in MODELS), strict=True):
        counts = [(count, row["cases"]) for row in rows for count in row["right"].values()]
        yield [rows[0]["form"], *("" if count is None else percent(count, cases) for count, cases in counts)]


@table
def tetris_forms() -> Lines:
    """The forms of a list of options."""
    return forms("tetris", ("exact", "calibrated", "calibrated, three orders"))


@table
def set_forms() -> Lines:
    """The leads and marks of options that are shown as a set."""
    found = {
        (row["lead"], row["best"], row["other"], row["model"], row["set"]): row for row in result("forms")["results"]
    }
    columns = list(dict.fromkeys((model, of) for *_, model, of in found))
    yield ["lead", "marks", *(f"{model}: {of.removesuffix('-states')}" for model, of in columns)]
    forms = {key[:3]: row["kept"] for key, row in found.items()}
    scores = {form: [found.get((*form, *column)) for column in columns] for form in forms}
    least = {form: min(row["accuracy"] for row in rows if row) for form, rows in scores.items()}
    for form in sorted(forms, key=lambda each: -least[each]):
        lead, best_mark, other = form
        said = " ".join(f"`{line}`" for line in lead.format(best=best_mark, other=other).splitlines())
        cells = ["" if row is None else percent(row["correct"], row["cases"]) for row in scores[form]]
        yield [f"{said} (kept)" if forms[form] else said, f"{best_mark}, {other}", *cells]


@table
def home_heads() -> Lines:
    """The heads before a request."""
    return forms("home", ("exact", "calibrated, `N/A`", "calibrated, guide"))


@table
def strategies() -> Lines:
    """What prose before the prompt moved, when cartridges had any."""
    yield ["cartridge", "marks", "strategy", "moved (95 %)", "planner's best (95 %)"]
    for row in result("strategies")["rows"]:
        cells = [span(row[key], row["states"], *row[f"{key}_95"]) for key in ("moved", "best")]
        yield [row["cartridge"], "yes" if row["marks"] else "no", row["strategy"], *cells]


# Games


@table
def play() -> Lines:
    """A game by chance, by a model and by the planner."""
    found = result("games")["games"]
    yield ["player", "pieces", "lines", "took the planner's first", "refused"]
    for name, game in (
        ("random, of all legal", found["random, of all legal"]),
        ("smollm2, of three offered", result("long")["summary"]),
        ("planner alone", found["planner alone"]),
    ):
        yield [
            name,
            str(game["pieces"]),
            str(game["lines"]),
            percent(game["agreement_first"], digits=1),
            str(game["refused"]),
        ]


@table
def games() -> Lines:
    """Every game of games.json."""
    counts = ("pieces", "lines", "height", "decisions", "refused")
    yield ["options of `run tetris`", *counts, "took the planner's first", "one of its three", "tokens a decision"]
    for game in result("games")["games"].values():
        shares = [percent(game[name], digits=1) for name in ("agreement_first", "agreement")]
        tokens = f"{game['tokens_evaluated'] / game['decisions']:.0f}" if "tokens_evaluated" in game else ""
        yield [f"`{game['options']}`", *(str(game[name]) for name in counts), *shares, tokens]


@table
def again() -> Lines:
    """What other models decide in the same game."""
    yield [
        "decided again by", "decisions", "same choice", "other, a margin below 0.5", "other, both above",
        "took the planner's first", "planner prefers the first choice", "planner prefers the other",
    ]  # fmt: skip
    for model, row in result("games")["again"]["models"].items():
        same = f"{row['agree']} ({percent(row['agree'], row['decisions'], 1)})"
        others = [str(row[name]) for name in ("within", "beyond")]
        prefers = [str(row[f"planner_prefers_{when}"]) for when in ("then", "now")]
        yield [model, str(row["decisions"]), same, *others, percent(row["planner_first_now"], digits=1), *prefers]


@table
def course() -> Lines:
    """Whether the long game stays as small and as fast as it began."""
    yield ["up to piece", "median of a decision", "resident memory"]
    for row in result("long")["rows"]:
        yield [str(row["pieces"]), f"{row['median_ms']:.0f} ms", f"{row['resident_mb']:.0f} MB"]


@table
def shares() -> Lines:
    """Where the time of a decision goes."""
    parts = result("share")["ms_a_decision"]
    yield ["part", "a decision", "share"]
    for name, value in parts.items():
        yield [name, f"{value:.2f} ms", percent(value, sum(parts.values()), 1)]


@table
def serving() -> Lines:
    """How many requests a server answers."""
    kinds = {"home": "a command of `home`", "tools": "a call of a tool", "choose": "one of five texts"}
    yield ["request", "clients", "shared passes", "answers a second", "median", "passes, tokens a decision", "wrong"]
    for kind, rows in result("serve")["rows"].items():
        for row in rows:
            shared = percent(row["decisions_shared"], row["decisions"]) if row["shared_at_most"] > 1 else "off"
            numbers = (
                f"{row['answers_a_second']:.1f}",
                seconds(row["median_s"]),
                f"{row['passes_a_decision']:.2f}, {row['tokens_a_decision']:.0f}",
            )
            yield [kinds[kind], str(row["clients"]), shared, *numbers, str(row["wrong"])]


@table
def inspector() -> Lines:
    """How soon a long log is there to be looked at, and whether a fast live session loses an event."""
    found = result("inspector")
    yield ["what", "value"]
    for kind, log in found["logs"].items():
        size = f"{found['decisions']:,} decisions, {log['bytes'] / 1e6:.0f} MB, {kind}"
        jump, early = log["jump_ms"], log["jump_while_checking_ms"] or log["jump_ms"]
        more = log["server_mb_at_most"] - log["server_mb_before"]
        yield [f"{size}: first rows", f"{log['first_rows_s']:.2f} s"]
        yield [f"{size}: first strip", f"{log['first_strip_s']:.2f} s"]
        yield [f"{size}: whole strip", f"{log['whole_strip_s']:.1f} s"]
        yield ["a jump while it is checked: median, p99", f"{early['median']:.0f} ms, {early['p99']:.0f} ms"]
        yield ["a jump later: median, p99", f"{jump['median']:.0f} ms, {jump['p99']:.0f} ms"]
        yield ["memory of the server beyond that of an idle one", f"{more:.0f} MB"]
    live = found["live"]
    yield ["live session by chance: decisions a second", f"{live['decisions_per_second']:.0f}"]
    lost = f"{live['events_lost']} and {live['events_twice']}"
    yield [f"of {live['decisions']:,} decisions lost, told twice, over {live['streams']} streams", lost]


def tab_row(row: Row) -> Line:
    """Return what a row of the tab's results says of both kernels."""
    here, there = row["here"], row["there"]
    same = f"{row['same']} of {row['prompts']}"
    apart = f"{row['within_tolerance']} of {len(row['apart'])}" if row["apart"] else "none"
    right = f"{percent(row['right_here'], row['prompts'])}, {percent(row['right_there'], row['prompts'])}"
    busy = " (busy)" if row.get("busy") else ""  # other work ran beside: counts hold, times do not
    speeds = f"{1000 / here['ms']:.1f}, {1000 / there['ms']:.2f}{busy}"
    counts = f"{here['passes']:.1f} and {here['tokens']:.0f}, {there['decodes']:.1f} and {there['tokens']:.0f}"
    return [row["task"], row["rule"], same, apart, right, speeds, counts]


TAB_HEAD = [
    "prompts",
    "rule",
    "same choice",
    "others that are within the tolerance",
    "right: native, tab",
    "decisions a second: native, tab",
    "passes and tokens: native, tab",
]


@table
def tab() -> Lines:
    """What the tab chooses beside this kernel, by the rule of each set."""
    yield TAB_HEAD
    usual = {
        ("tetris, against the set", "calibrated"),
        ("home, behind the examples", "calibrated"),
        ("choose", "exact"),
    }
    for row in result("tab")["rows"]:
        if (row["task"], row["rule"]) in usual:
            yield tab_row(row)


@table
def tab_in_full() -> Lines:
    """The same for every rule and way to read."""
    yield TAB_HEAD
    yield from map(tab_row, result("tab")["rows"])


@table
def tab_orders() -> Lines:
    """What reading a list in place of a set changes, on this kernel."""
    yield ["rule", "read as", "states", "right", "same choice as from the set"]
    for row in result("tab")["orders"]:
        yield [
            row["rule"],
            row["read"],
            str(row["states"]),
            percent(row["right"], row["states"]),
            str(row["as_the_set"]),
        ]


@table
def tab_load() -> Lines:
    """What the tab loads, and how long that takes."""
    found = result("tab")
    load, large = found["load"], found["large"]
    sizes = load["bytes"]
    yield ["what", "value"]
    yield ["model", f"{sizes['model.gguf'] / 1e6:.1f} MB, in {load['ranges']} ranges"]
    yield ["runtime (wasm and script)", f"{(sizes['wllama.wasm'] + sizes['wllama.js']) / 1e6:.1f} MB"]
    yield ["vocabulary, compressed", f"{load['vocabulary_gzip_bytes'] / 1e3:.0f} kB"]
    yield ["from the click to the first decision's prompt", seconds(load["ms"] / 1000)]
    yield ["of that: the model is here", seconds(load["model_ms"] / 1000)]
    yield ["the runtime has read it", seconds((load["load_ms"] - load["model_ms"]) / 1000)]
    yield ["its vocabulary is compared", seconds((load["check_ms"] - load["load_ms"]) / 1000)]
    yield [f"{large['opcodes']:,} opcodes, compressed", f"{large['gzip_bytes'] / 1e6:.2f} MB"]
    yield ["usable after", f"{large['usable_ms']:.0f} ms (the first time {large['first_usable_ms']:.0f})"]


@table
def tab_page() -> Lines:
    """What Python adds to the model in the tab."""
    found = result("tab-page")
    sizes = found["bytes"]
    yield ["what", "value"]
    yield ["Python, its packages and the program", f"{sizes['python'] / 1e6:.1f} MB"]
    yield ["the page itself", f"{sizes['page'] / 1e6:.2f} MB"]
    yield ["Python is there, from the click", seconds(found["python_s"])]
    yield ["all is there, from the click", seconds(found["all_s"])]
    yield ["planner, a decision", f"{found['planner_ms']:.0f} ms"]


@table
def planner() -> Lines:
    """How long the planner takes."""
    yield ["opcodes", "part", "median", "p99"]
    for opcodes, parts in result("planner")["time"].items():
        for part, value in parts.items():
            yield [opcodes, part, f"{value['median_us']:.0f} us", f"{value['p99_us']:.0f} us"]


@table
def shifts() -> Lines:
    """How far scores move between batch shapes."""
    yield ["model", "flash attention", "comparisons", "equal", "99th percentile", "worst", "over 0.5", "a decision"]
    for model in MODELS:
        for name, row in result(f"shift-{model}")["rows"].items():
            numbers = (str(row["comparisons"]), percent(row["equal"]), f"{row['p99']:.2f}", f"{row['worst']:.2f}")
            yield [model, name, *numbers, str(row["over_0.5"]), f"{row['cpu_ms']:.0f} ms"]


# Beside other constrained decoders


def decided(name: str) -> Iterator[tuple[str, str, dict[str, Row]]]:
    """Yield (model, set, row by contestant) of a file of bench_decision.py; who could not play has no row."""
    for each in result(name)["results"]:
        rows = {row["contestant"]: row for row in each["rows"] if "failure" not in row}
        yield each["model"], each["set"], {who: rows[who] for who in CONTESTANTS if who in rows}


def who_played(name: str) -> list[str]:
    """Return the contestants that have a row anywhere in a file, in our order."""
    found = {who for _, _, rows in decided(name) for who in rows}
    return [who for who in CONTESTANTS if who in found]


def speed(row: Row) -> float:
    """Return decisions a second."""
    return float(row["decisions_per_second"])


def behind(rows: dict[str, Row]) -> float:
    """Return the speed of our default rule in those of the fastest peer."""
    return speed(rows["ours calibrated"]) / max(speed(rows[peer]) for peer in PEERS if peer in rows)


@table
def decisions() -> Lines:
    """Decisions a second; the sets first in which a peer is furthest ahead of the default rule.

    What a contestant differs little from, and what we were before, stands in the table of all rows.
    """
    names = [who for who in who_played("decision") if who not in ("ours rotations", "gbnf stopped")]
    yield ["model", "set", *(CONTESTANTS[who] for who in names)]
    for model, of, rows in sorted(decided("decision"), key=lambda each: behind(each[2])):
        speeds = [round(speed(rows[who]), 1) if who in rows else -1.0 for who in names]
        yield [model, SETS[of], *best(["" if value < 0 else f"{value:.1f}" for value in speeds], speeds)]


@table
def many() -> Lines:
    """Decisions a second when several wait."""
    yield ["model", "waiting", "one after the other", "together", "times", "passes a decision", "tokens a decision"]
    for row in result("many")["results"]:
        alone, together = row["alone"], row["together"]
        times = speed(together) / speed(alone)
        cost = [
            f"{alone[name]:.{digits}f}, {together[name]:.{digits}f}" for name, digits in (("passes", 2), ("tokens", 0))
        ]
        yield [
            row["model"],
            str(row["waiting"]),
            f"{speed(alone):.1f}",
            f"{speed(together):.1f}",
            f"{times:.1f}",
            *cost,
        ]


@table
def mcp() -> Lines:
    """Requests to a live server, and next steps of goals."""
    yield ["model", "requests done", "next step right", "ended when all was done", "went on when it was not"]
    for row in result("mcp")["results"]:
        done, goals = [each["done"] for each in row["requests"]], row["goals"]
        ends = [each["hit"] for each in goals if each["right"] == "halt"]
        steps = [each["hit"] for each in goals if each["right"] != "halt"]
        counts = [f"{sum(some)} of {len(some)}" for some in (done, ends + steps, ends, steps)]
        yield [row["model"], *counts]


@table
def literals() -> Lines:
    """How often everybody is right among a thousand names, and how fast."""
    names = who_played("decision-literals")
    yield ["model", "", *(CONTESTANTS[who] for who in names)]
    for model, _, rows in decided("decision-literals"):
        speeds = [speed(rows[who]) for who in names]
        yield [model, "decisions a second", *best([f"{value:.1f}" for value in speeds], speeds)]
        shares = [float(rows[who]["right"]) for who in names]
        yield [model, "right", *best([percent(value) for value in shares], shares)]


@table
def decisions_in_full() -> Lines:
    """Every row of decision.json and decision-literals.json."""
    yield [
        "model",
        "set",
        "who",
        "a second",
        "median",
        "p99",
        "passes",
        "tokens",
        "not llama_decode",
        "chose as `exact`",
    ]
    for file in ("decision", "decision-literals"):
        for model, of, rows in decided(file):
            for who, row in rows.items():
                times = [f"{speed(row):.1f}", *(f"{row[name]:.0f} ms" for name in ("median_ms", "p99_ms"))]
                cost = [f"{row['passes']:.1f}", f"{row['tokens']:.0f}", percent(row["outside_model"])]
                yield [model, SETS[of], CONTESTANTS[who], *times, *cost, percent(row["as_exact"])]


# Lists of opcodes


def tried() -> Iterator[tuple[str, int, str, dict[str, Row]]]:
    """Yield (texts, N, model, row by engine) of the files of bench_trie.py."""
    rows = result("trie-names")["rows"] + result("trie-letters")["rows"]
    for key in dict.fromkeys((row["texts"], row["n"], row["vocab"]) for row in rows):
        yield *key, {row["peer"]: row for row in rows if (row["texts"], row["n"], row["vocab"]) == key}


@table
def lists() -> Lines:
    """The first mask, ours and that of the fastest other engine; first where the other is ahead."""
    found = []
    for texts, n, model, rows in tried():
        others = [row for who, row in rows.items() if who != "ours" and "failure" not in row]
        pair = (rows["ours"], min(others, key=lambda row: float(row["first_mask_s"])))
        found.append((pair[0]["first_mask_s"] / pair[1]["first_mask_s"], texts, n, model, pair))
    yield ["texts", "N", "model", "ours", "fastest other", "which", "memory, ours", "the other's"]
    for _, texts, n, model, pair in sorted(found, key=lambda each: -each[0]):
        times = [row["first_mask_s"] for row in pair]
        cells = best([seconds(value) for value in times], [-value for value in times])
        memory = [f"{row['peak_mb']:.0f} MB" for row in pair]
        which = str(pair[1]["peer"])
        yield [texts, f"{n:,}", model, *cells, ENGINES.get(which, which), *memory]


@table
def lists_in_full() -> Lines:
    """Every row of trie-names.json and trie-letters.json."""
    yield ["texts", "N", "model", "engine", "first mask", "mask, median / p99", "step", "memory", "wrong masks"]
    for texts, n, model, rows in tried():
        for who, row in rows.items():
            cells = [row.get("failure", ""), "", "", "", ""]
            if "failure" not in row:
                pairs = [f"{row[part]['median_us']:.2f} / {row[part]['p99_us']:.1f} us" for part in ("mask", "step")]
                wrong = f"{row['masks_wrong']} of {row['masks_checked']}"
                cells = [seconds(row["first_mask_s"]), *pairs, f"{row['peak_mb']:.0f} MB", wrong]
            yield [texts, f"{n:,}", model, ENGINES.get(who, who), *cells]


@table
def calls() -> Lines:
    """How many public functions are held, and how many calls of them were valid."""
    found = result("bfcl")
    yield ["functions", "compile", "median", "p99", "calls", "valid", "closed when the budget was used up"]
    counts = [f"{found[name]:,}" for name in ("functions", "compiled")]
    times = [f"{found['compile_ms'][name]:.0f} ms" for name in ("median", "p99")]
    yield [*counts, *times, *(str(found["calls"][name]) for name in ("asked", "valid", "closed_by_the_budget"))]


@table
def function_calls() -> Lines:
    """What each contestant made of the cases of the Berkeley leaderboard; those where others are ahead come first."""
    yield [
        "model",
        "category",
        "cases",
        "who",
        "tool right",
        "all right",
        "nothing called",
        "valid",
        "passes",
        "CPU s",
    ]
    rows = [
        (model, row)
        for model in MODELS
        if (RESULTS / f"calls-{model}.json").exists()
        for row in result(f"calls-{model}")["rows"]
    ]
    ours = {(model, row["category"]): row["all"] for model, row in rows if row["contestant"] == "ours"}
    others = [((model, row["category"]), row["all"]) for model, row in rows if "ours" not in row["contestant"]]
    order = sorted(ours, key=lambda key: ours[key] - max((right for k, right in others if k == key), default=0))
    for key in order:
        for model, row in rows:
            if (model, row["category"]) == key:
                shares = (row[name] for name in ("tool", "all", "refused", "valid"))
                shown = ["" if share is None else f"{share:.0f} %" for share in shares]
                costs = [f"{row['passes']:.0f}", f"{row['seconds']:.1f}"]
                yield [model, row["category"], str(row["cases"]), row["contestant"], *shown, *costs]


@table
def function_behind() -> Lines:
    """The categories of calls in which another contestant is ahead of ours on the same cases, and in what."""
    yield ["model", "category", "who", "cases", "what", "theirs", "ours"]
    units = {"tool": "tool right", "all": "all right", "seconds": "CPU seconds"}
    for model in MODELS:
        rows = {(row["contestant"], row["category"]): row for row in result(f"calls-{model}")["rows"]}
        for (who, category), theirs in rows.items():
            ours = rows.get(("ours, same cases", category), rows["ours", category])
            for key, what in units.items() if "ours" not in who else ():
                if key == "tool" and "irrelevance" in category:
                    continue  # nothing called is all that can be right
                if (theirs[key] - ours[key]) * (-1 if key == "seconds" else 1) > 0:
                    cells = [f"{row[key]:.2f}" if key == "seconds" else f"{row[key]:.0f} %" for row in (theirs, ours)]
                    yield [model, category, who, str(theirs["cases"]), what, *cells]


@table
def function_meant() -> Lines:
    """How often each contestant calls nothing over all categories: where a function fits, and where none does."""
    yield ["model", "who", "a function fits: cases", "nothing called", "none fits: cases", "nothing called"]
    for model in MODELS:
        rows = result(f"calls-{model}")["rows"]
        for who in dict.fromkeys(row["contestant"] for row in rows):
            cells: list[str] = []
            for irrelevant, name in ((False, "refused"), (True, "tool")):
                some = [r for r in rows if r["contestant"] == who and ("irrelevance" in r["category"]) is irrelevant]
                count = sum(row["cases"] for row in some)
                cells += [str(count), f"{sum(r['cases'] * r[name] for r in some) / count:.1f} %"] if some else ["", ""]
            yield [model, who, *cells]


def filled(page: str) -> str:
    """Return a page with every table written anew."""

    def written(found: re.Match[str]) -> str:
        head, *lines = TABLES[found[2]]()
        return (
            found[1] + "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines)) + found[3]
        )

    return BLOCK.sub(written, page)


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
