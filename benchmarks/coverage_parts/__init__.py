"""The simulations of `benchmarks/coverage.py`, one file a guarantee.

Each has `tables(seed, effort)`: what is claimed, how often it held, and how often it would have held by the
plainer method. The same seed gives the same tables; `effort` scales the number of simulated data sets, 1 is
what docs/coverage.md shows.
"""
