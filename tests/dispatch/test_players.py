"""Players: what they take, what the model's choice carries, the ledger of its choosing steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from dispatch.log.encoding import decode, encode
from dispatch.log.records import DecisionRecord
from dispatch.log.tally import Tally
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import PlannerPlayer, RandomPlayer
from dispatch.session.situation import Situation
from dispatch.session.turn import Turn, record
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose import score
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge, Option
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import Instruction, commands
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary

PROMPT = Prompt((Part("go:"),), ((Part("no:"),),))


def kernel(wish: str = "") -> Kernel:
    """A model over bytes that wants to continue with `wish`, and otherwise likes what a hash says."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )
    wanted = wish.encode()

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.random.default_rng(list(ids)).normal(size=256).astype(np.float32)
        so_far = bytes(ids).partition(b"go:")[2]
        if b"go:" in bytes(ids) and wanted.startswith(so_far) and len(so_far) < len(wanted):
            out[wanted[len(so_far)]] += 20
        return out

    return Kernel(ScriptedBackend(vocabulary, row))


def player(cartridges: Sequence[Cartridge], wish: str = "", rule: Rule | None = None, **options: bool) -> ModelPlayer:
    return ModelPlayer(kernel(wish), Wire(cartridges), cartridges, rule, **options)


def situation(legal: Sequence[Instruction], options: Sequence[Option] = (), number: int = 1) -> Situation:
    return Situation(number, legal, options, PROMPT)


def test_the_model_gets_what_it_wants_where_it_is_legal(counter: SimpleNamespace) -> None:
    """Each of three; an instruction that is not legal now is not taken, however much it is wanted."""
    all_three = [counter.add(by) for by in (1, 2, 3)]
    for by in (1, 2, 3):
        choice = player([counter.cartridge], f" add {by}").choose(situation(all_three))
        assert (choice.instruction, choice.text) == (counter.add(by), f" add {by}\n@counter\n")
    wishes = player([counter.cartridge], " add 3")
    assert wishes.choose(situation(all_three[:2])).instruction in all_three[:2]


