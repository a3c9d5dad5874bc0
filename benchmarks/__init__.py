"""Benchmarks of speed, memory and guarantees; `python benchmarks/run.py --help` lists them."""
