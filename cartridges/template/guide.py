"""The guide: what each command means, when one wants it, and a request that it answers.

None of the texts stands in the labelled set.
"""

from __future__ import annotations

from kernel.prompt import Explained

GUIDE = (
    Explained("move up", "go up one floor", "somebody wants to a higher floor", "My office is above"),
    Explained("move down", "go down one floor", "somebody wants to a lower floor", "The bakery is below us"),
    Explained("doors", "open the doors", "somebody wants in or out", "Here I get off"),
)
