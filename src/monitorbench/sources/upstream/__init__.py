"""Upstream data sets: how their rows are read, and what is made of them."""
