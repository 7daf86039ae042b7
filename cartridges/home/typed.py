"""What the model reads before it says a command with typed arguments: worked examples, then the request."""

from __future__ import annotations

from kernel.contract import Prompt
from kernel.request import NOTHING, behind

EXAMPLES = (
    ("Light in the hall", "light hall true"),
    ("Bedroom light off", "light bedroom false"),
    ("Kitchen light", "light kitchen true"),
    ("Bathroom lights out", "light bathroom false"),
    ("Heat to 19 degrees", "thermostat 19.0"),
    ("22.5 degrees, please", "thermostat 22.5"),
    ("Lock up", "door lock"),
    ("Let them in", "door unlock"),
    ("Blinds up", "blinds open"),
    ("Blinds down", "blinds close"),
    ("Play something", "music play"),
    ("Turn it up", "music louder"),
    ("Turn it down", "music quieter"),
    ("Next song", "music next"),
    ("Silence", "music stop"),
    ("Clean up", "vacuum start"),
    ("Cleaning is done", "vacuum dock"),
    ("Wake me in 45 minutes", "timer 45"),
    ("Ten minutes for the eggs", "timer 10"),
    ("Don't let me forget the bins", 'remind "take out the bins"'),
    ("Note that the keys are next door", 'remind "the keys are next door"'),
)
"""As the compact form says them, so that what is asked for is a line of the same kind."""


def prompt(request: str) -> Prompt:
    """Return examples, the request and a blank for the command, and the examples the other way round.

    The null prompts ask for nothing behind the same examples.
    """
    heads = [_head(examples) for examples in (EXAMPLES, EXAMPLES[::-1])]
    first, *others = [behind(head, request) for head in heads]
    return Prompt(first, tuple(behind(head, NOTHING) for head in heads), tuple(others))


def _head(examples: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"Request: {asked}\nCommand: {said}\n" for asked, said in examples)
