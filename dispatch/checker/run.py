"""Runs all checks on one cartridge; whatever the cartridge's code raises becomes a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dispatch.checker import declaration, engine, planner, prompts
from dispatch.checker.outside import harmless
from dispatch.checker.report import FaultError, Finding, Report, SkipError, Status
from dispatch.checker.subject import BUDGET, STEPS, Subject, Trace
from dispatch.loading.error_line import error_line
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge
from kernel.errors import UsageError
from kernel.text.vocabulary import Vocabulary

Check = Callable[[Subject], str]
"""Returns what was looked at; raises FaultError or SkipError."""

CHECKS: tuple[Check, ...] = (
    declaration.words,
    declaration.guide,
    engine.same_seed,
    engine.another_process,
    engine.copies,
    engine.random_player,
    engine.refusals,
    engine.recalls,
    engine.summaries,
    planner.plans,
    declaration.pictures,
    prompts.nulls,
    prompts.requests,
    prompts.listed,
    prompts.data,
    prompts.length,
    declaration.cases,
    declaration.compiles,
    declaration.parses,
)
"""Every check, in the order of the report. The first line of its docstring is its name."""


def check_cartridge(
    cartridge: Cartridge,
    *,
    vocabularies: Mapping[str, Vocabulary] | None = None,
    wires: Mapping[str, Wire] | None = None,
    steps: int = STEPS,
    budget: int = BUDGET,
    seeds: Sequence[int] = (0, 1, 2),
    elsewhere: Callable[[Sequence[int], int], Sequence[Trace]] | None = None,
) -> Report:
    """Check whether a cartridge keeps the contract of `kernel.contract`. What acts outside is not carried out.

    Args:
        cartridge: what is checked; its engines are made anew for each check.
        vocabularies: by name, those that prompts and opcodes are tokenized with; without any, these checks are skipped.
        wires: by name, the wire forms that opcodes are written in, made for this cartridge.
        steps: instructions that the random player gives.
        budget: tokens that a prompt may have on each vocabulary.
        seeds: of the games that are looked at closely.
        elsewhere: returns `dispatch.checker.subject.trace` of each seed, so many steps, as another process sees it.
    Returns:
        A finding for each check; errors of the cartridge's code are findings as well.
    Raises:
        UsageError: no seeds, no steps or no budget.
    """
    if not seeds or steps < 1 or budget < 1:
        raise UsageError(f"seeds={seeds!r}, steps={steps!r}, budget={budget!r}: a check needs at least one of each")
    subject = Subject(harmless(cartridge), vocabularies or {}, wires or {}, steps, budget, tuple(seeds), elsewhere)
    findings = tuple(_finding(check, subject) for check in CHECKS)
    return Report(cartridge.name, cartridge.version, findings)


def name_of(check: Check) -> str:
    """Return the sentence that a check stands for."""
    return (check.__doc__ or check.__name__).partition("\n")[0].rstrip(".")


def _finding(check: Check, subject: Subject) -> Finding:
    try:
        return Finding(name_of(check), Status.PASSED, check(subject))
    except SkipError as skipped:
        return Finding(name_of(check), Status.SKIPPED, str(skipped))
    except FaultError as fault:
        return Finding(name_of(check), Status.FAILED, str(fault))
    except Exception as error:  # of the cartridge's code
        return Finding(name_of(check), Status.FAILED, error_line(error))
