"""Ten everyday tools, as a tool list: weather, alarms, notes, mail and so on. They only say what they would do."""

from __future__ import annotations

from pathlib import Path

from cartridges.everyday import handlers
from cartridges.kit.toolbox import toolbox
from kernel.contract import Cartridge

NAME = "everyday"

TOOLS = Path(__file__).with_name("tools.json")
"""The list, in the form of OpenAI's API."""

REQUESTS = Path(__file__).with_name("requests.jsonl")
"""Labelled requests, written before anything was tuned; nothing may be tuned on them."""


def make() -> Cartridge:
    """Return the cartridge."""
    return toolbox(NAME, TOOLS, handlers, cases=REQUESTS)
