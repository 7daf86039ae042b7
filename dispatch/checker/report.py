"""The report of the checker: one finding for each check."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Status(enum.StrEnum):
    """How a check went."""

    PASSED = "passed"
    """The cartridge keeps this part of the contract, as far as was looked."""
    FAILED = "failed"
    """It does not; the detail says where."""
    SKIPPED = "skipped"
    """It could not be looked at; the detail says what was missing."""


class FaultError(Exception):
    """A check found something wrong; the text says what, by value, and what would be right."""


class SkipError(Exception):
    """A check has nothing to look at; the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    status: Status
    detail: str

    def __str__(self) -> str:
        return f"{self.status.value:<7}  {self.check}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one cartridge, in the order of the checks.

    >>> print(Report("chess", "2", (Finding("copies are independent", Status.FAILED, "seed 0, step 3: ..."),)))
    chess@2: 0 passed, 1 failed, 0 skipped
    failed   copies are independent: seed 0, step 3: ...
    """

    name: str
    version: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.count(Status.FAILED)

    def count(self, status: Status) -> int:
        """Return how many checks went that way."""
        return sum(finding.status is status for finding in self.findings)

    @property
    def summary(self) -> str:
        """The counts in one line."""
        counts = ", ".join(f"{self.count(status)} {status.value}" for status in Status)
        return f"{self.name}@{self.version}: {counts}"

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.findings)])
