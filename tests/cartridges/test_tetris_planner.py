"""Dellacherie's features on boards worked out by hand, and what the planner makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartridges.tetris.board import KINDS, parse
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import KEYS, OpcodeSet
from cartridges.tetris.planner import (
    DELLACHERIE,
    EL_TETRIS,
    TetrisPlanner,
    column_transitions,
    features,
    holes,
    row_transitions,
    wells,
)
from kernel.errors import CartridgeError

# -- features by hand: rows, then row transitions, column transitions, holes, wells -----------------------------------

BY_HAND = {
    # 20 empty rows have a change at each wall; each column changes at the floor
    "empty": ([], 40, 10, 0, 0),
    # 18 empty rows 36; lower row #. .# #. .# 4; upper row #. .# 2
    # columns: eight change once, at their top; column 1 at floor, roof and top; column 5 at the floor
    # column 1 of the lower row is a hole and, like column 5 there, a well of depth 1
    "roof": (["##.......#", "#.###.####"], 42, 12, 1, 2),
    # 17 empty rows 34; each of three rows changes once inside and once at the right wall
    # nine columns change at their top, the last at the floor; the well of depth 3 counts 1 + 2 + 3
    "well": (["#########."] * 3, 40, 10, 0, 6),
    # the same well under a roof: three holes, and the depth is still counted from each of its cells
    # 16 empty rows 32; the roof's row: at the left wall and before the roof 2; three rows 2 each
    # nine columns once; the last at floor, below and above the roof
    "covered well": ([".........#", *["#########."] * 3], 40, 12, 3, 6),
    # one cell in row 18 over nothing: 19 empty rows 38 and 2; its column changes at floor, below and above it
    "high roof": (["#.........", *[".........."] * 18], 40, 12, 18, 0),
    # 18 empty rows 36; each of the two rows changes at both walls and four times inside: 6
    # every column changes once: full ones at their top, empty ones at the floor
    # wells of depth 2 at both walls, 1 + 2 each; in the middle only the lower cell stands between two full ones: 1
    "three wells": ([".###..###.", ".####.###."], 48, 10, 0, 7),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_features_of_a_board_are_those_counted_by_hand(name: str) -> None:
    """Row transitions, column transitions, holes and wells of a drawn board."""
    rows, *expected = BY_HAND[name]
    board, _ = parse(rows)
    assert [row_transitions(board), column_transitions(board), holes(board), wells(board)] == expected


def test_landing_height_is_the_middle_of_the_piece() -> None:
    """On an empty board: I flat 0, I upright 1.5, O 0.5; on a stack of 2, O 2.5."""
    flat = {features(p).landing_height for p in TetrisEngine.drawn([], "I").placements()}
    assert flat == {0.0, 1.5}
    stack = TetrisEngine.drawn(["....##....", "....##...."], "O")
    heights = {p.column: features(p).landing_height for p in stack.placements()}
    assert (heights[0], heights[4]) == (0.5, 2.5)


def test_eroded_cells_multiply_rows_and_own_cells() -> None:
    """I upright into a well of four rows: 4 x 4; O half into one row: 1 x 2; else 0."""
    well = TetrisEngine.drawn(["#########."] * 4, "I")
    assert {p.column: features(p).eroded_cells for p in well.placements() if p.height == 4}[9] == 16
    gap = TetrisEngine.drawn(["####..####"], "O")
    assert {p.column: features(p).eroded_cells for p in gap.placements()}[4] == 2
    assert {p.column: features(p).eroded_cells for p in gap.placements()}[0] == 0


def test_score_is_the_weighted_sum() -> None:
    """I flat at the left wall of an empty board, by hand: height 0, rows 38 + 2, columns 10, no hole, no well."""
    engine = TetrisEngine.drawn([], "I")
    placement = next(p for p in engine.placements() if p[:3] == (0, 0, 0))
    assert features(placement) == (0.0, 0, 40, 10, 0, 0)
    assert TetrisPlanner(DELLACHERIE).score(placement) == -50.0
    assert TetrisPlanner(EL_TETRIS).score(placement) == pytest.approx(-3.2178882868487753 * 40 - 93.48695305445199)


def plain_features(words: list[int]) -> list[int]:
    """The four board features once more, cell by cell; `words` are rows from the bottom up."""
    grid = [[word >> x & 1 for x in range(10)] for word in words] + [[0] * 10 for _ in range(20 - len(words))]
    rows = sum(a != b for row in grid for a, b in zip([1, *row], [*row, 1], strict=True))
    columns = [[1, *(grid[y][x] for y in range(20))] for x in range(10)]
    changes = sum(a != b for column in columns for a, b in zip(column, [*column[1:], 0], strict=True))
    covered = sum(not grid[y][x] and any(grid[up][x] for up in range(y + 1, 20)) for x in range(10) for y in range(20))
    depth = 0
    for y in range(20):
        for x in range(10):
            left, right = x == 0 or grid[y][x - 1], x == 9 or grid[y][x + 1]
            below = y
            while left and right and below >= 0 and not grid[below][x]:
                depth, below = depth + 1, below - 1
    return [rows, changes, covered, depth]


@given(st.lists(st.integers(0, 1023), max_size=19))
def test_features_agree_with_a_count_cell_by_cell(words: list[int]) -> None:
    """The bit tricks give what plain loops give, on random boards; the top row is empty."""
    board = sum(word << 10 * y for y, word in enumerate(words))
    found = [row_transitions(board), column_transitions(board), holes(board), wells(board)]
    assert found == plain_features(words)


# -- ranking ----------------------------------------------------------------------------------------------------------


def test_four_rows_are_taken_when_they_can_be() -> None:
    """The upright I in the well is the first option, and the note says what it does."""
    for opcodes in ("moves", "place"):
        engine = TetrisEngine.drawn(["#########."] * 4, "I", opcodes=opcodes)  # type: ignore[arg-type]
        best = TetrisPlanner().rank(engine)[0]
        assert best.note == "column 9, upright, clears 4 lines, no new hole"
        for instruction in best.plan:
            engine.apply(instruction)
        assert engine.board == 0


def test_moves_have_one_option_a_first_key() -> None:
    """Each option's instruction opens its plan, no key comes twice, the best score comes first."""
    engine = TetrisEngine.drawn([], "T")
    options = TetrisPlanner().rank(engine)
    assert {o.instruction for o in options} == {KEYS[k] for k in ("left", "right", "rotate", "drop")}
    assert len(options) == 4
    assert all(o.plan[0] == o.instruction for o in options)
    assert [o.score for o in options] == sorted((o.score for o in options), reverse=True)


