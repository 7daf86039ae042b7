"""Finds the vocabulary of the model that a log was written with, so that token ids can be told as text.

A log names a model, and its tokenizer by a fingerprint. A name in a log is looked up in the catalogue only: a path in a
log is never opened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dispatch.log.records import Header
from kernel.errors import KernelError
from kernel.models import catalogue
from kernel.text.vocabulary import Vocabulary

WAIT_SECONDS = 2.0
"""An answer waits so long for a vocabulary that is being read."""


class Vocabularies:
    """Vocabularies by fingerprint: that of the model that is served, and those of models that are on this machine.

    Args:
        served: gives the vocabulary of the model that is served, once it is loaded.
    """

    def __init__(self, served: Callable[[], Vocabulary | None] = lambda: None) -> None:
        self._served = served
        self._read: dict[str, Vocabulary | None] = {}
        self._reading: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def of(self, header: Header, seconds: float = WAIT_SECONDS) -> Vocabulary | None:
        """Return the vocabulary of a log; None where it is not here, or not read within so many seconds."""
        wanted = header.model.tokenizer if header.model is not None else None
        if header.model is None or wanted is None:
            return None
        served = self._served()
        if served is not None and served.fingerprint == wanted:
            return served
        name = header.model.name
        with self._lock:
            if name not in self._reading:
                thread = threading.Thread(target=self._fetch, args=(name,), name="vocabulary", daemon=True)
                self._reading[name] = thread
                thread.start()
        self._reading[name].join(seconds)
        found = self._read.get(name)
        return found if found is not None and found.fingerprint == wanted else None

    def _fetch(self, name: str) -> None:
        found = None
        known = catalogue.catalogue().get(name)
        if known is not None and known.pulled:
            from kernel.backends.llama_cpp import read_vocabulary

            try:
                found = read_vocabulary(catalogue.resolve(name, pull=False))
            except KernelError:
                found = None
        self._read[name] = found
