"""Tetris, played with five keys or with whole placements. This module puts the parts of the cartridge together."""

from __future__ import annotations

from functools import partial

from cartridges.kit.rules import opcode_set
from cartridges.tetris.cases import cases
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import NAME, OPCODES, OpcodeSet
from cartridges.tetris.planner import TetrisPlanner
from cartridges.tetris.view import TetrisView
from kernel.contract import Cartridge


def make(opcodes: OpcodeSet = "syllables") -> Cartridge:
    """Return the cartridge; `opcodes` is `moves` (left, right, rotate, down, drop), `place` (column and rotation) or
    `syllables`, the same said in one token.

    A placement is one decision a piece, and a slip costs a second-best place; a wrong key costs the piece.

    Raises UsageError for another set.
    """
    return Cartridge(
        name=NAME,
        version="1",
        summary="Stack falling pieces so that full rows vanish.",
        opcodes=(opcode_set(NAME, opcodes, OPCODES),),
        engine=partial(TetrisEngine, opcodes),
        view=TetrisView(),
        planner=TetrisPlanner(),
        ratifies=opcodes != "moves",
        takes_requests=True,
        offers_beside_request=True,
        cases=partial(cases, opcodes),
        options={"opcodes": opcodes},
    )
