"""The ledger: eleven rows, the taken one among them, two rivals and two removed ones wherever they exist."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dispatch.inspector.decision import ranks_of
from dispatch.log.ledger import LedgerBuilder, ledger_step
from dispatch.log.objects import InstructionRecord, LedgerStep, TokenRow
from dispatch.log.records import DecisionRecord
from dispatch.log.scores import check_ledger


def ledger(values: list[float], legal: list[int], taken: int) -> LedgerStep:
    row = np.array(values, np.float32)
    finite = row[np.isfinite(row)].astype(np.float64)
    total = float(np.log(np.exp(finite).sum()))
    return ledger_step(3, row, total, np.array(legal, np.int32), taken, lambda i: bytes([i % 256]))


def test_a_small_step_by_hand() -> None:
    """Four tokens at probabilities 1/8, 1/2, 1/4, 1/8; 0 and 2 are legal, 2 is taken."""
    step = ledger([math.log(1), math.log(4), math.log(2), math.log(1)], [2, 0], 2)
    assert (step.at, step.legal, step.mass) == (3, 2, 0.375)
    assert [(row.id, row.legal) for row in step.rows] == [(1, False), (2, True), (0, True), (3, False)]
    assert [row.logprob for row in step.rows] == [round(math.log(p), 6) for p in (1 / 2, 1 / 4, 1 / 8, 1 / 8)]
    assert step.rows[1].piece == b"\x02"


def test_the_taken_token_and_two_rivals_are_there_although_the_model_wants_others() -> None:
    """Legal ids at the very bottom of 50 tokens; the nine strongest are removed ones."""
    step = ledger([float(i) for i in range(50)], [0, 1, 2, 3], 1)
    assert [row.id for row in step.rows if row.legal] == [3, 2, 1]
    assert [row.id for row in step.rows if not row.legal] == list(range(49, 41, -1))
    assert [row.rank for row in step.rows] == [1, 2, 3, 4, 5, 6, 7, 8, 47, 48, 49], "of all 50, from 1"


def test_two_removed_ones_are_there_although_the_strongest_are_all_legal() -> None:
    """Forty legal ids above everything else."""
    step = ledger([float(i) for i in range(50)], list(range(10, 50)), 49)
    assert [row.id for row in step.rows] == [*range(49, 40, -1), 9, 8]


def test_what_is_not_finite_is_impossible() -> None:
    """NaN and +inf never lead; a legal one of them is shown at minus infinity."""
    step = ledger([math.nan, math.inf, 0.0, 0.0], [0, 2], 2)
    assert [(row.id, row.logprob) for row in step.rows][:2] == [
        (2, round(-math.log(2), 6)),
        (3, round(-math.log(2), 6)),
    ]
    assert {row.id: row.logprob for row in step.rows}[0] == -math.inf
    assert step.mass == 0.5


@given(
    row=hnp.arrays(np.float32, st.integers(1, 60), elements=st.integers(-4, 4).map(float)),
    data=st.data(),
)
def test_every_ledger_keeps_its_promise(row: np.ndarray, data: st.DataObject) -> None:
    """Against sorting by brute force: who is in, in which order, how many."""
    ids = list(range(len(row)))
    legal = data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
    taken = data.draw(st.sampled_from(legal))
    step = ledger(row.tolist(), legal, taken)
    found = [r.id for r in step.rows]
    ranked = sorted(ids, key=lambda i: (-row[i], i))
    rivals = [i for i in ranked if i in legal and i != taken][:2]
    removed = [i for i in ranked if i not in legal][:2]
    must = {taken, *rivals, *removed}
    assert must <= set(found)
    assert found == sorted(found, key=lambda i: (-row[i], i))
    assert len(found) == min(11, len(ids))
    ranks = [1 + ranked.index(i) for i in found]
    assert [r.rank for r in step.rows] == ranks
    older = LedgerStep(
        at=3, legal=step.legal, mass=step.mass, rows=[r.model_copy(update={"rank": None}) for r in step.rows]
    )
    derived = [ranks_of(older, taken)[i] for i in found]
    assert all(rank in (None, true) for rank, true in zip(derived, ranks, strict=True)), "never a wrong one"
    assert None not in derived[: max(0, len(found) - 5)], "only the five that are always there may be uncertain"
    assert set(found) - must == set([i for i in ranked if i not in must][: 11 - len(must)])
    assert step.mass == pytest.approx(sum(math.exp(r) for r in row[legal]) / sum(math.exp(r) for r in row), abs=1e-6)


def test_a_token_that_nothing_held_stands_there_once() -> None:
    """What the model takes alone may be one that the mask removes, or there may be no mask left."""
    for legal in ([2, 3], []):
        step = ledger([float(i) for i in range(30)], legal, 29)
        assert [row.id for row in step.rows].count(29) == 1
        assert len({row.id for row in step.rows}) == 11
        assert step.rows[0].id == 29
        assert not step.rows[0].legal


def test_ranks_that_do_not_fall_with_the_probability_contradict_the_ledger() -> None:
    """Rank 1 above rank 2 holds; the other way round, and one rank twice, do not."""

    def record(first: int, second: int) -> DecisionRecord:
        rows = (
            TokenRow.of(7, b"a", -0.5, legal=True, rank=first),
            TokenRow.of(8, b"b", -1.5, legal=False, rank=second),
        )
        step = LedgerStep(at=0, legal=1, mass=0.7, rows=rows)
        instruction = InstructionRecord(cartridge="c", method="m")
        return DecisionRecord(n=1, cartridge="c", instruction=instruction, ids=(7,), state="s", ledger=(step,))

    check_ledger(record(1, 2))
    for ranks in ((2, 1), (3, 3)):
        with pytest.raises(ValueError, match=r"ledger\.0\.rows\.1\.rank"):
            check_ledger(record(*ranks))


def test_rows_that_are_too_many_leave_no_ledger() -> None:
    """Room for two rows of four ids: with a third there is none, and the next decision starts anew."""
    builder = LedgerBuilder([b"a", b"b", b"c", b"d"], largest=32)
    row, legal = np.array([1, 2, 3, 4], np.float32), np.array([0, 1], np.int32)
    watch = builder.start()
    watch((), legal, row, 4.44)
    row[:] = 0  # what the runtime does with its buffer
    assert [r.id for r in builder.ledger([1])[0].rows] == [3, 2, 1, 0]
    watch((1,), legal, row, 4.44)
    watch((0,), legal, row, 4.44)
    assert builder.ledger([1, 0]) == ()
    builder.start()((), legal, row, 4.44)
    assert len(builder.ledger([1])) == 1
