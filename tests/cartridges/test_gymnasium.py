"""Gymnasium environments as cartridges: named actions, the contract, a planner on copies."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from cartridges.kit.gymnasium import TERMINATED, TRUNCATED, GymnasiumEngine, wrap
from cartridges.kit.search import ranked
from dispatch.checker import check_cartridge
from dispatch.loading.registry import load
from kernel.contract import Cartridge, Engine
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.opcode import Instruction


def lake(**changes: object) -> Cartridge:
    """Return the frozen lake without slipping: S F F F / F H F H / F F F H / H F F G."""
    return load("cartridges.frozenlake", **changes)


def started(cartridge: Cartridge, seed: int = 0) -> GymnasiumEngine:
    """Return its engine at the start."""
    engine = cartridge.engine()
    assert isinstance(engine, GymnasiumEngine)
    engine.reset(seed)
    return engine


def go(engine: Engine, *actions: str) -> list[str]:
    """Take the actions on the lake; return what was said."""
    return [engine.apply(Instruction.of("frozenlake", "go", action=action)) for action in actions]


def test_actions_have_the_names_that_were_given_in_the_order_of_their_numbers() -> None:
    """Gymnasium numbers left 0, down 1, right 2, up 3."""
    engine = started(lake())
    assert [i.args["action"] for i in engine.legal()] == ["left", "down", "right", "up"]
    go(engine, "down")
    assert engine.observation == 4  # the second row of four


def test_the_way_across_ends_with_the_reward() -> None:
    """Down, down, right, right, down, right: around both holes."""
    engine = started(lake())
    assert go(engine, "down", "down", "right", "right", "down", "right")[-1] == "reward 1"
    assert engine.ended() == TERMINATED
    assert engine.legal() == ()
    assert dict(engine.summary()) == {"steps": 6, "reward": 1.0}


def test_a_step_after_the_end_and_an_unknown_action_are_refused() -> None:
    """Right, down is a hole; nothing changes after it."""
    engine = started(lake())
    with pytest.raises(IllegalInstructionError, match=r"go\(action='jump'\) is not legal"):
        go(engine, "jump")
    go(engine, "right", "down")
    before = engine.state_hash()
    with pytest.raises(IllegalInstructionError, match=f"comes too late: {TERMINATED}"):
        go(engine, "up")
    assert (engine.ended(), engine.state_hash()) == (TERMINATED, before)


def test_ended_by_the_rules_and_cut_off_by_a_limit_are_two_things() -> None:
    """Gymnasium's own limit of the lake is 100 steps; left from the start goes nowhere."""
    engine = started(lake())
    go(engine, *["left"] * 100)
    assert engine.ended() == TRUNCATED
    assert engine.summary()["steps"] == 100


def test_the_planner_finds_the_shortest_way_and_notes_it() -> None:
    """Six steps from the start, by down or by right; seven after a step against the wall."""
    cartridge = lake()
    assert cartridge.planner is not None
    options = cartridge.planner.rank(started(cartridge))
    assert [(o.instruction.args["action"], len(o.plan), o.score) for o in options] == [
        ("down", 6, 1.0),
        ("right", 6, 1.0),
        ("left", 7, 1.0),
        ("up", 7, 1.0),
    ]
    assert options[0].note == "reward 1 in 6"


def test_on_slippery_ice_equal_seeds_slip_equally() -> None:
    """Two games of one seed, and a copy, slip alike; another seed slips otherwise."""
    steps = ["right"] * 30
    one, two, other = (started(lake(slippery=True), seed) for seed in (5, 5, 6))

    def walk(engine: GymnasiumEngine) -> list[int]:
        seen = []
        for step in steps:
            if engine.ended() is None:
                go(engine, step)
            seen.append(int(engine.observation))
        return seen

    copied = one.copy()
    assert walk(one) == walk(two) == walk(copied)
    assert walk(started(lake(slippery=True), 5)) != walk(other)


def test_copies_share_what_is_constant_and_nothing_else() -> None:
    """The table of transitions is one object; where the elf stands is not. An attribute that is none is refused."""
    engine = started(lake(slippery=False), 5)
    twin = engine.copy()
    one, two = engine.env.unwrapped, twin.env.unwrapped
    assert one is not two
    assert one.P is two.P
    before = engine.state_hash()
    twin.apply(twin.legal()[1])
    assert (engine.state_hash(), twin.state_hash() != before) == (before, True)
    with pytest.raises(CartridgeError, match=r"ice: <.*> has no attribute 'Q', so it is not constant"):
        wrap("FrozenLake-v1", ("left", "down", "right", "up"), name="ice", constant=("Q",))


