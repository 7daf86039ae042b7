"""Finds cartridges by name, module or folder and makes them; writes new ones from a template or a tool list."""
