"""The library: a number with its interval, in three lines, from arrays, lists or columns of a data frame.

A thin layer: every number is worked out in `metrics/`, `metrics/guarantees/` or `intervention/statistics/`.
"""
