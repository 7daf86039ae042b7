"""Learning from labelled requests: the numbers of each request, and the regressions that are fitted to them."""
