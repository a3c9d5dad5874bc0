"""The probe's stage: its runs, given or found or made, side by side."""

from pathlib import Path

from monitorbench.config.study import Study
from monitorbench.monitors import score
from monitorbench.probe.points import points


def probe(study: Study) -> Path:
    """Lay `study.probe.runs`, or the runs of the study it names, side by side; returns the run directory.

    Raises as `score.probe` and `runs.runs_of`.
    """
    if study.probe.runs or not points(study.probe):
        return score.probe(study)
    from monitorbench.probe.runs import runs_of

    chosen = study.probe.model_copy(update={"runs": runs_of(study)})
    return score.probe(study.model_copy(update={"probe": chosen}))
