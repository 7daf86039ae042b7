"""Session logs: written, read, verified, compared, counted and published as a schema."""
