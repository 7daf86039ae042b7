"""What `eval` prints: tables of what was right, what was held back, and what was not right."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dispatch.cli.output import number, print_rows
from dispatch.session.evaluate import Result
from dispatch.session.evaluate_calls import CallResult
from dispatch.session.metrics import Share


def show(results: list[Result]) -> None:
    """Print the table of what was right."""
    heads = ["model", "set", "rule", "cases", "correct", "95 %", "chance", "picks by position", "passes", "tokens"]
    print_rows(
        heads,
        [
            (
                r.model,
                r.set,
                r.rule,
                str(r.cases),
                f"{100 * r.accuracy:.0f} %",
                f"{100 * r.low:.0f}-{100 * r.high:.0f}",
                f"{100 * r.chance:.0f} %",
                " ".join(map(str, r.positions[:8])) + (" …" if len(r.positions) > 8 else ""),
                f"{r.passes:.2f}",
                f"{r.tokens:.0f}",
            )
            for r in results
        ],
    )


def show_held(results: list[Result]) -> None:
    """Print what the judge made of the cases, and the risk at some coverages."""
    heads = [
        "model",
        "set",
        "rule",
        "acted on",
        "right of these",
        "right, held",
        "nothing, held",
        "area",
        "AURC",
        "ECE",
    ]
    rows: list[Sequence[str | Text]] = []
    for r in results:
        if (h := r.held) is not None:
            shares = map(_share, (h.coverage, h.accuracy, h.held_right, h.nothing_done))
            areas = (number(value, "{:.3f}") for value in (h.separation, h.aurc, h.calibration_error))
            rows.append((r.model, r.set, r.rule, *shares, *areas))
            rows += [("", "", kind, "", "", "", _share(s), "", "", "") for kind, s in h.nothing_done_by_kind.items()]
    print_rows(heads, rows)
    print_rows(
        ["model", "set", "rule", *(f"risk at {10 * tenth} %" for tenth in range(1, 11))],
        [(r.model, r.set, r.rule, *_risks(r.held.curve)) for r in results if r.held is not None],
    )


def _share(share: Share) -> str:
    if share.share is None:
        return ""
    return f"{100 * share.share:.0f} % ({100 * share.low:.0f}-{100 * share.high:.0f}) of {share.of}"


def _risks(curve: Sequence[tuple[float, float]]) -> list[str]:
    """Return the risk at a tenth, two tenths ... of the coverage."""
    return [f"{100 * curve[max(0, -(-len(curve) * tenth // 10) - 1)][1]:.0f} %" for tenth in range(1, 11)]


def show_confused(results: list[Result]) -> None:
    """Print what was said in place of what was right."""
    rows = [
        (r.model, r.set, r.rule, each.right, each.said, str(each.times))
        for r in results
        if r.held is not None
        for each in r.held.confusion
        if each.right != each.said
    ]
    if rows:
        print_rows(["model", "set", "rule", "right", "said", "times"], rows)


def show_failed(results: list[Result]) -> None:
    """Print the cases that were not right."""
    rows = [
        (
            r.model,
            r.set,
            r.rule,
            case.request or case.id,
            case.answer.strip(),
            case.choice.strip(),
            case.outcome.value,
            number(case.margin),
        )
        for r in results
        for case in r.failed
    ]
    if rows:
        print_rows(["model", "set", "rule", "failed case", "right", "likeliest", "outcome", "margin"], rows)


def show_calls(results: list[CallResult]) -> None:
    """Print what was right of calls, and which were not."""
    if not results:
        return
    print_rows(
        ["model", "set", "tool right", "arguments right", "all right", "passes", "tokens"],
        [
            (r.model, r.set, _share(r.tool), _share(r.arguments), _share(r.all), f"{r.passes:.0f}", f"{r.tokens:.0f}")
            for r in results
        ],
    )
    rows = [
        (r.model, r.set, each.request, each.right, each.said, each.outcome.value) for r in results for each in r.failed
    ]
    if rows:
        print_rows(["model", "set", "failed request", "right", "said", "outcome"], rows)
