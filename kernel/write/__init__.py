"""Writes opcodes whose arguments cannot be listed: tries and grammars over token ids, and the loop of a model.

To read in this order: grammar, slots, stage, builder, ending, stages, matcher, writer.
"""
