"""The rules that turn log-probabilities of whole opcodes into a decision."""
