"""One legal decision: opcode, trie, choice. Knows no game, no wire format, no screen."""
