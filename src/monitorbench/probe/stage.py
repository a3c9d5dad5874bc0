"""The probe's stage: its runs, given or found or made, side by side."""

from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.probe.points import group_of, points


def probe(study: Study) -> Path:
    """Lay `study.probe.runs`, or the runs of the study it names, side by side; returns the run directory.

    Raises `ConfigError` where neither is named, else as `score.probe` and `runs.runs_of`.
    """
    if not study.probe.runs and not points(study.probe):
        raise ConfigError(
            "probe.runs=[]: no run given; expected evaluation runs as probe.runs=[DIR,DIR], or a study as "
            "probe.subsets=[all,safety_permission/code]"
        )
    from monitorbench.probe.runs import runs_of
    from monitorbench.scoring import score

    if study.probe.runs:
        return score.probe(study)

    chosen = study.probe.model_copy(update={"runs": runs_of(study)})
    grouped = study.tracking.model_copy(update={"group": group_of(study)})  # as its runs are
    return score.probe(study.model_copy(update={"probe": chosen, "tracking": grouped}))
