"""The scavenger: walls, pits, hands, budget, and a planner that brings everything home."""

from __future__ import annotations

import random

import pytest

from cartridges.kit.search import NO_WAY
from cartridges.scavenger import make
from cartridges.scavenger.board import BUDGET, PITS, WALLS, Board, draw
from cartridges.scavenger.engine import DELIVERED, FELL, SPENT, ScavengerEngine
from cartridges.scavenger.opcodes import COMMANDS, OPCODES
from cartridges.scavenger.planner import ScavengerPlanner
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.opcode import words

BY_WORDS = {words(command, OPCODES): command for command in COMMANDS}

SMALL = Board(
    walls=frozenset({(1, 0)}), pits=frozenset({(2, 1)}), home=(0, 0), items=(("key", (1, 1)), ("gem", (0, 2)))
)
"""Home in the corner, a wall east of it, the key one step beyond the corner, a pit behind the key."""


def small() -> ScavengerEngine:
    """Return a game on SMALL."""
    engine = ScavengerEngine()
    engine.board, engine.lying, engine.position = SMALL, SMALL.items, SMALL.home
    return engine


def play(engine: ScavengerEngine, *commands: str) -> list[str]:
    """Apply these commands and return what was said."""
    return [engine.apply(BY_WORDS[command]) for command in commands]


def legal(engine: ScavengerEngine) -> list[str]:
    """Return the legal instructions as words."""
    return [words(instruction, OPCODES) for instruction in engine.legal()]


def test_there_are_ten_commands() -> None:
    """4 directions, 3 objects to take, 3 to deliver."""
    assert len(BY_WORDS) == len(COMMANDS) == 4 + 3 + 3


def test_walls_and_edges_cannot_be_walked_into() -> None:
    """In the corner with a wall to the east only south is left."""
    assert legal(small()) == ["go south"]


def test_an_object_is_taken_where_it_lies_and_delivered_at_home() -> None:
    """Fetch the key, then the gem; each with the moves counted by hand: 6 and 6."""
    engine = small()
    said = play(engine, "go south", "go east", "take key", "go west", "go north")
    assert said == ["walked south", "walked east", "took the key", "walked west", "walked north"]
    assert legal(engine) == ["go south", "deliver key"]
    assert play(engine, "deliver key") == ["delivered the key"]
    play(engine, "go south", "go south", "take gem", "go north", "go north", "deliver gem")
    assert engine.summary() == {"moves": 12, "delivered": 2}
    assert engine.ended() == DELIVERED
    assert list(engine.legal()) == []


def test_hands_hold_one_object() -> None:
    """With the key in hand the gem cannot be taken."""
    engine = small()
    play(engine, "go south", "go east", "take key", "go west", "go south")
    assert engine.position == (0, 2)
    assert "take gem" not in legal(engine)


def test_a_pit_is_legal_and_the_end() -> None:
    """East of the key is a pit; afterwards nothing is legal and an instruction is refused with the reason."""
    engine = small()
    play(engine, "go south", "go east")
    assert "go east" in legal(engine)
    assert play(engine, "go east") == [FELL]
    assert engine.ended() == FELL
    with pytest.raises(IllegalInstructionError, match="comes too late: fell into a pit"):
        play(engine, "go west")


def test_an_illegal_instruction_changes_nothing() -> None:
    """There is no key at home to take."""
    engine = small()
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match=r"scavenger\.take\(item='key'\) is not legal here"):
        play(engine, "take key")
    assert (engine.state_hash(), engine.moves) == (before, 0)


