"""Choosing a monitor and its threshold by expected cost, and what the choice is worth."""
