"""The public checker: it tests whether a cartridge keeps the contract.

    report = check_cartridge(make(), vocabularies={"gpt-2": vocabulary}, wires={"compact": Wire([make()])})
    assert report.ok, report

`python -m kernel check NAME` does this from the command line, `dispatch.cli.check.check` from a test.
"""

from __future__ import annotations

from dispatch.checker.report import Finding, Report, Status
from dispatch.checker.run import CHECKS, check_cartridge
from dispatch.checker.subject import BUDGET, STEPS

__all__ = ["BUDGET", "CHECKS", "STEPS", "Finding", "Report", "Status", "check_cartridge"]
