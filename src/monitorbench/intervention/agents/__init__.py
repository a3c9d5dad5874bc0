"""Agents that a pilot can run: a script with mistakes, and a language model."""
