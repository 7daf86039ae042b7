"""The rules of Tetris, against boards and counts worked out by hand."""

from __future__ import annotations

import random

import pytest

from cartridges.tetris.board import KINDS
from cartridges.tetris.engine import TOPPED_OUT, TetrisEngine
from cartridges.tetris.opcodes import KEYS, SPOTS, Action, OpcodeSet
from kernel.errors import IllegalInstructionError, UsageError
from kernel.opcode import HALT_INSTRUCTION, Instruction

EMPTY = "." * 10


def press(engine: TetrisEngine, *keys: Action) -> str:
    """Go through the checked door with each key; return what the last one said."""
    said = ""
    for key in keys:
        said = engine.apply(KEYS[key])
    return said


def bottom(engine: TetrisEngine, count: int) -> list[str]:
    """The lowest rows of the picture; the falling piece, far above, must not reach into them."""
    rows = engine.rows()[-count:]
    assert not any(letter.islower() for row in rows for letter in row), f"\n{engine}"
    return rows


# -- reference counts: distinct placements on an empty board ten columns wide -----------------------------------------

PLACEMENTS = {"O": 9, "I": 17, "S": 17, "Z": 17, "J": 34, "L": 34, "T": 34}


@pytest.mark.parametrize("letter", KINDS)
@pytest.mark.parametrize("opcodes", ["moves", "place"])
def test_empty_board_has_the_known_number_of_placements(letter: str, opcodes: OpcodeSet) -> None:
    """O 9, I S Z 17, J L T 34: (11 - width) summed over the distinct rotations."""
    engine = TetrisEngine.drawn([], letter, opcodes=opcodes)
    found = engine.placements()
    picture = "\n".join(f"rotation {p.rotation} column {p.column}: {' '.join(p.keys)}" for p in found)
    assert len(found) == PLACEMENTS[letter], f"\n{engine}\n{picture}"
    assert len({p.board for p in found}) == PLACEMENTS[letter], f"\n{engine}\n{picture}"
    if opcodes == "place":
        assert len(engine.legal()) == PLACEMENTS[letter], f"\n{engine}\n{picture}"


@pytest.mark.parametrize("letter", KINDS)
def test_both_walls_are_reached(letter: str) -> None:
    """Some placement of each piece covers a cell of column 0 and some one of column 9."""
    boards = [p.board for p in TetrisEngine.drawn([], letter).placements()]
    first, last = (sum(1 << 10 * y + x for y in range(20)) for x in (0, 9))
    assert any(board & first for board in boards)
    assert any(board & last for board in boards)


# -- pieces -----------------------------------------------------------------------------------------------------------

ROTATIONS = {
    # the picture of the top rows after 0, 1, 2, 3 turns, one row of gravity each; drawn by hand
    "I": [
        ["...iiii..."],
        [EMPTY, ".....i....", ".....i....", ".....i....", ".....i...."],
        [EMPTY, EMPTY, "...iiii..."],
    ],
    "O": [["....oo....", "....oo...."]],
    "S": [
        ["....ss....", "...ss....."],
        [EMPTY, "....s.....", "....ss....", ".....s...."],
        [EMPTY, EMPTY, "....ss....", "...ss....."],
    ],
    "Z": [
        ["...zz.....", "....zz...."],
        [EMPTY, ".....z....", "....zz....", "....z....."],
        [EMPTY, EMPTY, "...zz.....", "....zz...."],
    ],
    "T": [
        ["....t.....", "...ttt...."],
        [EMPTY, "....t.....", "....tt....", "....t....."],
        [EMPTY, EMPTY, "...ttt....", "....t....."],
        [EMPTY, EMPTY, EMPTY, "....t.....", "...tt.....", "....t....."],
        [EMPTY, EMPTY, EMPTY, EMPTY, "....t.....", "...ttt...."],
    ],
    "J": [
        ["...j......", "...jjj...."],
        [EMPTY, "....jj....", "....j.....", "....j....."],
        [EMPTY, EMPTY, "...jjj....", ".....j...."],
        [EMPTY, EMPTY, EMPTY, "....j.....", "....j.....", "...jj....."],
        [EMPTY, EMPTY, EMPTY, EMPTY, "...j......", "...jjj...."],
    ],
    "L": [
        [".....l....", "...lll...."],
        [EMPTY, "....l.....", "....l.....", "....ll...."],
        [EMPTY, EMPTY, "...lll....", "...l......"],
        [EMPTY, EMPTY, EMPTY, "...ll.....", "....l.....", "....l....."],
        [EMPTY, EMPTY, EMPTY, EMPTY, ".....l....", "...lll...."],
    ],
}


