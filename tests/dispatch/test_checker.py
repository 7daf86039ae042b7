"""The checker finds each kind of fault, by name and with the state that shows it; a sound cartridge has none."""

# ruff: noqa: D101, D102 - what a faulty class does wrong stands in its name

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import pytest
from pydantic import Field

from dispatch.checker import CHECKS, Report, Status, check_cartridge
from dispatch.checker.run import name_of
from dispatch.checker.subject import part, trace
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge, Case, Engine, Option
from kernel.errors import IllegalInstructionError, UsageError, WireError
from kernel.opcode import Instruction, Opcode, words
from kernel.prompt import Explained, Lines, Part, Prompt
from kernel.text.vocabulary import Vocabulary
from kernel.trie.opcodes import Literal as Text


class Count(Opcode):
    """Add a number."""

    by: Literal[1, 2, 3]


class Say(Opcode):
    """Say a number."""

    words: str


ALL = tuple(value.instruction("sum") for value in Count.instances())
GOAL = 12


class Sum:
    """Adds numbers up to a goal; 3 is not legal twice in a row. Sound: each fault below breaks one thing."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.total = random.Random(seed).randrange(3)
        self.last = 0

    def legal(self) -> Sequence[Instruction]:
        if self.ended() is not None:
            return ()
        return [i for i in ALL if not (self.last == 3 and i.args["by"] == 3)]

    def apply(self, instruction: Instruction) -> str:
        if instruction not in self.legal():
            raise IllegalInstructionError(f"sum: {instruction!r} is not legal")
        self.last = instruction.args["by"]
        self.total += self.last
        return f"now {self.total}"

    def copy(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def state_hash(self) -> str:
        return f"{self.total} {self.last}"

    def ended(self) -> str | None:
        return "the goal is reached" if self.total >= GOAL else None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"total": self.total}


class Planner:
    """The larger the better."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        options = [Option(i, i.args["by"], plan=(i,)) for i in engine.legal()]
        return sorted(options, key=lambda option: -option.score)


