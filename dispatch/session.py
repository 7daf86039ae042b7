"""The loop of a session: look, choose, carry out, log. Knows no game, no screen and no logits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dispatch.log import LogWriter
from dispatch.players import Choice, Player, Situation
from dispatch.records import (
    CartridgeRecord,
    DecisionRecord,
    Ending,
    InstructionRecord,
    LegalRow,
    Offer,
    Outcome,
)
from kernel.contract import Cartridge, Engine, Option, Part, Prompt
from kernel.decision import Decision
from kernel.errors import IllegalInstructionError, UsageError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction

SHOWN_LEGAL = 1000
"""A log line lists at most so many legal opcodes, the best by score; `legal` counts stay whole."""


@dataclass(frozen=True)
class Turn:
    """One decision and what came of it."""

    number: int
    cartridge: str
    instruction: Instruction
    result: str
    refused: bool
    offered: tuple[Option, ...]
    choice: Choice
    planner_ms: float
    request: str = ""

    @property
    def decision(self) -> Decision | None:
        """The model's decision, where a model chose."""
        return self.choice.decision


@dataclass
class Tally:
    """Sums over a session."""

    decisions: int = 0
    agreed: int = 0
    agreed_first: int = 0
    with_offer: int = 0
    passes: int = 0
    tokens_evaluated: int = 0
    chosen_tokens: int = 0
    forced_tokens: int = 0
    legal_mass: float = 0.0
    smallest_legal_mass: float = 1.0
    refused: int = 0
    refused_removals: int = 0
    model_ms: float = 0.0
    planner_ms: float = 0.0

    def add(self, turn: Turn) -> None:
        """Count one decision."""
        self.decisions += 1
        self.refused += turn.refused
        self.planner_ms += turn.planner_ms
        self.model_ms += turn.choice.model_ms
        if turn.offered:
            self.with_offer += 1
            instructions = [option.instruction for option in turn.offered]
            self.agreed += turn.instruction in instructions
            self.agreed_first += turn.instruction == instructions[0]
        if (decision := turn.decision) is not None:
            self.passes += decision.passes
            self.tokens_evaluated += decision.tokens_evaluated
            self.chosen_tokens += decision.chosen_tokens
            self.forced_tokens += decision.forced_tokens
            self.legal_mass += decision.legal_mass
            self.smallest_legal_mass = min(self.smallest_legal_mass, decision.legal_mass)
            self.refused_removals += decision.refused_removals


