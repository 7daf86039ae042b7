"""What the runtime's memory holds of the session, as token ids, and the only hands on it.

Sequence 0 carries the prompt of the session and the next few its other orders: they survive from decision to decision.
So do the stored lines, on the last sequences. Every other sequence lives for one decision. Nothing here tokenizes:
equal ids are equal prefixes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernel.backends.base import Backend
from kernel.errors import ContextError
from kernel.memory.listed import Listed, Prompted, cells_of, flat_of
from kernel.memory.passes import MAIN, Batch, Copy, Cost, Drop, Ids, Plan, ReadRow, Room, Step, Token, common_prefix
from kernel.memory.store import Stored
from kernel.memory.tree import STEM


@dataclass(frozen=True, slots=True)
class Growth:
    """Evaluate `ids` on `target`, which continues the first `length` positions of `source`.

    Rows are read from the id at `first` on.
    """

    source: int
    length: int
    target: int
    ids: Ids
    first: int = 0


class Memory:
    """One runtime and what it holds.

    Whatever raises in the middle of a pass leaves the memory empty: the next call is right, only slower.

    Attributes:
        held: ids on the main sequence.
        kept: ids on the sequences 1, 2, ...: other orders of the session's prompt.
        stored: the line store.
        cost: all that was asked of the model so far; the difference of two is the cost of what lies between.
        lock: held by one thread from the beginning of a decision or of a text to its end. The runtime is not safe for
            threads: two of them in it abort the process.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.lock = threading.RLock()
        self.held: list[int] = []
        self.kept: list[list[int]] = []
        self.stored = Stored()
        self.cost = Cost()

    @property
    def whole(self) -> Room:
        """What the runtime holds at most."""
        return Room(self.backend.n_ctx, self.backend.n_batch, self.backend.n_seq)

    @property
    def room(self) -> Room:
        """What it holds at most beside the stored lines."""
        whole = self.whole
        return Room(whole.n_ctx - self.stored.cells, whole.n_batch, self.stored.first(whole.n_seq))

    def reset(self) -> None:
        """Forget the session."""
        self.backend.clear()
        self.held, self.kept, self.stored = [], [], Stored()

    def check(self, prompts: Sequence[Prompted], longest: int) -> None:
        """Raise ContextError unless each prompt and the longest legal opcode fit; nothing is evaluated.

        Stored lines give way where they do not fit beside a prompt without lines.
        """
        whole, main = self.whole, prompts[0]
        for prompt in prompts:
            if not cells_of(prompt):
                raise ContextError("a prompt is empty; a decision needs at least one token to stand on")
            first = 0 if isinstance(prompt, Listed) else cells_of(main)  # with lines each is decided alone, if need be
            own = cells_of(prompt) - (common_prefix(flat_of(main), flat_of(prompt)) if first else 0)
            if (needed := first + own + longest) > whole.n_ctx:
                raise ContextError(
                    f"{cells_of(main)} prompt ids, {own} of a null prompt and up to {longest} of an opcode need "
                    f"{needed}, but n_ctx is {whole.n_ctx}; shorten the prompt or raise n_ctx"
                )
        if len(prompts) >= whole.n_seq:
            raise ContextError(f"{len(prompts)} prompts at once; n_seq={whole.n_seq} holds {whole.n_seq - 1}")
        if whole.n_seq < 3 and any(isinstance(prompt, Listed) for prompt in prompts):
            raise ContextError(f"a prompt with lines without an order needs n_seq=3 or more; it is {whole.n_seq}")
        if not any(isinstance(prompt, Listed) for prompt in prompts):
            self.give_way(2, needed)

    def give_way(self, sequences: int, cells: int) -> None:
        """Drop the stored lines where they leave less than so many sequences and cells to prompts without lines."""
        if self.stored.sequences and (sequences > self.room.n_seq or cells > self.room.n_ctx):
            for sequence in self.stored.sequences.values():
                self.drop(sequence)
            self.stored = Stored()

    def open(self, ids: Sequence[int], read: ReadRow) -> None:
        """Make `ids` the session's prompt and read the row after it (as point STEM)."""
        ids = tuple(ids)
        self.give_way(1, len(ids))
        with self.guard():
            self.release(1)
            start, last = self.rewind(ids), len(ids) - 1
            tokens = [Token(ids[n], n, (MAIN,), (0, STEM) if n == last else None) for n in range(start, len(ids))]
            self.carry_out([Batch(tuple(tokens))], read)
            self.held = list(ids)

    def expand(self, growths: Sequence[Growth], read: ReadRow) -> None:
        """Continue several sequences in one pass; `read` gets (number of the growth, offset in its ids, row).

        A target is the source itself or empty.
        """
        copies = [Copy(g.source, g.target, g.length) for g in growths if g.target != g.source]
        tokens = [
            Token(token, growth.length + at, (growth.target,), (number, at) if at >= growth.first else None)
            for number, growth in enumerate(growths)
            for at, token in enumerate(growth.ids)
        ]
        with self.guard():
            self.carry_out([*copies, Batch(tuple(tokens))], read)

    def drop(self, sequence: int) -> None:
        """Free a sequence other than the main one."""
        self.backend.remove(sequence, 0)

    def release(self, first: int) -> None:
        """Free the kept sequences from the number `first` on."""
        for number in range(first, len(self.kept) + 1):
            self.drop(number)
        self.kept = self.kept[: first - 1]

    def rewind(self, ids: Sequence[int]) -> int:
        """Keep the longest common prefix of what is held and `ids` on the main sequence; return its length.

        The last id is always evaluated anew, because its row is needed.
        """
        keep = min(common_prefix(self.held, ids), len(ids) - 1)
        # where nothing stays, there may be a prompt with lines, of which nothing is held
        if (keep < len(self.held) or not keep) and not self.backend.remove(MAIN, keep):
            self.cost += Cost(refused_removals=1)
            self.reset()
            keep = 0
        self.held = self.held[:keep]
        return keep

    def carry_out(self, steps: Iterable[Step], read: ReadRow) -> None:
        """Run the steps in order; `read` gets each row that a batch wants."""
        for step in steps:
            match step:
                case Batch(tokens):
                    self._decode(tokens, read)
                case Copy(source, target, length, begin):
                    self.backend.copy(source, target, length, begin)
                case Drop(sequence):
                    self.drop(sequence)
                case _:
                    self.backend.clear()

    def follow(self, plan: Plan, read: ReadRow) -> None:
        """Run a plan and take note of what is held after it; call it inside of `guard`."""
        self.carry_out(plan.steps, read)
        self.held, self.kept = list(plan.held), list(map(list, plan.kept))
        self.stored = self.stored if plan.stored is None else plan.stored
        self.cost += plan.found

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Leave the memory empty when what stands inside raises."""
        try:
            yield
        except BaseException:
            self.reset()
            raise

    def _decode(self, tokens: Sequence[Token], read: ReadRow) -> None:
        size = self.room.n_batch
        for begin in range(0, len(tokens), size):
            part = tokens[begin : begin + size]
            wanted = [(index, token.output) for index, token in enumerate(part) if token.output is not None]
            self.backend.decode(
                [token.id for token in part],
                [token.position for token in part],
                [token.sequences for token in part],
                [index for index, _ in wanted],
            )
            self.cost += Cost(passes=1, tokens=len(part))
            for index, (stem, point) in wanted:
                read(stem, point, self.backend.logits(index))
