"""Deciding again: the same model agrees, another one is compared, and what cannot be compared is said."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from cartridges.robot import make as make_robot
from cartridges.scavenger import make as make_scavenger
from dispatch.log.objects import ModelRecord, RuleRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import Ending, Header
from dispatch.log.redact import Redactor
from dispatch.log.writer import LogWriter
from dispatch.session.decide import DecideReport, changes, decide_again, logged_rule
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import PlannerPlayer
from dispatch.session.session import Session
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.rule import Rule
from kernel.errors import LogError
from kernel.text.vocabulary import NORMAL, Vocabulary

VERSIONS = {"llama-cpp-python": "1"}
Row = Callable[[tuple[int, ...]], NDArray[np.float32]]


def rows(seed: int, noise: float = 0.0) -> Row:
    """A model that likes whatever a hash of seed and ids says, moved by a little noise of the same kind."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        drawn = [
            np.random.default_rng(int.from_bytes(blake2b(f"{s}{ids}".encode()).digest()[:8], "big")).normal(size=512)
            for s in (seed, seed + 1000)
        ]
        return (drawn[0] + noise * drawn[1]).astype(np.float32)

    return row


def byte_vocabulary(pairs: bool = False) -> Vocabulary:
    """A token a byte; with `pairs` also one for each of some pairs of letters, taken where they stand."""
    pieces = [bytes([b]) for b in range(256)] + [b"ad", b"va", b"ue"] * pairs
    pieces += [b""] * (512 - len(pieces))

    def tokenize(text: bytes, special: bool, parse: bool) -> list[int]:
        out, at = [], 0
        while at < len(text):
            two = text[at : at + 2]
            out.append(pieces.index(two) if pairs and two in pieces[256:259] else text[at])
            at += len(pieces[out[-1]])
        return out

    return Vocabulary(pieces, np.full(512, NORMAL, np.int32), tokenize)


def kernel(seed: int = 1, *, noise: float = 0.0, pairs: bool = False, fingerprint: str = "") -> Kernel:
    backend = ScriptedBackend(byte_vocabulary(pairs), rows(seed, noise))
    backend.fingerprint = fingerprint or f"model {seed}"
    return Kernel(backend)


def player(counter: SimpleNamespace, made: Kernel, rule: str = "exact") -> ModelPlayer:
    cartridges = [counter.cartridge]
    return ModelPlayer(made, Wire(cartridges), cartridges, Rule(rule))  # type: ignore[arg-type]


def played(
    path: Path,
    counter: SimpleNamespace,
    redact: Redactor | None = None,
    requests: Sequence[str] = (),
    rule: str = "exact",
) -> Path:
    """Log forty decisions of model 1 by a rule."""
    made = kernel()
    session = Session([counter.cartridge], player(counter, made, rule), seed=7, limits={"decisions": 40})
    header = Header(
        cartridges=session.records,
        seed=7,
        rule=RuleRecord(name=rule),
        wire="compact",
        model=ModelRecord(name="one", fingerprint="model 1", tokenizer=made.vocabulary.fingerprint),
        versions=VERSIONS,
    )
    with LogWriter(path, header, redact=redact) as log:
        session.write_to(log)
        for _ in session.turns(iter(requests) if requests else None):
            pass
        session.end_log()
    return path


def again(path: Path, counter: SimpleNamespace, made: Kernel, rule: str = "exact", **options: float) -> DecideReport:
    with LogReader(path) as reader:
        changed = changes(reader.header, made, "now", Rule(rule), VERSIONS)  # type: ignore[arg-type]
    return decide_again(path, counter.make, player(counter, made, rule), changed, **options)  # type: ignore[arg-type]


def choices(path: Path) -> list[int]:
    with LogReader(path) as reader:
        return [record.instruction.arguments["by"] for record in reader]


@pytest.mark.parametrize("rule", ["exact", "calibrated", "greedy", "sample"])
def test_the_same_model_and_rule_choose_the_same(tmp_path: Path, counter: SimpleNamespace, rule: str) -> None:
    """Forty of forty, margins unmoved, nothing changed."""
    path = played(tmp_path / "log", counter, rule=rule)
    assert len(set(choices(path))) == 3
    found = again(path, counter, kernel(), rule)
    assert (found.changed, found.decisions, found.agree, found.within, found.beyond) == ((), 40, 40, 0, 0)
    assert (found.good, found.first, found.rewritten, found.prompts_changed) == (True, None, 0, 0)
    assert found.largest_shift < 1e-5
    assert found.planner_first_then == found.planner_first_now == choices(path).count(3) / 40


