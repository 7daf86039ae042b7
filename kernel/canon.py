"""The one JSON text of a value. Knows nothing else."""

from __future__ import annotations

import json


def canonical(value: object) -> str:
    """Return the one JSON text of a value: no spaces, keys as given, UTF-8 kept, no NaN.

    >>> canonical({"room": "küche", "on": True})
    '{"room":"küche","on":true}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
