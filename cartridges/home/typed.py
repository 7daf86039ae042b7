"""The prompt for the typed opcodes: worked examples in two orders, then the request."""

from __future__ import annotations

from kernel.prompt import NOTHING, Explained, Prompt, behind

GUIDE = tuple(
    Explained(*said)
    for said in (
        ("light hall true", "Light in the hall", "it is dark there", "I can't see my shoes"),
        ("light bedroom false", "Bedroom light off", "somebody sleeps", "I want to sleep now"),
        ("light kitchen true", "Kitchen light", "we want to cook", "It's dark at the stove"),
        ("light bathroom false", "Bathroom lights out", "nobody is in there", "The bath is empty"),
        ("thermostat 19.0", "Heat to 19 degrees", "it is cold", "18 and a half would be nice"),
        ("thermostat 22.5", "22.5 degrees, please", "it is cold", "Make it 20 in here"),
        ("door lock", "Lock up", "we go to bed", "Nobody should come in"),
        ("door unlock", "Let them in", "guests are here", "Somebody wants to come in"),
        ("blinds open", "Blinds up", "it is a fine day", "I want to see the sky"),
        ("blinds close", "Blinds down", "the sun is too bright", "They look into our windows"),
        ("music play", "Play something", "it is too quiet", "I want to hear a song"),
        ("music louder", "Turn it up", "I can't hear it", "The song is hard to hear"),
        ("music quieter", "Turn it down", "it is too loud", "Not so loud"),
        ("music next", "Next song", "this one is boring", "I don't like this one"),
        ("music stop", "Silence", "we want to talk", "Enough of the songs"),
        ("vacuum start", "Clean up", "the floor is dirty", "There are crumbs everywhere"),
        ("vacuum dock", "Cleaning is done", "it should go home", "The floor is clean now"),
        ("timer 45", "Wake me in 45 minutes", "I take a nap", "The bread needs an hour"),
        ("timer 10", "Ten minutes for the eggs", "they are in the pot", "Tell me in 5 minutes"),
        ('remind "take out the bins"', "Don't let me forget the bins", "it is Monday", "I must call the doctor"),
        ('remind "the keys are next door"', "Note that the keys are next door", "I forget", "Write down: buy milk"),
    )
)
"""As the compact form says them, so that what is asked for is a line of the same kind."""


def prompt(request: str) -> Prompt:
    """Return examples, the request and a blank for the command, and the examples the other way round.

    The null prompts ask for nothing behind the same examples.
    """
    lines = [f"Request: {each.phrase}\nCommand: {each.words}\n" for each in GUIDE]
    heads = ["".join(lines), "".join(reversed(lines))]
    first, *others = [behind(head, request) for head in heads]
    return Prompt(first, tuple(behind(head, NOTHING) for head in heads), tuple(others))
