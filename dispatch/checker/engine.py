"""Checks of the engine: equal seeds, copies, endings, refusals, summaries."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from dispatch.checker.outside import ANSWER, rehearsed
from dispatch.checker.report import FaultError, SkipError
from dispatch.checker.subject import SHORT, Subject, part, trace
from kernel.contract import Engine
from kernel.errors import IllegalInstructionError
from kernel.opcode import HALT_INSTRUCTION, Instruction

LONG = 200
"""Steps of the games whose states are compared."""


def same_seed(subject: Subject) -> str:
    """Same seed, same states."""
    subject.by_chance()
    lines = 0
    for seed in subject.seeds:
        engine = subject.cartridge.engine()
        first = trace(engine, seed, LONG)
        if (parted := part(first, trace(subject.cartridge.engine(), seed, LONG))) is not None:
            raise FaultError(f"seed {seed}: two engines part at {parted}")
        if (parted := part(first, trace(engine, seed, LONG))) is not None:
            raise FaultError(f"seed {seed}: reset leaves something of the game before: {parted}")
        lines += len(first)
    if len(subject.seeds) > 1 and lines == 2 * len(subject.seeds):
        raise FaultError("every game ends before its first step")
    return f"seeds {', '.join(map(str, subject.seeds))}, up to {LONG} steps, three times each"


def another_process(subject: Subject) -> str:
    """Same seed, same states in another process."""
    if subject.elsewhere is None:
        raise SkipError("needs a cartridge that another process can find by name")
    for seed, there in zip(subject.seeds, subject.elsewhere(subject.seeds, LONG), strict=True):
        here = trace(subject.cartridge.engine(), seed, LONG)
        if (parted := part(here, there)) is not None:
            raise FaultError(
                f"seed {seed}: another process comes to another game, {parted}; the order of a set, hash() of text, "
                "the clock and random without a seed differ there"
            )
    return f"seeds {', '.join(map(str, subject.seeds))}, with other hashes of text"


def copies(subject: Subject) -> str:
    """Copies are independent."""
    steps = 0
    for seed in subject.seeds:
        rng = random.Random(seed)
        for where, engine in subject.game(seed):
            before = engine.state_hash()
            twin = engine.copy()
            if type(twin) is not type(engine) or twin.state_hash() != before:
                raise FaultError(f"{where}: copy() of {before!r} is {twin!r} in state {twin.state_hash()!r}")
            _play(twin, rng, 3)
            if engine.state_hash() != before:
                raise FaultError(f"{where}: three steps of a copy changed the engine")
            one, other = engine.copy(), engine.copy()
            parted = part(_play(one, random.Random(steps), SHORT), _play(other, random.Random(steps), SHORT))
            if parted is not None:
                raise FaultError(f"{where}: two copies part with the same instructions, {parted}; is chance copied?")
            steps += 1
    return f"{steps} states, each copied three times and played on"


def random_player(subject: Subject) -> str:
    """A random player survives, and legal() is empty exactly at the end."""
    subject.by_chance()
    known = set(subject.instructions)
    written = {(subject.cartridge.name, opcode.method) for opcode in subject.open}
    engine = subject.engine(0)
    rng = random.Random(0)
    endings: Counter[str] = Counter()
    just_begun = False
    for step in range(subject.steps):
        before = engine.state_hash()
        legal = list(engine.legal())
        ended = engine.ended()
        if list(engine.legal()) != legal or engine.state_hash() != before:
            raise FaultError(f"step {step}: legal() changes the engine")
        if bool(legal) != (ended is None):
            raise FaultError(f"step {step}: {len(legal)} instructions are legal and ended() is {ended!r}")
        if ended is not None:
            endings[ended] += 1
            if just_begun:
                raise FaultError(f"seed {len(endings)}: the game has ended right after reset: {ended!r}")
            engine.reset(step)
            just_begun = True
            continue
        just_begun = False
        if len(set(legal)) < len(legal):
            raise FaultError(f"step {step}: {Counter(legal).most_common(1)[0][0]!r} is legal twice")
        for instruction in legal:
            if instruction not in known and (instruction.cartridge, instruction.method) not in written:
                raise FaultError(f"step {step}: {instruction!r} is legal but no opcode of the cartridge declares it")
        said = engine.apply(rng.choice(legal))
        if not isinstance(said, str):
            raise FaultError(f"step {step}: apply returned {said!r}, not words")
    told = ", ".join(f"{count} x {ending}" for ending, count in endings.most_common())
    return f"{subject.steps} steps, {told or 'no ending'}"


def refusals(subject: Subject) -> str:
    """What is not legal is refused and changes nothing."""
    tried = 0
    for seed in subject.seeds:
        rng = random.Random(seed)
        for where, engine in subject.game(seed):
            legal = set(engine.legal())
            others = [i for i in subject.instructions if i not in legal and i != HALT_INSTRUCTION]
            for illegal in [*rng.sample(others, min(5, len(others))), *subject.foreign()]:
                _refused(where, engine, illegal)
                tried += 1
        engine = subject.engine(seed)
        _play(engine, rng, subject.steps)
        if (ended := engine.ended()) is not None and subject.instructions:
            _refused(f"seed {seed}, after the end ({ended})", engine, subject.instructions[0])
            tried += 1
    return f"{tried} instructions refused"


def recalls(subject: Subject) -> str:
    """What acts outside is declared, and recalled in place of carried out."""
    if not subject.cartridge.acts_outside:
        if callable(getattr(subject.engine(subject.seeds[0]), "recall", None)):
            raise FaultError("its engine has recall(), but acts_outside=False, so replays carry everything out again")
        return "nothing acts outside"
    recalled = compared = 0
    for seed in subject.seeds:
        rng = random.Random(seed)
        for where, engine in subject.game(seed):
            before, instruction = engine.state_hash(), rng.choice(engine.legal())
            hashes = []
            for twin in (engine.copy(), engine.copy()):
                _recall(twin, instruction)
                hashes.append(twin.state_hash())
            if len(set(hashes)) > 1:
                raise FaultError(f"{where}: recall of {instruction!r} leads to two states, {hashes!r}")
            if (twin_of_apply := rehearsed(engine, instruction)) is not None:
                if twin_of_apply.state_hash() != hashes[0]:
                    raise FaultError(f"{where}: recall of {instruction!r} leads to another state than apply")
                compared += 1
            for illegal in subject.foreign():
                try:
                    _recall(engine, illegal)
                except IllegalInstructionError:
                    continue
                raise FaultError(f"{where}: {illegal!r} is not legal, yet it can be recalled")
            if engine.state_hash() != before:
                raise FaultError(f"{where}: recall of what is not legal, or on a copy, changed the engine")
            recalled += 1
    told = f"{recalled} instructions recalled with the answer {ANSWER!r}"
    told += f", {compared} of them compared with a rehearsal" if compared else ""
    return f"{told}; nothing was carried out in any check"


def _recall(engine: Any, instruction: Instruction) -> None:
    engine.recall(instruction, ANSWER)


def summaries(subject: Subject) -> str:
    """The summary is names and numbers that JSON can hold."""
    names: set[str] = set()
    for where, engine in subject.game(subject.seeds[0]):
        before = engine.state_hash()
        counts = dict(engine.summary())
        for name, value in counts.items():
            if not isinstance(name, str) or type(value) not in (int, float, str):
                raise FaultError(f"{where}: {name!r} is {value!r}; a summary holds int, float and str under names")
        try:
            json.dumps(counts, allow_nan=False)
        except ValueError as error:
            raise FaultError(f"{where}: {counts!r}: {error}") from error
        if engine.state_hash() != before:
            raise FaultError(f"{where}: summary() changes the engine")
        names |= counts.keys()
    return f"counts {', '.join(sorted(names))}" if names else "counts nothing"


def _play(engine: Engine, rng: random.Random, steps: int) -> list[str]:
    """Play on at random until the end; return the states."""
    states = []
    for _ in range(steps):
        legal = engine.legal()
        if not legal:
            break
        said = engine.apply(rng.choice(legal))
        states.append(f"{engine.state_hash()} {said}")
    return states


def _refused(where: str, engine: Engine, illegal: Instruction) -> None:
    before = engine.state_hash()
    try:
        said = engine.apply(illegal)
    except IllegalInstructionError:
        if engine.state_hash() != before:
            raise FaultError(f"{where}: {illegal!r} is refused, yet it changed the engine") from None
        return
    except Exception as error:
        raise FaultError(f"{where}: {illegal!r} raises {error!r}; raise IllegalInstructionError") from error
    raise FaultError(f"{where}: {illegal!r} is not legal, yet apply carries it out: {said!r}")