@pytest.mark.parametrize("letter", KINDS)
def test_turns_are_clockwise_and_come_back(letter: str) -> None:
    """Every turn gives the drawn picture; the last drawing is the first one, some rows lower."""
    engine = TetrisEngine.drawn([], letter)
    for turn, drawing in enumerate(ROTATIONS[letter]):
        if turn:
            press(engine, "rotate")
        assert engine.rows() == drawing + [EMPTY] * (20 - len(drawing)), f"turn {turn}\n{engine}"


def test_pieces_come_in_bags_of_seven() -> None:
    """Each run of seven pieces of a game holds every letter once, and the next piece is told right."""
    engine = TetrisEngine("moves", seed=3)
    letters = []
    for _ in range(21):
        letters.append(engine.piece)
        announced = engine.next_piece
        press(engine, *min(engine.placements(), key=lambda p: (p.row, p.height)).keys)
        assert engine.piece == announced
    for start in (0, 7, 14):
        assert sorted(letters[start : start + 7]) == sorted(KINDS)


# -- gravity and locking ----------------------------------------------------------------------------------------------


def test_each_key_costs_one_row() -> None:
    """left, right, rotate and down leave the piece one row lower, nothing locked."""
    engine = TetrisEngine.drawn([], "O")
    press(engine, "left")
    assert engine.rows()[:4] == [EMPTY, "...oo.....", "...oo.....", EMPTY]
    press(engine, "down")
    assert engine.rows()[:4] == [EMPTY, EMPTY, "...oo.....", "...oo....."]
    press(engine, "right")
    assert engine.rows()[2:6] == [EMPTY, "....oo....", "....oo....", EMPTY]
    assert engine.summary()["pieces"] == 0


def test_piece_that_cannot_fall_locks_after_the_key() -> None:
    """O enters with its lower row at 18, so 18 times down lays it on the floor and one more locks it."""
    engine = TetrisEngine.drawn([], "O")
    press(engine, *["down"] * 18)
    assert engine.rows()[-2:] == ["....oo....", "....oo...."]
    assert press(engine, "down") == "O locked at column 4"
    assert bottom(engine, 2) == ["....OO....", "....OO...."]
    assert engine.piece == "T"


def test_piece_at_rest_can_still_be_moved_once() -> None:
    """On the floor one key aside is carried out, and then it locks."""
    engine = TetrisEngine.drawn([], "O")
    press(engine, *["down"] * 18, "right")
    assert bottom(engine, 2) == [".....OO...", ".....OO..."]


def test_piece_moved_off_a_ledge_falls_on() -> None:
    """A key that ends over a gap does not lock."""
    engine = TetrisEngine.drawn(["....#....."], "O")
    press(engine, *["down"] * 17)
    assert engine.rows()[-3:] == ["....oo....", "....oo....", "....#....."]
    press(engine, "right")
    assert engine.rows()[-3:] == [EMPTY, ".....oo...", "....#oo..."]


def test_drop_falls_all_the_way_and_locks() -> None:
    """A dropped T lies on the stack under it, not in the hole beside."""
    engine = TetrisEngine.drawn(["...#......", "...#......"], "T")
    assert press(engine, "drop") == "T locked at column 3"
    assert bottom(engine, 4) == ["....T.....", "...TTT....", "...#......", "...#......"]


def test_piece_tucks_under_an_overhang() -> None:
    """The place below the roof is among the placements, with keys that lead there; place mode leaves it out."""
    rows = ["####......", "..........", ".........."]
    engine = TetrisEngine.drawn(rows, "O")
    tuck = next(p for p in engine.placements() if (p.column, p.row) == (3, 0))
    assert tuck.keys == (*["down"] * 18, "left")
    press(engine, *tuck.keys)
    assert bottom(engine, 3) == ["####......", "...OO.....", "...OO....."]
    assert engine.board == tuck.board
    place = TetrisEngine.drawn(rows, "O", opcodes="place")
    assert [p.row for p in place.placements() if p.column == 3] == [3]


# -- full rows --------------------------------------------------------------------------------------------------------


def test_full_row_vanishes_and_the_stack_comes_down() -> None:
    """O fills the gap of the lowest row: that row goes, O's upper half and the stack come down by one."""
    engine = TetrisEngine.drawn(["LL........", "JJJJ..JJJJ"], "O")
    assert press(engine, "drop") == "O locked at column 4, cleared 1 line"
    assert bottom(engine, 2) == [EMPTY, "LL..OO...."]
    assert engine.summary() == {"pieces": 1, "lines": 1, "height": 1}


