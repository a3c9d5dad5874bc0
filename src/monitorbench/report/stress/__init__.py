"""Effects on a monitor of changes that keep the label: read from its stress runs, and shown."""
