"""Upstream data sets of specification gaming, one file each."""
