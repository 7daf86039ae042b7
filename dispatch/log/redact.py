"""Takes prompts and requests out of records and puts salted hashes in their place.

Instructions, results and states stay, since a replay needs them; an opcode with a free text argument still shows that
text. Whoever has the salt can prove what a prompt or a request was; without it, nobody can test a guess.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import PurePath

from dispatch.log.prompts import Told, flat
from dispatch.log.records import DecisionRecord, Header
from kernel.errors import UsageError
from kernel.memory.listed import Listed
from kernel.opcode import canonical


class Redactor:
    """Redacts the records of one session.

    Args:
        salt: 16 bytes or more in hexadecimal; a new one when empty. Raises UsageError for anything else.
    """

    def __init__(self, salt: str = "") -> None:
        try:
            self._key = bytes.fromhex(salt) if salt else secrets.token_bytes(16)
        except ValueError as error:
            raise UsageError(f"redact: salt {salt!r} is not hexadecimal") from error
        if not 16 <= len(self._key) <= 64:
            raise UsageError(f"redact: salt {salt!r} has {len(self._key)} bytes; it takes 16 to 64")

    @property
    def salt(self) -> str:
        """The salt in hexadecimal. It never stands in the log."""
        return self._key.hex()

    @property
    def fingerprint(self) -> str:
        """What the header says of the salt."""
        return blake2b(self._key, digest_size=8).hexdigest()

    def hash(self, value: str | Told) -> str:
        """Return the salted hash of a request, of a list of ids, or of a lead, its lines and a question.

        >>> Redactor("00" * 16).hash("lights on") == Redactor("00" * 16).hash("lights on")
        True
        >>> Redactor("00" * 16).hash("lights on") == Redactor("01" * 16).hash("lights on")
        False
        """
        if isinstance(value, Listed):
            text = canonical([list(value.lead), [list(line) for line in value.lines], list(value.question)])
        else:
            text = canonical(value if isinstance(value, str) else [int(i) for i in value])
        return blake2b(text.encode("utf-8", "backslashreplace"), key=self._key, digest_size=16).hexdigest()

    def header(self, record: Header) -> Header:
        """Return the header, marked as redacted, a model's path cut to its file name.

        Raises UsageError when it is marked already.
        """
        if record.redacted is not None:
            raise UsageError("redact: prompts and requests were dropped from this log before")
        update: dict[str, object] = {"redacted": self.fingerprint}
        if record.model is not None and not record.model.name.startswith("hf:"):
            update["model"] = record.model.model_copy(update={"name": PurePath(record.model.name).name})
        return record.model_copy(update=update)

    def decision(
        self,
        record: DecisionRecord,
        prompt: Told,
        nulls: Sequence[Told],
        rotations: Sequence[Told] = (),
    ) -> DecisionRecord:
        """Return a decision without request and prompts, their hashes beside it."""
        hashes = dict(record.redacted or {})
        if record.request is not None:
            hashes["request"] = self.hash(record.request)
        if len(flat(prompt)):
            hashes["prompt"] = self.hash(prompt)
            if record.nulls_of is None:
                hashes |= {f"null {at}": self.hash(null) for at, null in enumerate(nulls, 1)}
            hashes |= {f"rotation {at}": self.hash(ids) for at, ids in enumerate(rotations, 1)}
        dropped = {"request": None, "prompt": None, "nulls": None, "rotations": None}
        return record.model_copy(update=dropped | {"redacted": hashes or None})
