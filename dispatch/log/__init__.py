"""Session logs: their format, how they are written and read, and their uses (replay, comparison, counts, export).

`objects.py` and `records.py` declare the format, `encoding.py` makes lines of it, `writer.py` and `reader.py` handle
files.
"""
