"""A cartridge of tools answers alike in a session, by `call` and from Python, and when it is decided again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cartridges.everyday import REQUESTS, make
from dispatch.log.objects import ModelRecord
from dispatch.log.records import Header, RuleRecord
from dispatch.log.replay import Verdict, replay
from dispatch.log.writer import LogWriter
from dispatch.session.calling import AsPlayed
from dispatch.session.decide import decide_again
from dispatch.session.evaluate_calls import evaluate_calls
from dispatch.session.model_player import ModelPlayer
from dispatch.session.rules import rule_for
from dispatch.session.session import Session
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel import Kernel, Tool, Tools
from kernel.backends.scripted import ScriptedBackend
from kernel.casefile import calls
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.rule import Rule
from kernel.opcode.opcode import SchemaOpcode
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.tools.caller import PRIOR

EVERYDAY = make()
TOOLS = Tools(Tool(opcode) for opcode in EVERYDAY.opcodes if issubclass(opcode, SchemaOpcode))


@pytest.fixture(scope="module")
def kernel(tools: SimpleNamespace) -> Kernel:
    """A model over bytes that says what a hash of what stands before it says."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )
    backend = ScriptedBackend(vocabulary, tools.hashed_row(256), n_ctx=8192)
    backend.fingerprint = "hashed"
    return Kernel(backend)


def requests(count: int) -> list[str]:
    """Return the labelled requests, and others of their words."""
    known = [case.request for case in calls(REQUESTS)]
    words = " ".join(known).split()
    draw = random.Random(16)
    return (known + [" ".join(draw.sample(words, draw.randint(1, 6))) for _ in range(count)])[:count]


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_session_calls_what_call_and_python_call(kernel: Kernel, count: int) -> None:
    """The same outcome, tool and arguments in both wire forms, whatever the model says."""
    player = ModelPlayer(kernel, Wire([EVERYDAY]), [EVERYDAY], judge=Thresholds())
    session = Session([EVERYDAY], player, seed=7, limits={"decisions": count})
    session.yes = True
    asked = requests(count)
    turns = list(session.turns(iter(asked)))
    assert len(turns) == count
    seen = set()
    for request, turn in zip(asked, turns, strict=True):
        called = kernel.call(TOOLS, request)
        made = AsPlayed(kernel, Wire([EVERYDAY], FORMS["tagged"]), EVERYDAY, None, request)
        decision = made.decide(Thresholds())
        assert turn.outcome is called.outcome is decision.outcome
        seen.add(turn.outcome)
        if called:
            once = made.call(decision, max_tokens=1, temperature=0, seed=0)
            assert turn.instruction == once.instruction
            assert (turn.instruction.method, turn.instruction.args) == (called.name, dict(called.arguments))
            assert once.written.text.startswith(f"<|call|>everyday.{called.name} {{")
    assert Outcome.CHOSEN in seen


def test_a_log_of_calls_verifies_and_is_decided_again(kernel: Kernel, tmp_path: Path) -> None:
    """Text and ids are those of the whole call; arguments are found again in the logged request."""
    rule = rule_for(Rule(), [EVERYDAY])
    assert rule.planner_weight == PRIOR
    player = ModelPlayer(kernel, Wire([EVERYDAY]), [EVERYDAY], rule, judge=Thresholds())
    session = Session([EVERYDAY], player, seed=7, limits={"decisions": 4})
    session.yes = True
    header = Header(
        cartridges=session.records,
        seed=7,
        rule=RuleRecord(name="calibrated", parameters={"planner_weight": PRIOR}),
        wire="compact",
        model=ModelRecord(name="one", fingerprint="hashed", tokenizer=kernel.vocabulary.fingerprint),
        versions={},
    )
    path = tmp_path / "calls.jsonl"
    with LogWriter(path, header) as log:
        session.write_to(log)
        for _ in session.turns(iter(requests(4))):
            pass
        session.end_log()
    assert replay(path, lambda record: make()).verdict is Verdict.VERIFIED
    report = decide_again(path, lambda record: make(), player, ())
    assert report.good, report
    assert (report.decisions, report.agree) == (4, 4)


def test_labelled_requests_are_counted(kernel: Kernel) -> None:
    """Twenty of them, two a tool; what is not right is told with what was said."""
    result = evaluate_calls(kernel, EVERYDAY, model="hashed", name="tools")
    cases = calls(REQUESTS)
    assert result.tool.of == result.all.of == len(cases) == 20
    assert result.all.count <= result.tool.count == result.arguments.of
    assert len(result.failed) == 20 - result.all.count
    for case in cases:
        right = {name: values[0] for name, values in case.arguments.items() if values[0] is not None}
        assert case.accepts(right)
        assert not case.accepts({**right, "unknown": 1})
        TOOLS[case.tool].opcode.from_arguments(json.dumps(right))
