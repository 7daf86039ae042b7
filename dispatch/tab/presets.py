"""The presets of the bench whose texts can be listed, compiled for a tab."""

from __future__ import annotations

from collections.abc import Iterator

from dispatch.inspector.jsonable import Json
from dispatch.inspector.presets import presets
from dispatch.inspector.tasks import schema_shape
from kernel.choose.options import option_literals
from kernel.shape.listing import Counter, texts
from kernel.text.vocabulary import Vocabulary
from kernel.trie.literal import Literal
from kernel.trie.opcodes import OpcodeSet

MOST = 1000
"""Values of a schema up to which they are listed; a tab scores them whole."""


def packed_presets(vocabulary: Vocabulary) -> Iterator[tuple[Json, OpcodeSet]]:
    """Yield each preset with its compiled texts; those with endless or very many texts are left out."""
    for preset in presets():
        if preset["options"] is not None:
            literals = option_literals(preset["prompt"], preset["options"])
        else:
            shape, _ = schema_shape(preset["schema"])
            if Counter()(shape) > MOST:
                continue
            literals = [Literal(text, "\n") for text in dict.fromkeys(texts(shape))]
        yield preset, OpcodeSet(literals, vocabulary)
