"""kill -9 at random moments: each log verifies to its last whole line, and goes on to the same end."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from cartridges.tetris import make as make_tetris
from dispatch.log.objects import CartridgeRecord, InstructionRecord, Offer
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.replay import Verdict, replay
from dispatch.log.resume import resume
from dispatch.log.writer import LogWriter
from kernel.contract import Cartridge, Engine

PIECES = 20
TRIES = 1000


def tetris(record: CartridgeRecord) -> Cartridge:
    return make_tetris(**record.options or {})


def play(engine: Engine, log: LogWriter) -> str:
    """Let the planner play on to PIECES, log every key, and return the last state."""
    planner = make_tetris("moves").planner
    assert planner is not None
    while engine.summary()["pieces"] != PIECES:
        options = planner.rank(engine)[:3]
        result = engine.apply(options[0].instruction)
        log.decision(
            DecisionRecord(
                n=log.n + 1,
                cartridge="tetris",
                instruction=InstructionRecord.of(options[0].instruction),
                offered=tuple(map(Offer.of, options)),
                result=result,
                state=engine.state_hash(),
            ),
            prompt=range(log.n % 7, 50),
        )
    summary = {"tetris": dict(engine.summary())}
    log.outcome(Outcome(decisions=log.n, ending=Ending.LIMIT, summary=summary))
    return engine.state_hash()


def start(path: Path) -> str:
    """Play a whole session."""
    engine = make_tetris("moves").engine()
    engine.reset(11)
    record = CartridgeRecord(name="tetris", version="1", state=engine.state_hash(), options={"opcodes": "moves"})
    with LogWriter(path, Header(cartridges=(record,), seed=11, player="planner")) as log:
        return play(engine, log)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
@pytest.mark.parametrize(
    ("suffix", "times"), [("jsonl", 8), *(pytest.param(name, 50, marks=pytest.mark.slow) for name in ("jsonl", "gz"))]
)
def test_a_session_killed_at_any_moment_goes_on_to_the_same_end(tmp_path: Path, suffix: str, times: int) -> None:
    """Random moments from before the header to after the outcome, until so many have fallen into the middle.

    How many that takes depends on how fast the machine is just then.
    """
    began = time.perf_counter()
    end = start(tmp_path / f"whole.{suffix}")
    length = time.perf_counter() - began
    whole = replay(tmp_path / f"whole.{suffix}", tetris)
    assert whole.verdict is Verdict.VERIFIED
    rng, killed = random.Random(5), 0
    for moment in range(TRIES):
        if killed == times:
            break
        path = tmp_path / f"{moment}.{suffix}"
        child = os.fork()
        if child == 0:
            try:
                start(path)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, 1.1 * length))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not path.exists() or not path.stat().st_size:
            start(path)
        report = replay(path, tetris)
        assert report.difference is None
        if report.verdict is Verdict.VERIFIED:
            continue
        killed += 1
        assert report.decisions <= whole.decisions  # all of them: killed before the outcome
        found = resume(path, tetris)
        assert found.writer.n == report.decisions
        with found.writer as log:
            assert play(found.engines["tetris"], log) == end
        assert replay(path, tetris).verdict is Verdict.VERIFIED
        assert replay(path, tetris).decisions == whole.decisions
    assert killed == times
