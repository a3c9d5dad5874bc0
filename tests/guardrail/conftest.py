"""The scripted engine's fixtures."""

from scripted_engine import model_folder, says, study, use_engine

__all__ = ["model_folder", "says", "study", "use_engine"]
