"""The stage `transfer`: its runs, given or found or made, side by side."""

from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.studies.points import group_of, points


def transfer(study: Study) -> Path:
    """Lay `transfer.runs`, or the runs of the study it names, side by side; returns the run directory.

    The runs that `transfer.wordings` tested count as given. With `transfer.plan` only the study's plan is
    printed. Raises `ConfigError` where neither is named, else as `score.transfer` and `transfer.runs_of`.
    """
    is_given = bool(study.transfer.runs or study.transfer.wordings)
    if not is_given and not points(study.transfer):
        raise ConfigError(
            "transfer.runs=[]: no run given; expected evaluation runs as transfer.runs=[DIR,DIR], or a study "
            "as transfer.subsets=[all,safety_permission/code]"
        )
    if study.transfer.plan:
        if is_given:
            raise ConfigError(
                "transfer.plan=true: for a study, not for runs; expected transfer.subsets, no transfer.runs"
            )
        from monitorbench.studies.power import plan, print_plan

        print_plan(plan(study), study)
        return study.paths.runs
    from monitorbench.scoring import score
    from monitorbench.studies.transfer import runs_of

    if is_given:
        return score.transfer(study)

    chosen = study.transfer.model_copy(update={"runs": runs_of(study)})
    grouped = study.tracking.model_copy(update={"group": group_of(study)})  # as its runs are
    return score.transfer(study.model_copy(update={"transfer": chosen, "tracking": grouped}))
