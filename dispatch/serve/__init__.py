"""What `serve` runs: the page, the HTTP interface of OpenAI's clients, and the one queue to the kernel.

To read in this order: limits, errors, access, security, queue, services, app, server; then, for a chat, reading, form,
messages, selection, toolset, commands, values, answer, pieces, chat. The routes of the page stand in modules of their
own.
"""
