"""What `serve` runs: the page, the HTTP interface of OpenAI's clients, and the one queue to the kernel.

To read in this order: limits, errors, access, security, queue, services, streams, app, server. Each route stands in a
module of its own.
"""
