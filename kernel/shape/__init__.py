"""Languages of argument texts, read from JSON Schemas: what may be written, listed or recognised.

Nothing here needs a model or a tokenizer.
"""
