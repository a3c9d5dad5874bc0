"""Upstream data sets of safety and permission violations, one file each."""
