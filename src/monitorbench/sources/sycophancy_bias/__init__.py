"""Upstream data sets of sycophancy and bias, one file each."""
