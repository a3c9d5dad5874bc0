"""Inspect AI, both ways: logs in (`read`), logs out (`write`), and a calibrated monitor as a scorer.

Logs are read and written without the package `inspect-ai`; only the scorer needs it, and runs inside it.
"""

from os import PathLike
from typing import TYPE_CHECKING

from monitorbench.config.base import UserError
from monitorbench.config.ending import installing

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer


def monitor_scorer(run: str | PathLike[str], *, category: str = "", task: str = "") -> "Scorer":
    """A scorer for an Inspect task: the monitor that a run of `calibrate` calibrated, at its threshold.

    A score's value is `{"flagged": 1.0 or 0.0, "score": in [0, 1]}`, and NaN, Inspect's mark for a sample
    that is not scored, where the monitor gave no answer: never 0. `reason` and `explanation` say why. What is
    judged is the sample's conversation: the messages up to the model's first own turn are the request, the
    rest, tools and all, is the response. The model is loaded when the first sample is scored, once a process
    for each run; samples that wait while it judges are judged together, in a thread beside the event loop.

    `category` and `task` say what kind of samples these are, in the calibration's words: needed where it has
    a threshold for each category, or where its prompt shows examples.

    Raises `UserError` without `inspect-ai`, for a directory that is no calibration, and where what would
    judge is not the judge that was calibrated.
    """
    try:
        from monitorbench.interop.inspect.scorer import monitor
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "inspect_ai":
            raise
        raise UserError(
            f"monitor_scorer: inspect-ai is not installed; expected {installing('inspect')}"
        ) from error
    return monitor(str(run), category, task)
