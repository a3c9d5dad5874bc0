"""One stage in a process of its own: `python -m monitorbench.probe.child train frozen=FILE`.

What `train/sft.py frozen=FILE` and `eval/evaluate.py frozen=FILE` do, without needing a checkout.
"""

import sys
from pathlib import Path

from monitorbench.config.entry import Script
from monitorbench.config.study import Study


def train(study: Study) -> Path:
    """As `train/sft.py`."""
    from monitorbench.training.sft import train

    return train(study)


def evaluate(study: Study) -> Path:
    """As `eval/evaluate.py`."""
    from monitorbench.judging.evaluate import evaluate

    return evaluate(study)


if __name__ == "__main__":
    stage = sys.argv.pop(1)
    Script({"train": train, "evaluate": evaluate}[stage], stage, Path())()