class View:
    """A mark at the best option, or a request; both blank in the null prompt."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        best = max(options, key=lambda option: option.score, default=None)
        return Prompt(self.parts(options, best, request), (self.parts(options, None, "N/A"),))

    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        shown = " ".join(f"{words(o.instruction, (Count,))}{'!' if o is best else '.'}" for o in options)
        return (Part("Sum. ", trusted=True), Part(request), Part(f" {shown} Next:", trusted=True))

    def render(self, engine: Engine) -> str:
        return engine.state_hash()


def sound(engine: type[Sum] = Sum, **changes: Any) -> Cartridge:
    """Return the cartridge with one part changed."""
    parts = {"planner": Planner(), "view": View(), "takes_requests": True, "offers_beside_request": True, **changes}
    return replace(Cartridge("sum", "1", "Adds numbers.", (Count,), engine, View()), **parts)


def faults(report: Report) -> dict[str, str]:
    """Return what failed: detail by check."""
    return {f.check: f.detail for f in report.findings if f.status is Status.FAILED}


@pytest.fixture(scope="module")
def vocabularies(load: Callable[[str], Vocabulary]) -> dict[str, Vocabulary]:
    """One vocabulary whose control tokens have text."""
    return {"qwen2": load("qwen2")}


def wires(cartridge: Cartridge) -> dict[str, Wire]:
    """Return both wire forms."""
    return {name: Wire([cartridge], form) for name, form in FORMS.items()}


def test_a_sound_cartridge_passes_every_check_that_can_be_made(vocabularies: dict[str, Vocabulary]) -> None:
    """Only the other process, the labelled cases and the guide are missing here."""
    report = check_cartridge(sound(), vocabularies=vocabularies, wires=wires(sound()), steps=200)
    assert faults(report) == {}
    assert report.count(Status.PASSED) == len(CHECKS) - 3
    assert report.ok


def test_without_vocabularies_and_wire_forms_their_checks_are_skipped_not_passed() -> None:
    """Five checks say what they lack."""
    report = check_cartridge(sound(), steps=50)
    skipped = [finding.detail for finding in report.findings if finding.status is Status.SKIPPED]
    assert report.ok
    assert sum("vocabularies" in detail for detail in skipped) == 3
    assert sum("wire form" in detail for detail in skipped) == 2


# -- engines with one fault each -----------------------------------------------------------------------------------


class Forgetful(Sum):
    resets = 0

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.resets += 1
        self.total += self.resets


class Unseeded(Sum):
    counter = itertools.count()

    def reset(self, seed: int) -> None:
        super().reset(next(Unseeded.counter))


class Shared(Sum):
    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.log: list[int] = []

    def apply(self, instruction: Instruction) -> str:
        said = super().apply(instruction)
        self.log.append(self.last)
        return said

    def state_hash(self) -> str:
        return f"{self.total} {self.log}"


class Lucky(Sum):
    dice = random.Random(0)

    def apply(self, instruction: Instruction) -> str:
        said = super().apply(instruction)
        self.total += self.dice.randrange(3)
        return said


class Endless(Sum):
    def legal(self) -> Sequence[Instruction]:
        return ALL

    def apply(self, instruction: Instruction) -> str:
        self.total += 1
        return "more"


class Stuck(Sum):
    def legal(self) -> Sequence[Instruction]:
        return [i for i in super().legal() if self.total + i.args["by"] <= 5]


class Dead(Sum):
    def ended(self) -> str | None:
        return "never begun"


class Sleepy(Sum):
    def ended(self) -> str | None:
        return "seed 7" if self.total == 99 else super().ended()

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.total = 99 if seed > 3 else self.total


class Peeking(Sum):
    looks = 0

    def legal(self) -> Sequence[Instruction]:
        found = super().legal()
        self.looks += 1
        return found

    def state_hash(self) -> str:
        return f"{self.total} {self.looks}"


class Twice(Sum):
    def legal(self) -> Sequence[Instruction]:
        return [*super().legal(), *super().legal()[:1]]


class Undeclared(Sum):
    def legal(self) -> Sequence[Instruction]:
        return [*super().legal(), Instruction.of("sum", "count", by=4)] if self.ended() is None else ()


class Crashing(Sum):
    def apply(self, instruction: Instruction) -> str:
        if self.total == 7:
            raise ZeroDivisionError("at seven")
        return super().apply(instruction)


class Wordless(Sum):
    def apply(self, instruction: Instruction) -> str:
        super().apply(instruction)
        return None  # type: ignore[return-value]


class Lenient(Sum):
    def apply(self, instruction: Instruction) -> str:
        if instruction in ALL and self.ended() is None:
            self.last = 0
        return super().apply(instruction)


class Rough(Sum):
    def apply(self, instruction: Instruction) -> str:
        assert instruction in self.legal()
        return super().apply(instruction)


class Careless(Sum):
    def apply(self, instruction: Instruction) -> str:
        self.last = instruction.args.get("by", self.last)
        self.total += 1
        return super().apply(instruction)


class Infinite(Sum):
    def summary(self) -> Mapping[str, int | float | str]:
        return {"ratio": float("inf")}


class Nested(Sum):
    def summary(self) -> Mapping[str, int | float | str]:
        return {"all": [1]}  # type: ignore[dict-item]


ENGINES: list[tuple[type[Sum], str, str]] = [
    (Forgetful, "Same seed, same states", "reset leaves something of the game before"),
    (Unseeded, "Same seed, same states", "two engines part at step 0"),
    (Dead, "Same seed, same states", "every game ends before its first step"),
    (Shared, "Copies are independent", "three steps of a copy changed the engine"),
    (Lucky, "Copies are independent", "is chance copied?"),
    (Endless, "A random player", r"3 instructions are legal and ended\(\) is 'the goal is reached'"),
    (Stuck, "A random player", r"0 instructions are legal and ended\(\) is None"),
    (Sleepy, "A random player", "the game has ended right after reset: 'seed 7'"),
    (Peeking, "A random player", r"legal\(\) changes the engine"),
    (Twice, "A random player", r"sum\.count\(by=1\) is legal twice"),
    (Undeclared, "A random player", r"sum\.count\(by=4\) is legal but no opcode of the cartridge declares it"),
    (Crashing, "A random player", r"ZeroDivisionError: at seven \(.*test_checker\.py:\d+\)"),
    (Wordless, "A random player", "apply returned None, not words"),
    (Lenient, "What is not legal is refused", r"sum\.count\(by=3\) is not legal, yet apply carries it out: 'now \d+'"),
    (Rough, "What is not legal is refused", r"raises AssertionError\(.*; raise IllegalInstructionError"),
    (Careless, "What is not legal is refused", "is refused, yet it changed the engine"),
    (Infinite, "The summary is names", "Out of range float values"),
    (Nested, "The summary is names", r"'all' is \[1\]"),
]


@pytest.mark.parametrize(("engine", "check", "message"), ENGINES)
def test_a_fault_of_the_engine_is_found(engine: type[Sum], check: str, message: str) -> None:
    """Eighteen engines, each wrong in one way."""
    found = faults(check_cartridge(sound(engine), steps=300))
    (name,) = [name for name in found if name.startswith(check)]
    assert re.search(message, found[name]), found


# -- cartridges that act outside -----------------------------------------------------------------------------------


class Acting(Sum):
    """Counts what it does outside, for all engines together."""

    done: ClassVar[list[Instruction]] = []

    def apply(self, instruction: Instruction) -> str:
        self.recall(instruction, "")
        self.done.append(instruction)
        return "done"

    def recall(self, instruction: Instruction, result: str) -> None:
        super().apply(instruction)


class Deaf(Sum):
    apply = Acting.apply
    done = Acting.done


class Guessing(Acting):
    dice = random.Random(0)

    def recall(self, instruction: Instruction, result: str) -> None:
        super().recall(instruction, result)
        self.total += self.dice.randrange(9)


class Believing(Acting):
    def recall(self, instruction: Instruction, result: str) -> None:
        self.total += instruction.args.get("by", 0)


class Repeating(Acting):
    def recall(self, instruction: Instruction, result: str) -> None:
        self.apply(instruction)


class Rehearsing(Acting):
    """What it does outside is a field, which a rehearsal leaves empty; it counts calls, which recall forgets to."""

    outside: Any = staticmethod(lambda instruction: Acting.done.append(instruction) or "done")
    counted = 0

    def apply(self, instruction: Instruction) -> str:
        self.recall(instruction, "")
        self.counted += 1
        return self.outside(instruction)  # type: ignore[no-any-return]

    def rehearsal(self, result: str) -> Self:
        twin = self.copy()
        twin.outside = lambda instruction: result
        return twin

    def state_hash(self) -> str:
        return f"{super().state_hash()} {self.counted}"


class LooksAhead(Planner):
    """Tries each instruction on a copy: by `recall`, or for real."""

    def __init__(self, careful: bool) -> None:
        self.careful = careful

    def rank(self, engine: Engine) -> Sequence[Option]:
        for instruction in engine.legal():
            after: Any = engine.copy()
            after.recall(instruction, "") if self.careful else after.apply(instruction)
        return super().rank(engine)


def test_what_acts_outside_is_checked_without_acting(vocabularies: dict[str, Vocabulary]) -> None:
    """Every check is made, with a stand-in for each answer; nothing is carried out, a careful planner may look on."""
    cartridge = sound(Acting, acts_outside=True, planner=LooksAhead(careful=True))
    report = check_cartridge(cartridge, vocabularies=vocabularies, wires=wires(cartridge), steps=100)
    assert faults(report) == {}
    assert report.count(Status.PASSED) == len(CHECKS) - 3
    assert Acting.done == []


@pytest.mark.parametrize(
    ("cartridge", "check", "message"),
    [
        (
            sound(Deaf, acts_outside=True),
            "What acts",
            r"but Deaf has no recall\(instruction, result\)",
        ),
        (sound(Acting), "What acts", r"has recall\(\), but acts_outside=False"),
        (sound(Guessing, acts_outside=True), "What acts", r"recall of sum\.count\(by=\d\) leads to two states"),
        (sound(Rehearsing, acts_outside=True), "What acts", r"leads to another state than apply"),
        (sound(Repeating, acts_outside=True), "What acts", r"recall\(\) carries sum\.count\(by=\d\) out"),
        (sound(Believing, acts_outside=True), "What acts", r"is not legal, yet it can be recalled"),
        (
            sound(Acting, acts_outside=True, planner=LooksAhead(False)),
            "Every planned",
            r"rank\(\) carries sum\.count\(by",
        ),
    ],
)
def test_a_fault_of_what_acts_outside_is_found_without_acting(cartridge: Cartridge, check: str, message: str) -> None:
    """No recall, recall without the declaration, by chance or without rules; a planner that acts on a copy."""
    Acting.done.clear()
    found = faults(check_cartridge(cartridge, steps=30, seeds=(0, 1)))
    (name,) = [name for name in found if name.startswith(check)]
    assert re.search(message, found[name]), found
    if cartridge.acts_outside:
        assert Acting.done == []


def test_another_process_that_sees_another_game_is_found() -> None:
    """The traces of seed 1 part at step 2; those of seed 0 agree."""

    def elsewhere(seeds: Sequence[int], steps: int) -> list[list[str]]:
        traces = [trace(Sum(), seed, steps) for seed in seeds]
        traces[1][2] = "something else"
        return traces

    found = faults(check_cartridge(sound(), steps=10, elsewhere=elsewhere))
    assert list(found) == ["Same seed, same states in another process"]
    assert found["Same seed, same states in another process"].startswith(
        "seed 1: another process comes to another game"
    )
    assert "step 2: " in found["Same seed, same states in another process"]


def test_traces_of_different_length_part_where_the_shorter_one_ends() -> None:
    """And equal ones nowhere."""
    assert part(["a"], ["a", "b"]) == "step 1: None and 'b'"
    assert part(["a"], ["a"]) is None


# -- planners with one fault each ----------------------------------------------------------------------------------


class Ranking(Planner):
    """Changes what the sound planner says."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def rank(self, engine: Engine) -> Sequence[Option]:
        options = super().rank(engine)
        return self.change(engine, list(options)) if options else []  # type: ignore[no-any-return]


