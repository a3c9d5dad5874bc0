"""The benchmark and the training corpus from real sources."""
