"""How options are shown to be ratified: as a set of lines, one of them marked as the best.

A small model chooses by copying what stands behind a mark, and what it reads before the lines decides whether it does
(docs/choosing.md). So lead and marks are one value, and `eval --forms` finds which of them a model understands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernel.errors import UsageError
from kernel.prompt import Lines, Part, Piece, Prompt, parted


@dataclass(frozen=True, slots=True)
class Form:
    """A lead, and the marks of the best option and of every other.

    Args:
        lead: template text before the lines; `{best}` and `{other}` in it are the marks. A line of its own, of an
            option that is none, makes the list look begun.
    """

    lead: str
    best: str
    other: str

    def __post_init__(self) -> None:
        if not self.lead or self.best == self.other:
            raise UsageError(f"{self!r} is no form: it needs a lead, and two marks that differ")

    def line(self, label: str, *, best: bool) -> str:
        """Return the line of an option."""
        return f"- {self.best if best else self.other}: {label}\n"

    @property
    def head(self) -> Part:
        """What stands before the lines."""
        return Part(self.lead.replace("{best}", self.best).replace("{other}", self.other), trusted=True)

    def prompt(self, labels: Sequence[str], best: int, question: Sequence[Part]) -> Prompt:
        """Return the options as a set, the one at `best` marked; in the null prompt none is.

        Args:
            best: place in `labels`, or -1.
            question: what stands behind the lines; it asks for the best.

        >>> form = Form("Options:\\n- {other}: none\\n", "best", "good")
        >>> prompt = form.prompt(["stop", "go"], 1, [Part("Best move:", trusted=True)])
        >>> print("".join(part.text for part in prompt.parts))
        Options:
        - good: none
        - good: stop
        - best: go
        Best move:
        >>> prompt.nulls[0][1].texts
        ('- good: stop\\n', '- good: go\\n')
        """

        def parts(marked: int) -> tuple[Piece, ...]:
            lines = tuple(self.line(label, best=n == marked) for n, label in enumerate(labels))
            return (self.head, Lines(lines, trusted=True), *question) if lines else tuple(question)

        return Prompt(parts(best), (parts(-1),))

    def of(self, prompt: Prompt, options: Sequence[str]) -> Prompt:
        """Return another form's prompt in this one; one that shows no such set stays as it is.

        The lines are known by the options that they end in. What stands before the lead stays.

        Args:
            options: as they are scored, a space in front.
        """
        _, lines, question = parted(prompt.parts)
        nulls = [parted(null)[1] for null in prompt.nulls]
        if lines is None or len(nulls) != 1 or nulls[0] is None:
            return prompt
        plain = set(nulls[0].texts)
        labels: list[str] = []
        best = -1
        for text in lines.texts:
            said = [option.strip() for option in options if text.endswith(f"{option}\n")]
            if not said:
                return prompt
            best = len(labels) if text not in plain else best
            labels.append(max(said, key=len))
        made = self.prompt(labels, best, question)
        before = prompt.parts[: [isinstance(part, Lines) for part in prompt.parts].index(True) - 1]
        return replace(made, parts=(*before, *made.parts), nulls=tuple((*before, *null) for null in made.nulls))


FORM = Form("Options:\n- {other}: none\n", "best", "good")
"""What our cartridges share; chosen on the labelled states of `dev` (benchmarks/results/forms.json)."""

SOLVED = "Options:\n- {other}: none\n- {best}: ru\nBest move: ru\nOptions:\n- {other}: none\n"
"""A lead with a question that is answered already; its label should be no option that is legal."""

LEADS = (
    "Options:\n",
    "Options:\n- {other}: none\n",
    "Options:\n- {best}: \n- {other}: \n",
    "- {best}: \n- {other}: \n",
    "Options:\n- {other}: none\n- {other}: none\n",
    "Options:\n- {best}: none\n- {other}: none\n",
    SOLVED,
)
MARKS = (("best", "good"), ("best", "okay"), ("best", "weak"), ("Best", "Good"), ("Best", "Other"))

FORMS = tuple(Form(lead, *marks) for lead in LEADS for marks in MARKS)
"""Forms to try: what stands first in a list, in marks of large and small letters."""
