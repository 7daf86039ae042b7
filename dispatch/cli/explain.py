"""`explain`: one decision of a log in the terminal: what was read, what was legal, what the rule did and what came."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from dispatch.cli import output
from dispatch.cli.common import MOST, AsJson
from dispatch.cli.frame import unmet
from dispatch.cli.output import failing, print_json, rows_of, shown
from dispatch.cli.replay import Specs
from dispatch.cli.streams import writing
from dispatch.inspector.decision import body
from dispatch.inspector.jsonable import Json
from dispatch.inspector.keeper import Keeper
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.reading import text_of
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.log.records import Header
from dispatch.session.board import Board
from dispatch.session.recorded import make_cartridge

LONGEST = 4000
"""Characters of a prompt that are shown; `--json` has all."""
WAIT_SECONDS = 60.0
WIDE = 400
"""A pipe has no width to wrap at."""

LogFile = typer.Argument(exists=True, dir_okay=False, show_default=False, metavar="LOG")
Number = Annotated[
    int, typer.Argument(metavar="N", help="Number of the decision.", min=1, max=MOST, show_default=False)
]
All = Annotated[bool, typer.Option("--prompts", help="Show every order of the prompt and every null prompt.")]


def explain_command(
    log: Annotated[Path, LogFile], n: Number, prompts: All = False, cartridge: Specs = None, as_json: AsJson = False
) -> None:
    """Explain one decision of a session log: what the model read, what was legal, what the rule did, what came of it.

    Engines are run up to the decision, as `replay` does, to show the board. No model is loaded.

    Example: explain game.jsonl 12
    """
    with failing():
        vocabularies = Vocabularies()
        make = partial(make_cartridge, specs=cartridge or ())
        opened = OpenedLog(log.name, log, make, vocabularies, until=n)
        try:
            vocabularies.of(opened.kept.index.header, WAIT_SECONDS)
            found, read = opened.decision(n), opened.prompt(n)
            if as_json:
                print_json({**found, "prompt": read})
                return
            console = output.console()
            console = console if console.is_terminal else output.console(width=WIDE)
            with writing():
                for part in _told(opened, found, read, every=prompts):
                    console.print(part)
        finally:
            opened.close()


def _told(opened: OpenedLog, found: Json, read: Json, *, every: bool) -> Iterator[RenderableType]:
    """Yield what is printed, part by part."""
    header = opened.kept.index.header
    yield Text(f"decision {found['n']} of {shown(opened.name)}: ").append(shown(found["said"]), "bold")
    yield Text(shown(_who(header, found)), "dim")
    if found["damage"]:
        yield Text(shown(found["damage"]), "red")
    if found["request"] is not None:
        yield Text(f"request: {shown(found['request'])}")
    if (board := _board(opened.keeper, found)) is not None:
        yield board
    yield from _prompts(read, every)
    yield from _options(found)
    yield from _tokens(found)
    yield from _came(found)


def _who(header: Header, found: Json) -> str:
    model = header.model.name if header.model is not None else header.player
    rule = f", rule {found['rule']}" if found["rule"] else ""
    return f"chosen by {model}{rule}, cartridge {found['cartridge']}, seed {header.seed}"


def _board(keeper: Keeper, found: Json) -> RenderableType | None:
    """Return the board after the decision, drawn for this terminal."""
    engines = keeper.kept.check.engines(found["n"])
    if engines is None or found["board"] is None:
        return None
    name = found["cartridge"]
    return Board(engines.cartridges[name].view, engines.engines[name])


def _prompts(read: Json, every: bool) -> Iterator[RenderableType]:
    """Yield the prompt, and with `every` its other orders and the null prompts."""
    if read["from"] is None:
        yield _head(f"prompt: {shown(read['why'] or 'not known')}")
        return
    by = "" if read["from"] == "ids" else f", written again by the view: {read['why']}"
    orders, nulls = read["orders"], read["nulls"]
    yield _head(f"prompt{_size(orders[0])}{shown(by)}")
    yield _prompt(orders[0])
    if not every:
        more = [f"{len(each)} {word}" for word, each in (("other orders", orders[1:]), ("null prompts", nulls)) if each]
        if more:
            yield Text(f"and {' and '.join(more)}: --prompts shows them", "dim")
        return
    for word, each in (("order", orders[1:]), ("null prompt", nulls)):
        for place, one in enumerate(each, 1):
            yield _head(f"{word} {place}{_size(one)}")
            yield _prompt(one)


def _size(read: Json) -> str:
    return "" if read["tokens"] is None else f", {read['tokens']} tokens, {read['kept']} kept from before"


def _prompt(read: Json) -> Text:
    """Return a prompt line by line; what was kept is dim."""
    text, left = Text(), LONGEST
    for part in read["parts"]:
        cut = part["text"][:left]
        left -= len(cut)
        text.append(
            "\n".join(map(shown, cut.split("\n"))), "dim" if part["kept"] else "bold" if part["control"] else ""
        )
    if left <= 0 and len(text_of(read)) > LONGEST:
        text.append(f" … ({len(text_of(read)) - LONGEST} more characters)", "dim")
    return text


def _options(found: Json) -> Iterator[RenderableType]:
    options = found["options"]
    if not options:
        return
    yield _head(_rule_in_words(found))
    columns = [("raw", "raw"), ("null", "null"), ("score", "score"), ("learned", "learned")]
    columns = [(head, name) for head, name in columns if any(option[name] is not None for option in options)]
    ranked = sorted(options, key=lambda option: (-_float(option["probability"]), -_float(option["score"])))
    rows = []
    for option in ranked:
        label = Text(shown(option["body"]), "bold reverse" if option["chosen"] else "")
        share = Text(_percent(option["probability"]), justify="right")
        rows.append([label, share, *(Text(_number(option[name]), justify="right") for _, name in columns)])
    yield rows_of(["option", "share", *(head for head, _ in columns)], rows, (found["legal_count"] or 0) - len(rows))


def _rule_in_words(found: Json) -> str:
    """Say what the rule compared, and by how much the winner is ahead."""
    legal, counts = found["legal_count"], found["counts"]
    among = f"options: {legal} legal" if legal is not None else "options"
    orders = counts["rotations"] + 1
    how = {
        "exact": "each compared whole, by the sum of its log-probabilities (raw)",
        "calibrated": f"score is raw minus null; raw is the mean over {orders} order{'s' * (orders > 1)} of the prompt",
        "greedy": "token by token, the most probable legal one each time; nothing is compared whole",
        "sample": "drawn from the shares",
    }.get(found["rule"] or "", "")
    ahead = "" if found["margin"] in (None, "inf") else f"; ahead by {_number(found['margin'])}"
    return f"{among}{'; ' if how else ''}{how}{ahead}"


def _tokens(found: Json) -> Iterator[RenderableType]:
    """Yield the decoded tokens, then the ledger of each choosing step."""
    if found["tokens"]:
        line = Text()
        for token in found["tokens"]:
            line.append(_piece(token), "dim" if token["forced"] else "bold").append(" ")
        yield _head("tokens; forced ones are dim")
        yield line
    for step in found["ledger"]:
        rank = f", the chosen one is number {step['chosen_rank']} of all" if step["chosen_rank"] else ""
        forced = f", {step['forced_after']} forced behind it" if step["forced_after"] else ""
        yield _head(f"token {step['at']}: {step['legal']} legal of mass {_number(step['mass'], 4)}{rank}{forced}")
        rows = []
        for row in step["rows"]:
            style = {"chosen": "bold green", "legal": "green", "removed": "red"}[row["state"]]
            numbers = (_number(row["logprob"]), _percent(row["before"]), _percent(row["after"]))
            piece = Text(_piece(row), "strike dim" if row["state"] == "removed" else "")
            cells = (Text(number, justify="right") for number in numbers)
            rows.append([Text(str(row["rank"] or "")), piece, Text(str(row["id"])), *cells, Text(row["state"], style)])
        yield rows_of(["rank", "token", "id", "log-p", "before", "after", ""], rows)


def _came(found: Json) -> Iterator[RenderableType]:
    """Yield what came of it, and what it cost."""
    said = found["failed"] or found["result"]
    word = "failed: " if found["failed"] else "refused: " if found["refused"] else "result: "
    yield _head(word + shown(said))
    if found["outcome"]:
        between = f", between {' and '.join(map(body, found['close']))}" if found["close"] else ""
        yield Text(shown(f"outcome: {found['outcome']}{between}"), "yellow")
    if found["confirmed"]:
        yield Text(shown(f"confirmation: {found['confirmed']}"))
    by = found["preferred_by"]
    if rather := unmet(found["preferred"], by if isinstance(by, int | float) else None):
        yield Text(shown(rather), "yellow")
    counts, ms = found["counts"], found["ms"]
    numbers = [
        (word, value)
        for word, value in (
            ("passes", counts["passes"]),
            ("tokens evaluated", counts["evaluated"]),
            ("prompt tokens kept", counts["kept"]),
            ("chosen", counts["chosen"]),
            ("forced", counts["forced"]),
            ("ms in the model", ms["model"]),
        )
        if value is not None
    ]
    if numbers:
        yield Text("  ".join(f"{word} {value}" for word, value in numbers), "dim")


def _head(text: str) -> Text:
    return Text(f"\n{text}", "cyan")


def _piece(token: Json) -> str:
    if token["hex"] is not None:
        return f"<{token['hex']}>"
    return shown(token["text"]).replace(" ", "␣") or "<empty>" if token["text"] is not None else f"[{token['id']}]"


def _float(value: Any) -> float:
    """Return a number for sorting; what is none comes last."""
    return float(value) if isinstance(value, int | float) else float("-inf")


def _number(value: Any, digits: int = 2) -> str:
    if value is None or value == "nan":
        return ""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else str(value)


def _percent(value: Any) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else ""
