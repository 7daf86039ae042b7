"""Turns a Gymnasium environment with a discrete action space into a cartridge with named actions.

    make = lambda: wrap("FrozenLake-v1", ("left", "down", "right", "up"), name="lake")

It needs the package `gymnasium`: pip install 'cartridge-kernel[gym]'.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from pydantic import create_model
from rich.text import Text

from cartridges.kit.phrasing import offered
from cartridges.kit.rules import hashed, own, refusal
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import CartridgeError
from kernel.opcode import NAME, Instruction, Opcode
from kernel.prompt import Prompt, asked

try:
    import gymnasium
except ModuleNotFoundError as error:
    hint = "the package gymnasium is not installed: pip install 'cartridge-kernel[gym]'"
    raise ModuleNotFoundError(hint, name="gymnasium") from error

Env = gymnasium.Env[Any, Any]

TERMINATED = "the environment ended it"
TRUNCATED = "the environment cut it off"
ANSI = "ansi"
"""The render mode that draws in characters."""

STATES = 2_000
"""States that the planner looks at before it gives up looking further ahead."""


def wrap(
    env: str | Callable[[], Env],
    actions: Sequence[str],
    *,
    name: str,
    version: str = "1",
    summary: str = "",
    method: str = "act",
    situation: Callable[[Any], str] = lambda observation: f"Observation: {observation}.",
    state: Callable[[Env], Hashable] | None = None,
    depth: int = 1,
    constant: Sequence[str] = (),
) -> Cartridge:
    """Return a cartridge that plays an environment.

    Args:
        env: an id for `gymnasium.make`, or what makes the environment; `render_mode="ansi"` gives it a picture.
        actions: a name for each action, in the order of their numbers.
        method: of the opcode, whose one argument `action` is a name.
        situation: says an observation in words, for the prompt.
        state: everything about the environment that can change; observation and random state unless given.
        depth: steps that the planner looks ahead; 0 leaves it out. It tries them on copies, which know the dice.
        constant: attributes that nothing changes, such as a table of transitions; copies share them, which is quicker.
    Raises:
        CartridgeError: no discrete action space, names that do not fit it, or no such attribute.
    """
    make: Callable[[], Env] = env if callable(env) else lambda: _made(env)
    first = make()
    space = first.action_space
    if missing := [each for each in constant if not hasattr(first.unwrapped, each)]:
        raise CartridgeError(f"{name}: {first.unwrapped!r} has no attribute {missing[0]!r}, so it is not constant")
    first.close()
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise CartridgeError(f"{name}: its action space is {space!r}; only a Discrete one has actions to name")
    if len(actions) != space.n or len(set(actions)) < len(actions):
        raise CartridgeError(f"{name}: {space.n} actions, {len(actions)} names {list(actions)!r}; give one name each")
    if unfit := [action for action in actions if not NAME.fullmatch(action)]:
        raise CartridgeError(f"{name}: action {unfit[0]!r} does not match {NAME.pattern!r}")
    domain: Any = Literal[tuple(actions)]
    opcode = create_model(method.title(), __base__=Opcode, __doc__="Take one of the actions.", action=(domain, ...))
    opcode.method = method
    spoken = tuple(Instruction.of(name, method, action=action) for action in actions)
    return Cartridge(
        name=name,
        version=version,
        summary=summary or f"The Gymnasium environment {first.spec.id if first.spec else name}.",
        opcodes=(opcode,),
        engine=lambda: GymnasiumEngine(make(), spoken, int(space.start), state, constant),
        view=GymnasiumView(name, opcode, situation),
        planner=LookAhead(depth) if depth else None,
        takes_requests=True,
    )


class GymnasiumEngine:
    """The contract over one environment.

    An environment that names the actions that do something now, as Taxi does in `info["action_mask"]`, makes only
    those legal. It is copied as a whole, random generator included.
    """

    def __init__(
        self,
        env: Env,
        spoken: Sequence[Instruction],
        start: int,
        state: Callable[[Env], Hashable] | None,
        constant: Sequence[str] = (),
    ) -> None:
        self.env = env
        self.spoken = spoken
        self._numbers = {instruction: start + n for n, instruction in enumerate(spoken)}
        self._state = state
        self._constant = tuple(constant)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Reset the environment with the seed; its sign is dropped, since Gymnasium takes none."""
        self.observation, info = self.env.reset(seed=abs(seed))
        self._mask = info.get("action_mask")
        self._ended: str | None = None
        self.steps = 0
        self.reward = 0.0

    def legal(self) -> Sequence[Instruction]:
        """Return the actions in the order of their numbers."""
        if self._ended is not None:
            return ()
        if self._mask is None or not np.any(self._mask):
            return self.spoken
        return tuple(itertools.compress(self.spoken, self._mask))

    def apply(self, instruction: Instruction) -> str:
        """Take the action; say what came of it."""
        if instruction not in self.legal():
            raise refusal(self, instruction)
        number = self._numbers[instruction]
        self.observation, reward, terminated, truncated, info = self.env.step(number)
        self._mask = info.get("action_mask")
        self._ended = TERMINATED if terminated else TRUNCATED if truncated else None
        self.steps += 1
        self.reward += float(reward)
        return f"reward {float(reward):g}"

    def copy(self) -> Self:
        """Return an independent engine; raises CartridgeError when the environment cannot be copied."""
        twin = copy.copy(self)
        try:
            shared = [getattr(self.env.unwrapped, name) for name in self._constant]
            twin.env = copy.deepcopy(self.env, {id(each): each for each in shared})
        except Exception as error:
            raise CartridgeError(f"{self.env!r} cannot be copied: {error}; make it without a window") from error
        twin.observation = copy.deepcopy(self.observation)
        return twin

    def place(self) -> str:
        """Return a hash of observation and random state, or of what `state` names in their place."""
        if self._state is not None:
            return hashed(repr(self._state(self.env)))
        return hashed(repr((_plain(self.observation), _plain(self.env.unwrapped.np_random.bit_generator.state))))

    def state_hash(self) -> str:
        """Return a hash of the place, the sum of rewards and the ending."""
        return hashed(repr((self.place(), round(self.reward, 9), self._ended)))

    def ended(self) -> str | None:
        """Return TERMINATED, TRUNCATED or None: ended by the rules and cut off by a limit are two things."""
        return self._ended

    def summary(self) -> Mapping[str, int | float | str]:
        """Return steps and the sum of the rewards."""
        return {"steps": self.steps, "reward": round(self.reward, 9)}


