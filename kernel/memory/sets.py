"""Plans the passes of prompts that show a set: lines that are stored, and questions that they are attached to.

    sequence       0           1           ...           126         127
    holds          prompt      null prompt strands       line b      lead, line a

The invariant of the sequences: a stored line stands alone behind its lead on a sequence of its own, at the positions
that follow the lead, and never sees another line. A prompt's sequence is made of copies: the lead, and every line from
where the lead ends; only its question and the tree behind it are evaluated there. llama.cpp wants the positions of a
sequence without gaps, so the question begins behind the longest line. While it is evaluated, nothing stands on a line's
sequence and on a prompt's at once, so the lines are blind to each other whatever the runtime makes of several
sequences of one token.

In a memory too small to store what one decision reads, its prompts are decided one after the other, and their lines are
evaluated anew on sequences that they give back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kernel.memory.attention import Passes
from kernel.memory.listed import Listed, Prompted, joined
from kernel.memory.memory import Memory
from kernel.memory.passes import MAIN, Batch, Clear, Copy, Cost, Drop, Plan, ReadRow, Room, Stem, Step, Token, Work
from kernel.memory.store import Line, Stored, wanted
from kernel.memory.tree import STEM, ScoreTree

LINES = 2 / 3
"""Share of the sequences that stored lines may take; they may take half of the cells."""


def plan(memory: Memory, work: Work) -> Plan:
    """Return the steps that evaluate the work, which prompts without lines may stand in; the memory is not asked."""
    prompts = [_listed(joined(prompt, work.tree.prefix)) for prompt in work.prompts]
    seats = _seats(memory, prompts, len(work.tree.tokens), strands=bool(work.tree.tips))
    if seats is None:
        return Plan(tuple(_anew(prompts, work.tree, memory.whole)), (), (), Stored(), _found((), prompts))
    base, stored = seats
    whole, held = memory.whole, _held(memory) if base else 0
    room = Room(whole.n_ctx - stored.cells - held, whole.n_batch, stored.first(whole.n_seq) - base)
    steps = [
        *_stored(memory, base, stored),
        *(step for n, p in enumerate(prompts) for step in _attach(p, base + n, stored)),
    ]
    steps += Passes([_stem(n, prompt) for n, prompt in enumerate(prompts)], work.tree, room, 0, base).steps()
    found = _found(memory.stored.sequences, prompts)
    if base:
        return Plan(tuple(steps), tuple(memory.held), tuple(map(tuple, memory.kept)), stored, found)
    return Plan(tuple(steps), (), (), stored, found)


def open_prompt(memory: Memory, prompt: Prompted, read: ReadRow) -> None:
    """Make a prompt that of the session, on the main sequence, and read the row after it (as point STEM)."""
    if not isinstance(prompt, Listed):
        memory.open(prompt, read)
        return
    with memory.guard():
        memory.follow(_opening(memory, prompt), read)


def _opening(memory: Memory, prompt: Listed) -> Plan:
    seats = _seats(memory, [prompt], 0, strands=True, main=True)
    if seats is None:
        steps, stored, found = [*_one(prompt, memory.whole)], Stored(), _found((), [prompt])
    else:
        steps, stored = [*_stored(memory, 0, seats[1]), *_attach(prompt, MAIN, seats[1])], seats[1]
        found = _found(memory.stored.sequences, [prompt])
    last = len(prompt.question) - 1
    tokens = [
        Token(token, prompt.begin + at, (MAIN,), (0, STEM) if at == last else None)
        for at, token in enumerate(prompt.question)
    ]
    return Plan((*steps, Batch(tuple(tokens))), (), (), stored, found)


def _listed(prompt: Prompted) -> Listed:
    return prompt if isinstance(prompt, Listed) else Listed((), (), prompt)


def _seats(
    memory: Memory, prompts: Sequence[Listed], grown: int, *, strands: bool, main: bool = False
) -> tuple[int, Stored] | None:
    """Return the sequence of the first prompt, and what is stored then; None where not all lines can be stored.

    The prompts without lines that are held stay where they are, unless there is no room beside them.

    Args:
        grown: tokens of the tree.
        strands: whether it has any.
        main: the only prompt is to stand on the main sequence.
    """
    whole, lines = memory.whole, wanted(prompts)
    share = range(whole.n_seq - int(LINES * whole.n_seq), whole.n_seq)
    questions = [len(prompt.question) + grown for prompt in prompts]
    for base in dict.fromkeys([0 if main or not memory.held else 1 + len(memory.kept), 0]):
        left = whole.n_ctx - (_held(memory) if base else 0)
        needed = sum(line.cells for line in lines) + max(questions)
        if needed <= left and len(lines) <= len(share) and base + len(prompts) + strands <= share.start:
            return base, memory.stored.after(lines, share, min(whole.n_ctx // 2, left - sum(questions)))
    return None


def _held(memory: Memory) -> int:
    """Return how many cells prompts without lines take at most."""
    return len(memory.held) + sum(map(len, memory.kept))


def _found(stored: Collection[Line], prompts: Sequence[Listed]) -> Cost:
    """Return how many lines are stored, how many are not, and how many tokens that saves."""
    lines = wanted(prompts)
    there = [line for line in lines if line in stored]
    hits = sum(bool(line.line) for line in there)
    misses = sum(bool(line.line) for line in lines) - hits
    return Cost(line_hits=hits, line_misses=misses, tokens_saved=sum(line.cells for line in there))


def _stored(memory: Memory, base: int, after: Stored) -> Iterator[Step]:
    """Yield the steps that make room, and evaluate what is to be stored and is not: all of it in one pass."""
    before = memory.stored.sequences
    if not base:
        yield from [Drop(number) for number in range(1 + len(memory.kept))]
    yield from [Drop(sequence) for line, sequence in before.items() if line not in after.sequences]
    new = {line: sequence for line, sequence in after.sequences.items() if line not in before}
    tokens: list[Token] = []
    for (lead, line), sequence in new.items():
        if line and lead and Line(lead) in before:
            yield Copy(before[Line(lead)], sequence, len(lead))
        elif not line:  # it stands on the sequences of its lines as well
            own = [sequence, *(number for each, number in new.items() if each.line and each.lead == lead)]
            tokens += [Token(token, at, tuple(own)) for at, token in enumerate(lead)]
    for (lead, line), sequence in new.items():
        tokens += [Token(token, len(lead) + at, (sequence,)) for at, token in enumerate(line)]
    if tokens:
        yield Batch(tuple(tokens))


def _attach(prompt: Listed, sequence: int, stored: Stored) -> Iterator[Step]:
    """Yield the copies that a prompt's sequence is made of."""
    if prompt.lead:
        yield Copy(stored.sequences[Line(prompt.lead)], sequence, len(prompt.lead))
    for line in prompt.lines:
        source = stored.sequences[Line(prompt.lead, line)]
        yield Copy(source, sequence, len(prompt.lead) + len(line), len(prompt.lead))


