"""`call`: a request in plain words becomes one instruction of a cartridge, which is carried out."""

from __future__ import annotations

import time
from contextlib import ExitStack
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
    load_kernel,
    make_rule,
)
from dispatch.cli.output import failing, note, print_json, say
from dispatch.loading.registry import load
from dispatch.wire.form import form
from dispatch.wire.open_arguments import ArgumentWriter, Call
from dispatch.wire.wire import Wire
from kernel.errors import ActionFailedError

Request = Annotated[str, typer.Argument(help="What is wanted, in plain words.")]
Budget = Annotated[int, typer.Option(help="Tokens that the instruction may have.", min=1, max=MOST_TOKENS)]
Heat = Annotated[
    float, typer.Option("--temperature", help="Of the arguments; 0 takes the most probable.", min=0, max=HOTTEST)
]
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of a temperature above 0.")]
Dry = Annotated[bool, typer.Option("--dry", help="Do not carry it out.")]


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
    as_json: AsJson = False,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Let the model call a cartridge: it chooses the method and writes the arguments, which always fit their schema.

    Exits with 1 when what it does fails; then --json has "error" in place of "result".

    Example: call ./mytools "how warm will it be in Paris?"
    """
    with failing(), ExitStack() as stack:
        cartridge = load(name)
        speller = Wire([cartridge], form(wire))
        kernel = stack.enter_context(load_kernel(model, n_ctx=n_ctx, threads=threads))
        engine = cartridge.engine()
        engine.reset(seed)
        started = time.perf_counter()
        called = ArgumentWriter(kernel).call(
            speller,
            cartridge.view.prompt(engine, (), request),
            rule=make_rule(rule),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        seconds = time.perf_counter() - started
        result: str | None = None
        failed: str | None = None
        try:
            result = None if dry else engine.apply(called.instruction)
        except ActionFailedError as error:
            failed = str(error) or type(error).__name__
    if called.written.closed:
        note(f"note: the budget of {max_tokens} tokens was used up; the rest was closed for the model")
    if as_json:
        came: dict[str, str | None] = {"result": result} if failed is None else {"error": failed}
        print_json(_document(called, came, seconds))
    else:
        say(repr(called.instruction))
        if result is not None:
            say(result)
    if failed is not None:
        note(f"error: {failed}")
        raise typer.Exit(1)


def _document(called: Call, came: dict[str, str | None], seconds: float) -> dict[str, Any]:
    written, decision = called.written, called.decision
    return {
        "cartridge": called.instruction.cartridge,
        "method": called.instruction.method,
        "arguments": called.instruction.args,
        **came,
        "text": written.text,
        "methods": {} if decision is None else {t: round(p, 4) for t, p in decision.probabilities.items()},
        "chosen_tokens": written.chosen,
        "forced_tokens": written.forced,
        "closed_tokens": written.closed,
        "passes": written.cost.passes + (0 if decision is None else decision.passes),
        "seconds": round(seconds, 3),
    }
