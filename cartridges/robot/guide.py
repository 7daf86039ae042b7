"""The guide of the robot: what each command means, when one wants it, and a request that it answers.

The texts were written for the prompt. None of them stands in the labelled set.
"""

from __future__ import annotations

from cartridges.kit.phrasing import explanations
from cartridges.robot.opcodes import COMMANDS, OPCODES
from kernel.prompt import Explained

_FAR = {
    50: ("half a metre", "a small step {}", "Just a bit {}"),
    100: ("one metre", "one metre {}", "A metre {}"),
    150: ("one and a half metres", "150 centimetres {}", "One and a half metres {}"),
    200: ("two metres", "as far as it may {}", "Two metres {}"),
}

_DRIVES = {
    f"drive {way} {cm}": (f"drive {far} {way}", when.format(where), example.format(where))
    for way, where in (("forward", "ahead"), ("back", "backwards"))
    for cm, (far, when, example) in _FAR.items()
}

_OTHERS = {
    "turn left": ("turn left", "it should look to the left", "Look to your left"),
    "turn right": ("turn right", "it should look to the right", "Look to your right"),
    "turn around": ("turn around", "it should face the other way", "Face the other way"),
    "speak hello": ("say hello", "somebody arrives", "Somebody has come in"),
    "speak excuse-me": ("say excuse me", "somebody is in the way", "A man blocks your way"),
    "speak thanks": ("say thanks", "somebody was kind", "She was kind to you"),
    "speak yes": ("say yes", "it agrees", "You agree with him"),
    "speak no": ("say no", "it does not agree", "You don't want that"),
    "speak goodbye": ("say goodbye", "somebody leaves", "They are going home"),
    "stop": ("stop", "it must not move", "Don't move"),
}

GUIDE: tuple[Explained, ...] = explanations(COMMANDS, OPCODES, _DRIVES | _OTHERS)