def test_place_has_one_option_a_placement() -> None:
    """All 34 legal placements of T are ranked, each with a plan of one instruction."""
    engine = TetrisEngine.drawn([], "T", opcodes="place")
    options = TetrisPlanner().rank(engine)
    assert {o.instruction for o in options} == set(engine.legal())
    assert len(options) == 34
    assert all(o.plan == (o.instruction,) for o in options)


def test_placement_that_ends_the_game_comes_last() -> None:
    """On a tower of 16 rows the upright T in the middle would block the entry; it ranks below all others."""
    engine = TetrisEngine.drawn(["....##....", "....##...."] * 8, "T")
    ranked = TetrisPlanner().placements(engine)
    fatal = [p.fatal for _, p in ranked]
    assert any(fatal)
    assert fatal == sorted(fatal)


def test_tie_goes_to_the_shorter_way() -> None:
    """O on an empty board is as good at either wall; one key to the right, the right one is nearer."""
    engine, planner = TetrisEngine.drawn([], "O"), TetrisPlanner()
    scores = {p.column: score for score, p in planner.placements(engine)}
    assert scores[0] == scores[8] == max(scores.values())
    assert planner.rank(engine)[0].instruction == KEYS["left"]
    engine.apply(KEYS["right"])
    assert planner.rank(engine)[0].plan == (*[KEYS["right"]] * 3, KEYS["drop"])


