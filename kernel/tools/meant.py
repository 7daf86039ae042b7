"""Whether a request means a tool at all, by its words: those in common, and whether it says what the tool needs.

"Can you find me a bus?" has all the words of a search for buses, and nothing of where it goes. Knows no model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.evidence import Kind, kind_of
from kernel.tools.fields import fields_of
from kernel.tools.matching import Match
from kernel.tools.quantities import numbers
from kernel.tools.signs import stems
from kernel.tools.spans import Source, spans

FEW = 10
"""Tools beyond which one more says nothing."""
NAMES = 3
"""Names beyond which one more says nothing."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a request say of the tool that shares most with it; each about between 0 and 1.

    Attributes:
        shared: score of the match, at most 1.
        of_about: share of the tool's description that the request has.
        tools: logarithm of the number of tools, of FEW at most: the best of many shares more by chance.
        numbers_missing: share of the numbers that the tool needs and the request does not have.
        numbers_there: whether the tool needs numbers and the request has as many.
        texts_missing: share of the texts that the tool needs for which the request has no word that is not the tool's.
        names: names and quotes in the request, at most NAMES.
        needs_nothing: whether the tool has no argument that must be there.
    """

    shared: float
    of_about: float
    tools: float
    numbers_missing: float
    numbers_there: float
    texts_missing: float
    names: float
    needs_nothing: float

    @property
    def log_odds(self) -> float:
        """For a request that means one of the tools, against one that means none."""
        return BIAS + math.fsum(weight * value for weight, value in zip(WEIGHTS, astuple(self), strict=True))


WEIGHTS = (2.22, 2.99, 0.92, -2.17, 0.29, -1.54, 0.62, 0.95)
BIAS = -2.77
"""A logistic regression on 2,000 development cases of the Berkeley leaderboard (benchmarks/fit_meant.py), the bias
moved to where it holds back 8 % of the requests that mean a tool, as a mean over the kinds of cases."""


def words_of(request: str, opcodes: Sequence[type[SchemaOpcode]], found: Sequence[Match]) -> Words:
    """Return what the words of a request say of the tool that matches it best.

    Args:
        found: of each tool, at least one.
    """
    place = max(range(len(found)), key=lambda n: found[n].score)
    opcode, match = opcodes[place], found[place]
    own = set(stems(f"{opcode.original} {opcode.__doc__ or ''}"))
    needed = [kind_of(field) for field in fields_of(opcode) if field.required]
    counts, texts, there = needed.count(Kind.NUMBER), needed.count(Kind.STRING), len(numbers(request))
    others = sum(word not in own for word in stems(request))
    named = sum(span.source in (Source.NAME, Source.QUOTE) for span in spans(request))
    return Words(
        shared=min(match.score, 1.0),
        of_about=match.of_about,
        tools=math.log(min(len(opcodes), FEW)),
        numbers_missing=_missing(counts, there),
        numbers_there=0 < counts <= there,
        texts_missing=_missing(texts, others),
        names=min(named, NAMES),
        needs_nothing=not needed,
    )


def _missing(needed: int, there: int) -> float:
    return max(0, needed - there) / max(1, needed)
