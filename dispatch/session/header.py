"""The first line of a session's log: what is played, by whom, with what software."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any, NamedTuple

from dispatch.log.objects import ModelRecord, RuleRecord
from dispatch.log.records import Header
from dispatch.session.judging import judge_record
from dispatch.session.model_player import ModelPlayer
from dispatch.session.session import Session
from kernel.api import Kernel
from kernel.choose.learned import Learned
from kernel.choose.rule import Rule


class By(NamedTuple):
    """A model that chooses, what it is called, and how it chooses."""

    kernel: Kernel
    model: str
    rule: Rule
    wire: str
    max_tokens: int
    learned: Learned | None = None
    """What it decides by, under the rule `learned`."""


def header(session: Session, by: By | None) -> Header:
    """Return the first line of a session's log; without a model the session's player is the planner, or chance."""
    versions = {"cartridge-kernel": version("cartridge-kernel"), "python": platform.python_version()}
    known: dict[str, Any] = {}
    if by is not None:
        if (learned := by.learned) is not None:
            versions["learned"] = learned.fingerprint
        versions |= {name: version(name) for name in ("llama-cpp-python", "numpy")}
        fingerprints = {"fingerprint": by.kernel.backend.fingerprint, "tokenizer": by.kernel.vocabulary.fingerprint}
        known = {
            "rule": RuleRecord(name=str(by.rule.name), parameters=_parameters(by.rule)),
            "judge": judge_record(session.player.judge if isinstance(session.player, ModelPlayer) else None),
            "wire": by.wire,
            "max_tokens": by.max_tokens,
            "model": ModelRecord(name=by.model, **fingerprints),
        }
    return Header(
        cartridges=session.records,
        seed=session.seed,
        player=session.player.name,
        limits=dict(session.limits) or None,
        versions=versions,
        **known,
    )


def _parameters(rule: Rule) -> dict[str, Any]:
    """Return what the rule needs to decide again."""
    found: dict[str, Any] = {"planner_weight": rule.planner_weight}
    if rule.name == "calibrated":
        found["calibration"] = rule.calibration
    if rule.name == "sample":
        found |= {"temperature": rule.temperature, "seed": rule.seed}
    return found
