"""Does a strategy, prose before the prompt, move what a small model chooses?

The same states of seeded games are chosen on without prose, with each strategy of the cartridge, and with a control:
prose of the same kind about something else. If a strategy moves no more choices than the control does, it is its mere
presence that moves them, not what it says. Once with the planner's marks in the prompt, and once without them (the
null prompt, rule exact), where the prose is all there is to go by.

    python benchmarks/bench_strategies.py [--model M] [--states N] [--cartridge NAME ...]

`moved` is the share of states where the choice is another one than without prose, `best` the share where it is the
planner's best. The last line of stdout is one JSON document.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from dispatch.loading.factory import Factory
from dispatch.loading.registry import Registry
from dispatch.loading.strategies import Strategy, with_prose
from dispatch.session.evaluate import wilson
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge, Engine, Option
from kernel.opcode import Instruction, commands
from kernel.prompt import Prompt

CONTROL = Strategy(
    "control",
    "Control",
    "Prose about something else.",
    "Bread needs flour, water, salt and time. Let the dough rest in a warm place until it has doubled.\n"
    "Bake it hot, and let it cool before you cut it: patience is half of the taste.",
)

State = tuple[Prompt, list[Instruction], Instruction]


def states(cartridge: Cartridge, count: int) -> list[State]:
    """Return (prompt, legal, planner's best) of states in which the planner prefers one, three of a game at most."""
    found: list[State] = []
    seed = 5_000
    while len(found) < count:
        seed += 1
        rng = random.Random(seed)
        engine: Engine = cartridge.engine()
        engine.reset(seed)
        for _ in range(3):
            for _ in range(rng.randint(3, 12)):
                if engine.ended() is not None:
                    break
                options = planned(cartridge, engine)
                engine.apply(rng.choice(engine.legal()) if rng.random() < 0.25 else options[0].instruction)
            if engine.ended() is not None or len(found) == count:
                break
            options = planned(cartridge, engine)
            if len(options) > 1 and options[0].score > options[1].score:
                shown = list(options[: cartridge.offered])
                rng.shuffle(shown)
                prompt = cartridge.view.prompt(engine, shown)
                legal = [option.instruction for option in shown] if cartridge.ratifies else list(engine.legal())
                found.append((prompt, legal, options[0].instruction))
    return found


def planned(cartridge: Cartridge, engine: Engine) -> Sequence[Option]:
    """Return the planner's options."""
    assert cartridge.planner is not None, "a cartridge without a planner has no best option to compare with"
    return cartridge.planner.rank(engine)


def choices(
    kernel: Kernel, cartridge: Cartridge, found: list[State], strategy: Strategy | None, marks: bool
) -> list[int]:
    """Return what is chosen in each state, as the place of the opcode."""
    wire = Wire([cartridge])
    instructions = commands(cartridge.name, cartridge.opcodes)
    place = {instruction: n for n, instruction in enumerate(instructions)}
    opcodes = kernel.compile([wire.literal(instruction) for instruction in instructions])
    rule = Rule(RuleName.CALIBRATED if marks else RuleName.EXACT)
    chosen = []
    for prompt, legal, _ in found:
        asked = prompt if marks else Prompt(prompt.nulls[0])
        asked = asked if strategy is None else with_prose(asked, strategy)
        subset = opcodes.subset_of([place[instruction] for instruction in legal])
        chosen.append(kernel.decide(Question(kernel.ids(asked), opcodes, subset, rule)).index)
    return chosen


def measure(kernel: Kernel, name: str, count: int) -> list[dict[str, Any]]:
    """Return a row for each strategy and the control, with and without marks."""
    maker = Factory(Registry().find(name))
    cartridge = maker.cartridge({})
    found = states(cartridge, count)
    best = [commands(cartridge.name, cartridge.opcodes).index(instruction) for _, _, instruction in found]
    rows = []
    for marks in (True, False):
        plain = choices(kernel, cartridge, found, None, marks)
        for strategy in (None, CONTROL, *maker.strategies().values()):
            chosen = plain if strategy is None else choices(kernel, cartridge, found, strategy, marks)
            moved = sum(a != b for a, b in zip(chosen, plain, strict=True))
            right = sum(a == b for a, b in zip(chosen, best, strict=True))
            rows.append(
                {
                    "cartridge": name,
                    "marks": marks,
                    "strategy": strategy.id if strategy else "none",
                    "states": len(found),
                    "moved": moved,
                    "moved_95": [round(x, 3) for x in wilson(moved, len(found))],
                    "best": right,
                    "best_95": [round(x, 3) for x in wilson(right, len(found))],
                }
            )
    return rows


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--states", type=int, default=60)
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores, at most 8)")
    parser.add_argument("--cartridge", action="append", help="(default: tetris and scavenger)")
    given = parser.parse_args()
    table = Table("cartridge", "marks", "strategy", "moved", "95 %", "best", "95 % ", box=None)
    rows: list[dict[str, Any]] = []
    with Kernel.load(given.model, threads=given.threads) as kernel:
        for name in given.cartridge or ["tetris", "scavenger"]:
            rows += measure(kernel, name, given.states)
    for row in rows:
        shares = [f"{100 * row[key] / row['states']:.0f} %" for key in ("moved", "best")]
        spans = [f"{100 * low:.0f}-{100 * high:.0f}" for low, high in (row["moved_95"], row["best_95"])]
        marks = "yes" if row["marks"] else "no"
        table.add_row(row["cartridge"], marks, row["strategy"], shares[0], spans[0], shares[1], spans[1])
    Console(width=100).print(table)
    publish("strategies", {"model": given.model, "rows": rows}, given.out)


if __name__ == "__main__":
    main()
