"""`call`: a request in plain words becomes one instruction of a cartridge, which is carried out."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from dispatch.cli.common import (
    HOTTEST,
    MOST_SEED,
    MOST_TOKENS,
    N_CTX,
    AsJson,
    CartridgeName,
    ContextSize,
    Model,
    RuleOption,
    Threads,
    WireForm,
)
from dispatch.cli.model import load_kernel
from dispatch.cli.output import failing, note, print_json, say
from dispatch.cli.person import AtTerminal
from dispatch.loading.registry import load
from dispatch.log.records import Confirmed
from dispatch.session.calling import AsPlayed, ByName
from dispatch.session.rules import make_rule
from dispatch.session.told import NOTHING_MEANT, either
from dispatch.wire.form import form
from dispatch.wire.open_arguments import Call
from dispatch.wire.wire import Wire
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome, Thresholds
from kernel.choose.verdict import instead
from kernel.contract import Cartridge, Engine
from kernel.errors import ActionFailedError, IllegalInstructionError
from kernel.opcode import Instruction

Request = Annotated[str, typer.Argument(help="What is wanted, in plain words.")]
Budget = Annotated[int, typer.Option(help="Tokens that the instruction may have.", min=1, max=MOST_TOKENS)]
Heat = Annotated[
    float, typer.Option("--temperature", help="Of the arguments; 0 takes the most probable.", min=0, max=HOTTEST)
]
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of a temperature above 0.")]
Dry = Annotated[bool, typer.Option("--dry", help="Do not carry it out.")]
Always = Annotated[bool, typer.Option("--always", help="Take the likeliest method, also where none seems to be meant.")]
Yes = Annotated[bool, typer.Option("--yes", help="Agree beforehand to what somebody has to agree to.")]


@dataclass(frozen=True)
class Came:
    """What came of a call: a result, a failure, or why nothing was done."""

    result: str | None = None
    failed: str | None = None
    why: str | None = None
    outcome: Outcome = Outcome.CHOSEN
    confirmed: Confirmed | None = None


def call_command(
    name: CartridgeName,
    request: Request,
    model: Model = "smollm2",
    rule: RuleOption = None,
    max_tokens: Budget = 256,
    temperature: Heat = 0.0,
    seed: Seed = 0,
    wire: WireForm = "tagged",
    dry: Dry = False,
    always: Always = False,
    yes: Yes = False,
    as_json: AsJson = False,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Let the model call a cartridge: it chooses the method and writes the arguments, which always fit their schema.

    Exits with 1 when what it does fails; then --json has "error" in place of "result". Also when nothing is done: no
    method seems to be meant, two are close, it is not legal now, or nobody agreed to it; then "why" says so.

    Example: call ./mytools "What is the weather in Paris?"
    """
    with failing(), ExitStack() as stack:
        cartridge = load(name)
        if cartridge.live is not None:
            stack.callback(cartridge.live.close)
        speller = Wire([cartridge], form(wire))
        kernel = stack.enter_context(load_kernel(model, n_ctx=n_ctx, threads=threads))
        engine = cartridge.engine()
        engine.reset(seed)
        person = AtTerminal() if sys.stdin is not None and sys.stdin.isatty() and not as_json else None

        started = time.perf_counter()
        judge = None if always else Thresholds()
        made: ByName | AsPlayed
        if cartridge.tools and not temperature:
            made = AsPlayed(kernel, speller, cartridge, make_rule(rule), request)
        else:
            made = ByName(kernel, speller, cartridge.view.prompt(engine, (), request), make_rule(rule))
        decision = made.decide(judge)
        if decision is not None:
            decision = _settled(decision, cartridge.name, request, person)
        if decision is not None and decision.outcome is not Outcome.CHOSEN:
            called, came = None, Came(why=_why(decision), outcome=decision.outcome)
        else:
            called = made.call(decision, max_tokens=max_tokens, temperature=temperature, seed=seed)
            confirmed = None if dry else _confirmed(called, cartridge, request, person, yes=yes)
            came = _carried_out(called, engine, confirmed, dry=dry)
        seconds = time.perf_counter() - started
    if called is not None and called.written.closed:
        note(f"note: the budget of {max_tokens} tokens was used up; the rest was closed for the model")
    if as_json:
        print_json(_document(cartridge.name, called, decision, came, seconds))
    else:
        if called is not None:
            say(repr(called.instruction))
        if came.result is not None:
            say(came.result)
    if came.why is not None:
        note(came.why)
    if came.failed is not None:
        note(f"error: {came.failed}")
    if came.failed is not None or came.why is not None:
        raise typer.Exit(1)


def _settled(decision: Decision, cartridge: str, request: str, person: AtTerminal | None) -> Decision:
    """Return a decision with the one of two methods that a person takes; itself where nobody does."""
    if person is None or not decision.close:
        return decision
    option = person.which(request, [Instruction(cartridge, method) for method in decision.close])
    if option is None:
        return decision
    return replace(instead(decision, decision.best_two[option]), outcome=Outcome.CHOSEN)


def _confirmed(
    called: Call, cartridge: Cartridge, request: str, person: AtTerminal | None, *, yes: bool
) -> Confirmed | None:
    """Return what became of an instruction that somebody has to agree to; None for others."""
    needed = any(opcode.confirm for opcode in cartridge.opcodes if opcode.method == called.instruction.method)
    if not needed:
        return None
    if yes:
        return Confirmed.BEFOREHAND
    if person is None:
        return Confirmed.UNASKED
    return Confirmed.AGREED if person.agrees(request, called.instruction) else Confirmed.DECLINED


def _carried_out(called: Call, engine: Engine, confirmed: Confirmed | None, *, dry: bool) -> Came:
    """Carry a call out, unless nobody agreed."""
    if confirmed in (Confirmed.UNASKED, Confirmed.DECLINED):
        how = "declined" if confirmed is Confirmed.DECLINED else "nobody has agreed to it; --yes agrees beforehand"
        return Came(why=f"nothing was done: {how}", confirmed=confirmed)
    try:
        return Came(result=None if dry else engine.apply(called.instruction), confirmed=confirmed)
    except IllegalInstructionError as error:
        return Came(why=f"nothing was done: {error}", outcome=Outcome.NOT_LEGAL, confirmed=confirmed)
    except ActionFailedError as error:
        return Came(failed=str(error) or type(error).__name__, confirmed=confirmed)


def _why(decision: Decision) -> str:
    return f"nothing was done: {either(decision.close)}?" if decision.close else NOTHING_MEANT


def _document(
    cartridge: str, called: Call | None, decision: Decision | None, came: Came, seconds: float
) -> dict[str, Any]:
    result = {"result": came.result} if came.failed is None else {"error": came.failed}
    written = None if called is None else called.written
    instruction = (
        called.instruction if called is not None else Instruction(cartridge, decision.text if decision else "")
    )
    return {
        "cartridge": instruction.cartridge,
        "method": instruction.method,
        "arguments": instruction.args,
        "outcome": came.outcome.value,
        "close": [] if decision is None else list(decision.close),
        "confirmed": came.confirmed,
        "done": came.result is not None,
        "why": came.why,
        **result,
        "text": "" if written is None else written.text,
        "methods": {} if decision is None else {t: round(p, 4) for t, p in decision.probabilities.items()},
        "chosen_tokens": 0 if written is None else written.chosen,
        "forced_tokens": 0 if written is None else written.forced,
        "closed_tokens": 0 if written is None else written.closed,
        "passes": (0 if written is None else written.cost.passes) + (0 if decision is None else decision.passes),
        "seconds": round(seconds, 3),
    }
