"""Signs by which a candidate is told to be the value of a field, and their weights: a conditional logit.

The model's log-probabilities are signs among others, such as whether a word of the field's name stands before the
candidate. The weights were fitted on development cases of the Berkeley leaderboard (benchmarks/fit_calls.py); none of
the published cases was among them.
"""

from __future__ import annotations

import re

import numpy as np

from kernel.choose.rule import Floats
from kernel.tools.candidates import Candidate
from kernel.tools.evidence import Evidence, Kind
from kernel.tools.fields import Field
from kernel.tools.spans import CUT, LITTLE, NAMING, SAYING, Source
from kernel.tools.weights import WEIGHTS

NAMES = (
    "best", "gain", "contrast",
    *(source.value for source in Source),
    "words", "long", "free", "free clause", "told", "called", "formed", "joined", "way",
    "near name", "near about", "of name", "of about", "said", "first", "part", "yes", "place",
    "out", "out spoken", "out about",
)  # fmt: skip
"""The signs. `best`, `gain`, `contrast`: the log-probability less that of the best candidate, less that behind the line
to compare with, and the share of the field's line in all lines. `near`: a word of the field's name or description
stands beside the candidate; `of`: it is made of such words. `said`: the request has all words of what the schema names;
`first`: the request begins with it; `part`: it is a part of a longer name. `free`: the field is for a text that may be
long, and how long the candidate is; `told`, `called`: a word of saying or of naming introduces it, and the field is for
such; `formed`: a place with its state, or a time, written as the field asks for; `joined`: two things are in it; `way`:
it stands behind `from` or `to`, and the field is for where something begins or ends. `out`: the field is left out, and
whether the request has words of it all the same."""

FREE = frozenset(
    [
        "query",
        "text",
        "body",
        "message",
        "content",
        "note",
        "question",
        "prompt",
        "search",
        "phrase",
        "sentence",
        "topic",
        "comment",
    ]
)
TITLES = frozenset(["title", "name", "label", "subject"])
"""Words of fields that are for what somebody says or looks for, and of those that are for what something is called."""
STARTS = frozenset(["start", "from", "origin", "departure", "source", "initial"])
ENDS = frozenset(["end", "to", "destination", "arrival", "target"])
PLACED = re.compile(r"\b[Cc]ity,? *(?:and |& *|\(?abbreviated )*[Ss]tate|\b[A-Z]\w+, [A-Z]{2}\b|[Cc]ity, [Cc]ountry")
"""A description that asks for a place with its state."""
_JOINED = re.compile(r"\w (?:and|or|to|vs\.?|versus|&) \w", re.IGNORECASE)
FORMATS = (("HH:MM", re.compile(r"\d\d:\d\d")), ("YYYY-MM-DD", re.compile(r"\d{4}-\d\d-\d\d")))
"""Ways to write a time or a day that a description may name."""
_TOLD = re.compile(rf"(?:\b(?:{SAYING})[:,]?|:) *[\"'\u2018\u201c]?$", re.IGNORECASE)
_CALLED = re.compile(rf"\b(?:{NAMING}|as)[:,]? *[\"'\u2018\u201c]?$", re.IGNORECASE)

_EMPTY = (
    "name number value type e g eg such default optional string specific calculate compute find get determine retrieve "
    "fetch give show tell provide return given want need help know use"
)
EMPTY_WORDS = LITTLE | frozenset(_EMPTY.split())
"""Words that say nothing of what is asked for."""
ENDING = re.compile(r"(?<=\w{3})(?:ations?|ions?|ings?|ments?|ers?|ors?|ed|es|ly|s|e)$")
HALVES = {"first", "last", "given", "famil", "surnam", "middl"}
"""Words of fields that want a part of a name."""
FULL = re.compile(r"\b[A-Z][\w'\u2019&.-]*(?: (?:of (?:the )?)?[A-Z][\w'\u2019&-]*)+")
"""Words with capitals beside each other."""
BEFORE, BEHIND = 3, 2
"""Words around a candidate that count as near."""


def scores(request: str, field: Field, evidence: Evidence) -> Floats:
    """Return the score of each candidate and, last, that of leaving the field out: float64, shape (n + 1,)."""
    weights = WEIGHTS[evidence.kind]
    values: Floats = signs(request, field, evidence) @ np.array([weights.get(name, 0.0) for name in NAMES])
    return values


