"""Labelled states of a game whose planner ranks all that is legal: the prompt lists it, with the best one marked.

The states stand in a file beside the cartridge, a state a line: the seed of a game, the instructions that led to it,
and what is legal in it in the order in which the prompt lists it. They are made once; reading them asks no planner.

    python -m cartridges.kit.states robot > cartridges/robot/states.jsonl
"""

from __future__ import annotations

import importlib
import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel.casefile import Row, Split, read
from kernel.contract import Cartridge, Case, Engine, Option
from kernel.errors import CartridgeError
from kernel.opcode import Instruction, commands, words

PER_HALF = 40
"""Cases in each half."""

PER_GAME = 4
MISTAKES = 0.25
"""How often a game goes on with a random legal instruction in place of the planner's."""

MOST_OPTIONS = 14
"""States in which more is legal are left out."""

FIRST_SEED = 1_000


class StateRow(Row):
    """A state of a seeded game, and the option that is marked as the best; instructions are written as words."""

    seed: int
    moves: list[str]
    options: list[str]
    answer: str


def states(path: Path, cartridge: Cartridge) -> list[Case]:
    """Return the cases of a file in its order; the options stand in the order in which the prompt lists them.

    Raises CartridgeError for a file that cannot be read, and a line that the game does not lead to.
    """
    said = {words(command, cartridge.opcodes): command for command in commands(cartridge.name, cartridge.opcodes)}
    return [_case(row, cartridge, said) for row in read(path, StateRow)]


def _case(row: StateRow, cartridge: Cartridge, said: dict[str, Instruction]) -> Case:
    engine = cartridge.engine()
    engine.reset(row.seed)
    for move in row.moves:
        if said.get(move) not in engine.legal():
            raise CartridgeError(f"case {row.id}: {move!r} is not legal in the game of seed {row.seed}")
        engine.apply(said[move])
    legal = {words(instruction, cartridge.opcodes) for instruction in engine.legal()}
    if sorted(row.options) != sorted(legal) or row.answer not in legal:
        raise CartridgeError(f"case {row.id}: its options or its answer are not what is legal: {sorted(legal)}")
    options = [Option(said[text], float(text == row.answer)) for text in row.options]
    prompt = cartridge.view.prompt(engine, options)
    return Case(row.id, prompt, tuple(f" {text}" for text in row.options), f" {row.answer}", row.split)


def made(cartridge: Cartridge) -> Iterator[StateRow]:
    """Yield the rows of a cartridge's file, first all of `dev`.

    The states come from seeded games that the planner plays with random mistakes. Whole games belong to `dev` or to
    `test`, so no state of one half is a few steps away from one of the other. The options are listed in a random order;
    the answer is the planner's best, of equally good ones any. No two rows list the same with the same answer.
    """
    assert cartridge.planner is not None
    seen: set[tuple[str, ...]] = set()
    halves: tuple[Split, Split] = ("dev", "test")
    for half, split in enumerate(halves):
        rng = random.Random(half)
        games = _played(cartridge, FIRST_SEED + half)
        number = 0
        while number < PER_HALF:
            seed, moves, ranked = next(games)
            best = rng.choice([option for option in ranked if option.score == ranked[0].score])
            answer = words(best.instruction, cartridge.opcodes)
            options = [words(option.instruction, cartridge.opcodes) for option in rng.sample(ranked, len(ranked))]
            if (answer, *options) in seen:
                continue
            seen.add((answer, *options))
            number += 1
            name = f"{cartridge.name}-states-{split}-{number:03}"
            yield StateRow(id=name, split=split, seed=seed, moves=moves, options=options, answer=answer)


def _played(cartridge: Cartridge, first_seed: int) -> Iterator[tuple[int, list[str], Sequence[Option]]]:
    """Yield states, as a seed and what was done, with all that is legal, best first; games have every other seed."""
    planner = cartridge.planner
    assert planner is not None
    for seed in itertools.count(first_seed, 2):
        rng = random.Random(seed)
        engine = cartridge.engine()
        engine.reset(seed)
        moves: list[str] = []
        for _ in range(PER_GAME):
            for _ in range(rng.randint(0, 4)):
                if engine.ended() is None:
                    chosen = _move(engine, planner.rank(engine), rng)
                    moves.append(words(chosen, cartridge.opcodes))
                    engine.apply(chosen)
            if engine.ended() is not None:
                break
            options = planner.rank(engine)
            if 2 <= len(options) <= MOST_OPTIONS:
                yield seed, list(moves), options


def _move(engine: Engine, ranked: Sequence[Option], rng: random.Random) -> Instruction:
    return rng.choice(engine.legal()) if rng.random() < MISTAKES else ranked[0].instruction


def main(name: str) -> None:
    """Write the file of a cartridge of this project to standard output."""
    for row in made(importlib.import_module(f"cartridges.{name}").make()):
        print(row.model_dump_json())


if __name__ == "__main__":
    main(sys.argv[1])
