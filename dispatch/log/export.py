"""Exports logs: their decisions as rows of CSV or Parquet, or a copy of a log without prompts and requests."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from dispatch.log.damage import Damage
from dispatch.log.objects import SIZE
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord
from dispatch.log.redact import Redactor
from dispatch.log.stats import names
from dispatch.log.tally import agreement
from dispatch.log.writer import LogWriter
from kernel.choose.kinds import Outcome
from kernel.errors import LogError, UsageError
from kernel.opcode import canonical
from kernel.shown import shown

COLUMNS: dict[str, type] = {
    "file": str, "started": str, "cartridge": str, "player": str, "rule": str, "seed": int, "n": int,
    "method": str, "arguments": str, "text": str, "probability": float, "logprob": float, "null": float,
    "legal": int, "legal_mass": float, "margin": float, "agree_first": bool, "agree_any": bool,
    "passes": int, "tokens_evaluated": int, "chosen_tokens": int, "forced_tokens": int, "stop": str,
    "model_ms": float, "planner_ms": float, "at_ms": float, "refused": bool, "failed": str,
    "outcome": str, "settled": bool, "confirmed": str, "held": bool,
    "result": str, "state": str,
}  # fmt: skip
"""Name and type of every column; a value that is not known is empty."""
BATCH = 10_000
FORMULA = ("=", "+", "-", "@")
"""What a formula of a spreadsheet begins with."""


def rows(path: str | Path, damages: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each decision of a log, up to its damage, which is appended to `damages`."""
    with LogReader(path) as reader:
        _, player, rule = names(reader.header)
        head = {"file": str(path), "started": reader.header.started, "seed": reader.header.seed, "player": player}
        for record in reader:
            row = head | {"rule": record.rule or rule or None} | _row(record)
            yield {name: _carried(value) for name, value in row.items()}
        if reader.damage is not None:
            damages.append(f"{path}: {reader.damage}")


def write_csv(paths: Iterable[str | Path], out: TextIO) -> list[str]:
    """Write all decisions as CSV with a head line, control characters as escapes; return the damages that were met."""
    damages: list[str] = []
    table = csv.DictWriter(out, list(COLUMNS), restval="", lineterminator="\n")
    table.writeheader()
    for path in paths:
        table.writerows(map(_cells, rows(path, damages)))
    return damages


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose texts steer no terminal; a quote stands before one that a spreadsheet would compute."""
    shown_row = {name: shown(value) if isinstance(value, str) else value for name, value in row.items()}
    return {n: f"'{v}" if isinstance(v, str) and v.startswith(FORMULA) else v for n, v in shown_row.items()}


def write_parquet(paths: Iterable[str | Path], out: Path) -> list[str]:
    """Write all decisions as one Parquet file, in batches; return the damages that were met."""
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            "stats: Parquet needs the package 'pyarrow': pip install 'cartridge-kernel[parquet]', or take --format csv"
        ) from error
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    damages: list[str] = []
    found = (row for path in paths for row in rows(path, damages))
    try:
        with parquet.ParquetWriter(out, schema) as writer:
            while batch := list(islice(found, BATCH)):
                writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema=schema))
    except OSError as error:
        raise LogError(f"stats: cannot write {str(out)!r}: {error.strerror or error}") from error
    return damages


def redacted_copy(source: str | Path, target: str | Path, redactor: Redactor) -> tuple[int, Damage | None]:
    """Write a copy of a log without prompts and requests; return its decisions and the damage that ended it."""
    fold = Prompts()
    with LogReader(source) as reader, LogWriter(target, reader.header, redact=redactor) as writer:
        for record in reader:
            _copy_changes(reader, writer)
            writer.decision(record, *fold.take(record))
        _copy_changes(reader, writer)
        if reader.outcome is not None:
            writer.outcome(reader.outcome)
        return reader.n, reader.damage


def _copy_changes(reader: LogReader, writer: LogWriter) -> None:
    """Write what stands between the decision just read and the one before: who joined and left, and corrections."""
    while reader.changes:
        writer.note(reader.changes.pop(0))


def _carried(value: Any) -> Any:
    """Return a value as the columns take it: half a surrogate pair becomes an escape, an int beyond 64 bits is none."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return None if isinstance(value, int) and not -SIZE <= value < SIZE else value


def _row(record: DecisionRecord) -> dict[str, Any]:
    taken = record.taken
    first, any_ = agreement(record) if record.offered else (None, None)
    same = record.model_dump(include=set(COLUMNS) - {"rule", "legal"})
    return same | {
        "method": record.instruction.method,
        "arguments": canonical(record.instruction.arguments),
        "probability": taken.probability if taken else None,
        "logprob": taken.logprob if taken else None,
        "null": taken.null if taken else None,
        "legal": record.legal_count if record.legal_count is not None else len(record.legal or ()) or None,
        "outcome": record.outcome or Outcome.CHOSEN,
        "held": record.held,
        "agree_first": first,
        "agree_any": any_,
    }
