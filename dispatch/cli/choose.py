"""`choose`: the model chooses one of several texts; there is no cartridge."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from dispatch.cli.common import MOST_SEED, N_CTX, AsJson, ContextSize, Model, RuleOption, Threads
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, number, print_json, print_rows, say, shown, working
from dispatch.cli.streams import stdin_text
from dispatch.session.rules import make_rule
from dispatch.wire.decided import document, order
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.rule import RuleName
from kernel.errors import UsageError
from kernel.textfile import read_lines

SHOWN = 30
"""So many options stand in the table, the most probable first; `--json` has all."""

PromptText = Annotated[
    str, typer.Option("--prompt", "-p", help="What the model reads; the option follows it. - is stdin.")
]
Options = Annotated[list[str] | None, typer.Option("--option", "-o", help="A text to choose; give it several times.")]
OptionFile = Annotated[
    Path | None, typer.Option("--options", help="A file of options, one a line.", show_default="none")
]
Nulls = Annotated[
    list[str] | None,
    typer.Option("--null", help="The same prompt asking for nothing; several are averaged.", show_default="none"),
]
Always = Annotated[bool, typer.Option("--always", help="Choose the likeliest, also where none seems to be meant.")]
ListedOption = Annotated[bool, typer.Option("--listed", help="Show the options before the prompt, in no order.")]
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of --rule sample.")]


def choose_command(
    prompt: PromptText,
    option: Options = None,
    options: OptionFile = None,
    null: Nulls = None,
    listed: ListedOption = False,
    model: Model = "smollm2",
    rule: RuleOption = None,
    seed: Seed = 0,
    always: Always = False,
    as_json: AsJson = False,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Choose one of some texts: the one that the model prefers, compared whole.

    With --null the rule is calibrated: what the model would say anyway counts for nothing. Then it may also choose
    nothing: none of the texts seems to be meant, or two are too close. It exits with 1 in that case.

    Example: choose --prompt "The opposite of open is" --option shut --option opener
    """
    with failing():
        texts = [*(option or ()), *filter(None, read_lines(options) if options is not None else ())]
        if not texts:
            raise UsageError("nothing to choose from; give --option TEXT twice or more, or --options FILE")
        made = make_rule(rule or (RuleName.CALIBRATED if null else RuleName.EXACT), seed=seed)
        if made.name is RuleName.CALIBRATED and not null:
            raise UsageError("the rule 'calibrated' needs a --null prompt; give one or use --rule exact")
        asked = stdin_text() if prompt == "-" else prompt
        with load_kernel(model, n_ctx=n_ctx, threads=threads) as kernel:
            started = time.perf_counter()
            with working(f"choosing among {len(texts)}"):
                judge = Thresholds() if null and not always else None
                decision = kernel.choose(asked, texts, null=null or (), rule=made, listed=listed, judge=judge)
            seconds = time.perf_counter() - started
    if as_json:
        print_json(_document(decision, seconds), indent=None)
    else:
        _tell(decision, seconds)
    if decision.outcome is not Outcome.CHOSEN:
        raise typer.Exit(1)


def _document(decision: Decision, seconds: float) -> dict[str, Any]:
    found = document(decision)
    options = found.pop("options")
    ended = {"outcome": decision.outcome.value, "close": list(decision.close)}
    return {**found, **ended, "seconds": round(seconds, 3), "options": options}


def _tell(decision: Decision, seconds: float) -> None:
    columns = [(decision.shares, "{:.1%}"), (decision.raw, "{:.2f}")]
    if decision.null is not None:
        columns.append((decision.null, "{:.2f}"))
    places = order(decision)
    rows = [
        [
            Text(shown(decision.texts[i]), "bold" if i == decision.position else ""),
            *(number(values[i], form) for values, form in columns),
        ]
        for i in places[:SHOWN]
    ]
    print_rows(["option", "probability", "log-p", "null"][: len(columns) + 1], rows, len(places) - SHOWN)
    ended = {Outcome.NONE: "none, likeliest", Outcome.UNSURE: f"unsure, {' or '.join(decision.close)}; likeliest"}
    say(
        f"{ended.get(decision.outcome, 'chosen')}: {shown(decision.text)}  "
        f"(rule {decision.rule}, margin {number(decision.margin)}, "
        f"passes {decision.passes}, tokens evaluated {decision.tokens_evaluated}, "
        f"legal mass {decision.legal_mass:.3g}, {seconds:.2f} s)"
    )
