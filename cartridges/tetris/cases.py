"""Labelled states of Tetris: each shows three options, one of them marked as the best.

The states come from seeded games that the planner plays with random mistakes, so boards are neither tidy nor lost.
Whole games belong to `dev` or to `test`, so no state of one half is a few keys away from one of the other. The best
option stands equally often in each place.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import NAME, OPCODES, OpcodeSet
from cartridges.tetris.planner import TetrisPlanner
from cartridges.tetris.view import TetrisView
from kernel.contract import Case, Option
from kernel.errors import CartridgeError
from kernel.opcode import words
from kernel.prompt import Prompt

OFFERED = 3
PER_POSITION = 26
"""Cases in each half in which the best option is shown first; as many where it is second, and third."""

PER_GAME = 3
MISTAKES = 0.25
"""How often a game goes on with a random legal instruction in place of the planner's."""

FIRST_SEED = 1_000


def cases(opcodes: OpcodeSet = "syllables") -> list[Case]:
    """Return the cases, first all of `dev`; the options stand in the order in which the prompt shows them.

    In moves mode the options are keys, else placements. The answer is the planner's best, which is better
    than its second. No two prompts of placements are the same; those of keys may be.
    """
    found: list[Case] = []
    seen: set[Prompt] = set()
    for half, split in enumerate(("dev", "test")):
        positions = [n for n in range(OFFERED) for _ in range(PER_POSITION)]
        random.Random(half).shuffle(positions)
        states = _states(opcodes, FIRST_SEED + half)
        for number, position in enumerate(positions, 1):
            # Keys say so little that prompts of different states are often equal; placements never have to be.
            for engine, options in states:
                shown, made = _ordered(engine, options, position)
                if opcodes == "moves" or made not in seen:
                    break
            seen.add(made)
            texts = tuple(f" {words(option.instruction, [OPCODES[opcodes]])}" for option in shown)
            found.append(Case(f"{NAME}-{opcodes}-{split}-{number:03}", made, texts, texts[position], split))
    return found


def _states(opcodes: OpcodeSet, first_seed: int) -> Iterator[tuple[TetrisEngine, list[Option]]]:
    """Yield states with their offered options, best first; games have every other seed."""
    planner = TetrisPlanner()
    for seed in itertools.count(first_seed, 2):
        rng = random.Random(seed)
        engine = TetrisEngine(opcodes, seed)
        taken: set[str] = set()
        wait = rng.randint(5, 40)
        while engine.ended() is None and len(taken) < PER_GAME:
            options = list(planner.rank(engine))
            wait -= 1
            clear = len(options) >= OFFERED and options[0].score > options[1].score
            if wait <= 0 and clear and engine.state_hash() not in taken:
                taken.add(engine.state_hash())
                yield engine.copy(), options[:OFFERED]
                wait = rng.randint(5, 40)
            engine.apply(rng.choice(engine.legal()) if rng.random() < MISTAKES else options[0].instruction)


def _ordered(engine: TetrisEngine, options: Sequence[Option], position: int) -> tuple[list[Option], Prompt]:
    """Return the options as the prompt shows them, and the prompt, with the best one (the first given) at `position`.

    The prompt has an order of its own, so what counts is the text that comes out.
    """
    for given in itertools.permutations(options):
        made = TetrisView().prompt(engine, given)
        text = "".join(part.text for part in made.parts)
        ends = {option: text.rindex(f" {words(option.instruction, [OPCODES[engine.opcodes]])}\n") for option in options}
        shown = sorted(options, key=ends.__getitem__)
        if shown[position] is options[0]:
            return shown, made
    raise CartridgeError(f"tetris: no order of the options shows the best one at position {position}")
