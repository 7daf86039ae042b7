"""Prompt token ids as the log holds them: each list as its difference from another one, and put together again.

A prompt is told as the difference from the prompt of the decision before, a null prompt or a rotation as the difference
from the prompt of its own decision, so a line holds only the ids that are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from dispatch.log.objects import Delta
from dispatch.log.records import DecisionRecord
from kernel.errors import LogError
from kernel.memory.passes import common_prefix


def delta(ids: Sequence[int], base: Sequence[int]) -> Delta:
    """Return `ids` as difference from `base`.

    >>> delta([1, 2, 9], [1, 2, 3, 4])
    Delta(of=None, keep=2, new=(9,))
    """
    keep = common_prefix(ids, base)
    return Delta(keep=keep, new=tuple(map(int, ids[keep:])))


def nearest(ids: Sequence[int], prompt: Sequence[int], rotations: Sequence[Sequence[int]]) -> Delta:
    """Return the difference from the prompt, or from the first rotation that has more in common with the ids."""
    behind = [delta(ids, other).model_copy(update={"of": at}) for at, other in enumerate(rotations, 1)]
    return max([delta(ids, prompt), *behind], key=lambda each: each.keep)


class Prompts:
    """Puts the prompt ids of consecutive decisions together again."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._nulls: tuple[int, list[list[int]]] = (0, [])

    def begin(self, ids: Sequence[int]) -> None:
        """Take these as the prompt of the decision before the next one, so that it need not be the first."""
        self._ids = list(ids)

    def take(self, record: DecisionRecord) -> tuple[list[int], list[list[int]], list[list[int]]]:
        """Return all prompt ids of the next decision, of its null prompts and of its rotations; empty when not logged.

        Raises LogError when a difference keeps more than there is, or is one from a list that is not there.
        """
        if record.prompt is None:
            return [], [], []
        self._ids = _undelta(record.n, record.prompt, self._ids)
        rotations = [_undelta(record.n, ids, self._ids) for ids in record.rotations or ()]
        if record.nulls is not None:
            bases = [self._ids, *rotations]
            if worst := next((null.of for null in record.nulls if (null.of or 0) >= len(bases)), None):
                raise LogError(f"decision {record.n}: a null prompt of rotation {worst}; there are {len(rotations)}")
            self._nulls = (record.n, [_undelta(record.n, null, bases[null.of or 0]) for null in record.nulls])
        elif record.nulls_of is None:
            return self._ids, [], rotations
        elif record.nulls_of != self._nulls[0]:
            raise LogError(f"decision {record.n}: null prompts of decision {record.nulls_of}, which has none")
        return self._ids, self._nulls[1], rotations


def _undelta(n: int, delta: Delta, base: list[int]) -> list[int]:
    if delta.keep > len(base):
        raise LogError(f"decision {n}: keeps {delta.keep} ids of {len(base)}")
    return list(chain(base[: delta.keep], delta.new))