def signs(request: str, field: Field, evidence: Evidence) -> Floats:
    """Return the signs of each candidate and, last, of leaving the field out: float64, shape (n + 1, len(NAMES))."""
    found = np.zeros((len(evidence.candidates) + 1, len(NAMES)))
    column = {name: at for at, name in enumerate(NAMES)}
    asked, general = evidence.asked, evidence.general
    found[:-1, column["best"]] = asked - asked.max()
    found[:-1, column["gain"]] = asked - general
    lines = np.vstack([asked, general, evidence.others])
    found[:-1, column["contrast"]] = asked - np.logaddexp.reduce(lines, axis=0)
    name, about = set(stems(field.name)), set(stems(field.about))
    spoken, names = set(stems(request)), full_names(request)
    placed = PLACED.search(field.argument.description) is not None
    formats = [form for name, form in FORMATS if name in field.argument.description]
    directed = set(field.name.split())
    text_field = evidence.kind is Kind.STRING
    free, titled = text_field and _wants(field, FREE), text_field and _wants(field, TITLES)
    for row, each in zip(found, evidence.candidates, strict=False):
        row[column[each.source.value]] = 1
        text = each.text.strip('"')
        inner = stems(text)
        row[column["words"]] = min(len(text.split()), 12)
        row[column["long"]] = np.log1p(len(text))
        if each.begin >= 0:
            before = request[max(0, each.begin - 20) : each.begin]  # it may be introduced there
            row[column["free"]] = free * np.log1p(len(text))
            row[column["free clause"]] = free * (each.source is Source.CLAUSE)
            row[column["way"]] = _way(before, directed)
            row[column["told"]] = free and _TOLD.search(before) is not None and _closed(request, each.end)
            row[column["called"]] = titled and _CALLED.search(before) is not None and _closed(request, each.end)
        row[column["formed"]] = (placed and ", " in text) or any(form.fullmatch(text) for form in formats)
        row[column["joined"]] = each.source is not Source.QUOTE and _JOINED.search(text) is not None
        row[column["near name"]] = _near(request, each, name)
        row[column["near about"]] = _near(request, each, about)
        row[column["of name"]] = bool(inner) and all(word in name for word in inner)
        row[column["first"]] = each.begin == 0
        row[column["part"]] = not name & HALVES and any(
            a <= each.begin < each.end <= b and (a, b) != (each.begin, each.end) for a, b in names
        )
        row[column["of about"]] = sum(word in about for word in inner) / max(1, len(inner))
        row[column["said"]] = each.begin < 0 and bool(inner) and all(word in spoken for word in inner)
        row[column["yes"]] = each.text == "true"
        if each.source is Source.EXAMPLE:  # it stands in the field's line, so what that makes likelier says nothing
            row[[column[sign] for sign in ("gain", "contrast", "of about")]] = 0
        row[column["place"]] = max(0, each.begin) / max(1, len(request))
    found[-1, column["out"]] = 1
    found[-1, column["out spoken"]] = any(word in spoken for word in name)
    found[-1, column["out about"]] = sum(word in spoken for word in about) / max(1, len(about))
    return found


def _way(before: str, words: set[str]) -> float:
    """Return 1 where a value stands behind the word of its end of a way, -1 behind that of the other end."""
    found = re.search(r"\b(from|to)\s+(?:the\s+)?$", before, re.IGNORECASE)
    if found is None or not words & (STARTS | ENDS):
        return 0.0
    return 1.0 if words & (STARTS if found[1].lower() == "from" else ENDS) else -1.0


def _wants(field: Field, kind: frozenset[str]) -> bool:
    """Return whether a field is of a kind by its name or, where that is of neither, by its description."""
    named = set(field.name.split())
    told = named if named & (FREE | TITLES) else set(re.findall(r"[a-z]+", field.about.lower()))
    return not kind.isdisjoint(told)


def _closed(request: str, end: int) -> bool:
    """Return whether a text that is introduced ends here."""
    return not re.match(r"[\w'-]| +\w", request[end:]) or CUT.match(request, end) is not None


def full_names(request: str) -> list[tuple[int, int]]:
    """Return where names of several words begin and end; the word that begins a sentence belongs to none.

    >>> text = "Is Serena Williams at the Museum of Art?"
    >>> [text[a:b] for a, b in full_names(text)]
    ['Serena Williams', 'Museum of Art']
    """
    found = []
    for match in FULL.finditer(request):
        begin = match.start()
        if not request[:begin].strip() or request[:begin].rstrip()[-1] in ".!?:":
            begin = request.index(" ", begin) + 1
        if " " in request[begin : match.end()]:
            found.append((begin, match.end()))
    return found


def speaks_of(field: Field, spoken: set[str]) -> bool:
    """Return whether words of a request are among those of a field: its name, its description, its values."""
    values = field.schema.get("enum")
    listed = " ".join(map(str, values)) if isinstance(values, list) else ""
    return not spoken.isdisjoint(stems(f"{field.name} {field.about} {listed}"))


def _near(request: str, candidate: Candidate, wanted: set[str]) -> float:
    if candidate.begin < 0:
        return 0.0
    before = stems(request[: candidate.begin])[-BEFORE:]
    behind = stems(request[candidate.end :])[:BEHIND]
    return float(any(word in wanted for word in before)) + 0.5 * float(any(word in wanted for word in behind))


def stems(text: str) -> list[str]:
    """Return the words of a text without common endings, those that say nothing left out.

    >>> stems("the departureDates of inventions, invented")
    ['departur', 'dat', 'invent', 'invent']
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    found: list[str] = re.findall(r"[^\W_]+", spaced)
    return [ENDING.sub("", word) if len(word) > 4 else word for word in found if word not in EMPTY_WORDS]
