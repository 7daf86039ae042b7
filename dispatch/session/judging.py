"""Which judge says how the decisions of a session end, and what its log says of it."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.log.objects import JudgeRecord
from dispatch.log.records import Header
from dispatch.session.learned import taught
from kernel.api import Kernel
from kernel.choose.outcome import Judge, Thresholds
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import LogError, UsageError

THRESHOLDS = "thresholds"


def judge_for(kernel: Kernel, cartridges: Sequence[Cartridge], rule: Rule) -> Judge:
    """Return the judge of requests to some cartridges by a model under a rule.

    Under `learned` it has the thresholds that were learned, and the kernel is taught what was; else, and where nothing
    was learned, it has the defaults.
    """
    found = taught(kernel, cartridges) if rule.name is RuleName.LEARNED else None
    return Thresholds() if found is None else found.thresholds


def judge_record(judge: Judge | None) -> JudgeRecord | None:
    """Return what a header says of a judge; None where something is always chosen."""
    if judge is None:
        return None
    if not isinstance(judge, Thresholds):
        return JudgeRecord(name=type(judge).__name__)
    return JudgeRecord(name=THRESHOLDS, thresholds={n: float(v) for n, v in judge.as_json().items() if v is not None})


def logged_judge(header: Header) -> Judge | None:
    """Return the judge of a log; None where something was always chosen.

    Raises LogError for one that only the program knew, or that has no thresholds of ours.
    """
    record = header.judge
    if record is None:
        return None
    try:
        if record.name == THRESHOLDS:
            return Thresholds.only(record.thresholds or {})
    except UsageError as error:
        raise LogError(f"the log's judge: {error}") from error
    raise LogError(f"the log's judge {record.name!r} is unknown: only the program that wrote it has it")
