"""Which learned file a session takes, what a file of cases may hold, and what the shipped files decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import cartridges
from cartridges.home import make
from dispatch.loading.registry import load_all
from dispatch.session.guides import waits_for_requests
from dispatch.session.judging import judge_for
from dispatch.session.learned import file_name, learned_for, own_folder, taught
from dispatch.session.learning import Lesson, file_cases, lesson, own_cases
from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.decision import Decision
from kernel.choose.outcome import Thresholds
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import CartridgeError, UsageError
from kernel.prompt import explained
from kernel.trie.opcodes import Literal

SCAVENGER = load_all(("scavenger",))


@pytest.fixture(scope="module")
def kernel(tools: SimpleNamespace) -> Kernel:
    """A model without weights, with a word for each long piece of the guide, so that heads are short."""
    pieces = [w for each in SCAVENGER[0].guide for w in (f" {each.words}", each.phrase, each.when, each.request)]
    vocabulary = tools.toy_vocabulary(["Request:", "Command:", *dict.fromkeys(pieces)])
    return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(len(vocabulary)), n_ctx=4096))


@pytest.fixture(scope="module")
def learned(kernel: Kernel) -> Lesson:
    """What a few labelled requests teach about rows by chance: nothing, but in the right form."""
    asked = [("up", "go north"), ("down", "go south"), ("the key", "take key"), ("la la", ""), ("hm", ""), ("tea", "")]
    return lesson(kernel, SCAVENGER, asked)


def test_what_was_learned_here_is_found_before_what_is_shipped(
    kernel: Kernel, learned: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without either there is none; a damaged file is noted and left out; the kernel is taught what was found."""
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path / "cache"))
    name = file_name(kernel, SCAVENGER)
    shipping = [replace(SCAVENGER[0], learned=tmp_path / "shipped")]
    assert name == "scavenger-scripted.learned"
    assert learned_for(kernel, shipping) is None
    assert judge_for(kernel, shipping, Rule(RuleName.LEARNED)) == Thresholds()
    learned.learned.write(tmp_path / "shipped" / name)
    assert learned_for(kernel, shipping) is not None
    mine = replace(learned.learned, prior=2.0)
    mine.write(own_folder() / name)
    found = taught(kernel, shipping)
    assert found is not None
    assert found.prior == 2.0
    assert judge_for(kernel, shipping, Rule(RuleName.LEARNED)) == mine.thresholds
    assert judge_for(kernel, shipping, Rule(RuleName.EXACT)) == Thresholds()
    options = [f" {each.words}" for each in SCAVENGER[0].guide]
    known = kernel.learned_of(kernel.compile([Literal(o, "\n") for o in options]))
    assert known is not None
    assert known.fingerprint == found.fingerprint
    (own_folder() / name).write_bytes(b"junk")
    again = learned_for(kernel, shipping)
    assert again is not None
    assert again.prior == learned.learned.prior
    assert "is not a learned file" in caplog.text
    assert learned_for(kernel, load_all(("tetris",))) is None


def test_a_lesson_tells_what_it_was_learned_from(learned: Lesson) -> None:
    """Three requests and ten of the guide have an answer, three have none; the file names cartridge and model."""
    assert (learned.answered, learned.nothing) == (13, 3)
    assert learned.learned.about["cartridges"] == ["scavenger"]
    assert 0 <= learned.before <= 1
    assert 0 <= learned.after <= 1


def test_a_cartridge_without_a_guide_cannot_be_learned(kernel: Kernel) -> None:
    """A sentence names it."""
    with pytest.raises(UsageError, match="'tetris' has no guide that explains its commands"):
        lesson(kernel, load_all(("tetris",)), [])


def test_own_cases_are_those_of_the_half_dev() -> None:
    """All sets of the cartridge, those that nothing should answer too; no request of `test`, none of `fresh`."""
    cartridge = make()
    assert cartridge.cases is not None
    everything = [case for each in (cartridge.cases, *cartridge.more_cases.values()) for case in each()]
    own = own_cases([cartridge])
    assert dict(own) == {case.request: case.answer.strip() for case in everything if case.split == "dev"}
    assert not {request for request, _ in own} & {case.request for case in everything if case.split == "test"}
    assert sum(not answer for _, answer in own) >= 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"request": "up"', r"cases\.jsonl:2: the line: Invalid JSON"),
        ('{"answer": "go up"}', r"cases\.jsonl:2: request: Field required"),
        ('{"request": "up", "answer": "go up"}', r"cases\.jsonl:2: answer: 'go up' is none of the 2 commands"),
    ],
)
def test_a_file_of_cases_is_read_strictly(tmp_path: Path, line: str, said: str) -> None:
    """The error names file, line and field; `none` and no answer at all say that nothing should answer."""
    path = tmp_path / "cases.jsonl"
    good = '{"request": "up", "answer": "go north"}\n'
    path.write_text(good + '{"request": "tea", "answer": "none"}\n{"request": "hm"}\n')
    assert file_cases(path, ["go north", "go south"]) == [("up", "go north"), ("tea", ""), ("hm", "")]
    path.write_text(good + line + "\n")
    with pytest.raises(CartridgeError, match=said):
        file_cases(path, ["go north", "go south"])