@pytest.mark.parametrize("slippery", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_lake_keeps_the_contract(slippery: bool) -> None:
    """The public checker finds nothing wrong."""
    report = check_cartridge(lake(slippery=slippery), steps=100, seeds=(0,))
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("env", "actions"),
    [
        ("CliffWalking-v1", ("up", "right", "down", "left")),
        ("Blackjack-v1", ("stick", "hit")),
        ("CartPole-v1", ("left", "right")),
    ],
)
def test_other_environments_keep_the_contract_as_they_are(env: str, actions: tuple[str, ...]) -> None:
    """One that draws in characters, one that does not, one whose observations are real numbers."""
    report = check_cartridge(wrap(env, actions, name="other"), steps=100, seeds=(0,))
    assert report.ok, str(report)


def test_an_action_mask_of_the_environment_makes_actions_illegal() -> None:
    """Taxi says which moves do something; seed 0 starts in the upper right corner of its cell: no way east."""
    actions = ("south", "north", "east", "west", "pickup", "dropoff")
    engine = started(wrap("Taxi-v4", actions, name="taxi"))
    mask = [bool(may) for may in engine.env.unwrapped.action_mask(int(engine.observation))]
    assert 0 < sum(mask) < len(actions)
    allowed = [action for action, may in zip(actions, mask, strict=True) if may]
    assert [i.args["action"] for i in engine.legal()] == allowed
    masked = Instruction.of("taxi", "act", action=actions[mask.index(False)])
    with pytest.raises(IllegalInstructionError, match="is not legal"):
        engine.apply(masked)


def test_a_planner_of_depth_one_looks_one_step_ahead_and_none_at_depth_zero() -> None:
    """On the cliff a step to the right from the start costs 100."""
    cliff = wrap("CliffWalking-v1", ("up", "right", "down", "left"), name="cliff")
    assert cliff.planner is not None
    worst = cliff.planner.rank(started(cliff))[-1]
    assert (worst.instruction.args["action"], worst.score) == ("right", -100.0)
    assert wrap("CliffWalking-v1", ("up", "right", "down", "left"), name="cliff", depth=0).planner is None


class Corridor(gymnasium.Env[int, int]):
    """Six fields in a row, one starts on the third: a reward of 1 on the second, of 10 on the last."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start on the third field."""
        super().reset(seed=seed)
        self.field = 2
        return self.field, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Walk right on 1, left on 0; any reward ends it."""
        self.field = max(0, min(5, self.field + (1 if action else -1)))
        reward = {1: 1.0, 5: 10.0}.get(self.field, 0.0)
        return self.field, reward, reward > 0, False, {}


def test_a_larger_reward_is_worth_a_longer_way_which_a_search_for_the_nearest_goal_does_not_see() -> None:
    """Left is 1 in one step, right is 10 in three: that is why this planner does not use `kit.search`."""
    corridor = wrap(Corridor, ("left", "right"), name="corridor", depth=3)
    assert corridor.planner is not None
    options = corridor.planner.rank(started(corridor))
    assert [(o.instruction.args["action"], o.score, len(o.plan)) for o in options] == [("right", 10, 3), ("left", 1, 1)]
    nearest = ranked(started(corridor), lambda e: e.place(), lambda e: e.reward > 0, lambda way: f"in {len(way)}")
    assert [(o.instruction.args["action"], len(o.plan)) for o in nearest] == [("left", 1), ("right", 3)]


@pytest.mark.parametrize(
    ("env", "actions", "message"),
    [
        ("FrozenLake-v1", ("left", "down"), r"x: 4 actions, 2 names \['left', 'down'\]; give one name each"),
        ("FrozenLake-v1", ("a", "b", "c", "c"), "give one name each"),
        ("FrozenLake-v1", ("a", "b", "c", "D!"), "action 'D!' does not match"),
        ("Pendulum-v1", ("left",), r"its action space is Box\(.*; only a Discrete one has actions to name"),
        ("NoSuchWorld-v1", ("left",), "gymnasium cannot make 'NoSuchWorld-v1'"),
    ],
)
def test_what_cannot_be_wrapped_says_why(env: str, actions: tuple[str, ...], message: str) -> None:
    """Five ways to get it wrong."""
    with pytest.raises(CartridgeError, match=message):
        wrap(env, actions, name="x")


def test_the_prompt_tells_where_one_is_and_the_picture_shows_it() -> None:
    """Field 4 is row 1, column 0; the lake draws itself in characters."""
    cartridge = lake()
    engine = started(cartridge)
    go(engine, "down")
    assert cartridge.planner is not None
    prompt = cartridge.view.prompt(engine, cartridge.planner.rank(engine)[:2])
    assert "".join(part.text for part in prompt.parts).endswith("\nA frozen lake. Row 1, column 0.\nBest move:")
    picture = cartridge.view.render(engine).plain
    assert "FHFH" in picture.replace(" ", "")
    assert picture.endswith("frozenlake: steps 1, reward 0.0")
