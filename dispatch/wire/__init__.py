"""Instruction to text and back, by plain regular expressions; open arguments and JSON values are written here too."""
