"""The texts that an argument may have: read from JSON Schemas, then counted, listed, recognised and ended.

Nothing here needs a model or a tokenizer.
"""
