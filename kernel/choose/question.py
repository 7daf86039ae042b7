"""What one decision asks: a prompt, the opcodes, which of them are legal, and the rule."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel.choose.learned import Learned
from kernel.choose.outcome import Judge
from kernel.choose.rule import Floats, Rule, RuleName
from kernel.errors import NoLegalOpcodeError, UsageError
from kernel.memory.listed import Listed, Prompted
from kernel.memory.rows import Watch
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset


@dataclass(frozen=True, slots=True)
class PromptIds:
    """A prompt as token ids; each may show a set (`Listed`).

    Attributes:
        main: the whole prompt; what is equal to the beginning of the last one is not evaluated again.
        nulls: the null prompts, which ask for nothing; only the rule `calibrated` reads them.
        rotations: the prompt with its options in other orders; `calibrated` averages over all orders where the legal
            set is small enough to be scored whole.
    """

    main: Prompted
    nulls: tuple[Prompted, ...] = ()
    rotations: tuple[Prompted, ...] = ()

    def as_lists(self) -> PromptIds:
        """Return the prompt with what it shows as lists in every rotated order, for a memory that holds no sets."""
        prompts = [_orders(prompt) for prompt in (self.main, *self.rotations)]
        (main, *others), *rotated = prompts
        nulls = tuple(order for null in self.nulls for order in _orders(null))
        return PromptIds(main, nulls, (*others, *(order for orders in rotated for order in orders)))


@dataclass(frozen=True)
class Question:
    """What one decision asks.

    Args:
        subset: the opcodes that are legal now; None is all of them.
        rule: None is `calibrated` with null prompts and `exact` without.
        prior: float64, shape (n_opcodes,): the planner's scores by opcode index, NaN where it has none.
        number: of the decision, from which the rule `sample` draws.
        watch: sees the rows of the choosing steps.
        beyond: whether to find out as well if the model would rather have an opcode that is not legal now. It is, where
            all opcodes can be scored in the same pass, without a judge for a few tokens more only.
        judge: says how the decision ends; None always chooses.
        learned: what the rule `learned` goes by; that is the rule then, where none is given. Of the prompt and its
            rotations it reads the one that it was learned behind.

    Raises:
        UsageError: `calibrated` without a null prompt; `learned` behind a prompt that nothing was learned behind.
        NoLegalOpcodeError: the legal set belongs to another set of opcodes.
    """

    prompt: PromptIds
    opcodes: OpcodeSet
    subset: Subset | None = None
    rule: Rule | None = None
    prior: Floats | None = field(default=None, repr=False)
    number: int = 0
    watch: Watch | None = field(default=None, repr=False)
    beyond: bool = False
    judge: Judge | None = None
    learned: Learned | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.by.name is RuleName.LEARNED and self.learned is not None:
            object.__setattr__(self, "prompt", self._learned_prompt(self.learned))
        if self.by.name is RuleName.CALIBRATED and not self.prompt.nulls:
            raise UsageError("the rule 'calibrated' needs at least one null prompt; give one or use 'exact'")
        if self.legal.trie is not self.opcodes.trie:
            raise NoLegalOpcodeError("the legal set belongs to another set of opcodes")

    @property
    def by(self) -> Rule:
        """The rule that is applied."""
        if self.rule is not None:
            return self.rule
        plain = RuleName.CALIBRATED if self.prompt.nulls else RuleName.EXACT
        return Rule(plain if self.learned is None else RuleName.LEARNED)

    @property
    def legal(self) -> Subset:
        """The opcodes to choose among."""
        return self.opcodes.everything if self.subset is None else self.subset

    @property
    def nulls(self) -> tuple[Prompted, ...]:
        """The null prompts that the rule compares with."""
        return self.prompt.nulls if self.by.name is RuleName.CALIBRATED else ()

    @property
    def orders(self) -> tuple[Prompted, ...]:
        """The prompt, and behind it the rotations that the rule averages over."""
        return (self.prompt.main, *self.prompt.rotations) if self.nulls else (self.prompt.main,)

    def _learned_prompt(self, learned: Learned) -> PromptIds:
        """Return the one prompt that is read; its null prompts were read when it was learned."""
        found = learned.order((self.prompt.main, *self.prompt.rotations))
        if found is None:
            raise UsageError("the prompt is none that was learned behind; learn again, or use 'calibrated'")
        return PromptIds(found)


def _orders(prompt: Prompted) -> tuple[Prompted, ...]:
    return prompt.orders() if isinstance(prompt, Listed) else (prompt,)
