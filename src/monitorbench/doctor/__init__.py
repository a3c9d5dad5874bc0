"""Whether this machine can do the work: asked of the system, then tried on a small model."""
