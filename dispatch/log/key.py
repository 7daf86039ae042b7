"""The key of a keyed log: with it every line gets a code that nobody without the key can compute.

The code of a line, its `mac`, is keyed BLAKE2b (16 bytes, in hexadecimal) over the code of the line before, as ASCII
text, followed by the line without `mac` and `chain`; the header follows the empty text. So a line that was changed,
dropped or moved is found even where somebody computed the checksums of the whole log again.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Self

from kernel.errors import UsageError

SHORTEST = 16
"""Bytes of a key file, at least."""
LONGEST = 1 << 20
"""And at most."""


class Key:
    """A secret that seals the lines of a log; the bytes of a file, a newline at its end included.

    Raises UsageError when it has too few bytes or too many.

    >>> Key(b"0123456789abcdef").id
    '77dd066a32719b5a'
    """

    def __init__(self, secret: bytes, where: str = "key") -> None:
        if not SHORTEST <= len(secret) <= LONGEST:
            raise UsageError(f"{where} has {len(secret)} bytes; a key takes {SHORTEST} to {LONGEST}, drawn at random")
        self._secret = blake2b(secret, digest_size=64, person=b"log seal").digest()
        self.id = blake2b(secret, digest_size=8, person=b"log key name").hexdigest()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key file; raises UsageError when it cannot be read or is no key."""
        try:
            with path.open("rb") as file:
                return cls(file.read(LONGEST + 1), f"the key {str(path)!r}")
        except OSError as error:
            raise UsageError(f"the key {str(path)!r} cannot be read: {error.strerror}") from error

    def mac(self, before: str, body: bytes) -> str:
        """Return the code of a line.

        Args:
            before: that of the line before; "" for the header.
            body: the line without `mac` and `chain`.
        """
        return blake2b(before.encode("latin-1") + body, key=self._secret, digest_size=16).hexdigest()

    def fits(self, mac: str, before: str, body: bytes) -> bool:
        """Whether that is the code of a line."""
        return compare_digest(mac.encode("latin-1"), self.mac(before, body).encode("ascii"))
