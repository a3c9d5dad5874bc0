"""Benchmarks of speed, memory, guarantees and faults; `python benchmarks/run.py --help` lists them."""
