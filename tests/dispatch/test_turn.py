"""The kernel's decision becomes the log's: every number in its place, the choice always among the rows."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dispatch.log.encoding import decode, encode
from dispatch.log.objects import InstructionRecord
from dispatch.log.records import DecisionRecord
from dispatch.session.chosen import chosen_fields
from kernel.choose.decision import Decision, Stop


def decided(count: int, index: int, **changes: Any) -> Decision:
    """A decision among `count` opcodes of a set twice as large; opcode 2k scores -k."""
    numbers = -np.arange(count, dtype=np.float64)
    values: dict[str, Any] = {
        "index": index,
        "text": f"t{index}",
        "ids": (5, 6),
        "rule": "calibrated",
        "leaves": np.arange(0, 2 * count, 2, dtype=np.int32),
        "scores": numbers,
        "raw": numbers - 0.123456789,
        "null": None,
        "shares": np.full(count, 1 / count),
        "margin": 0.123456789,
        "legal_mass": 0.5,
        "chosen_tokens": 1,
        "forced_tokens": 1,
        "passes": 2,
        "tokens_evaluated": 30,
        "stop": Stop.COMPLETE,
        "opcodes": SimpleNamespace(labels=[f"label {i}" for i in range(2 * count)]),
    }
    return Decision(**(values | changes))


def record(decision: Decision, **options: Any) -> DecisionRecord:
    instruction = InstructionRecord(cartridge="c", method="go")
    fields = chosen_fields(decision, **options)
    return DecisionRecord(n=1, cartridge="c", instruction=instruction, state="s", **fields)


def test_every_legal_opcode_has_a_row_with_its_label() -> None:
    """Three of six opcodes are legal; the second of them is chosen."""
    made = record(decided(3, 2))
    assert made.legal is not None
    assert [row.text for row in made.legal] == ["label 0", "label 2", "label 4"]
    assert [(row.logprob, row.null, row.score) for row in made.legal] == [
        (-0.123457, None, 0), (-1.123457, None, -1), (-2.123457, None, -2)]  # fmt: skip
    assert (made.chosen, made.legal_count, made.text, made.ids) == (1, 3, "t2", (5, 6))
    assert (made.margin, made.stop, made.passes, made.refused_removals) == (0.123457, "complete", 2, None)


@pytest.mark.parametrize(("index", "labels", "chosen"), [(0, [0, 2, 4], 0), (4, [0, 2, 4], 2), (198, [0, 2, 198], 2)])
def test_of_very_many_the_best_are_logged_and_the_choice(index: int, labels: list[int], chosen: int) -> None:
    """The three best of a hundred; a choice outside them takes the place of the last."""
    made = record(decided(100, index), most=3)
    assert made.legal is not None
    assert [row.text for row in made.legal] == [f"label {i}" for i in labels]
    assert (made.chosen, made.legal_count) == (chosen, 100)


def test_scores_that_were_not_computed_stay_so() -> None:
    """NaN goes through the line and back, and never counts as best."""
    scores = np.array([np.nan, -3.0, -np.inf, -1.0])
    made = record(decided(4, 6, scores=scores, raw=scores), most=2)
    assert made.legal is not None
    assert [row.text for row in made.legal] == ["label 2", "label 6"]
    whole = DecisionRecord.model_validate(decode(encode(record(decided(4, 6, scores=scores, raw=scores)))))
    assert whole.legal is not None
    assert [row.score for row in whole.legal][1:] == [-3.0, -math.inf, -1.0]
    assert math.isnan(whole.legal[0].score or 0)