def test_noise_flips_small_margins_only(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The same model on another machine: other choices, each with a small margin, and the log is still good."""
    path = played(tmp_path / "log", counter)
    found = again(path, counter, kernel(noise=0.1))
    assert (found.changed, found.beyond, found.good) == ((), 0, True)
    assert found.within >= 1
    assert found.agree + found.within == 40
    assert found.first is not None
    assert found.first.margin_then is not None
    assert min(found.first.margin_then, found.first.margin_now) < 0.5
    assert 0 < found.largest_shift < 0.5


def test_a_choice_that_the_same_model_does_not_make_is_found(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The weights behind the same fingerprint are others: other choices with large margins, and their first is told."""
    path = played(tmp_path / "log", counter)
    found = again(path, counter, kernel(2, fingerprint="model 1"))
    assert found.changed == ()
    assert found.beyond >= 1
    assert not found.good
    assert found.first_beyond is not None
    assert found.first_beyond.margin_then is not None
    assert found.first_beyond.behind >= 0.5
    strict = again(path, counter, kernel(noise=0.1), tolerance=0.0)
    assert strict.beyond == again(path, counter, kernel(noise=0.1)).within


def test_another_model_is_compared_and_never_a_failure(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Counts against what model 2 chooses behind the same prompts, computed apart."""
    path = played(tmp_path / "log", counter)
    made = kernel(2)
    found = again(path, counter, made)
    assert found.changed == ("model: one then, now now",)
    other = player(counter, kernel(2))
    session = Session([counter.cartridge], other, seed=7)
    expected = []
    for by in choices(path):
        situation, _ = session.situation(1, "")
        expected.append(other.choose(situation).instruction.args["by"])
        session.engines["counter"].apply(counter.add(by))
    pairs = list(zip(choices(path), expected, strict=True))
    assert found.agree == sum(then == now for then, now in pairs)
    gains = [now - then for then, now in pairs if then != now]
    assert (found.planner_prefers_then, found.planner_prefers_now) == (
        sum(g < 0 for g in gains),
        sum(g > 0 for g in gains),
    )
    assert found.planner_gain == pytest.approx(sum(gains) / len(gains))
    assert found.planner_first_now == expected.count(3) / 40
    assert found.good


def test_another_rule_or_runtime_is_named(tmp_path: Path, counter: SimpleNamespace) -> None:
    """With what differs from the rule's defaults."""
    path = played(tmp_path / "log", counter)
    assert again(path, counter, kernel(), "calibrated").changed == ("rule: exact then, calibrated now",)
    with LogReader(path) as reader:
        header = reader.header
    rule = Rule(calibration=0.5)
    assert changes(header, kernel(), "one", rule, {"llama-cpp-python": "2"}) == (
        "rule: exact then, calibrated calibration=0.5 now",
        "llama-cpp-python: 1 then, 2 now",
    )


def test_another_tokenizer_is_bridged_through_the_text(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The view writes every prompt again, and it is told."""
    path = played(tmp_path / "log", counter)
    found = again(path, counter, kernel(3, pairs=True))
    assert found.changed[1] == "tokenizer: another one; prompts are bridged through the text"
    assert (found.decisions, found.rewritten, found.prompts_changed) == (40, 40, 0)


def test_a_view_that_writes_other_prompts_today_is_told(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The logged ids are what counts, so the choices agree."""

    class Louder(type(counter.cartridge.view)):  # type: ignore[misc]
        """Says something else."""

        def prompt(self, *arguments: object) -> object:
            """Put a word in front."""
            made = super().prompt(*arguments)
            return dataclasses.replace(made, parts=(dataclasses.replace(made.parts[0], text="VALUE "), *made.parts[1:]))

    path = played(tmp_path / "log", counter)
    louder = dataclasses.replace(counter.cartridge, view=Louder())
    found = decide_again(path, lambda _: louder, player(counter, kernel()), ())
    assert (found.agree, found.prompts_changed) == (40, 40)


def test_requests_are_read_again_unless_they_were_redacted(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A redacted request cannot be decided again, and a log without requests can, its prompts written anew."""
    requests = ["one please", "more", "stop"]
    path = played(tmp_path / "log", counter, requests=requests)
    found = again(path, counter, kernel())
    assert (found.decisions, found.agree, found.prompts_changed) == (3, 3, 0)
    path = played(tmp_path / "redacted", counter, Redactor(), requests)
    with pytest.raises(LogError, match="decision 1: the request was redacted"):
        again(path, counter, kernel())
    path = played(tmp_path / "plain", counter, Redactor())
    assert (again(path, counter, kernel()).agree, again(path, counter, kernel()).rewritten) == (40, 40)


def test_who_joined_and_left_stands_in_the_prompt_again(tmp_path: Path) -> None:
    """Two requests to the scavenger, two to both, one to the robot alone: today's views write the same prompts."""
    scavenger, robot = make_scavenger(), make_robot()

    def player() -> ModelPlayer:
        made = Kernel(ScriptedBackend(byte_vocabulary(), rows(1), n_ctx=8192))
        return ModelPlayer(made, Wire([scavenger]), [scavenger], Rule("exact"))  # type: ignore[arg-type]

    model = player()
    session = Session([scavenger], model, seed=7)
    header = Header(
        cartridges=session.records,
        seed=7,
        rule=RuleRecord(name="exact"),
        model=ModelRecord(name="one", fingerprint="scripted", tokenizer=model.kernel.vocabulary.fingerprint),
        versions=VERSIONS,
    )
    with LogWriter(tmp_path / "log", header) as log:
        session.write_to(log)
        for request in ("go", "come", "+", "halt", "turn", "-", "speak"):
            if request == "+":
                session.join(robot)
            elif request == "-":
                session.leave("scavenger")
            else:
                session.turn(request)
        session.close(Ending.LIMIT)
        session.end_log()
    made = {"scavenger": make_scavenger, "robot": make_robot}
    report = decide_again(tmp_path / "log", lambda record: made[record.name](), player(), ())
    assert (report.decisions, report.agree, report.prompts_changed, report.rewritten) == (5, 5, 0, 0)
    assert report.largest_shift == pytest.approx(0, abs=1e-6)


def test_a_planner_s_game_can_be_decided_by_a_model(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Its log holds no prompt; the view writes them."""
    session = Session([counter.cartridge], PlannerPlayer(), seed=7, limits={"decisions": 10})
    with LogWriter(tmp_path / "log", Header(cartridges=session.records, seed=7, player="planner")) as log:
        session.write_to(log)
        list(session.turns())
        session.end_log()
    found = again(tmp_path / "log", counter, kernel())
    assert found.changed == ("player: planner then, now now",)
    assert (found.decisions, found.rewritten, found.planner_first_then) == (10, 10, 1.0)
    assert found.planner_prefers_now == 0


def test_a_damaged_log_is_decided_up_to_the_damage(tmp_path: Path, counter: SimpleNamespace) -> None:
    """And is not good, whatever was chosen."""
    path = played(tmp_path / "log", counter)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]) + b"{")
    found = again(path, counter, kernel())
    assert (found.decisions, found.agree, found.good) == (5, 5, False)


def test_a_rule_that_the_kernel_does_not_know_is_an_error() -> None:
    """By its name and parameters, as a log may hold anything."""
    for name, parameters in [("best", {}), ("exact", {"heat": 1}), ("sample", {"temperature": -1})]:
        header = Header(cartridges=(), seed=0, rule=RuleRecord(name=name, parameters=parameters))
        with pytest.raises(LogError, match=f"the log's rule {name!r}"):
            logged_rule(header)


def test_the_outcome_of_such_a_session_is_a_limit(tmp_path: Path, counter: SimpleNamespace) -> None:
    """So the log is whole, and the report is one JSON document."""
    found = again(played(tmp_path / "log", counter), counter, kernel())
    assert found.replay.outcome is not None
    assert found.replay.outcome.ending is Ending.LIMIT
    assert json.loads(found.model_dump_json())["agree"] == 40
