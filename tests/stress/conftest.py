"""Monitors with a planted weakness behind a real local endpoint, and the scripted engine's fixtures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engines"))

from scripted_engine import model_folder, says, says_by_prompt, use_engine

__all__ = ["model_folder", "says", "says_by_prompt", "use_engine"]
