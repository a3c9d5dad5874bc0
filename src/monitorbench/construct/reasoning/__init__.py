"""Pairs of worked solutions: cued and incentivised reasoning."""
