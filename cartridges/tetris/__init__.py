"""Tetris, played with five keys or with whole placements."""
