"""What a decision's model read, as text: the prompt and its other orders, the null prompts, what was kept of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dispatch.inspector.boards import Engines
from dispatch.inspector.index import LogIndex
from dispatch.inspector.jsonable import Json, clip
from dispatch.inspector.prompts import prompts_of
from dispatch.log.records import DecisionRecord
from dispatch.session.situation import situation
from kernel.errors import KernelError, LogError
from kernel.memory.listed import Listed, Prompted, common_prefix, flat_of
from kernel.prompt import Piece
from kernel.text.attributes import CONTROL

if TYPE_CHECKING:
    from kernel.text.vocabulary import Vocabulary


def reading(index: LogIndex, n: int, vocabulary: Vocabulary | None, before: Engines | str) -> Json:
    """Return what decision `n` read; docs/inspector.md has the form.

    Args:
        vocabulary: of the model that chose, where it is here.
        before: the engines in the state in which it was made, or why they are not there.
    """
    record = index.record(n)
    told: Json = {"n": n, "from": None, "why": None, "control": False, "orders": [], "nulls": [], "sets": []}
    try:
        found = prompts_of(index, n)
    except LogError as error:
        return {**told, "why": str(error)}
    if found is not None and vocabulary is not None:
        last = prompts_of(index, n - 1) if n > 1 else None
        told["from"] = "ids"
        orders = [flat_of(each) for each in (found.main, *found.rotations)]
        kept = [flat_of(each) for each in (last.main, *last.rotations)] if last is not None else []
        told["orders"] = [
            _read(ids, common_prefix(ids, kept[at]) if at < len(kept) else 0, vocabulary)
            for at, ids in enumerate(orders)
        ]
        told["nulls"] = [
            _read(ids, max(common_prefix(ids, each) for each in orders), vocabulary)
            for ids in map(flat_of, found.nulls)
        ]
        told["sets"] = list(_sets([found.main, *found.rotations], vocabulary))
        told["control"] = any(part["control"] for order in told["orders"] for part in order["parts"])
        return told
    why = "the log has no prompt" if found is None else "the vocabulary of its model is not here"
    if record.redacted:
        return {**told, "why": "the prompt was redacted"}
    if record.legal is None:
        return {**told, "why": "no model chose"}
    return _by_view(told, record, why, before)


def _sets(orders: Sequence[Prompted], vocabulary: Vocabulary) -> Iterator[Json]:
    """Yield the lines without an order of each prompt that has some: each is read alone behind the lead."""
    for place, prompt in enumerate(orders):
        if isinstance(prompt, Listed) and prompt.lines:
            yield {
                "order": place,
                "lead": _text(prompt.lead, vocabulary),
                "lines": [_text(line, vocabulary) for line in prompt.lines],
                "question": _text(prompt.question, vocabulary),
            }


def _text(ids: Sequence[int], vocabulary: Vocabulary) -> str:
    return "".join(part["text"] for part in parts_of(ids, 0, vocabulary))


def _by_view(told: Json, record: DecisionRecord, why: str, before: Engines | str) -> Json:
    """Let the view write the prompt again."""
    if isinstance(before, str):
        return {**told, "why": f"{why}, and the view cannot write it again: {before}"}
    try:
        seen, _ = situation(before.cartridges, before.engines, record.n, record.request or "")
    except KernelError as error:
        return {**told, "why": f"{why}, and the view cannot write it again: {error}"}
    prompt = seen.prompt
    return {
        **told,
        "from": "view",
        "why": why,
        "orders": [_written(parts) for parts in (prompt.parts, *prompt.rotations)],
        "nulls": [_written(parts) for parts in prompt.nulls],
    }


def _written(parts: Sequence[Piece]) -> Json:
    text = clip("".join(part.text for part in parts))
    return {"tokens": None, "kept": None, "parts": [{"text": text, "kept": False, "control": False}]}


def _read(ids: Sequence[int], kept: int, vocabulary: Vocabulary) -> Json:
    return {"tokens": len(ids), "kept": kept, "parts": list(parts_of(ids, kept, vocabulary))}


def parts_of(ids: Sequence[int], kept: int, vocabulary: Vocabulary) -> Iterator[Json]:
    """Yield the text of ids in runs: what was kept, what was not; control tokens each alone.

    A character that two runs share goes to the first.
    """
    runs: list[tuple[bytearray, bool, bool]] = []
    for at, token in enumerate(ids):
        known = token < len(vocabulary)
        control = known and bool(vocabulary.attributes[token] & CONTROL)
        data = vocabulary.pieces[token] if known else f"<{token}>".encode()
        if runs and not control and runs[-1][1:] == (at < kept, False):
            runs[-1][0].extend(data)
        else:
            while runs and not runs[-1][2] and data and data[0] & 0xC0 == 0x80:
                runs[-1][0].append(data[0])
                data = data[1:]
            runs.append((bytearray(data), at < kept, control))
    for run, was_kept, control in runs:
        if run:
            yield {"text": clip(run.decode("utf-8", "backslashreplace")), "kept": was_kept, "control": control}


def text_of(read: Mapping[str, object]) -> str:
    """Return the text of one prompt as `reading` tells it."""
    parts = read["parts"]
    assert isinstance(parts, list)
    return "".join(part["text"] for part in parts)
