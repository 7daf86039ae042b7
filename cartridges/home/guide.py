"""The guide of the house: what each command means, when one wants it, and a request that it answers.

The texts were written for the prompt. None of them stands in the labelled sets.
"""

from __future__ import annotations

from cartridges.home.opcodes import COMMANDS, OPCODES
from cartridges.kit.phrasing import explanations
from kernel.prompt import Explained

_ROOMS = {
    "kitchen": ("I need to see what I'm cooking", "Nobody is in the kitchen"),
    "bedroom": ("I want to read in bed", "I'm going to sleep"),
    "bathroom": ("I want to take a shower, it's dark", "I'm done in the bathroom"),
    "hall": ("I can't find my shoes in the hall", "No light in the hall"),
}

_LIGHTS = {
    f"light {room} {state}": (f"turn {state} the {room} light", f"the {room} {why}", example)
    for room, examples in _ROOMS.items()
    for state, why, example in zip(("on", "off"), ("is too dark", "needs no light"), examples, strict=True)
}

_OTHERS = {
    "heater warmer": ("make it warmer", "someone is cold", "I'm cold"),
    "heater cooler": ("make it cooler", "someone is too hot", "It's like an oven today"),
    "door lock": ("lock the door", "keep people out", "Nobody should come in"),
    "door unlock": ("unlock the door", "let people in", "Somebody wants to come in"),
    "blinds open": ("open the blinds", "let daylight in, look outside", "I want to see the sky"),
    "blinds close": ("close the blinds", "keep sun and looks out", "The sun is too bright"),
    "music play": ("play music", "someone wants to hear songs", "I want to hear a song"),
    "music stop": ("stop the music", "someone wants silence", "Be silent"),
    "music louder": ("make the music louder", "the sound is too soft", "The song is hard to hear"),
    "music quieter": ("make the music quieter", "the sound is too loud", "It's too loud"),
    "music next": ("play the next song", "someone wants another song", "I don't like this song"),
    "vacuum start": ("start the vacuum", "the floor is dirty", "The floor is dirty"),
    "vacuum dock": ("send the vacuum home", "cleaning should end", "The floor is clean now"),
    "timer start": ("start the timer", "something has to be watched", "The rice needs ten minutes"),
    "timer stop": ("stop the timer", "no more watching", "Forget about the timer"),
    "timer check": ("check the timer", "how much time is left", "How many minutes are still to go?"),
}

GUIDE: tuple[Explained, ...] = explanations(COMMANDS, OPCODES, _LIGHTS | _OTHERS)
