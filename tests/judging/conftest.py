"""The scripted engine's fixtures, and those of a real one with adapters."""

from scripted_engine import adapter, model_folder, says, says_by_prompt, study, use_engine
from smollm2 import judged_by_smollm2
from tuned_models import adapters, asked, loads

__all__ = ["adapter", "model_folder", "says", "says_by_prompt", "study", "use_engine"]
__all__ += ["adapters", "asked", "judged_by_smollm2", "loads"]
