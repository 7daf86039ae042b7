"""The rules of the simulated house: its state, and what each command changes in it."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, get_args

from cartridges.home.opcodes import (
    COLDEST,
    LISTED,
    NAME,
    SETS,
    WARMEST,
    Blinds,
    Countdown,
    Door,
    Heater,
    Lamp,
    Light,
    Music,
    Remind,
    Room,
    Set,
    Thermostat,
    Timer,
    Vacuum,
)
from cartridges.kit.rules import hashed, refusal
from kernel.errors import IllegalInstructionError, OpcodeError
from kernel.opcode import Instruction, Opcode, canonical

LOUDEST = 10
TRACKS = 5
TIMER_MINUTES = 10

_LEGAL = {name: frozenset(listed) for name, listed in LISTED.items()}


@dataclass
class State:
    """Everything about the house that a command can change. Temperatures in degrees Celsius."""

    lights: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(get_args(Room), False))
    celsius: float = 20
    locked: bool = True
    blinds_open: bool = False
    playing: bool = False
    volume: int = 5
    track: int = 1
    cleaning: bool = False
    timer_minutes: int = 0
    reminders: list[str] = field(default_factory=list)


class House:
    """The rules of the house.

    Every command is legal all the time, also one that changes nothing: were `door lock` illegal behind a locked
    door, a request to lock it could only be answered by something else, `door unlock` perhaps.
    Time does not pass by itself, so the timer keeps its minutes until it is stopped.
    """

    def __init__(self, opcodes: Set = "commands") -> None:
        self.opcodes: Set = opcodes
        self.state = State()
        self.done = 0
        self.changed = 0

    def reset(self, seed: int) -> None:
        """Find the house as its people left it, which follows from the seed."""
        rng = random.Random(seed)
        self.state = State(
            lights={room: rng.random() < 0.5 for room in get_args(Room)},
            celsius=rng.randint(COLDEST + 2, WARMEST - 2),
            locked=rng.random() < 0.5,
            blinds_open=rng.random() < 0.5,
            playing=rng.random() < 0.5,
            volume=rng.randint(2, LOUDEST - 2),
            track=rng.randint(1, TRACKS),
            cleaning=rng.random() < 0.5,
            timer_minutes=TIMER_MINUTES if rng.random() < 0.5 else 0,
        )
        self.done = self.changed = 0

    def legal(self) -> Sequence[Instruction]:
        """Return all commands that can be listed, in declaration order."""
        return LISTED[self.opcodes]

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and say how things stand now."""
        if instruction not in _LEGAL[self.opcodes] and not self._reminds(instruction):
            raise refusal(self, instruction)
        before = self.state_hash()
        opcode = next(each for each in SETS[self.opcodes] if each.method == instruction.method)
        said = self._carry_out(opcode.from_arguments(instruction.arguments))
        self.done += 1
        self.changed += self.state_hash() != before
        return said

    def copy(self) -> Self:
        """Return an independent house in the same state."""
        return copy.deepcopy(self)

    def state_hash(self) -> str:
        """Return a hash of the house; how many commands it took to get there is not part of it."""
        told = dict(vars(self.state))
        if not self.state.reminders:  # a house without any is the one that it was before there were reminders
            del told["reminders"]
        return hashed(canonical(told))

    def ended(self) -> str | None:
        """Return None: nothing that one does in a house ends it."""
        return None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return how many commands were carried out and how many of them changed something."""
        return {"commands": self.done, "changed": self.changed}

    def _reminds(self, instruction: Instruction) -> bool:
        if self.opcodes != "typed" or (instruction.cartridge, instruction.method) != (NAME, Remind.method):
            return False
        try:
            Remind.from_arguments(instruction.arguments)
        except OpcodeError as error:
            raise IllegalInstructionError(f"home.{error}") from error
        return True

    def _carry_out(self, told: Opcode) -> str:
        """Change the house and say how things stand now."""
        state = self.state
        match told:
            case Light(room=room) | Lamp(room=room):
                on = state.lights[room] = told.on if isinstance(told, Lamp) else told.state == "on"
                return f"the {room} light is {'on' if on else 'off'}"
            case Heater() | Thermostat():
                if isinstance(told, Heater):
                    warmer = state.celsius + (1 if told.change == "warmer" else -1)
                    state.celsius = min(max(warmer, COLDEST), WARMEST)
                else:
                    state.celsius = told.celsius
                return f"the heater is set to {state.celsius:g} degrees"
            case Door(action=action):
                state.locked = action == "lock"
                return f"the front door is {action}ed"
            case Blinds(action=action):
                state.blinds_open = action == "open"
                return f"the blinds are {'open' if state.blinds_open else 'closed'}"
            case Music(action=action):
                if action in ("play", "stop"):
                    state.playing = action == "play"
                elif action == "next":
                    state.track = state.track % TRACKS + 1
                else:
                    state.volume = min(max(state.volume + (1 if action == "louder" else -1), 0), LOUDEST)
                return f"{'playing' if state.playing else 'silent'}, track {state.track}, volume {state.volume}"
            case Vacuum(action=action):
                state.cleaning = action == "start"
                return f"the vacuum is {'cleaning' if state.cleaning else 'in its dock'}"
            case Remind(text=text):
                state.reminders.append(text)
                return f"reminder {len(state.reminders)}: {text}"
            case Countdown(minutes=minutes):
                state.timer_minutes = minutes
            case Timer(action="start"):
                state.timer_minutes = TIMER_MINUTES
            case Timer(action="stop"):
                state.timer_minutes = 0
        left = state.timer_minutes
        return f"the timer has {left} minutes left" if left else "the timer is not running"