@pytest.mark.parametrize("rule", [None, Rule(RuleName.EXACT), Rule(RuleName.GREEDY)], ids=["best", "exact", "greedy"])
@pytest.mark.parametrize("searched", [False, True])
def test_the_ledger_holds_every_choosing_step(
    counter: SimpleNamespace, rule: Rule | None, searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cartridges, ` add 3@counter` wanted: one choice among 1, 2, 3; the row is that of the model, by hand."""
    if searched:
        monkeypatch.setattr(score, "TREE_LIMIT", -1)
    wishes = player([counter.cartridge], " add 3", rule, ledger=True)
    choice = wishes.choose(situation([counter.add(by) for by in (1, 2, 3)]))
    (step,) = choice.ledger
    assert choice.decision is not None
    assert choice.decision.chosen_tokens == 1
    assert (step.at, step.legal) == (5, 3)
    row = wishes.kernel.backend.row(tuple(b"go: add "))  # type: ignore[attr-defined]
    values = row.astype(np.float64) - np.logaddexp.reduce(row.astype(np.float64))
    assert step.mass == pytest.approx(np.exp(values[list(b"123")]).sum(), abs=1e-5)
    rows = {r.piece: r for r in step.rows}
    assert len(rows) == 11
    assert {piece for piece, r in rows.items() if r.legal} == {b"1", b"2", b"3"}
    for r in step.rows:
        assert r.logprob == pytest.approx(values[r.id], abs=1e-5)


def deep(counter: SimpleNamespace) -> tuple[Cartridge, ...]:
    return counter.cartridge, replace(counter.cartridge, name="other")


@pytest.mark.parametrize("searched", [False, True])
@pytest.mark.parametrize("rule", list(RuleName))
def test_a_path_with_several_choices_has_a_step_for_each(
    counter: SimpleNamespace, rule: RuleName, searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same-named methods of two cartridges part at the number and again at the address."""
    if searched and rule is RuleName.SAMPLE:
        pytest.skip("nothing is sampled over a search")
    if searched:
        monkeypatch.setattr(score, "TREE_LIMIT", -1)
    both = deep(counter)
    wishes = player(both, " add 2\n@other", Rule(rule), ledger=True)
    legal = [instruction for each in both for instruction in commands(each.name, each.opcodes)]
    choice = wishes.choose(situation(legal))
    assert choice.instruction == Instruction.of("other", "add", by=2)
    assert [(s.at, s.legal) for s in choice.ledger] == [(5, 3), (len(" add 2\n@"), 2)]
    assert choice.decision is not None
    assert choice.decision.chosen_tokens == 2


def test_without_a_ledger_nothing_is_kept(counter: SimpleNamespace) -> None:
    """The default."""
    assert player([counter.cartridge]).choose(situation([counter.add(1), counter.add(2)])).ledger == ()


def test_chance_depends_on_seed_and_number_only(counter: SimpleNamespace) -> None:
    """Decision 5 is drawn alike whether or not the four before were; all are drawn in the end."""
    legal = [counter.add(by) for by in (1, 2, 3)]

    def drawn(seed: int, numbers: range) -> list[int]:
        chance = RandomPlayer(seed)
        return [chance.choose(situation(legal, number=n)).instruction.args["by"] for n in numbers]

    assert drawn(3, range(1, 60))[4:] == drawn(3, range(5, 60))
    assert set(drawn(3, range(1, 60))) == {1, 2, 3}
    assert drawn(3, range(1, 60)) != drawn(4, range(1, 60))


def test_players_with_nothing_to_choose_say_so(counter: SimpleNamespace) -> None:
    """No option, nothing legal, an instruction that was never declared."""
    with pytest.raises(NoLegalOpcodeError, match="the planner offers nothing here"):
        PlannerPlayer().choose(situation([counter.add(1)]))
    with pytest.raises(NoLegalOpcodeError, match="nothing is legal here"):
        RandomPlayer().choose(situation([]))
    with pytest.raises(NoLegalOpcodeError, match=r"counter.add\(by=9\) is legal but none of its cartridge's opcodes"):
        player([counter.cartridge]).choose(situation([counter.add(9)]))


def test_the_prior_is_the_planners_where_the_rule_asks_for_it(counter: SimpleNamespace) -> None:
    """By place in the set, NaN elsewhere; none at weight 0, and none over two planners' scales."""
    options = [Option(counter.add(3), 5.0), Option(counter.add(1), -2.0)]
    heavy = Rule(planner_weight=1.0)
    found = player([counter.cartridge], rule=heavy).prior(options)
    assert found is not None
    assert found.tolist()[0::2] == [-2.0, 5.0]
    assert np.isnan(found[1])
    assert player([counter.cartridge], rule=Rule()).prior(options) is None
    assert player(deep(counter), rule=heavy).prior(options) is None


def test_what_left_cannot_be_chosen_and_order_makes_no_difference(counter: SimpleNamespace) -> None:
    """One compiled set for both orders; the leaf of one that left is unknown."""
    first, second = deep(counter)
    both = player([first, second])
    compiled = both.opcodes
    assert both.opcodes.texts[both.leaf(Instruction.of("other", "add", by=2))] == " add 2\n@other\n"
    both.use([first])
    assert both.opcodes.texts == (" add 1\n@counter\n", " add 2\n@counter\n", " add 3\n@counter\n")
    with pytest.raises(NoLegalOpcodeError, match=r"other\.add"):
        both.leaf(Instruction.of("other", "add", by=2))
    both.use([second, first])
    assert both.opcodes is compiled


def test_a_record_has_the_wire_text_and_the_ledger(counter: SimpleNamespace) -> None:
    """In the tagged form too; counting it again from the log gives the same sums."""
    cartridges = [counter.cartridge]
    tagged = ModelPlayer(kernel(), Wire(cartridges, form("tagged")), cartridges, ledger=True)
    choice = tagged.choose(situation([counter.add(by) for by in (1, 2)]))
    turn = Turn(1, "counter", choice.instruction, "now 9", False, (), choice, 0.25, "please")
    made = record(turn, "s9.1", 1.5)
    by = choice.instruction.args["by"]
    assert made.text == f'<|call|>counter.add {{"by":{by}}}<|/call|>\n' == bytes(made.ids).decode()
    assert made.legal is not None
    assert made.chosen is not None
    assert (made.legal_count, len(made.legal), made.legal[made.chosen].text) == (2, 2, made.text)
    assert (made.request, made.at_ms, made.planner_ms, made.stop) == ("please", 1500.0, 0.25, "complete")
    assert made.ledger == choice.ledger
    played, recalled = Tally(), Tally()
    played.add(made)
    recalled.add(DecisionRecord.model_validate(decode(encode(made))))
    assert choice.decision is not None
    assert played.legal_mass == pytest.approx(choice.decision.legal_mass, abs=1e-5)
    assert (played.decisions, played.passes, played.planner_ms) == (1, choice.decision.passes, 0.25)
    assert recalled == played


def test_what_stays_the_same_is_read_beforehand(counter: SimpleNamespace) -> None:
    """The null prompt is evaluated before, so the decision needs the prompt and its tree only; it is the same one."""
    seen = situation([counter.add(by) for by in (1, 2, 3)])
    cold, warm = player([counter.cartridge], " add 2"), player([counter.cartridge], " add 2")
    warm.prepare(seen)
    first, second = cold.choose(seen), warm.choose(seen)
    assert first.decision is not None
    assert second.decision is not None
    assert second.instruction == first.instruction == counter.add(2)
    assert second.decision.tokens_evaluated < first.decision.tokens_evaluated
    warm.prepare(situation([]))  # nothing legal: nothing to read
