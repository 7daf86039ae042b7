"""`eval --forms`: every form on labelled states, by a model that copies what stands behind one mark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.session.forms import try_forms
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.form import FORM, FORMS
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary

BYTES = Vocabulary([bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, *_: list(text))


def copying(mark: bytes) -> ScriptedBackend:
    """A model that says the letter behind a mark; without the mark all letters are alike."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        found = np.zeros(256, np.float32)
        found[0] = 0.5  # a row that is not constant
        said = bytes(ids)
        if (at := said.rfind(mark)) >= 0:
            found[said[at + len(mark)]] = 5.0
        return found

    return ScriptedBackend(BYTES, row, n_ctx=4096, n_batch=4096)


def cases(labels: Sequence[str]) -> list[Case]:
    ask = (Part("Best move:", trusted=True),)
    options = tuple(f" {label}" for label in labels)
    return [
        Case(label, FORM.prompt(labels, n, ask), options, options[n], "dev" if n else "test")
        for n, label in enumerate(labels)
    ]


def test_the_form_that_a_model_understands_comes_first() -> None:
    """One that copies behind `Best: ` is right in the forms that say so, and by chance where the mark is another."""
    found = try_forms(Kernel(copying(b"- Best: ")), cases("abcd"), model="copying", name="letters")
    assert len(found) == len(FORMS) == len({(r.lead, r.best, r.other) for r in found})
    assert {(r.cases, r.split, r.set) for r in found} == {(3, "dev", "letters")}
    right = [r for r in found if r.best == "Best" and "{best}" not in r.lead]
    assert {r.correct for r in right} == {3}
    assert found[0].best == "Best"
    assert [r.correct for r in found] == sorted((r.correct for r in found), reverse=True)
    assert {r.correct for r in found if r.best == "best"} == {0}  # the first letter, which is the answer of `test`
    assert [r.best for r in found if r.kept] == ["best"]


def test_cases_without_a_set_have_no_forms() -> None:
    """Requests show no options, so there is nothing to write anew."""
    plain = Case("x", Prompt((Part("Say:"),), ((Part("N/A:"),),)), (" a", " b"), " a", "dev")
    with pytest.raises(UsageError, match="no prompt shows options as lines without an order"):
        try_forms(Kernel(copying(b"!")), [plain], model="copying", name="plain")