def _stem(number: int, prompt: Listed) -> Stem:
    """Return a prompt as a stem that is in memory up to its question; the longest line stands for all of them there."""
    longest = max(prompt.lines, key=len, default=())
    ids = (*prompt.lead, *longest, *prompt.question)
    return Stem(number, ids, cached=prompt.begin, shared=prompt.begin, own=True)


def _anew(prompts: Sequence[Listed], tree: ScoreTree, whole: Room) -> Iterator[Step]:
    """Yield the steps of the prompts, one after the other; nothing stays."""
    for number, prompt in enumerate(prompts):
        yield from _one(prompt, whole)
        room = Room(whole.n_ctx - sum(prompt.lengths), whole.n_batch, whole.n_seq)
        for step in Passes([_stem(0, prompt)], tree, room, 0).steps():
            yield _as_stem(number, step) if isinstance(step, Batch) else step


def _one(prompt: Listed, whole: Room) -> Iterator[Step]:
    """Yield the steps that put a prompt up to its question on the main sequence of an empty memory."""
    lead, last = len(prompt.lead), whole.n_seq - 1
    yield Clear()
    if lead:
        yield Batch(tuple(Token(token, at, (MAIN, last)) for at, token in enumerate(prompt.lead)))
    size = last - 1
    for first in range(0, len(prompt.lines), size):
        lines = prompt.lines[first : first + size]
        if lead:
            yield from [Copy(last, sequence, lead) for sequence in range(1, 1 + len(lines))]
        yield Batch(
            tuple(
                Token(token, lead + at, (sequence,))
                for sequence, line in enumerate(lines, 1)
                for at, token in enumerate(line)
            )
        )
        for sequence, line in enumerate(lines, 1):
            yield Copy(sequence, MAIN, lead + len(line), lead)
            yield Drop(sequence)
    yield Drop(last)


def _as_stem(number: int, batch: Batch) -> Batch:
    """Return a batch of stem 0 as one of another."""
    return Batch(tuple(t if t.output is None else t._replace(output=(number, t.output[1])) for t in batch.tokens))
