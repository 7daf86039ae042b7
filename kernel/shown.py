"""How text from outside is shown to a person: in one line, and so that it cannot steer a terminal."""

from __future__ import annotations

import unicodedata


def shown(text: str) -> str:
    """Return text from outside so that it cannot steer a terminal: control and format characters become escapes.

    >>> print(shown("on\\x1b[2J\\n"))
    on\\x1b[2J\\n
    """
    return "".join(c if c == " " or c.isprintable() else _escape(c) for c in text)


def _escape(c: str) -> str:
    return repr(c)[1:-1] if unicodedata.category(c) != "Zs" else " "
