"""The loop of a session, its players, and its other uses: logged decisions made again, labelled cases decided in a row.

`session.py` is the loop; `players.py` is who chooses; `decide.py` and `evaluate.py` work on logs and on labelled cases.
"""
