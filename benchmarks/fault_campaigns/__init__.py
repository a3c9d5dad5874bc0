"""The parts of `benchmarks/faults.py`: kills, endpoints that misbehave, flipped bits."""

import os
import sys
from pathlib import Path

# Read when the libraries are imported: one thread a process, and nothing from the hub.
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # its small models
