"""The scripted engine's fixtures."""

from scripted_engine import adapter, model_folder, says, says_by_prompt, study, use_engine

__all__ = ["adapter", "model_folder", "says", "says_by_prompt", "study", "use_engine"]
