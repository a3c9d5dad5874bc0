"""Monitors with a planted weakness behind a real local endpoint, and the scripted engine's fixtures."""

from scripted_engine import model_folder, says, says_by_prompt, use_engine

__all__ = ["model_folder", "says", "says_by_prompt", "use_engine"]
