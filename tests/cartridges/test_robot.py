"""The robot: what it may not do, what comes of what it does, and how the planner finds the marks."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from cartridges.kit.search import NO_WAY
from cartridges.robot import make
from cartridges.robot.engine import ARRIVED, BATTERY, EMPTY, HEIGHT, WIDTH, RobotEngine, State
from cartridges.robot.opcodes import COMMANDS, OPCODES
from cartridges.robot.planner import RobotPlanner
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.opcode import Instruction, words
from kernel.prompt import Piece

BY_WORDS = {words(command, OPCODES): command for command in COMMANDS}


def floor(**changes: object) -> RobotEngine:
    """Return an engine with the robot at (2, 2) facing north, nobody near, a mark far away."""
    engine = RobotEngine()
    known: dict[str, object] = {"marks": ((7, 5),), "person": (7, 0), "robot": (2, 2), "heading": 0}
    engine.state = State(**(known | changes))  # type: ignore[arg-type]
    return engine


def legal(engine: RobotEngine) -> list[str]:
    """Return the legal instructions as words."""
    return [words(instruction, OPCODES) for instruction in engine.legal()]


def tell(engine: RobotEngine, command: str) -> str:
    """Apply the command with these words."""
    return engine.apply(BY_WORDS[command])


def test_there_are_eighteen_commands() -> None:
    """2 ways x 4 distances, 3 turns, 6 phrases, stop."""
    assert len(BY_WORDS) == len(COMMANDS) == 2 * 4 + 3 + 6 + 1


def test_a_drive_is_legal_exactly_as_far_as_the_floor_is_free() -> None:
    """At (2, 2) facing north there are two free cells ahead, and behind three to the wall at row 5."""
    drives = [text for text in legal(floor()) if text.startswith("drive")]
    assert drives == [
        "drive forward 50",
        "drive forward 100",
        "drive back 50",
        "drive back 100",
        "drive back 150",
    ]


def test_boxes_and_people_block_the_whole_way_behind_them() -> None:
    """A box one cell ahead forbids every forward drive; the person two cells behind all but half a metre back."""
    drives = [text for text in legal(floor(boxes=frozenset({(2, 1)}), person=(2, 4))) if text.startswith("drive")]
    assert drives == ["drive back 50"]


def test_an_illegal_drive_is_refused_and_changes_nothing() -> None:
    """Two metres ahead would go through the wall."""
    engine = floor()
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match=r"robot\.drive\(way='forward', cm=200\) is not legal here"):
        tell(engine, "drive forward 200")
    with pytest.raises(IllegalInstructionError, match="is not legal here"):
        engine.apply(Instruction.of("robot", "drive", way="forward", cm=60))
    assert (engine.state_hash(), engine.done) == (before, 0)


@pytest.mark.parametrize(
    ("command", "robot", "heading", "battery"),
    [
        ("drive forward 100", (2, 0), 0, BATTERY - 2),
        ("drive back 150", (2, 5), 0, BATTERY - 3),
        ("turn left", (2, 2), 3, BATTERY - 1),
        ("turn right", (2, 2), 1, BATTERY - 1),
        ("turn around", (2, 2), 2, BATTERY - 2),
        ("speak hello", (2, 2), 0, BATTERY),
        ("stop", (2, 2), 0, BATTERY),
    ],
)
def test_the_body_moves_as_told_and_pays_for_it(
    command: str, robot: tuple[int, int], heading: int, battery: int
) -> None:
    """From (2, 2) facing north with a full battery."""
    engine = floor()
    tell(engine, command)
    assert (engine.state.robot, engine.state.heading, engine.state.battery) == (robot, heading, battery)


def test_stop_switches_the_motors_off() -> None:
    """A turn switches them on, stop off again."""
    engine = floor()
    tell(engine, "turn left")
    assert engine.state.motors
    assert tell(engine, "stop") == "standing still"
    assert not engine.state.motors


def test_a_person_in_front_steps_aside_when_asked() -> None:
    """The person north of the robot goes to its left, west; where a box stands there, to its right, east."""
    engine = floor(person=(2, 1))
    assert tell(engine, "speak hello") == "said hello, the person nods"
    assert tell(engine, "speak excuse-me") == "said excuse-me, the person steps aside"
    assert engine.state.person == (1, 1)
    engine = floor(person=(2, 1), boxes=frozenset({(1, 1)}))
    tell(engine, "speak excuse-me")
    assert engine.state.person == (3, 1)


def test_words_to_nobody_change_nothing() -> None:
    """The person is at the other end of the room."""
    engine = floor()
    before = engine.state_hash()
    assert tell(engine, "speak excuse-me") == "said excuse-me, nobody is in front"
    assert engine.state_hash() == before


def test_marks_count_in_their_order_only_and_the_last_one_ends_it() -> None:
    """B is passed first and does not count; then A, then B."""
    engine = floor(marks=((2, 0), (2, 1)))
    tell(engine, "drive forward 50")
    assert engine.state.reached == 0
    assert tell(engine, "drive forward 50") == "drove forward 50 cm, reached mark A"
    assert tell(engine, "drive back 50") == "drove back 50 cm, reached mark B"
    assert engine.ended() == ARRIVED
    assert list(engine.legal()) == []
    with pytest.raises(IllegalInstructionError, match="comes too late: all marks reached"):
        tell(engine, "stop")


def test_an_empty_battery_ends_it_and_a_low_one_bounds_the_drive() -> None:
    """With one unit left half a metre and a quarter turn are legal, a metre and a half turn are not."""
    engine = floor(battery=1)
    assert "drive forward 100" not in legal(engine)
    assert "turn around" not in legal(engine)
    tell(engine, "drive forward 50")
    assert engine.ended() == EMPTY


@pytest.mark.parametrize("seed", range(20))
def test_a_random_player_collides_with_nothing(seed: int) -> None:
    """After every step the robot is on the floor, apart from boxes and the person; equal seeds stay equal."""
    engine, twin = RobotEngine(seed), RobotEngine(seed)
    choose = random.Random(seed)
    while engine.ended() is None:
        instruction = choose.choice(engine.legal())
        assert engine.apply(instruction) == twin.apply(instruction)
        x, y = engine.state.robot
        assert 0 <= x < WIDTH
        assert 0 <= y < HEIGHT
        assert engine.state.robot not in engine.state.boxes | {engine.state.person}
        assert engine.state.person not in engine.state.boxes
    assert engine.state_hash() == twin.state_hash()


def test_the_person_can_always_step_aside() -> None:
    """From each free side of the person on 200 floors, 571 in all, `excuse-me` moves the person to a free cell."""
    tried = 0
    for seed in range(200):
        state = RobotEngine(seed).state
        x, y = state.person
        for heading, (dx, dy) in enumerate([(0, -1), (1, 0), (0, 1), (-1, 0)]):
            engine = RobotEngine(seed)
            here = (x - dx, y - dy)
            if here in state.boxes or not (0 <= here[0] < WIDTH and 0 <= here[1] < HEIGHT):
                continue
            engine.state = State(state.boxes, state.marks, state.person, here, heading)
            assert tell(engine, "speak excuse-me").endswith("steps aside"), (seed, heading)
            assert engine.state.person not in engine.state.boxes | {here, state.person}
            tried += 1
    assert tried == 571


@pytest.mark.parametrize("seed", range(8))
def test_the_planner_reaches_all_marks_and_keeps_its_word(seed: int) -> None:
    """Each best plan is legal to its end and reaches the next mark in as many steps as its score says."""
    engine = RobotEngine(seed)
    while engine.ended() is None:
        best = RobotPlanner().rank(engine)[0]
        reached = engine.state.reached
        assert len(best.plan) == -best.score
        assert best.plan[0] == best.instruction
        for instruction in best.plan:
            assert engine.state.reached == reached
            engine.apply(instruction)
        assert engine.state.reached == reached + 1
    assert engine.ended() == ARRIVED


def test_the_planner_asks_the_person_to_step_aside() -> None:
    """In front of the mark stands the person; asking and driving past is the shortest way."""
    engine = floor(person=(2, 1), marks=((2, 0),))
    best = RobotPlanner().rank(engine)[0]
    assert [words(step, OPCODES) for step in best.plan] == ["speak excuse-me", "drive forward 100"]
    assert best.note == "mark A in 2 steps"


def test_the_planner_ranks_all_that_is_legal_and_names_dead_ends() -> None:
    """With one unit of battery and the mark two cells away, nothing leads there and a drive ends it."""
    engine = floor(battery=1, marks=((2, 0),))
    options = {words(option.instruction, OPCODES): option for option in RobotPlanner().rank(engine)}
    assert sorted(options) == sorted(legal(engine))
    assert {option.score for option in options.values()} == {NO_WAY}
    assert options["drive forward 50"].note == EMPTY
    assert options["stop"].note == "leads away"


def test_planner_and_view_refuse_another_engine() -> None:
    """The error names what would do."""
    other = object()
    with pytest.raises(CartridgeError, match="give it a RobotEngine"):
        RobotPlanner().rank(other)  # type: ignore[arg-type]
    with pytest.raises(CartridgeError, match="give it a RobotEngine"):
        make().view.render(other)  # type: ignore[arg-type]


def test_the_picture_shows_floor_and_body() -> None:
    """Six rows of eight cells, then the battery; the reached mark is gone."""
    engine = floor(boxes=frozenset({(5, 3)}), marks=((0, 0), (7, 5)), reached=1)
    lines = make().view.render(engine).renderable.plain.splitlines()
    assert [line.replace(" ", "") for line in lines[:6]] == [
        "·······P",
        "········",
        "··^·····",
        "·····#··",
        "········",
        "·······B",
    ]
    assert lines[6] == "battery 100/100, motors off"


def test_the_prompt_marks_the_best_option_and_the_null_marks_none() -> None:
    """Without a request the planner's options are shown in the order given; with one the request, behind the guide."""
    view, engine = make().view, floor(person=(2, 1), marks=((2, 0),))
    options = RobotPlanner().rank(engine)
    shown = [options[3], options[0]]
    prompt = view.prompt(engine, shown)
    other, best = (words(option.instruction, OPCODES) for option in shown)
    question = "A robot on the floor. Next: mark A.\nBest move:"

    def text(parts: Sequence[Piece]) -> str:
        return "".join(part.text for part in parts)

    for mark, parts, null in zip(("okay", "weak"), (prompt.parts, *prompt.rotations), prompt.nulls, strict=True):
        head = f"Options:\n- {mark}: none\n- {mark}: {other}\n"
        assert text(parts) == f"{head}- best: {best}\n{question}"
        assert text(null) == f"{head}- {mark}: {best}\n{question}"
    asked = view.prompt(engine, shown, "turn, please")
    assert "".join(part.text for part in asked.parts).endswith("stop: stop\n\nRequest: turn, please\nCommand:")