def test_shipped_files_are_small() -> None:
    """Together less than a megabyte and a half."""
    files = list(Path(cartridges.__file__).parent.rglob("*.learned"))
    assert len(files) >= 2
    assert sum(file.stat().st_size for file in files) < 1_500_000


@pytest.fixture
def decide(smollm2_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Decision]]:
    """Decide a request to the house by what is shipped for it, on the real model; it may be judged."""
    monkeypatch.setenv("CARTRIDGE_KERNEL_CACHE", str(tmp_path))
    home, rule = make(), Rule(RuleName.LEARNED)
    with Kernel(LlamaCppBackend(smollm2_path, threads=1)) as kernel:
        judge = judge_for(kernel, [home], rule)
        opcodes = kernel.compile([Literal(f" {each.words}", "\n@home\n") for each in home.guide])

        def decided(request: str, *, judged: bool = False) -> Decision:
            prompt = kernel.ids(explained(request, home.guide))
            return kernel.decide(Question(prompt, opcodes, rule=rule, judge=judge if judged else None))

        yield decided


@pytest.mark.slow
@pytest.mark.model
def test_the_shipped_file_decides_what_people_say(decide: Callable[..., Decision]) -> None:
    """Requests of no set: the right command, in one pass of few tokens; what asks for nothing is less meant."""
    said = {
        "I'd like it to be warmer in this place": " heater warmer\n@home\n",
        "Bolt that door for me": " door lock\n@home\n",
        "Sweep the floor, it is full of dirt": " vacuum start\n@home\n",
    }
    meant = []
    for request, expected in said.items():
        decision = decide(request, judged=True)
        assert (decision.rule, decision.text, decision.outcome.value) == ("learned", expected, "chosen"), request
        meant.append(decision.evidence.meant)
    assert decision.passes == 1
    assert decision.tokens_evaluated <= 61
    assert decide("Who painted this").evidence.meant < min(meant)


ROOMS = ("kitchen", "bedroom", "bathroom", "hall")
PLAIN = {
    **{f"turn {state} the {room} light": f"light {room} {state}" for room in ROOMS for state in ("on", "off")},
    **{f"{room} light {state}": f"light {room} {state}" for room in ROOMS for state in ("on", "off")},
    "make it warmer": "heater warmer",
    "make it cooler": "heater cooler",
    "lock the door": "door lock",
    "open the door": "door unlock",
    "open the blinds": "blinds open",
    "close the blinds": "blinds close",
    "play music": "music play",
    "music off": "music stop",
    "volume up": "music louder",
    "volume down a bit": "music quieter",
    "next song": "music next",
    "start the vacuum": "vacuum start",
    "send the vacuum back": "vacuum dock",
    "set a timer": "timer start",
    "stop the timer": "timer stop",
    "check the timer": "timer check",
}
"""What everybody says first. None of it is learned from."""
MISSED = {"music off"}
"""Decided wrongly by the file that is shipped now."""


def test_the_plainest_commands_are_not_learned_from() -> None:
    """Else the test below would say nothing of what was not learned."""
    home = make()
    learned_from = {request.lower() for request, _ in own_cases([home])} | {each.request.lower() for each in home.guide}
    assert not learned_from & PLAIN.keys()


@pytest.mark.slow
@pytest.mark.model
def test_the_shipped_file_decides_the_plainest_commands(decide: Callable[..., Decision]) -> None:
    """On is not off, and up is not down; no other one is missed than is known to be."""
    said = {request: decide(request).text.split("\n")[0].strip() for request in PLAIN}
    assert {request for request, command in PLAIN.items() if said[request] != command} <= MISSED


@pytest.mark.parametrize(
    ("names", "waits"),
    [(("robot",), False), (("scavenger",), False), (("home",), True), (("robot", "home"), True), (("tetris",), False)],
)
def test_a_game_does_not_go_by_what_was_learned_of_requests(names: tuple[str, ...], waits: bool) -> None:
    """Robot and scavenger play by themselves, so the rule that is learned of requests is not theirs there."""
    assert waits_for_requests(load_all(names)) is waits
