"""Lets the tab's kernel choose among the legal instructions, and turns what it chose into what a session takes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dispatch.log.objects import LegalRow
from dispatch.log.scores import MOST
from dispatch.session.players import Choice, Elsewhere
from dispatch.session.situation import Situation
from dispatch.tab.bridge import DIGITS, Bridge, TabVocabulary, as_json, ledger_step, real
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.choose.kinds import RuleName
from kernel.contract import Cartridge
from kernel.errors import NoLegalOpcodeError, UsageError, did_you_mean
from kernel.opcode import Instruction

RULES = (RuleName.CALIBRATED, RuleName.EXACT, RuleName.GREEDY)
WIRE = "compact"


class Chooser:
    """The player of a session in the tab.

    Args:
        cartridge: whose opcodes are chosen among.
        rule: one of `RULES`.
    """

    name = "model"

    def __init__(self, bridge: Bridge, cartridge: Cartridge, rule: str | None) -> None:
        wanted = rule or RuleName.CALIBRATED
        if wanted not in RULES:
            hint = did_you_mean(wanted, map(str, RULES))
            raise UsageError(f"rule: a tab has no {str(wanted)!r}{hint}; it has: {', '.join(RULES)}")
        self.rule = RuleName(wanted)
        self.wire = Wire([cartridge], FORMS[WIRE])
        self._bridge = bridge
        self._cartridge = cartridge.name
        self._vocabulary = TabVocabulary(bridge)
        self._texts: list[str] = json.loads(bridge.texts(cartridge.name))
        self._index = {text: index for index, text in enumerate(self._texts)}

    def choose(self, situation: Situation) -> Choice:
        """See Player. The tab's kernel answers later: `Playing` awaits `decide` for the session."""
        raise UsageError("the kernel of a tab answers later; await `decide`")

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player. What was packed for a tab is one cartridge's."""

    def prepare(self, situation: Situation) -> None:
        """See Player; nothing is read beforehand."""

    async def decide(self, situation: Situation) -> Choice:
        """Return what the kernel chooses; raises NoLegalOpcodeError for an instruction that it was not given."""
        started = time.perf_counter()
        answer = json.loads(await self._bridge.decide(json.dumps(self._question(situation))))
        text = self._texts[answer["index"]]
        return Choice(
            self.wire.parse(text),
            text,
            model_ms=1000 * (time.perf_counter() - started),
            ledger=tuple(ledger_step(step, self._vocabulary) for step in answer["ledger"]),
            elsewhere=Elsewhere(
                fields_of(answer, self._texts),
                prompt=_ids(answer["prompt"]["main"]),
                nulls=tuple(map(_ids, answer["prompt"]["nulls"])),
                rotations=tuple(map(_ids, answer["prompt"]["rotations"])),
            ),
        )

    def _question(self, situation: Situation) -> dict[str, Any]:
        found = [each for each in situation.choices if isinstance(each, Instruction)]
        return {
            "cartridge": self._cartridge,
            "prompt": as_json(situation.prompt),
            "legal": [self._leaf(each) for each in found],
            "rule": self.rule.value,
        }

    def _leaf(self, instruction: Instruction) -> int:
        index = self._index.get(self.wire.literal(instruction).text)
        if index is None:
            raise NoLegalOpcodeError(f"{instruction!r} is legal but none of the opcodes that were packed for this tab")
        return index


def fields_of(answer: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    """Return the fields of a log's line that the kernel's answer gives; the same that `chosen_fields` gives elsewhere.

    Args:
        answer: of the tab's kernel.
        texts: of all opcodes, by index.
    """
    leaves: list[int] = answer["leaves"]
    columns = {
        "logprob": answer["raw"],
        "null": answer["null"],
        "score": answer["scores"],
        "probability": answer["shares"],
    }
    numbers = {name: [round(real(x), DIGITS) for x in column] for name, column in columns.items() if column is not None}
    chosen = leaves.index(answer["index"])
    shown = _shown(numbers["score"], chosen)
    rows = tuple(
        LegalRow(text=texts[leaves[at]], **{name: column[at] for name, column in numbers.items()}) for at in shown
    )
    return {
        "text": texts[answer["index"]],
        "ids": tuple(answer["ids"]),
        "rule": answer["rule"],
        "legal": rows,
        "legal_count": len(leaves),
        "chosen": shown.index(chosen),
        "margin": round(real(answer["margin"]), DIGITS),
        "legal_mass": round(real(answer["mass"]), DIGITS),
        "passes": answer["decodes"],
        "tokens_evaluated": answer["tokens"],
        "chosen_tokens": answer["chosen"],
        "forced_tokens": answer["forced"],
        "stop": answer["stop"],
    }


def _shown(scores: list[float], chosen: int) -> list[int]:
    """Return the places of the rows that are logged: all, or of too many the best by score and what was chosen."""
    if len(scores) <= MOST:
        return list(range(len(scores)))
    best = sorted(range(len(scores)), key=lambda at: (-scores[at] if scores[at] == scores[at] else float("inf"), at))[
        :MOST
    ]
    if chosen not in best:
        best[-1] = chosen
    return sorted(best)


def _ids(prompt: list[int]) -> tuple[int, ...]:
    return tuple(int(token) for token in prompt)
