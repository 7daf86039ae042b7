"""The trie of token ids: built from opcodes once, asked for what is legal at every step, kept on disk."""
