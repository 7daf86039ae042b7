"""Holds a logged decision against the model that makes it again: its token ids, and how far its choice is behind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dispatch.log.encoding import shortly
from dispatch.log.records import DecisionRecord
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice
from dispatch.session.situation import Open
from kernel.choose.decision import Decision
from kernel.choose.rule import RuleName
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import Instruction


def misread(
    record: DecisionRecord, player: ModelPlayer, prompts: Iterable[Sequence[int]]
) -> tuple[str, str, str] | None:
    """Return a field whose token ids are not those of its text, what it has, and what it should have.

    Args:
        record: of a session whose tokenizer was that of the player.
        prompts: all ids that the model read.
    """
    pieces = player.kernel.vocabulary.pieces
    if max((max(ids, default=0) for ids in prompts), default=0) >= len(pieces):
        return "prompt", "an id", f"ids below {len(pieces)}"
    if not record.ids:
        return None
    if max(record.ids) >= len(pieces):
        return "ids", shortly(record.ids), f"ids below {len(pieces)}"
    leaf = player.named_leaf(record.instruction.instruction())
    spelled = b"".join(pieces[i] for i in record.ids)
    if isinstance(leaf, Instruction) or record.held:
        try:
            expected = tuple(player.opcodes.trie.sequence(player.leaf(leaf)).tolist())
        except NoLegalOpcodeError:
            return "instruction", repr(leaf), "no opcode of it"
        if record.ids != expected:
            return "ids", f"{record.ids}, which is {spelled!r}", f"{expected}"
    elif spelled != record.text.encode("utf-8", "surrogatepass"):
        return "ids", f"{record.ids}, which is {spelled!r}", record.text
    for number, step in enumerate(record.ledger or ()):
        if odd := [row for row in step.rows if row.id >= len(pieces) or pieces[row.id] != row.piece]:
            return f"ledger.{number}", repr(odd[0].piece), "another token"
    return None


def behind(then: Instruction, choice: Choice, player: ModelPlayer, number: int) -> float:
    """Return how far a logged choice is behind the one made now, by the scores of now; 0 where it is the same.

    A walk or a search does not score every opcode, and arguments that were written are scored on their way only: there
    it is the margin of now. A draw has no order: there it is by how much the log-odds would have to move for the logged
    choice to be drawn.
    """
    decision = choice.decision
    if decision is None or then == choice.instruction:
        return 0.0
    leaf = player.named_leaf(then)
    try:
        place = np.flatnonzero(decision.leaves == player.leaf(leaf))
    except NoLegalOpcodeError:
        return math.inf
    if not len(place):
        return math.inf
    if isinstance(leaf, Open) and leaf == player.named_leaf(choice.instruction):
        return decision.margin
    if player.rule is not None and player.rule.name is RuleName.SAMPLE:
        return _undrawn(decision, int(place[0]), [player.rule.seed, number])
    scores = decision.scores
    gap = float(scores[decision.position] - scores[place[0]])
    return decision.margin if math.isnan(gap) else gap


def _undrawn(decision: Decision, place: int, seed: list[int]) -> float:
    """Return by how much log-odds would have to move for a draw to fall on another place."""
    drawn = float(np.random.default_rng(seed).random())
    ends = np.cumsum(decision.shares)
    low, high = float(ends[place] - decision.shares[place]), float(ends[place])
    edge = low if drawn < low else high
    if not 0 < edge < 1 or not drawn:
        return math.inf
    return abs(math.log(drawn / (1 - drawn)) - math.log(edge / (1 - edge)))
