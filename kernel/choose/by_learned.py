"""Chooses under the rule `learned`: every opcode is scored behind one prompt, in one pass, legal or not."""

from __future__ import annotations

import numpy as np

from kernel.choose.beyond import Beyond
from kernel.choose.decision import Comparison
from kernel.choose.outcome import gains
from kernel.choose.question import Question
from kernel.choose.rule import finite
from kernel.choose.score import Scorer
from kernel.errors import LogitsError, UsageError
from kernel.memory.passes import Work


def choose_learned(scorer: Scorer, question: Question) -> tuple[Comparison, Beyond | None]:
    """Return the comparison of the legal opcodes, and what is beyond them.

    Every opcode is scored even where few are legal: what was learned compares them all, from the same first branch on.

    Raises:
        UsageError: nothing was learned of these opcodes, or they are too many to be scored whole.
        LogitsError: no legal opcode is possible, or a logit that was learned from is no finite number.
        ContextError, BackendError.
    """
    opcodes, by, learned = question.opcodes, question.by, question.learned
    if learned is None:
        raise UsageError("the rule 'learned' needs what was learned of these opcodes by this model; use 'calibrated'")
    whole, narrow = scorer.tree(opcodes, opcodes.everything), scorer.tree(opcodes, question.legal)
    if whole is None or narrow is None:
        raise UsageError(f"{len(opcodes)} opcodes are too many for the rule 'learned'; use 'calibrated'")
    all_legal = len(question.legal) == len(opcodes)
    work = Work(question.orders, narrow, 1, learned.seen)
    scores = scorer.score(work, question.watch, None if all_legal else whole)
    seen = scores.wider or scores
    assert seen.states is not None, "the work asks for them"
    if not np.isfinite(seen.states[0]).all():
        raise LogitsError(
            "the rule 'learned' reads a logit behind the prompt that is no finite number; use 'calibrated'"
        )
    state = learned.state(seen.states[0])
    order = np.argsort(learned.columns(opcodes)[seen.leaves])  # opcodes by column
    leaves, raw = seen.leaves[order], seen.log_probabilities[0][order]
    main = question.prompt.main
    assert isinstance(main, tuple), "the question has taken the prompt that was learned behind"
    request = learned.request(main)
    found = learned.scores(request, raw, state)
    legal = np.isin(leaves, question.legal.leaves())
    finite(float(found[legal].max()), len(question.legal))
    meant = learned.meant(request, raw, found, state)

    places = np.flatnonzero(legal)[np.argsort(leaves[legal])]
    prior = None if question.prior is None else question.prior[leaves[places]]
    against = by.compare(found[places], None, prior)
    position = by.pick(against, opcodes.trie.rank_of[leaves[places]], question.number)
    null = learned.null[places]
    compared = Comparison(leaves[places], against, raw[places], null, by.shares(against), position, scores.mass, meant)
    if all_legal or not question.beyond:
        return compared, None
    best = int(np.argmax(found))
    by_how_much = float(found[best] - found[places[position]])
    ahead = by_how_much > 0 and not legal[best]
    return compared, Beyond(
        int(leaves[best]) if ahead else None, by_how_much if ahead else 0.0, *gains(raw, learned.null)
    )
