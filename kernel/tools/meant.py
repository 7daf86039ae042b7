"""Whether a request means a tool at all, by its words: those in common, and whether it says what the tool needs.

"Can you find me a bus?" has all the words of a search for buses, and nothing of where it goes. Knows no model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.candidates import SPOKEN
from kernel.tools.evidence import Kind, kind_of
from kernel.tools.fields import Field, fields_of
from kernel.tools.matching import Match
from kernel.tools.quantities import numbers
from kernel.tools.signs import stems
from kernel.tools.spans import Source, spans

NAMES = 3
"""Names beyond which one more says nothing."""
FEW = 2
"""Words of a request that are few."""
SUCH = re.compile(r"\b(?:e\.g\.,?|such as|like|for example,?) ([^.)]{2,80})", re.IGNORECASE)
"""What a description gives as an example, quotes or not."""
LINK = re.compile(r"\b(?:urls?|uris?|ip)\b")
"""Words of an argument's name that is for an address of the net."""
LINKED = re.compile(r"\w://|\b[\w-]*[a-z][\w-]*\.[a-z]{2,}\b|\d+\.\d+\.\d+\.\d+|\blocalhost\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a request say of the tool that shares most with it; each about between 0 and 1.

    Attributes:
        of_name: share of the words of the tool's name that the request has.
        of_about: share of the first sentence of the tool's description that the request has.
        ahead: score of the match before that of the next tool, at most 2.
        nothing: whether no word is shared, with the arguments either.
        example: whether a word is among the values that the arguments list or give as an example.
        examples: share of the request's words that are.
        names: names and quotes in the request, at most NAMES.
        short: whether the request has FEW words that say something, or fewer.
        needed: logarithm of the number of arguments that must be there, plus one.
        numbers_missing: share of the numbers that the tool needs and the request does not have.
        texts_missing: share of the needed arguments that are texts and for which there is no name, quote or number.
        link_missing: whether the tool needs an address of the net, and the request has none.
    """

    of_name: float
    of_about: float
    ahead: float
    nothing: float
    example: float
    examples: float
    names: float
    short: float
    needed: float
    numbers_missing: float
    texts_missing: float
    link_missing: float

    @property
    def log_odds(self) -> float:
        """For a request that means one of the tools, against one that means none."""
        return BIAS + math.fsum(weight * value for weight, value in zip(WEIGHTS, astuple(self), strict=True))


WEIGHTS = (1.04, 3.47, 0.91, -1.99, 1.13, 1.1, 0.31, -0.85, -1.1, -3.39, -1.21, -6.38)
BIAS = 0.65
"""A logistic regression on development cases of the Berkeley leaderboard and plain requests (benchmarks/fit_meant.py),
the bias moved to where it holds back 3 % of the requests that mean a tool, as a mean over the kinds of cases."""


def words_of(request: str, opcodes: Sequence[type[SchemaOpcode]], found: Sequence[Match]) -> Words:
    """Return what the words of a request say of the tool that matches it best.

    Args:
        found: of each tool, at least one.
    """
    ranked = sorted(range(len(found)), key=lambda n: -found[n].score)
    opcode, match = opcodes[ranked[0]], found[ranked[0]]
    fields = fields_of(opcode)
    asked, own = set(stems(request)), set(stems(opcode.original))
    known = own.union(stems(opcode.__doc__ or ""), *(stems(f"{field.name} {field.about}") for field in fields))
    begun = set(stems((opcode.__doc__ or "").split(". ")[0]))
    examples = set[str]().union(*map(_examples, fields))
    needed = [field for field in fields if field.required]
    linked = [field for field in needed if LINK.search(field.name)]
    counts = sum(kind_of(field) is Kind.NUMBER for field in needed)
    texts = sum(kind_of(field) is Kind.STRING and field not in linked for field in needed)
    there = len(numbers(request))
    named = sum(span.source in (Source.NAME, Source.QUOTE) for span in spans(request))
    return Words(
        of_name=len(asked & own) / max(1, len(own)),
        of_about=len(asked & begun) / max(1, len(begun)),
        ahead=min(match.score - found[ranked[1]].score, 2.0) if len(ranked) > 1 else 0.0,
        nothing=asked.isdisjoint(known),
        example=not asked.isdisjoint(examples),
        examples=len(asked & examples) / max(1, len(asked)),
        names=min(named, NAMES),
        short=len(asked) <= FEW,
        needed=math.log1p(len(needed)),
        numbers_missing=max(0, counts - there) / max(1, counts),
        texts_missing=max(0, texts - named - there) / max(1, len(needed)),
        link_missing=bool(linked) and not LINKED.search(request),
    )


def _examples(field: Field) -> list[str]:
    """Return the words of the values that a field lists or gives as an example."""
    told = " ".join([*SPOKEN.findall(field.about), *SUCH.findall(field.about)])
    return stems(f"{told} {field.schema.get('enum', '')} {field.schema.get('examples', '')}")
