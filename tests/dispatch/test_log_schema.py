"""What is written about the log's form is what the records say, and what the writer writes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import jsonschema

from dispatch.log.encoding import encode
from dispatch.log.objects import InstructionRecord, LedgerStep, LegalRow, TokenRow
from dispatch.log.records import DecisionRecord
from dispatch.log.schema import json_schema, renewed

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documented_fields_are_those_of_the_records() -> None:
    """When this fails: `python -m dispatch.log.schema`."""
    page = (DOCS / "log.md").read_text("utf-8")
    assert renewed(page) == page
    assert "| `tokens_evaluated` | integer | if known | Tokens that these calls evaluated. |" in page
    assert "| `halt` | The halt instruction was chosen. |" in page


def test_the_json_schema_file_is_current() -> None:
    """When this fails: `python -m dispatch.log.schema`."""
    assert json.loads((DOCS / "log.schema.json").read_text("utf-8")) == json_schema()


def test_lines_satisfy_the_json_schema(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Every line of a log does, and so does one with numbers that are not finite; a wrong type does not."""
    validator = jsonschema.Draft202012Validator(json_schema())
    for line in counter.write(tmp_path / "log.jsonl").read_bytes().splitlines():
        validator.validate(json.loads(line))
    record = DecisionRecord(
        n=1,
        cartridge="c",
        instruction=InstructionRecord(cartridge="c", method="go"),
        state="s",
        legal=(LegalRow(text="a", logprob=-math.inf),),
        ledger=(LedgerStep(at=0, legal=1, mass=math.nan, rows=(TokenRow.of(1, b"\xff", -math.inf, legal=True),)),),
    )
    line = json.loads(encode(record))
    validator.validate(line)
    assert not validator.is_valid(line | {"n": "1"})
