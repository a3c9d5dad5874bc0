"""Servers of ours: HTTP, where they listen and who finds them; vLLM's own, and one with a probe."""
