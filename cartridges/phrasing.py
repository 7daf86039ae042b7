"""The two forms of prompt that the small cartridges share: a request, and options of which one is marked.

Knows no cartridge and no tokenizer. A piece of template text never ends in a space: what follows brings its own,
because whole words and a lone space are cut into different tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.casefile import words
from kernel.contract import Option, Part, Prompt

NOTHING = "N/A"


def asked(request: str) -> Prompt:
    """Return a request and a blank for the command; the null prompt asks for nothing.

    The request is data, on one line: white space in it becomes single spaces.

    >>> "".join(part.text for part in asked("I'm freezing").parts)
    "Request: I'm freezing\\nCommand:"
    """
    return Prompt(_request(" ".join(request.split()) or NOTHING), (_request(NOTHING),))


def offered(situation: str, options: Sequence[Option]) -> Prompt:
    """Return the situation, the options in their order, the one with the highest score marked, and a blank.

    In the null prompt all marks are the same. Of equal scores the first one is marked.

    >>> from kernel.opcode import Instruction
    >>> stop, hello = Instruction.of("robot", "stop"), Instruction.of("robot", "speak", phrase="hello")
    >>> "".join(part.text for part in offered("The door opens.", [Option(stop, -2), Option(hello, -1)]).parts)
    'The door opens.\\nother: stop\\nbest: speak hello\\nbest:'
    """
    top = max(range(len(options)), key=lambda n: options[n].score, default=-1)
    marks = ["best" if n == top else "other" for n in range(len(options))]
    return Prompt(_marked(situation, options, marks), (_marked(situation, options, ["option"] * len(options)),))


def _request(request: str) -> tuple[Part, ...]:
    return (Part("Request:", trusted=True), Part(f" {request}"), Part("\nCommand:", trusted=True))


def _marked(situation: str, options: Sequence[Option], marks: Sequence[str]) -> tuple[Part, ...]:
    lines = [situation, *(f"{m}: {words(o.instruction)}" for m, o in zip(marks, options, strict=True)), "best:"]
    return (Part("\n".join(lines), trusted=True),)
