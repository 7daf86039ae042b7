"""The order of the pieces: shuffled bags of seven, as numbers from 0 to 6, drawn from a state of 64 bits.

Each bag holds every piece once. It is shuffled (Fisher-Yates) with SplitMix64 (Steele, Lea and Flood 2014, "Fast
Splittable Pseudorandom Number Generators"), whose state starts at the seed modulo 2**64. The remainder that picks
a place favours some of them by less than 2**-60.
"""

from __future__ import annotations

WORD = (1 << 64) - 1
SIZE = 7


def split_mix(state: int) -> tuple[int, int]:
    """Return the next word of 64 bits and the state after it.

    >>> f"{split_mix(0)[0]:x}"
    'e220a8397b1dcdaf'
    """
    state = state + 0x9E3779B97F4A7C15 & WORD
    word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31, state


def draw(bag: tuple[int, ...], state: int) -> tuple[int, tuple[int, ...], int]:
    """Take the first piece of the bag, a new one if it is empty; return the piece, what is left, the state."""
    if not bag:
        fresh = list(range(SIZE))
        for last in range(SIZE - 1, 0, -1):
            word, state = split_mix(state)
            pick = word % (last + 1)
            fresh[last], fresh[pick] = fresh[pick], fresh[last]
        bag = tuple(fresh)
    return bag[0], bag[1:], state
