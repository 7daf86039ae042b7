"""Prompt token ids as the log holds them: each list as its difference from another one, and put together again.

A prompt is told as the difference from the prompt of the decision before, a null prompt or a rotation as the difference
from the prompt of its own decision, so a line holds only the ids that are new. Of a prompt with lines without an order
these are its ids one behind the other, and the lengths of the lead and of the lines stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.log.objects import Delta
from dispatch.log.records import DecisionRecord
from kernel.errors import LogError
from kernel.memory.listed import Ids, Listed, Prompted, common_prefix

Told = Listed | Sequence[int]


def flat(prompt: Told) -> Sequence[int]:
    """Return the ids of a prompt, one behind the other."""
    return prompt.flat if isinstance(prompt, Listed) else prompt


def delta(prompt: Told, base: Told) -> Delta:
    """Return a prompt as difference from `base`.

    >>> delta([1, 2, 9], [1, 2, 3, 4])
    Delta(of=None, keep=2, new=(9,), lines=None)
    """
    ids = flat(prompt)
    keep = common_prefix(ids, flat(base))
    lines = prompt.lengths if isinstance(prompt, Listed) else None
    return Delta(keep=keep, new=tuple(map(int, ids[keep:])), lines=lines)


def nearest(ids: Told, prompt: Told, rotations: Sequence[Told]) -> Delta:
    """Return the difference from the prompt, or from the first rotation that has more in common with the ids."""
    behind = [delta(ids, other).model_copy(update={"of": at}) for at, other in enumerate(rotations, 1)]
    return max([delta(ids, prompt), *behind], key=lambda each: each.keep)


class Prompts:
    """Puts the prompt ids of consecutive decisions together again."""

    def __init__(self) -> None:
        self._ids: Ids = ()
        self._nulls: tuple[int, list[Prompted]] = (0, [])

    def begin(self, ids: Sequence[int]) -> None:
        """Take these as the prompt of the decision before the next one, so that it need not be the first."""
        self._ids = tuple(ids)

    def take(self, record: DecisionRecord) -> tuple[Prompted, list[Prompted], list[Prompted]]:
        """Return all prompt ids of the next decision, of its null prompts and of its rotations; empty when not logged.

        Raises LogError when a difference keeps more than there is, or is one from a list that is not there.
        """
        if record.prompt is None:
            return (), [], []
        self._ids = _undelta(record.n, record.prompt, self._ids)
        main = _told(record.n, record.prompt, self._ids)
        turned = [_undelta(record.n, each, self._ids) for each in record.rotations or ()]
        rotations = [_told(record.n, each, ids) for each, ids in zip(record.rotations or (), turned, strict=True)]
        if record.nulls is not None:
            bases = [self._ids, *turned]
            if worst := next((null.of for null in record.nulls if (null.of or 0) >= len(bases)), None):
                raise LogError(f"decision {record.n}: a null prompt of rotation {worst}; there are {len(rotations)}")
            nulls = [(null, _undelta(record.n, null, bases[null.of or 0])) for null in record.nulls]
            self._nulls = (record.n, [_told(record.n, null, ids) for null, ids in nulls])
        elif record.nulls_of is None:
            return main, [], rotations
        elif record.nulls_of != self._nulls[0]:
            raise LogError(f"decision {record.n}: null prompts of decision {record.nulls_of}, which has none")
        return main, self._nulls[1], rotations


def _undelta(n: int, delta: Delta, base: Ids) -> Ids:
    if delta.keep > len(base):
        raise LogError(f"decision {n}: keeps {delta.keep} ids of {len(base)}")
    return (*base[: delta.keep], *delta.new)


def _told(n: int, delta: Delta, ids: Ids) -> Prompted:
    """Return ids as the prompt that a difference tells of."""
    if delta.lines is None:
        return ids
    if not all(delta.lines) or not 0 < sum(delta.lines) < len(ids):
        raise LogError(f"decision {n}: lines of {delta.lines} ids and a question in {len(ids)} ids")
    return Listed.cut(ids, delta.lines)
