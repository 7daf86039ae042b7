"""What the inspector shows of session logs: an index over their lines, boards, ledgers, prompts, as plain JSON values.

Knows no HTTP: `dispatch/serve` answers with it, `explain` and `export` print it. docs/inspector.md has the forms.
"""