def test_the_budget_ends_the_game() -> None:
    """Eighty steps up and down use it up."""
    engine = small()
    play(engine, *["go south", "go north"] * (BUDGET // 2))
    assert engine.ended() == SPENT


def test_moves_needed_by_hand() -> None:
    """The key is 2 steps away and the gem 2: twice there and back, and two moves each for the hands."""
    assert SMALL.moves_needed() == 2 * 2 + 2 + 2 * 2 + 2
    walled = Board(frozenset({(0, 1), (1, 0)}), frozenset(), (0, 0), (("key", (3, 3)),))
    assert walled.moves_needed() is None


@pytest.mark.parametrize("seed", range(30))
def test_every_map_can_be_done_and_is_the_same_for_its_seed(seed: int) -> None:
    """Walls, pits, home and objects are apart, and all is fetched within three quarters of the budget."""
    board = draw(seed)
    cells = [*board.walls, *board.pits, board.home, *(cell for _, cell in board.items)]
    assert len(set(cells)) == len(cells) == WALLS + PITS + 1 + 3
    needed = board.moves_needed()
    assert needed is not None
    assert needed <= 60
    assert board == draw(seed)


@pytest.mark.parametrize("seed", range(20))
def test_the_planner_brings_everything_home_in_as_few_moves_as_there_are(seed: int) -> None:
    """The moves it takes are those that plain distances on the map say are needed."""
    engine = ScavengerEngine(seed)
    while engine.ended() is None:
        best = ScavengerPlanner().rank(engine)[0]
        assert len(best.plan) == -best.score
        engine.apply(best.instruction)
    assert engine.ended() == DELIVERED
    assert engine.moves == engine.board.moves_needed()


def test_the_planner_names_the_pit_and_ranks_it_last() -> None:
    """On the key, hands empty: take it is best, the pit has no way home."""
    engine = small()
    play(engine, "go south", "go east")
    options = ScavengerPlanner().rank(engine)
    assert words(options[0].instruction, OPCODES) == "take key"
    assert options[0].note == "delivers the key in 4 moves"
    assert (words(options[-1].instruction, OPCODES), options[-1].score, options[-1].note) == ("go east", NO_WAY, FELL)


@pytest.mark.parametrize("seed", range(10))
def test_a_random_player_stays_on_the_map_and_ends(seed: int) -> None:
    """Copies stay equal to their original under the same moves, and apart otherwise."""
    engine = ScavengerEngine(seed)
    choose = random.Random(seed)
    while engine.ended() is None:
        instruction = choose.choice(engine.legal())
        twin, before = engine.copy(), engine.state_hash()
        twin.apply(instruction)
        assert engine.state_hash() == before
        engine.apply(instruction)
        assert engine.state_hash() == twin.state_hash() != before
        assert engine.board.open(engine.position)
    assert engine.moves <= BUDGET


def test_planner_and_view_refuse_another_engine() -> None:
    """The error names what would do."""
    other = object()
    with pytest.raises(CartridgeError, match="give it a ScavengerEngine"):
        ScavengerPlanner().rank(other)  # type: ignore[arg-type]
    with pytest.raises(CartridgeError, match="give it a ScavengerEngine"):
        make().view.render(other)  # type: ignore[arg-type]


def test_the_map_can_be_played_by_eye() -> None:
    """The first rows of SMALL from the key's place, and what is held."""
    engine = small()
    play(engine, "go south", "go east", "take key")
    lines = make().view.render(engine).renderable.plain.splitlines()
    assert [line.replace(" ", "") for line in lines[:3]] == ["H#········", "·@O·······", "g·········"]
    assert lines[-2:] == ["holding key, delivered 0/2", f"moves left {BUDGET - 3}"]


def test_the_prompt_says_what_is_in_the_hands() -> None:
    """Without a request the planner's options are marked; with one only the request is, behind the guide."""
    view, engine = make().view, small()
    options = ScavengerPlanner().rank(engine)
    assert "".join(part.text for part in view.prompt(engine, options).parts) == (
        "Options:\n- good: none\n- best: go south\nA map with walls and pits. Your hands are empty.\nBest move:"
    )
    asked = view.prompt(engine, options, "walk down")
    assert "".join(part.text for part in asked.parts).endswith("\n\nRequest: walk down\nCommand:")