def test_nothing_is_ranked_after_the_end() -> None:
    """No option when nothing is legal."""
    engine = TetrisEngine.drawn(["....##....", "....##...."] * 9, "O")
    engine.apply(KEYS["drop"])
    assert list(TetrisPlanner().rank(engine)) == []


def test_foreign_engine_is_refused() -> None:
    """The error says what would work."""
    with pytest.raises(CartridgeError, match="give it a TetrisEngine"):
        TetrisPlanner().rank("board")  # type: ignore[arg-type]


@pytest.mark.parametrize("opcodes", ["moves", "place"])
@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.integers(0, 1022), max_size=14), letter=st.sampled_from(KINDS))
def test_each_option_is_legal_and_its_plan_reaches_its_placement(
    opcodes: OpcodeSet, words: list[int], letter: str
) -> None:
    """The plan goes through the checked door and ends on the board that was scored."""
    rows = ["".join("#" if word >> x & 1 else "." for x in range(10)) for word in words]
    engine = TetrisEngine.drawn(rows, letter, opcodes=opcodes)
    planner = TetrisPlanner()
    boards: dict[float, set[int]] = {}
    for score, placement in planner.placements(engine):
        boards.setdefault(score, set()).add(placement.board)
    options = planner.rank(engine)
    assert options
    for option in options:
        assert option.instruction in engine.legal()
        game = engine.copy()
        for instruction in option.plan:
            assert game.summary()["pieces"] == 0
            game.apply(instruction)
        assert game.summary()["pieces"] == 1
        assert game.board in boards[option.score]


def test_plan_made_anew_after_each_key_stays_the_plan() -> None:
    """For 150 pieces the best option after a key is the rest of the best option before it: no to and fro."""
    for weights in (EL_TETRIS, DELLACHERIE):
        engine, planner = TetrisEngine(seed=1), TetrisPlanner(weights)
        for _ in range(150):
            plan = planner.rank(engine)[0].plan
            for n, instruction in enumerate(plan):
                assert planner.rank(engine)[0].plan == plan[n:], f"\n{engine}"
                engine.apply(instruction)
        assert engine.summary()["pieces"] == 150


# -- whole games ------------------------------------------------------------------------------------------------------


def play(opcodes: OpcodeSet, seed: int, pieces: int) -> TetrisEngine:
    engine, planner = TetrisEngine(opcodes, seed), TetrisPlanner()
    while engine.ended() is None and int(engine.summary()["pieces"]) < pieces:
        for instruction in planner.rank(engine)[0].plan:
            engine.apply(instruction)
    return engine


@pytest.mark.parametrize("opcodes", ["moves", "place"])
def test_planner_alone_survives(opcodes: OpcodeSet) -> None:
    """300 pieces on seeds 0 to 4: 1200 cells, of which fewer than 100 are left, so at least 110 lines."""
    for seed in range(5):
        engine = play(opcodes, seed, 300)
        assert engine.ended() is None, f"seed {seed}\n{engine}"
        assert int(engine.summary()["lines"]) >= 110, f"seed {seed}\n{engine}"


@pytest.mark.slow
@pytest.mark.parametrize("opcodes", ["moves", "place"])
@pytest.mark.parametrize("seed", range(10))
def test_planner_alone_survives_ten_thousand_pieces(opcodes: OpcodeSet, seed: int) -> None:
    """10,000 pieces are 40,000 cells; without losing, at least 3,980 lines are gone."""
    engine = play(opcodes, seed, 10_000)
    assert engine.ended() is None, f"\n{engine}"
    assert engine.summary()["pieces"] == 10_000
    assert int(engine.summary()["lines"]) >= 3_980
