"""Log-probabilities of a few ids, against sums worked out by hand, and rows that cannot be trusted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import LogitsError
from kernel.memory.rows import RowReader

INF = float("inf")
NAN = float("nan")


def read(row: list[float], ids: list[int]) -> list[float]:
    values = np.array(row, np.float32)
    return RowReader(len(row)).log_probabilities(values, np.array(ids, np.int32)).tolist()


def test_three_logits_by_hand() -> None:
    """exp gives 1, 2 and 5, together 8: an eighth, a quarter, five eighths."""
    row = [0.0, math.log(2), math.log(5)]
    assert read(row, [2, 0, 1]) == pytest.approx([math.log(5 / 8), math.log(1 / 8), math.log(1 / 4)], abs=1e-6)


def test_a_shift_of_all_logits_changes_nothing() -> None:
    """Only differences count, also far from zero where exp alone would overflow (float32 ends at exp(88))."""
    near = [0.0, 1.0, -2.0]
    far = [1000.0, 1001.0, 998.0]
    assert read(far, [0, 1, 2]) == pytest.approx(read(near, [0, 1, 2]), abs=1e-6)


def test_equal_logits_keep_equal_log_probabilities() -> None:
    """Ties stay ties, to the last bit, so that who comes first decides and not rounding."""
    a, b, c = read([3.25, -1.0, 3.25, 0.5, 3.25], [0, 2, 4])
    assert a == b == c


@settings(max_examples=60)
@given(st.lists(st.floats(-40, 40, width=32), min_size=2, max_size=40).filter(lambda r: len(set(r)) > 1))
def test_a_row_against_a_sum_in_exact_order(row: list[float]) -> None:
    """math.fsum over math.exp in double precision, one id after the other."""
    total = math.log(math.fsum(math.exp(x) for x in row))
    assert read(row, list(range(len(row)))) == pytest.approx([x - total for x in row], abs=2e-5)


def test_one_id_gets_all_when_the_others_are_impossible() -> None:
    """A row with a single finite logit is a certainty, not an error."""
    assert read([-INF, 4.0, -INF], [1, 0]) == [0.0, -INF]


def test_a_legal_id_at_minus_infinity_is_impossible() -> None:
    """Case c of an empty choice: legal ids at -inf stay at -inf beside an illegal id at 0; who chooses must refuse."""
    assert read([-INF, -INF, 0.0, 0.0], [0, 1]) == [-INF, -INF]


def test_a_legal_nan_is_impossible_and_its_neighbour_is_read() -> None:
    """Case d: NaN never reaches a comparison, and takes nothing from the mass of the others."""
    assert read([NAN, 1.0, 1.0], [0, 1]) == pytest.approx([-INF, math.log(1 / 2)], abs=1e-6)


def test_a_legal_plus_infinity_is_impossible() -> None:
    """A broken kernel's +inf must not win every comparison."""
    assert read([INF, 1.0, 1.0], [0, 2]) == pytest.approx([-INF, math.log(1 / 2)], abs=1e-6)


def test_a_row_of_nan_is_refused() -> None:
    """Case e: nothing to read."""
    with pytest.raises(LogitsError, match="a row of 3 logits has no finite value"):
        read([NAN, NAN, NAN], [1])


def test_a_row_of_minus_infinity_is_refused() -> None:
    """As for NaN."""
    with pytest.raises(LogitsError, match="no finite value"):
        read([-INF, -INF], [1])


@pytest.mark.parametrize("broken", [INF, NAN])
def test_an_infinite_illegal_id_has_no_effect(broken: float) -> None:
    """Case f: the legal ids read as if the broken one were not there."""
    assert read([broken, 0.0, math.log(3)], [1, 2]) == pytest.approx([math.log(1 / 4), math.log(3 / 4)], abs=1e-6)


@pytest.mark.parametrize("value", [0.0, -7.5])
def test_a_constant_row_is_refused(value: float) -> None:
    """A buffer that nobody wrote shows zeros; log-probabilities of it would choose the first id for ever."""
    with pytest.raises(LogitsError, match=f"all 50 logits are {value}"):
        read([value] * 50, [1])


def test_a_constant_row_of_a_large_vocabulary_is_refused() -> None:
    """The sum of 262,144 ones in float32 is exact, so the check holds at the size of Gemma's vocabulary."""
    with pytest.raises(LogitsError, match="all 262144 logits"):
        RowReader(262144).normaliser(np.zeros(262144, np.float32))


def test_a_row_with_one_other_value_is_not_constant() -> None:
    """One logit that differs a little is a row of a model."""
    row = [0.0] * 50
    row[7] = -0.25
    assert read(row, [7])[0] == pytest.approx(-0.25 - math.log(49 + math.exp(-0.25)), abs=1e-6)


def test_the_row_is_left_as_it_was() -> None:
    """The runtime's memory is read, never written."""
    row = np.array([1.0, NAN, -3.0, INF], np.float32)
    before = row.tobytes()
    RowReader(4).log_probabilities(row, np.array([0], np.int32))
    assert row.tobytes() == before


def test_ids_far_down_the_ranking_are_read_as_they_are() -> None:
    """A, B and C rank 31,002nd, 20,417th and 44,900th of 50,000: no cut at the top, so B is the best of the three.

    The logits fall evenly from 10 by 0.0002 a rank, so the differences are known: B - A is 10,585 ranks, 2.117.
    """
    size = 50_000
    by_rank = np.random.default_rng(3).permutation(size)
    row = np.empty(size, np.float32)
    row[by_rank] = 10 - 0.0002 * np.arange(size)
    a, b, c = (int(by_rank[rank - 1]) for rank in (31_002, 20_417, 44_900))
    values = RowReader(size).log_probabilities(row, np.array([a, b, c], np.int32))
    assert int(np.argmax(values)) == 1
    assert values[1] - values[0] == pytest.approx(0.0002 * (31_002 - 20_417), abs=1e-4)
    assert values[0] - values[2] == pytest.approx(0.0002 * (44_900 - 31_002), abs=1e-4)
    # a geometric series: sum of exp(10 - 0.0002 r) for r = 0 .. 49,999
    total = math.log(math.exp(10) * (1 - math.exp(-0.0002 * size)) / (1 - math.exp(-0.0002)))
    assert values[1] == pytest.approx(10 - 0.0002 * 20_416 - total, abs=1e-4)
