"""One file a runtime; heavy imports only there."""
