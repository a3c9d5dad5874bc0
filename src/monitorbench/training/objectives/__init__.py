"""Objectives of fine-tuning: one file for each, and the list of them in `all`."""