class Session:
    """One run of one or several cartridges with one player.

    Args:
        seed: given to every engine.
        limits: largest values of an engine's summary, by name (`pieces`), or `decisions`.

    Iterate over `turns()`; then `close()` with how it ended, unless it has ended by itself.
    """

    def __init__(
        self,
        cartridges: Sequence[Cartridge],
        player: Player,
        *,
        seed: int = 0,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        if not cartridges:
            raise UsageError("a session needs at least one cartridge")
        self.cartridges = {cartridge.name: cartridge for cartridge in cartridges}
        self.player = player
        self.seed = seed
        self.limits = dict(limits or {})
        self.engines: dict[str, Engine] = {}
        for cartridge in cartridges:
            self.engines[cartridge.name] = engine = cartridge.engine()
            engine.reset(seed)
        self.records = tuple(
            CartridgeRecord(
                name=c.name,
                version=c.version,
                state=self.engines[c.name].state_hash(),
                options=dict(c.options) or None,
            )
            for c in cartridges
        )
        self.tally = Tally()
        self.ending: Ending | None = None
        self.detail = ""
        self._started = time.perf_counter()
        self._log: LogWriter | None = None

    def write_to(self, log: LogWriter) -> None:
        """Log every decision from now on."""
        self._log = log

    @property
    def seconds(self) -> float:
        """Time since the session began."""
        return time.perf_counter() - self._started

    def turns(self, requests: Iterator[str] | None = None) -> Iterator[Turn]:
        """Yield one decision after the other until the session ends; with requests, one decision each."""
        while not self._over():
            request = ""
            if requests is not None:
                try:
                    request = next(requests)
                except StopIteration:
                    self._end(Ending.LIMIT, "no more requests")
                    return
            yield self.turn(request)

    def turn(self, request: str = "") -> Turn:
        """Make one decision and carry it out.

        An instruction that the engine refuses changes nothing; it is logged and counted as refused.
        """
        number = self.tally.decisions + 1
        started = time.perf_counter()
        situation, offered = self._situation(number, request)
        planner_ms = 1000 * (time.perf_counter() - started)
        choice = self.player.choose(situation)
        instruction = choice.instruction
        refused, cartridge, result = False, instruction.cartridge, ""
        if instruction == HALT_INSTRUCTION:
            cartridge = next(iter(self.cartridges))
            self._end(Ending.HALT, "halt was chosen")
        else:
            try:
                result = self.engines[cartridge].apply(instruction)
            except IllegalInstructionError as error:
                refused, result = True, str(error)
        turn = Turn(number, cartridge, instruction, result, refused, offered, choice, planner_ms, request)
        self.tally.add(turn)
        if self._log is not None:
            self._write(self._log, turn)
        return turn

    def close(self, ending: Ending, detail: str = "") -> None:
        """End the session from outside; what has ended already keeps its ending."""
        self._end(ending, detail)

    def end_log(self) -> None:
        """Write the outcome, if there is a log; the log takes nothing more."""
        if self._log is not None:
            self._log.outcome(self.outcome())
            self._log = None

    def outcome(self) -> Outcome:
        """Return what goes into the log's last line."""
        tally = self.tally
        totals: dict[str, int | float] = {
            "passes": tally.passes,
            "tokens_evaluated": tally.tokens_evaluated,
            "agreed": tally.agreed,
            "agreed_first": tally.agreed_first,
            "with_offer": tally.with_offer,
        }
        return Outcome(
            decisions=tally.decisions,
            ending=self.ending or Ending.INTERRUPTED,
            detail=self.detail,
            summary={name: dict(engine.summary()) for name, engine in self.engines.items()},
            seconds=round(self.seconds, 3),
            totals=totals,
        )

    def _situation(self, number: int, request: str) -> tuple[Situation, tuple[Option, ...]]:
        legal: list[Instruction] = []
        ranked: list[Option] = []
        offered: list[Option] = []
        for name, cartridge in self.cartridges.items():
            engine = self.engines[name]
            legal += engine.legal()
            if cartridge.planner is not None and engine.ended() is None:
                options = list(cartridge.planner.rank(engine))
                ranked += options
                offered += options[: cartridge.offered]
        if any(issubclass(o, Halt) for c in self.cartridges.values() for o in c.opcodes):
            legal.append(HALT_INSTRUCTION)
        return Situation(number, legal, ranked, self._prompt(offered, request)), tuple(offered)

    def _prompt(self, offered: Sequence[Option], request: str) -> Prompt:
        if len(self.cartridges) == 1:
            ((name, cartridge),) = self.cartridges.items()
            return cartridge.view.prompt(self.engines[name], offered, request)
        return _asked(request)

    def _over(self) -> bool:
        if self.ending is not None:
            return True
        for name, engine in self.engines.items():
            if (reason := engine.ended()) is not None:
                self._end(Ending.RULES, f"{name}: {reason}" if len(self.engines) > 1 else reason)
                return True
        for limit, most in self.limits.items():
            counts = [self.tally.decisions] if limit == "decisions" else self._counts(limit)
            if any(count >= most for count in counts):
                self._end(Ending.LIMIT, f"{most} {limit}")
                return True
        return False

    def _counts(self, name: str) -> list[int | float]:
        found = [engine.summary().get(name) for engine in self.engines.values()]
        counts = [value for value in found if isinstance(value, int | float)]
        if not counts:
            raise UsageError(f"no cartridge of this session counts {name!r}")
        return counts

    def _end(self, ending: Ending, detail: str) -> None:
        if self.ending is None:
            self.ending, self.detail = ending, detail

    def _write(self, log: LogWriter, turn: Turn) -> None:
        decision = turn.decision
        log.decision(
            record(turn, self.engines[turn.cartridge].state_hash(), self.seconds),
            decision.prompt if decision is not None else (),
            decision.nulls if decision is not None else (),
        )


def record(turn: Turn, state: str, seconds: float) -> DecisionRecord:
    """Return what the log keeps of a turn."""
    decision = turn.decision
    fields: dict[str, object] = {}
    if decision is not None:
        fields = {
            "ids": decision.ids,
            "legal": legal_rows(decision),
            "rule": decision.rule,
            "margin": decision.margin,
            "legal_mass": decision.legal_mass,
            "passes": decision.passes,
            "tokens_evaluated": decision.tokens_evaluated,
            "chosen_tokens": decision.chosen_tokens,
            "forced_tokens": decision.forced_tokens,
            "stop": str(decision.stop),
            "model_ms": round(turn.choice.model_ms, 3),
        }
    return DecisionRecord.model_validate(
        {
            "n": turn.number,
            "cartridge": turn.cartridge,
            "instruction": InstructionRecord.of(turn.instruction),
            "text": turn.choice.text,
            "state": state,
            "result": turn.result,
            "refused": turn.refused,
            "request": turn.request or None,
            "offered": tuple(Offer.of(option) for option in turn.offered) or None,
            "planner_ms": round(turn.planner_ms, 3),
            "at_ms": round(1000 * seconds, 1),
            **fields,
        }
    )


def legal_rows(decision: Decision) -> tuple[LegalRow, ...]:
    """Return the legal opcodes with their numbers; the best SHOWN_LEGAL by score when there are more."""
    order: Sequence[int] = range(len(decision.leaves))
    if len(decision.leaves) > SHOWN_LEGAL:
        ranked = sorted(order, key=lambda n: (decision.scores[n] != decision.scores[n], -decision.scores[n]))
        order = sorted(ranked[:SHOWN_LEGAL])
    texts = decision.opcodes.texts
    return tuple(
        LegalRow(
            text=texts[decision.leaves[n]],
            logprob=float(decision.raw[n]),
            null=None if decision.null is None else float(decision.null[n]),
            score=float(decision.scores[n]),
            probability=float(decision.shares[n]),
        )
        for n in order
    )


def _asked(request: str) -> Prompt:
    """Return the prompt of a session with several cartridges: the request decides."""
    head, tail = Part("Request:", trusted=True), Part("\nCommand:", trusted=True)
    text = " ".join(request.split()) or "N/A"
    return Prompt((head, Part(f" {text}"), tail), ((head, Part(" N/A"), tail),))
