"""An ordered dict that keeps what was used last. Knows nothing of what it keeps."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def recall(kept: OrderedDict[K, V], key: K) -> V | None:
    """Return what was kept, which now counts as used last; None when there is nothing."""
    found = kept.get(key)
    if found is not None:
        kept.move_to_end(key)
    return found


def keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Keep a value as used last; beyond so many, what was not used for longest goes.

    >>> kept = OrderedDict(a=1, b=2)
    >>> recall(kept, "a")
    1
    >>> keep(kept, "c", 3, most=2)
    >>> list(kept)
    ['a', 'c']
    """
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
