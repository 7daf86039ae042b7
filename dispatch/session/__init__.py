"""The loop of a session: who chooses, what the prompt shows, what is carried out.

Labelled cases and logged decisions are decided here too.
"""