NOISE = random.Random(0)
PLANNERS = [
    (lambda e, o: o[::-1], "scores are not best first"),
    (lambda e, o: [replace(o[0], score=float("nan"))], "(is asked again|scores are not best first)"),
    (lambda e, o: [], "the planner offers none"),
    (lambda e, o: [replace(x, score=NOISE.random()) for x in o], "something else when it is asked again"),
    (lambda e, o: [o[0], *o], "an instruction is offered twice"),
    (lambda e, o: [Option(Instruction.of("sum", "count", by=9), 9.0), *o], r"count\(by=9\) is offered but not legal"),
    (lambda e, o: [replace(o[0], plan=(ALL[0],)), *o[1:]], r"the plan of sum\.count\(by=[23]\) begins with"),
    (lambda e, o: [replace(x, plan=(x.instruction,) * 20) for x in o], r"move \d+ of the plan .* is not legal"),
    (lambda e, o: (e.apply(o[0].instruction), o)[1], "(changes the engine|asked again|not legal)"),
]


@pytest.mark.parametrize(("change", "message"), PLANNERS)
def test_a_fault_of_the_planner_is_found(change: Any, message: str) -> None:
    """Nine planners, each wrong in one way."""
    found = faults(check_cartridge(sound(planner=Ranking(change)), steps=30))
    assert re.search(message, found["Every planned move is legal and reached"]), found


