"""What `eval/gate.py` freezes of a monitor, and how it is compared with that afterwards."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from monitorbench.config.base import Config

Margin = Annotated[float, Field(gt=0, lt=1)]


class Gate(Config):
    """With `file` a check of what is frozen there; without it `run` is frozen at `operating_point`.

    What a check needs to know of these settings is in `gate.json` itself: whoever breaks a gate can't widen
    it by a word on the command line.
    """

    file: Path | None = None
    """A `gate.json`, with `anchors.jsonl` beside it."""
    traffic: Path | None = None
    """JSON lines of a deployment, each with a `score` (null where unscored) and perhaps a `group`, or else a
    `sample_id`; no labels. Frozen as the reference of the drift alarm; together with `file` compared with
    that."""
    questions: Annotated[int, Field(ge=2)] | None = 200
    """How many questions (groups) are frozen as anchors, in the cells' shares; None: all of the run."""
    auroc_margin: Margin = 0.05
    """A fall of the AUROC by this much is too much: PASS says that one as large is refuted."""
    miss_margin: Margin = 0.1
    """The same of a rise of the miss rate at the threshold."""
    alarm_margin: Margin = 0.05
    """The same of a rise of the false alarm rate at the threshold."""
    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """How often an unchanged monitor may fail, all tests of a check together, and a changed one pass."""
    min_coverage: Annotated[float, Field(gt=0, le=1)] = 0.9
    """A check in which fewer of the anchors get a score is inconclusive."""
    drift_level: Annotated[float, Field(gt=0, lt=0.5)] = 0.01
    """How often the drift alarm may go off where nothing drifted."""
