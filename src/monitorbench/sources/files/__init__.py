"""Formats of files that a user points at: JSONL, Inspect logs, the published benchmark."""
