"""The prompt ids of one decision, put together from the few lines that they are told in.

A log tells a prompt as the difference from the prompt before: so many leading ids are kept, others follow. To have the
prompt of decision n, only those decisions before it are read whose new ids are still part of it: going back, each one
that keeps less than all between it and n did.
"""

from __future__ import annotations

from typing import NamedTuple

from dispatch.inspector.index import LogIndex
from dispatch.log.prompts import Prompts
from dispatch.log.records import DecisionRecord
from kernel.errors import LogError
from kernel.memory.listed import Prompted

MOST_READ = 4096
"""So many lines are read for one prompt; a log in which more are needed was made for that."""


class PromptsOf(NamedTuple):
    """What a decision read: the prompt, its null prompts, its other orders."""

    main: Prompted
    nulls: list[Prompted]
    rotations: list[Prompted]


def prompts_of(index: LogIndex, n: int) -> PromptsOf | None:
    """Return what decision `n` read; None where the log does not tell it.

    Raises LogError where the differences contradict each other.
    """
    record = index.record(n)
    if record.prompt is None:
        return None
    found = _of(index, record)
    if record.nulls is None and record.nulls_of is not None and record.nulls_of < n:
        given = index.record(record.nulls_of)
        if given.prompt is not None:
            return found._replace(nulls=_of(index, given).nulls)
    return found


def _of(index: LogIndex, record: DecisionRecord) -> PromptsOf:
    """Put together what one decision tells, null prompts that stand in another one left out."""
    assert record.prompt is not None
    before = _leading(index, record.n, record.prompt.keep)
    alone = record.model_copy(update={"nulls_of": None})
    prompts = Prompts()
    prompts.begin(before)
    return PromptsOf(*prompts.take(alone))


def _leading(index: LogIndex, n: int, count: int) -> list[int]:
    """Return the first `count` ids of the prompt before decision `n`."""
    keep = index.columns["keep"][: n - 1]
    parts: list[tuple[int, ...]] = []
    at, wanted = len(keep), count
    for _ in range(MOST_READ):
        if not wanted:
            break
        at = next((i for i in range(at - 1, -1, -1) if keep[i] < wanted), -1)  # without a prompt it keeps most
        if at < 0:
            raise LogError(f"decision {n}: keeps {count} ids, and fewer stand before it")
        delta = index.record(at + 1).prompt
        if delta is None or delta.keep >= wanted or delta.keep + len(delta.new) < wanted:
            raise LogError(f"decision {n}: keeps {count} ids, and decision {at + 1} has others")
        parts.append(delta.new[: wanted - delta.keep])
        wanted = delta.keep
    else:
        raise LogError(f"decision {n}: its prompt is told in more than {MOST_READ} lines")
    return [i for part in reversed(parts) for i in part]
