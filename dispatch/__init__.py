"""Text to instruction, the session loop, the log and its replay. Knows no cartridge by name."""
