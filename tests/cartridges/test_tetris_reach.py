"""Reachable placements, against a plain search over sets of cells that shares nothing with the engine's bits."""

from __future__ import annotations

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from cartridges.tetris.board import KINDS
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import KEYS

# per piece: where it enters, then (drawing, left column relative to the entry) of each rotation, clockwise
DRAWN = {
    "I": (3, [("XXXX", 0), ("X X X X", 2)]),
    "O": (4, [("XX XX", 0)]),
    "S": (3, [(".XX XX.", 0), ("X. XX .X", 1)]),
    "Z": (3, [("XX. .XX", 0), (".X XX X.", 1)]),
    "T": (3, [(".X. XXX", 0), ("X. XX X.", 1), ("XXX .X.", 0), (".X XX .X", 0)]),
    "J": (3, [("X.. XXX", 0), ("XX X. X.", 1), ("XXX ..X", 0), (".X .X XX", 0)]),
    "L": (3, [("..X XXX", 0), ("X. X. XX", 1), ("XXX X..", 0), ("XX .X .X", 0)]),
}

Cells = frozenset[tuple[int, int]]
State = tuple[int, int, int]  # turns, column that the first rotation would have, top row


def cells(letter: str, state: State) -> Cells:
    turns, column, top = state
    drawing, left = DRAWN[letter][1][turns]
    return frozenset(
        (column + left + x, top - y)
        for y, row in enumerate(drawing.split())
        for x, mark in enumerate(row)
        if mark == "X"
    )


def search(letter: str, stack: Cells) -> dict[Cells, int]:
    """Return the cells of every final resting place and the fewest keys that lock the piece there."""

    def fits(state: State) -> bool:
        return all(0 <= x < 10 and 0 <= y < 20 and (x, y) not in stack for x, y in cells(letter, state))

    start = (0, DRAWN[letter][0], 19)
    keys, queue, ends = {start: 0}, deque([start]), dict[Cells, int]()
    while queue:
        state = queue.popleft()
        turns, column, top = state
        low = top
        while fits((turns, column, low - 1)):
            low -= 1
        rest = cells(letter, (turns, column, low))
        ends[rest] = min(ends.get(rest, 999), keys[state] + 1)
        turned = (turns + 1) % len(DRAWN[letter][1])
        for moved in {(turns, column - 1, top), (turns, column + 1, top), (turned, column, top), state}:
            if not fits(moved):
                continue
            fallen = (moved[0], moved[1], top - 1)
            if not fits(fallen):
                rest = cells(letter, moved)
                ends[rest] = min(ends.get(rest, 999), keys[state] + 1)
            elif fallen not in keys:
                keys[fallen] = keys[state] + 1
                queue.append(fallen)
    return ends


def piece_cells(engine: TetrisEngine, rotation: int, column: int, row: int, height: int) -> Cells:
    state = (rotation, column - DRAWN[engine.piece][1][rotation][1], row + height - 1)
    return cells(engine.piece, state)


# rows with every kind of gap and roof, none of them full, below the rows where pieces enter
stacks = st.lists(st.integers(0, 1022), max_size=16)


def drawn(words: list[int], letter: str) -> tuple[TetrisEngine, Cells]:
    rows = ["".join("#" if word >> x & 1 else "." for x in range(10)) for word in words]
    stack = frozenset((x, len(rows) - 1 - n) for n, row in enumerate(rows) for x in range(10) if row[x] == "#")
    return TetrisEngine.drawn(rows, letter), stack


@settings(max_examples=60, deadline=None)
@given(stacks, st.sampled_from(KINDS))
def test_placements_are_those_of_a_plain_search(words: list[int], letter: str) -> None:
    """Same resting places, same shortest lengths, on random boards full of overhangs."""
    engine, stack = drawn(words, letter)
    found = {piece_cells(engine, *p[:4]): len(p.keys) for p in engine.placements()}
    assert len(found) == len(engine.placements()), f"a placement came twice\n{engine}"
    assert found == search(letter, stack), f"\n{engine}"


@settings(max_examples=40, deadline=None)
@given(stacks, st.sampled_from(KINDS))
def test_keys_lead_to_the_placement_that_they_stand_for(words: list[int], letter: str) -> None:
    """Pressed through the checked door, each sequence locks one piece, with its last key, on the described board."""
    engine, _ = drawn(words, letter)
    for placement in engine.placements():
        game = engine.copy()
        for key in placement.keys:
            assert game.summary()["pieces"] == 0
            game.apply(KEYS[key])
        assert game.summary()["pieces"] == 1
        assert (game.board, game.summary()["lines"]) == (placement.board, placement.lines), f"\n{engine}"
        assert (game.ended() is not None) == placement.fatal


@settings(max_examples=60, deadline=None)
@given(stacks, st.sampled_from(KINDS), st.data())
def test_what_is_left_of_a_sequence_is_the_sequence_from_there(
    words: list[int], letter: str, data: st.DataObject
) -> None:
    """Asked again after each key, the engine gives the rest of the same keys to the same place."""
    game, _ = drawn(words, letter)
    goal = data.draw(st.sampled_from(game.placements()))
    for n, key in enumerate(goal.keys):
        left = [p.keys for p in game.placements() if p[:3] == goal[:3]]
        assert left == [goal.keys[n:]], f"\n{game}"
        game.apply(KEYS[key])