@dataclass(frozen=True)
class LookAhead:
    """Tries every way of some steps on copies and ranks by the best sum of rewards, the shorter way first."""

    depth: int

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal action, best first, ties in the order of their numbers."""
        here = own(engine, GymnasiumEngine)
        options = []
        for instruction in here.legal():
            reward, plan = self._best(here, instruction)
            options.append(Option(instruction, reward, f"reward {reward:g} in {len(plan)}", plan))
        return sorted(options, key=lambda option: (-option.score, len(option.plan)))

    def _best(self, engine: GymnasiumEngine, first: Instruction) -> tuple[float, tuple[Instruction, ...]]:
        """Return the highest sum of rewards, and the shortest way to it, of those that begin with one action.

        A place is looked at again only when it is reached with more.
        """
        start = engine.copy()
        start.apply(first)
        best_reward = start.reward
        best_way: tuple[Instruction, ...] = (first,)
        richest = {start.place(): start.reward}
        frontier: list[tuple[GymnasiumEngine, tuple[Instruction, ...]]] = [(start, best_way)]
        for _ in range(1, self.depth):
            following = []
            for here, way in frontier:
                for instruction in here.legal():
                    after = here.copy()
                    after.apply(instruction)
                    if after.reward <= richest.get(place := after.place(), -math.inf) or len(richest) >= STATES:
                        continue
                    richest[place] = after.reward
                    following.append((after, (*way, instruction)))
                    if after.reward > best_reward:
                        best_reward, best_way = after.reward, (*way, instruction)
            frontier = following
        return best_reward - engine.reward, best_way


@dataclass(frozen=True)
class GymnasiumView:
    """A request is asked for, else the options are offered; the picture is the environment's own text."""

    name: str
    opcode: type[Opcode]
    situation: Callable[[Any], str]

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return what the model reads."""
        if request.strip() or not options:
            return asked(request)
        return offered(self.situation(own(engine, GymnasiumEngine).observation), options, [self.opcode])

    def render(self, engine: Engine) -> Text:
        """Return the picture of `render_mode="ansi"`, or the observation, and the counts."""
        playing = own(engine, GymnasiumEngine)
        drawn = playing.env.render() if playing.env.render_mode == ANSI else str(playing.observation)
        counts = ", ".join(f"{name} {value}" for name, value in engine.summary().items())
        return Text.from_ansi(f"{drawn}\n{self.name}: {counts}")


def _made(env: str) -> Env:
    """Make an environment, drawing in characters if it can."""
    try:
        modes = gymnasium.spec(env).make(disable_env_checker=True).metadata.get("render_modes") or ()
        return gymnasium.make(env, render_mode=ANSI if ANSI in modes else None, disable_env_checker=True)
    except gymnasium.error.Error as error:
        raise CartridgeError(f"gymnasium cannot make {env!r}: {error}") from error


def _plain(value: Any) -> Any:
    """Return nested arrays and dicts as lists and tuples, whose repr says all of them."""
    if isinstance(value, Mapping):
        return sorted((str(k), _plain(v)) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
