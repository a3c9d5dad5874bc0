"""Sweeps: expanded and frozen once, then run by Slurm or by this machine, from the frozen files alone."""