def test_a_planner_that_goes_on_after_the_end_is_found() -> None:
    """It would offer what nobody can do."""

    class Tireless(Planner):
        def rank(self, engine: Engine) -> Sequence[Option]:
            return super().rank(engine) or [Option(ALL[0])]

    found = faults(check_cartridge(sound(planner=Tireless()), steps=30))
    assert (
        "after the end (the goal is reached) the planner still offers"
        in found["Every planned move is legal and reached"]
    )


# -- views with one fault each -------------------------------------------------------------------------------------


class NoNull(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        return replace(super().prompt(engine, options, request), nulls=())


class SameNull(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        prompt = super().prompt(engine, options, request)
        return replace(prompt, nulls=(prompt.parts,))


class RequestInNull(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        null = self.parts(options, None, request) if request else self.parts(options, None, "N/A")
        return replace(super().prompt(engine, options, request), nulls=(null,))


class MarkInNull(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        best = max(options, key=lambda option: option.score, default=None)
        return replace(super().prompt(engine, options, request), nulls=(self.parts(options, best, "N/A"),))


class NoLead(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        prompt = super().prompt(engine, options, request)
        return replace(prompt, parts=(Lines(("- go\n",)), *prompt.parts))


class TwoLeads(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        prompt = super().prompt(engine, options, request)
        shown, blank = ((Part(f"{said}\n"), Lines(("- go\n",))) for said in ("Now", "N/A"))
        return replace(prompt, parts=(*shown, *prompt.parts), nulls=tuple((*blank, *null) for null in prompt.nulls))


class NoMark(View):
    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        return Prompt(self.parts(options, None, request), (self.parts(options, None, "N/A"),))


class Trusting(View):
    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        return tuple(replace(part, trusted=True) for part in super().parts(options, best, request))


class Chatty(View):
    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        return (Part("word " * 600), *super().parts(options, best, request))


class Empty(View):
    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        return ()


class Blind(View):
    def render(self, engine: Engine) -> str:
        raise KeyError("colour")


VIEWS: list[tuple[View, str, str]] = [
    (NoNull(), "Null prompts are blank", "there is no null prompt"),
    (SameNull(), "Null prompts are blank", "a null prompt is the prompt itself"),
    (RequestInNull(), "Null prompts are blank", "the null prompt holds the request"),
    (MarkInNull(), "Null prompts are blank", "a null prompt tells which option is best"),
    (NoLead(), "Null prompts are blank", "nothing before its lines without an order"),
    (TwoLeads(), "Null prompts are blank", r"its lines behind 'N/A\\n', the prompt behind 'Now\\n'"),
    (NoMark(), "Null prompts are blank", "the prompt does not say which option is best"),
    (Trusting(), "A request cannot hold a control token", "a request belongs into a Part that is not trusted"),
    (Chatty(), "Prompts keep to the token budget", r"6\d\d tokens on qwen2; the budget is 1 to 512"),
    (Empty(), "Prompts keep to the token budget", "0 tokens on qwen2"),
    (Blind(), "The view draws at any width", r"KeyError: 'colour' \(.*test_checker\.py"),
]


@pytest.mark.parametrize(("view", "check", "message"), VIEWS)
def test_a_fault_of_the_view_is_found(
    view: View, check: str, message: str, vocabularies: dict[str, Vocabulary]
) -> None:
    """Eleven views, each wrong in one way."""
    found = faults(check_cartridge(sound(view=view), vocabularies=vocabularies, steps=30))
    assert re.search(message, found[check]), found


class Deaf(View):
    """Shows no request."""

    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        return super().parts(options, best, "")


class Alone(View):
    """Shows a request without the options."""

    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        return super().parts(() if request.strip() else options, best, request)


TAKES, BESIDE = {"takes_requests": True}, {"takes_requests": True, "offers_beside_request": True}


@pytest.mark.parametrize(
    ("view", "declared", "message"),
    [
        (View(), BESIDE, ""),
        (Deaf(), {}, ""),
        (Alone(), TAKES, ""),
        (Deaf(), BESIDE, "takes_requests=True, but two requests have one prompt"),
        (View(), {}, "takes_requests=False, but a request changes the prompt"),
        (View(), TAKES, "offers_beside_request=False, but a prompt with a request lists the options"),
        (Alone(), BESIDE, "offers_beside_request=True, but a prompt with a request leaves out the options"),
    ],
)
def test_what_is_declared_of_requests_is_held(view: View, declared: dict[str, bool], message: str) -> None:
    """Three cartridges as they say they are, four that are not."""
    declared = {"takes_requests": False, "offers_beside_request": False, **declared}
    found = faults(check_cartridge(sound(view=view, **declared), steps=30))
    detail = found.get("Requests are shown as declared, with the options or without them", "")
    assert message in detail
    assert bool(message) == bool(detail)


class Doors(Sum):
    """Every door can be opened at any time."""

    def legal(self) -> Sequence[Instruction]:
        return LIGHTS

    def apply(self, instruction: Instruction) -> str:
        if instruction not in self.legal():
            raise IllegalInstructionError(f"sum: {instruction!r} is not legal")
        self.total += 1
        return f"now {self.total}"

    def ended(self) -> str | None:
        return None


class Light(Opcode):
    """Switch a light on."""

    door: Literal["back door", "hall"]
    bright: bool = False


LIGHTS = tuple(value.instruction("sum") for value in Light.instances())


class Plain:
    """Ranks them as they come."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        return [Option(instruction, -n, plan=(instruction,)) for n, instruction in enumerate(engine.legal())]


class Listing(View):
    """Lists options as a function says them."""

    def __init__(self, say: Callable[[Instruction], str]) -> None:
        self.say = say

    def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
        lines = "".join(f"- {'best' if o is best else 'good'}: {self.say(o.instruction)}\n" for o in options)
        return (Part(f"{request}\n"), Part(f"{lines}Next:", trusted=True))


LISTED = "Options are listed as they are scored"


@pytest.mark.parametrize(
    ("say", "missing"),
    [
        (lambda i: words(i, [Light]), None),
        (lambda i: " ".join(["light", *map(str, i.args.values())]), """' light "back door" bright=true'"""),
        (lambda i: words(i, [Light]).replace('"', ""), """' light "back door" bright=true'"""),
        (lambda i: words(i, [Light]).replace("bright=true", "bright"), """' light "back door" bright=true'"""),
        (lambda i: words(i, [Light]) + "-", """' light "back door" bright=true'"""),
    ],
)
def test_what_is_listed_is_what_is_scored(say: Callable[[Instruction], str], missing: str | None) -> None:
    """`light back door` is listed where ` light "back door"` is scored, so the model is to copy what it never saw."""
    cartridge = sound(Doors, opcodes=(Light,), planner=Plain(), view=Listing(say))
    found = faults(check_cartridge(cartridge, wires=wires(cartridge), steps=30))
    assert list(found) == ([LISTED] if missing else [])
    if missing:
        assert f"{missing} is scored, but not listed" in found[LISTED]
        body = wires(cartridge)["compact"].literal(cartridge.planner.rank(cartridge.engine())[0].instruction).body  # type: ignore[union-attr]
        assert repr(body) == missing


def test_a_prompt_that_lists_no_options_is_not_asked_to() -> None:
    """A hint from the best one only is no list."""

    class Hint(View):
        def parts(self, options: Sequence[Option], best: Option | None, request: str) -> tuple[Part, ...]:
            hint = best.instruction.args["by"] if best else "nothing"
            return (Part(request), Part(f" Think of {hint}. Next:", trusted=True))

    report = check_cartridge(sound(view=Hint()), steps=30)
    (finding,) = [finding for finding in report.findings if finding.check == LISTED]
    assert (finding.status, finding.detail) == (Status.SKIPPED, "no prompt lists options")


# -- declarations with one fault each ------------------------------------------------------------------------------


class Silent(Opcode):
    number: Literal[1]


Silent.__doc__ = None

PROMPT = Prompt((Part("a"),), ((Part("b"),),))


def guided(*commands: str) -> tuple[Explained, ...]:
    """Return a guide of these commands."""
    return tuple(Explained(command, f"say {command}", "it is time", "Now") for command in commands)


DECLARATIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "Sum"}, "Name, version", "name 'Sum' does not match"),
    ({"version": "1@2"}, "Name, version", "version '1@2' is empty or holds an @"),
    ({"summary": "two\nlines"}, "Name, version", "is not one line"),
    ({"offered": 0}, "Name, version", "offered=0; at least one"),
    ({"opcodes": (Count, Count)}, "Name, version", "two opcodes have the method 'count'"),
    ({"opcodes": (Silent,)}, "Name, version", "opcode Silent has no docstring"),
    ({"opcodes": ()}, "Name, version", "there are no opcodes"),
    ({"opcodes": (Count, Say), "guide": guided("count 1", "count 2")}, "The guide", "no example of 'say'"),
    ({"opcodes": (Count, Say), "guide": guided("count 1", "say", "tell 3")}, "The guide", "'tell 3' begins with no"),
    ({"guide": guided("count 1", "count 3")}, "The guide", "nothing of 'count 2'"),
    ({"guide": guided("count 1", "count 2", "count 3", "count 4")}, "The guide", "'count 4', which is no instruction"),
    ({"guide": guided("count 1", "count 2", "count 3", "count 2")}, "The guide", "'count 2' 2 times"),
    ({"cases": list}, "Labelled cases", "there are no cases; leave the set out"),
    ({"cases": lambda: [Case("a", PROMPT, ("x", "y"), "x")] * 2}, "Labelled cases", "the id 'a' stands 2 times"),
    ({"cases": lambda: [Case("a", PROMPT, ("x", "x"), "x")]}, "Labelled cases", "not two or more different ones"),
    ({"cases": lambda: [Case("a", PROMPT, ("x", "y"), "z")]}, "Labelled cases", "'z' is not among its options"),
    ({"more_cases": {"hard": list}}, "Labelled cases", "hard: there are no cases"),
    (
        {"cases": lambda: [Case("a", Prompt((Part("a"),), ((Part("a"),),)), ("x", "y"), "x")]},
        "Labelled cases",
        "a null prompt is the prompt itself",
    ),
]


@pytest.mark.parametrize(("changes", "check", "message"), DECLARATIONS)
def test_a_fault_of_the_declaration_is_found(changes: dict[str, Any], check: str, message: str) -> None:
    """Eighteen declarations, each wrong in one way."""
    found = faults(check_cartridge(sound(**changes), steps=30))
    (name,) = [name for name in found if name.startswith(check)]
    assert re.search(message, found[name]), found


class Mumbling:
    """A wire form that writes every number as 1, or reads every text as the first, or reads nothing."""

    def __init__(self, write: bool, read: str) -> None:
        self.write, self.read = write, read

    def literal(self, instruction: Instruction) -> Text:
        return Text(" one" if self.write else f" {instruction.args['by']}", "\n")

    def parse(self, text: str) -> Instruction:
        if self.read == "nothing":
            raise WireError(f"{text!r} is nothing")
        return ALL[0]


def test_opcodes_that_do_not_compile_or_parse_back_are_found(vocabularies: dict[str, Vocabulary]) -> None:
    """Three wire forms, each wrong in one way."""
    compiles, parses = "Every opcode compiles on every vocabulary", "Every opcode parses back to itself"

    def found(wire: Mumbling) -> dict[str, str]:
        return faults(check_cartridge(sound(), vocabularies=vocabularies, wires={"m": wire}, steps=9))

    assert found(Mumbling(True, "first"))[compiles] == "m on qwen2: opcode ' one\\n' is declared twice"
    wrong = "m: sum.count(by=2) is written ' 2\\n', which is sum.count(by=1)"
    assert found(Mumbling(False, "first")) == {parses: wrong}
    assert found(Mumbling(False, "nothing")) == {parses: "m: ' 1\\n' does not parse: ' 1\\n' is nothing"}


def test_an_opcode_that_cannot_be_written_out_is_counted_as_open() -> None:
    """Its instructions may be legal; they are not enumerated."""

    class Free(Opcode):
        """Any number at all."""

        number: int = Field(ge=0)

    report = check_cartridge(sound(opcodes=(Count, Free)), steps=30)
    assert report.findings[0].detail == "2 opcodes, 3 instructions, 1 of the opcodes open"
    assert report.ok


def test_games_of_nothing_but_open_opcodes_are_skipped_not_failed() -> None:
    """Chance writes no arguments; legal() lists nothing and the game goes on all the same."""

    class Say(Opcode):
        """Anything."""

        text: str

    class Silent(Sum):
        """Lists nothing."""

        def legal(self) -> list[Instruction]:
            return []

    report = check_cartridge(sound(opcodes=(Say,), engine=Silent), seeds=(0,))
    assert report.ok, str(report)
    assert "skipped  Copies are independent: every opcode is open" in str(report)


def test_a_report_reads_as_text_and_names_every_check_once() -> None:
    """One line for each, the counts before them."""
    report = check_cartridge(sound(Nested), steps=30)
    lines = str(report).splitlines()
    assert lines[0] == "sum@1: 11 passed, 1 failed, 7 skipped"
    assert len(lines) == 1 + len(CHECKS)
    assert len({name_of(check) for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("wrong", [{"seeds": ()}, {"steps": 0}, {"budget": 0}])
def test_a_check_of_nothing_is_misuse(wrong: dict[str, Any]) -> None:
    """No seeds, no steps, no tokens."""
    with pytest.raises(UsageError, match="a check needs at least one of each"):
        check_cartridge(sound(), **wrong)