def test_four_rows_vanish_at_once() -> None:
    """The upright I in the last column clears four rows; what stood above them stays."""
    engine = TetrisEngine.drawn(["SS........", *["#########."] * 4], "I")
    said = press(engine, "rotate", "right", "right", "right", "right", "drop")
    assert said == "I locked at column 9, cleared 4 lines"
    assert bottom(engine, 2) == [EMPTY, "SS........"]
    assert engine.summary() == {"pieces": 1, "lines": 4, "height": 1}


def test_rows_apart_vanish_together() -> None:
    """The upright I fills the first and the third row; the second and fourth stay, in their order."""
    engine = TetrisEngine.drawn(["ZZ........", "#########.", "LL........", "#########."], "I")
    place = next(p for p in engine.placements() if p.column == 9 and p.height == 4)
    assert (place.lines, place.eroded, place.row) == (2, 2, 0)
    assert press(engine, *place.keys) == "I locked at column 9, cleared 2 lines"
    assert bottom(engine, 3) == [EMPTY, "ZZ.......I", "LL.......I"]


# -- legality ---------------------------------------------------------------------------------------------------------


def test_keys_that_change_nothing_are_not_legal() -> None:
    """Against a wall the key into it is missing; O never turns; down and drop are always there."""
    engine = TetrisEngine.drawn([], "O")
    assert engine.legal() == [KEYS["left"], KEYS["right"], KEYS["down"], KEYS["drop"]]
    press(engine, "left", "left", "left", "left")
    assert engine.legal() == [KEYS["right"], KEYS["down"], KEYS["drop"]]


def test_no_kick_at_the_wall() -> None:
    """An upright I in the last column has no room to lie down."""
    engine = TetrisEngine.drawn([], "I")
    press(engine, "rotate", *["right"] * 4)
    assert engine.legal() == [KEYS["left"], KEYS["down"], KEYS["drop"]]


REFUSED = [
    ("moves", KEYS["rotate"]),
    ("moves", SPOTS[4, 0]),
    ("moves", HALT_INSTRUCTION),
    ("moves", Instruction.of("tetris", "move", action="up")),
    ("moves", Instruction.of("home", "move", action="left")),
    ("place", SPOTS[9, 0]),
    ("place", SPOTS[4, 1]),
    ("place", KEYS["drop"]),
    ("place", Instruction.of("tetris", "place", column=4)),
    ("place", Instruction.of("tetris", "place", column="4", rotation=0)),
]


@pytest.mark.parametrize(("opcodes", "instruction"), REFUSED)
def test_illegal_instruction_is_refused_and_changes_nothing(opcodes: OpcodeSet, instruction: Instruction) -> None:
    """The error names the instruction and what would be legal; the state hash stays."""
    engine = TetrisEngine.drawn([], "O", opcodes=opcodes)
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match="is not legal here; legal are tetris") as caught:
        engine.apply(instruction)
    assert repr(instruction) in str(caught.value)
    assert engine.state_hash() == before


def test_unknown_set_of_opcodes_is_refused() -> None:
    """The error offers the set that was meant."""
    with pytest.raises(UsageError, match="'movs'; did you mean 'moves'"):
        TetrisEngine("movs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "piece", "message"),
    [
        (["...."], "T", "'....': 10 cells"),
        (["....x....."], "T", "'....x.....': 10 cells"),
        (["##########"], "T", "is full"),
        ([EMPTY] * 21, "T", "21 rows"),
        ([], "Q", "no piece 'Q'"),
        ([], "", "no piece ''"),
    ],
)
def test_wrong_drawing_is_refused(rows: list[str], piece: str, message: str) -> None:
    """A board that cannot be is named."""
    with pytest.raises(UsageError, match=message):
        TetrisEngine.drawn(rows, piece)


# -- the end ----------------------------------------------------------------------------------------------------------


def test_game_ends_when_the_next_piece_has_no_room() -> None:
    """O upon a tower of 18 rows reaches the ceiling, and nothing is legal any more."""
    engine = TetrisEngine.drawn(["....##....", "....##...."] * 9, "O")
    assert engine.ended() is None
    said = press(engine, "drop")
    assert said == f"O locked at column 4, {TOPPED_OUT}"
    assert engine.ended() == TOPPED_OUT
    assert engine.legal() == []
    assert engine.placements() == ()
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match="comes too late: topped out"):
        press(engine, "drop")
    assert engine.state_hash() == before


def test_placement_knows_that_it_ends_the_game() -> None:
    """On a tower of 16 rows O leaves room for T; on one of 18 it cannot even get off, and T has none."""
    engine = TetrisEngine.drawn(["....##....", "....##...."] * 8, "O")
    assert sorted((p.column, p.row, p.fatal) for p in engine.placements()) == [
        *((column, 0, False) for column in (0, 1, 2)),
        *((column, 16, False) for column in (3, 4, 5)),
        *((column, 0, False) for column in (6, 7, 8)),
    ]
    engine = TetrisEngine.drawn(["....##....", "....##...."] * 9, "O")
    assert sorted((p.column, p.row, p.fatal) for p in engine.placements()) == [
        (3, 18, True),
        (4, 18, True),
        (5, 18, True),
    ]


