"""What changes that keep the label do to a monitor: read from its stress runs, and shown."""
