"""Draws one decision: the board, the options with their probabilities, the tokens and the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from dispatch.cli.output import number, rows_of, shown
from dispatch.log.objects import LedgerStep, TokenRow
from dispatch.log.records import DecisionRecord, Unchosen
from dispatch.log.replay import Step
from dispatch.session.board import Board
from dispatch.session.told import body, either
from kernel.choose.decision import TOLERANCE, Stop

BESIDE = 76
"""From this width on, the decision stands beside the board."""
ROWS = 10
"""So many options are shown, the strongest first."""


def piece(row: TokenRow) -> str:
    """Return a token's bytes for reading, spaces visible.

    >>> piece(TokenRow.of(1, b" left", -1.0, legal=True)), piece(TokenRow.of(2, b"\\xf0\\x9f", -1.0, legal=True))
    ('␣left', '<f0 9f>')
    """
    if row.hex is not None:
        return f"<{row.piece.hex(' ')}>"
    return shown(row.text or "").replace(" ", "␣") or "<empty>"


def colour(probability: float) -> str:
    """Return the style of a probability: the less likely, the redder."""
    styles = (0.5, "green"), (0.1, "yellow"), (0.01, "dark_orange3"), (0.0, "red")
    return next((style for least, style in styles if probability >= least), "red")


class Frame:
    """A step as rich draws it: beside the board where there is room, below it where there is not."""

    def __init__(self, step: Step, *, ledger: bool = False, foot: str = "") -> None:
        self.board = Board(step.cartridge.view, step.engine)
        self.decision = decision(step.record, ledger=ledger)
        self.foot = foot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= BESIDE:
            grid = Table.grid(padding=(0, 3))
            grid.add_row(self.board, self.decision)
            yield grid
        else:
            yield self.board
            yield self.decision
        if self.foot:
            yield Text(self.foot, style="dim")


def decision(record: DecisionRecord, *, ledger: bool = False) -> Group:
    """Return what was chosen, among what, and what came of it."""
    parts: list[RenderableType] = []
    if record.request is not None:
        parts.append(Text(f"request: {shown(record.request)}"))
    chosen = record.instruction.instruction()
    head = Text(f"{record.n}. ", style="dim").append(shown(repr(chosen)), style="bold")
    if record.stop == Stop.CLOSED:
        head.append("  closed: its tokens were used up", style="red")
    if record.held:
        head.append("  not done", style="red")
    if record.refused:
        head.append("  refused" if record.failed is None else "  failed", style="red")
    parts += [head, Text(shown(record.failed or record.result), style="dim")]
    parts += [Text(shown(told), style="yellow") for told in ending(record)]
    if (rather := unmet(record.preferred, record.preferred_by)) and record.outcome is None:
        parts.append(Text(shown(rather), style="yellow"))
    if record.legal:
        parts.append(_options(record))
    if record.offered:
        parts.append(_offers(record))
    if numbers := _numbers(record):
        parts.append(Text(numbers, style="dim"))
    if ledger and record.ledger:
        parts.append(_tokens(record, record.ledger))
        for step in record.ledger:
            parts += [Text(f"token {step.at}: {step.legal} legal, mass {step.mass:.4f}"), _ledger(step)]
    return Group(*parts)


def ending(record: DecisionRecord) -> list[str]:
    """Return how a decision ended where that is more than a choice: why nothing was chosen, who settled or agreed."""
    found = []
    if record.outcome is not None:
        found.append(f"outcome: {record.outcome.value}")
    if record.outcome is Unchosen.NOT_LEGAL and record.preferred is not None:
        found.append(f"not legal now: {body(record.preferred)}")
    if record.close is not None:
        said = {None: "nobody was asked", True: "a person took one", False: "a person took neither"}[record.settled]
        found.append(f"close: {either(record.close)}; {said}")
    if record.confirmed is not None:
        found.append(f"to be agreed to: {record.confirmed.value}")
    return found


def unmet(preferred: str | None, by: float | None) -> str:
    """Return what the model would rather have said, if it was not legal and that is no noise; else nothing.

    >>> unmet(" take gem\\n@scavenger\\n", 3.1), unmet(" take gem\\n@scavenger\\n", 0.2), unmet(None, None)
    ('not legal now: take gem', '', '')
    """
    if preferred is None or (by or 0.0) < TOLERANCE:
        return ""
    return f"not legal now: {body(preferred)}"


def _offers(record: DecisionRecord) -> Table:
    """Return what the planner offered, best first; what was taken is marked."""
    rows = []
    for offer in record.offered or ():
        style = "bold" if offer.instruction == record.instruction else ""
        name = shown(repr(offer.instruction.instruction())).removeprefix(f"{record.cartridge}.")
        rows.append((Text(name, style), number(offer.score), offer.note))
    return rows_of(["planner", "score", ""], rows, style="dim")


def _options(record: DecisionRecord) -> Table:
    """Return the strongest options, and always the one taken."""
    found = sorted(record.legal or (), key=lambda row: (row.probability is None, -(row.probability or 0.0)))
    taken, top = record.taken, found[:ROWS]
    if taken is not None and not any(row is taken for row in top):
        top[-1] = taken
    heads = ["option", "share", "log-p", "null"][: 4 if any(row.null is not None for row in top) else 3]
    rows = []
    for row in top:
        label = Text(shown(body(row.text)), "bold reverse" if row is taken else "")
        rows.append([label, _share(row.probability), number(row.logprob), number(row.null)][: len(heads)])
    return rows_of(heads, rows, max(record.legal_count or 0, len(found)) - len(top))


def _share(value: float | None) -> Text:
    if value is None:
        return Text("")
    bar = "█" * round(10 * value) if value == value else ""
    return Text(f"{100 * value:5.1f} % ").append(bar, colour(value))


def _numbers(record: DecisionRecord) -> str:
    """Return the counts that are there, in one line."""
    found: list[tuple[str, float | int | str | None, str]] = [
        ("rule", record.rule, "{}"),
        ("margin", record.margin, "{:.2f}"),
        ("legal mass", record.legal_mass, "{:.3f}"),
        ("passes", record.passes, "{}"),
        ("tokens evaluated", record.tokens_evaluated, "{}"),
        ("chosen", record.chosen_tokens, "{}"),
        ("forced", record.forced_tokens, "{}"),
        ("model ms", record.model_ms, "{:.1f}"),
    ]
    return "  ".join(f"{name} {form.format(value)}" for name, value, form in found if value is not None)


def _tokens(record: DecisionRecord, ledger: Iterable[LedgerStep]) -> Text:
    """Return the decoded tokens, each choice coloured by how likely the model found it, what was forced dim."""
    line = Text("tokens: ")
    steps = {step.at: step for step in ledger}
    for at, token in enumerate(record.ids):
        step = steps.get(at)
        row = next((row for row in step.rows if row.id == token), None) if step else None
        if row is None:
            line.append(f"[{token}]", "dim")
        else:
            line.append(piece(row), f"bold {colour(2.718281828459045**row.logprob)}")
        line.append(" ")
    return line


def _ledger(step: LedgerStep) -> Table:
    """Return one choosing step: the token taken, its rivals, and the strongest that the mask removed."""
    rows = []
    for row in sorted(step.rows, key=lambda row: -row.logprob):
        kept = Text("legal", "green") if row.legal else Text("removed", "red")
        token = Text(piece(row), "" if row.legal else "strike dim")
        rows.append((str(row.rank or ""), token, str(row.id), number(row.logprob), kept))
    return rows_of(["rank", "token", "id", "log-p", ""], rows)
