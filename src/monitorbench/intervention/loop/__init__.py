"""Agent runs with and without intervention, step by step."""
