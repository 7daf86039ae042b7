"""Cartridges for MCP's clients: requests to them, and `choose`, as the tools of a server over stdin and stdout."""
