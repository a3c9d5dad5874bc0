"""The probe's stage: its runs, given or found or made, side by side."""

from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.probe.points import group_of, points


def probe(study: Study) -> Path:
    """Lay `study.probe.runs`, or the runs of the study it names, side by side; returns the run directory.

    The runs that `study.probe.wordings` tested count as given. With `study.probe.plan` only the study's plan
    is printed. Raises `ConfigError` where neither is named, else as `score.probe` and `runs.runs_of`.
    """
    is_given = bool(study.probe.runs or study.probe.wordings)
    if not is_given and not points(study.probe):
        raise ConfigError(
            "probe.runs=[]: no run given; expected evaluation runs as probe.runs=[DIR,DIR], or a study as "
            "probe.subsets=[all,safety_permission/code]"
        )
    if study.probe.plan:
        if is_given:
            raise ConfigError(
                "probe.plan=true: for a study, not for runs; expected probe.subsets, no probe.runs"
            )
        from monitorbench.probe.plan import plan, print_plan

        print_plan(plan(study), study)
        return study.paths.runs
    from monitorbench.probe.runs import runs_of
    from monitorbench.scoring import score

    if is_given:
        return score.probe(study)

    chosen = study.probe.model_copy(update={"runs": runs_of(study)})
    grouped = study.tracking.model_copy(update={"group": group_of(study)})  # as its runs are
    return score.probe(study.model_copy(update={"probe": chosen, "tracking": grouped}))
