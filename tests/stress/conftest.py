"""Samples for the changes, and monitors with a planted weakness behind a real local endpoint."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engines"))
