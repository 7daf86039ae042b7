"""The rules of the simulated house: its state, and what each command changes in it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Self, get_args

from cartridges.home.opcodes import (
    COLDEST,
    LISTED,
    NAME,
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
from kernel.opcode import Instruction, canonical

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
        said = self._carry_out[self.opcodes][instruction.method](self, instruction.arguments)
        self.done += 1
        self.changed += self.state_hash() != before
        return said

    def copy(self) -> Self:
        """Return an independent house in the same state."""
        return copy.deepcopy(self)

    def state_hash(self) -> str:
        """Return a hash of the house; how many commands it took to get there is not part of it."""
        told = asdict(self.state)
        if not self.state.reminders:  # a house without any is the one that it was before there were reminders
            del told["reminders"]
        return hashed(canonical(told))

    def ended(self) -> str | None:
        """Return None: nothing that one does in a house ends it."""
        return None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return how many commands were carried out and how many of them changed something."""
        return {"commands": self.done, "changed": self.changed}

    def _light(self, arguments: str) -> str:
        told = Light.from_arguments(arguments)
        self.state.lights[told.room] = told.state == "on"
        return f"the {told.room} light is {told.state}"

    def _heater(self, arguments: str) -> str:
        change = 1 if Heater.from_arguments(arguments).change == "warmer" else -1
        self.state.celsius = min(max(self.state.celsius + change, COLDEST), WARMEST)
        return f"the heater is set to {self.state.celsius} degrees"

    def _door(self, arguments: str) -> str:
        self.state.locked = Door.from_arguments(arguments).action == "lock"
        return f"the front door is {'locked' if self.state.locked else 'unlocked'}"

    def _blinds(self, arguments: str) -> str:
        self.state.blinds_open = Blinds.from_arguments(arguments).action == "open"
        return f"the blinds are {'open' if self.state.blinds_open else 'closed'}"

    def _music(self, arguments: str) -> str:
        state = self.state
        match Music.from_arguments(arguments).action:
            case "play":
                state.playing = True
            case "stop":
                state.playing = False
            case "louder":
                state.volume = min(state.volume + 1, LOUDEST)
            case "quieter":
                state.volume = max(state.volume - 1, 0)
            case "next":
                state.track = state.track % TRACKS + 1
        return f"{'playing' if state.playing else 'silent'}, track {state.track}, volume {state.volume}"

    def _vacuum(self, arguments: str) -> str:
        self.state.cleaning = Vacuum.from_arguments(arguments).action == "start"
        return f"the vacuum is {'cleaning' if self.state.cleaning else 'in its dock'}"

    def _timer(self, arguments: str) -> str:
        match Timer.from_arguments(arguments).action:
            case "start":
                self.state.timer_minutes = TIMER_MINUTES
            case "stop":
                self.state.timer_minutes = 0
            case "check":
                pass
        left = self.state.timer_minutes
        return f"the timer has {left} minutes left" if left else "the timer is not running"

    def _reminds(self, instruction: Instruction) -> bool:
        if self.opcodes != "typed" or (instruction.cartridge, instruction.method) != (NAME, Remind.method):
            return False
        try:
            Remind.from_arguments(instruction.arguments)
        except OpcodeError as error:
            raise IllegalInstructionError(f"home.{error}") from error
        return True

    def _lamp(self, arguments: str) -> str:
        told = Lamp.from_arguments(arguments)
        self.state.lights[told.room] = told.on
        return f"the {told.room} light is {'on' if told.on else 'off'}"

    def _thermostat(self, arguments: str) -> str:
        self.state.celsius = Thermostat.from_arguments(arguments).celsius
        return f"the heater is set to {self.state.celsius:g} degrees"

    def _countdown(self, arguments: str) -> str:
        self.state.timer_minutes = Countdown.from_arguments(arguments).minutes
        return f"the timer has {self.state.timer_minutes} minutes left"

    def _remind(self, arguments: str) -> str:
        self.state.reminders.append(Remind.from_arguments(arguments).text)
        return f"reminder {len(self.state.reminders)}: {self.state.reminders[-1]}"

    _shared: ClassVar[dict[str, Callable[[House, str], str]]] = {
        Door.method: _door,
        Blinds.method: _blinds,
        Music.method: _music,
        Vacuum.method: _vacuum,
    }
    _carry_out: ClassVar[dict[Set, dict[str, Callable[[House, str], str]]]] = {
        "commands": _shared | {Light.method: _light, Heater.method: _heater, Timer.method: _timer},
        "typed": _shared
        | {
            Lamp.method: _lamp,
            Thermostat.method: _thermostat,
            Countdown.method: _countdown,
            Remind.method: _remind,
        },
    }
