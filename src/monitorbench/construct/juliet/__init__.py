"""Pairs from the Juliet test suite: a flawed C function and its fixed counterpart."""