# -- copies, seeds, hashes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcodes", ["moves", "place"])
def test_copy_is_independent(opcodes: OpcodeSet) -> None:
    """Playing the copy leaves the original as it was, and the other way round."""
    engine = TetrisEngine(opcodes, seed=5)
    twin = engine.copy()
    start, picture = engine.state_hash(), str(engine)
    assert twin.state_hash() == start
    for _ in range(5):
        twin.apply(twin.legal()[-1])
    assert (engine.state_hash(), str(engine)) == (start, picture)
    there = twin.state_hash()
    engine.apply(engine.legal()[0])
    assert twin.state_hash() == there


@pytest.mark.parametrize("opcodes", ["moves", "place"])
def test_same_seed_and_instructions_give_the_same_hashes(opcodes: OpcodeSet) -> None:
    """Two engines, one of them used before, stay equal for a game of random legal instructions."""
    one, two = TetrisEngine(opcodes), TetrisEngine(opcodes, seed=99)
    two.apply(two.legal()[0])
    one.reset(11)
    two.reset(11)
    dice = random.Random(0)
    hashes = []
    while one.ended() is None:
        assert one.legal() == two.legal()
        instruction = dice.choice(list(one.legal()))
        assert one.apply(instruction) == two.apply(instruction)
        assert one.state_hash() == two.state_hash()
        hashes.append(one.state_hash())
    assert two.ended() == TOPPED_OUT
    assert len(set(hashes)) == len(hashes), "a state came twice, but pieces are counted"


def test_seeds_differ() -> None:
    """Fifty seeds give fifty states; negative and huge ones are taken too."""
    assert len({TetrisEngine(seed=seed).state_hash() for seed in [*range(48), -1, 1 << 63]}) == 50


BAGS = {0: "ZOJTSIL", 1: "TZSOIJL", 7: "TZSOJIL"}


def first_bag(seed: int) -> str:
    """Return the letters of the first seven pieces of a seed."""
    engine = TetrisEngine(seed=seed)
    return engine.piece + engine.next_piece + "".join(KINDS[kind] for kind in engine._bag)


@pytest.mark.parametrize("seed", BAGS)
def test_first_pieces_of_a_seed_never_change(seed: int) -> None:
    """Old logs replay only while this holds; whoever changes it gives the cartridge a new version."""
    assert first_bag(seed) == BAGS[seed]


def test_each_piece_is_as_likely_at_each_place_of_a_bag() -> None:
    """Over 1400 seeds each letter stands at each of the seven places 200 times, give or take five deviations (65)."""
    bags = [first_bag(seed) for seed in range(1400)]
    counts = {(letter, place): sum(bag[place] == letter for bag in bags) for letter in KINDS for place in range(7)}
    assert all(135 < count < 265 for count in counts.values()), counts


STATE = {
    "board": 1, "_paint": (1, 0, 0), "_kind": 5, "_rotation": 1, "_column": 2, "_top": 9, "_next": 0,
    "_bag": (1,), "_random": 1, "_pieces": 1, "_lines": 1, "_ended": TOPPED_OUT,
}  # fmt: skip


@pytest.mark.parametrize("name", STATE)
def test_hash_covers_the_whole_state(name: str) -> None:
    """Two games that differ in one thing only have two hashes; what is kept for speed does not count."""
    engine = TetrisEngine.drawn([], "I", "O")
    before = engine.state_hash()
    engine.placements()
    assert engine.state_hash() == before
    assert set(STATE) | {"_free", "_placements", "_reached", "opcodes"} == set(TetrisEngine.__slots__)
    setattr(engine, name, STATE[name])
    assert engine.state_hash() != before


def test_place_ends_where_its_keys_end() -> None:
    """Piece by piece, one `place` and the key sequence of the same placement lead to one state hash."""
    dice = random.Random(4)
    place, moves = TetrisEngine("place", seed=2), TetrisEngine("moves", seed=2)
    while place.ended() is None:
        low = sorted(place.placements(), key=lambda p: p.row)[:4]
        chosen = dice.choice(low)
        assert chosen in moves.placements()
        place.apply(SPOTS[chosen.column, chosen.rotation])
        press(moves, *chosen.keys)
        assert place.state_hash() == moves.state_hash()
    assert moves.ended() == TOPPED_OUT
    assert moves.summary() == place.summary() == {"pieces": 34, "lines": 2, "height": 20}
