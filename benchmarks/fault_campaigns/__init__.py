"""The parts of `benchmarks/faults.py`: kills, endpoints that misbehave, flipped bits."""
