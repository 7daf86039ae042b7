"""Arguments that cannot be listed: a grammar over token ids, and the loop that writes them under it."""
