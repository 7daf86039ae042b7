"""What a token id is: text, a control token, unused. Numbered as in llama.cpp."""

from __future__ import annotations

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32
"""Bits of a token's attributes, numbered as in `enum llama_token_attr` of llama.cpp."""
