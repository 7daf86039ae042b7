"""What does a log cost, and how fast does it verify?

A planner's Tetris game of N decisions is logged as a model's game would be (legal rows, offers, prompt ids, a ledger),
then replayed headless with the engine in the loop. Targets: 5,000 decisions a second, and under 2 % of a decision for
the writing (a decision of SmolLM2 on two cores takes about 50 ms, so 1 ms).

    python benchmarks/bench_log.py [--decisions N] [--gzip]
"""

from __future__ import annotations

import math
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness import make_parser, publish

from cartridges.tetris import make
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LedgerStep, LegalRow, Offer, TokenRow
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.replay import replay
from dispatch.log.writer import LogWriter
from dispatch.wire.wire import Wire
from kernel.contract import Engine, Option
from kernel.opcode import Instruction

CARTRIDGE = make("moves")


def play(engine: Engine, decisions: int) -> Iterator[tuple[Instruction, list[Option]]]:
    """Yield what the planner does, key by key, with its three best options."""
    assert CARTRIDGE.planner is not None
    while True:
        options = list(CARTRIDGE.planner.rank(engine)[:3])
        for key in options[0].plan or (options[0].instruction,):
            yield key, options
            decisions -= 1
            if not decisions:
                return


def record(n: int, key: Instruction, options: list[Option], engine: Engine) -> DecisionRecord:
    """Return a record of the size that a model's decision has."""
    offers = tuple(Offer.of(option) for option in options if option.instruction in engine.legal())
    wire, legal = Wire([CARTRIDGE]), list(engine.legal())
    shares = [math.exp(-(i != key)) for i in legal]
    rows = tuple(
        LegalRow(
            text=wire.literal(i).text,
            logprob=-1.234567 - k,
            null=-2.345678,
            score=float(i == key),
            probability=round(share / sum(shares), 6),
        )
        for k, (i, share) in enumerate(zip(legal, shares, strict=True))
    )
    ledger = LedgerStep(
        at=0,
        legal=5,
        mass=0.6,
        rows=tuple(TokenRow.of(9315 + k, b" left", -1.0 - k, legal=k < 5, rank=1 + k) for k in range(11)),
    )
    return DecisionRecord(
        n=n,
        cartridge="tetris",
        instruction=InstructionRecord.of(key),
        text=wire.literal(key).text,
        ids=(9315, 198),
        result=engine.apply(key),
        state=engine.state_hash(),
        legal=rows,
        offered=offers or None,
        rule="calibrated",
        legal_count=len(rows),
        chosen=legal.index(key),
        margin=1.0,
        legal_mass=0.6,
        passes=2,
        tokens_evaluated=87,
        chosen_tokens=1,
        forced_tokens=1,
        stop="complete",
        model_ms=48.123,
        planner_ms=1.234,
        at_ms=50.0 * n,
        ledger=(ledger,),
    )


def main() -> None:
    """Write, replay, print a table for people and one line of JSON."""
    parser = make_parser(__doc__)
    parser.add_argument("--decisions", type=int, default=20_000, help="of the game (default: %(default)s)")
    parser.add_argument("--gzip", action="store_true", help="pack the log")
    given = parser.parse_args()
    decisions = given.decisions
    cartridge = make("moves")
    engine = cartridge.engine()
    engine.reset(1)
    start = CartridgeRecord(name="tetris", version=cartridge.version, state=engine.state_hash())
    prompt = list(range(300))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.jsonl.gz" if given.gzip else "bench.jsonl")
        took: list[float] = []
        with LogWriter(path, Header(cartridges=(start,), seed=1)) as log:
            for n, (key, options) in enumerate(play(engine, decisions), 1):
                made = time.perf_counter()
                one = record(n, key, options, engine)
                prompt[200:] = [n + k for k in range(100)]
                log.decision(one, prompt=prompt, nulls=[prompt[:250]])
                took.append((time.perf_counter() - made) * 1000)
            log.outcome(Outcome(decisions=decisions, ending=Ending.LIMIT, summary={"tetris": dict(engine.summary())}))
        size = path.stat().st_size
        report = replay(path, lambda _: cartridge)
    answer = {
        "decisions": decisions,
        "bytes_per_decision": round(size / decisions),
        "write_ms_median": round(statistics.median(took), 4),
        "write_ms_p99": round(statistics.quantiles(took, n=100)[-1], 4),
        "replay_per_second": report.decisions_per_second,
        "verdict": report.verdict,
        "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    for name, value in answer.items():
        print(f"{name:20} {value}")
    publish("log", answer, given.out)


if __name__ == "__main__":
    main()
