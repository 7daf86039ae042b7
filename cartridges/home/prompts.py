"""What the model reads before it picks a command. Knows no state: the request decides."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.contract import Engine, Option, Part, Prompt

NOTHING = "N/A"


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the request and a blank for the command; the null prompt asks for nothing.

    The request is data, on one line: white space in it becomes single spaces. It carries the space before it,
    because a template that ended in a space would be cut into other tokens than whole words are.
    """
    return Prompt(_parts(" ".join(request.split()) or NOTHING), (_parts(NOTHING),))


def _parts(request: str) -> tuple[Part, ...]:
    return (Part("Request:", trusted=True), Part(f" {request}"), Part("\nCommand:", trusted=True))
