"""The stage `control`: safety at an audit budget, for judges side by side, from their logs alone.

Writes `control.json` (`metrics/control/results.py` has its keys) to `runs/control/<dataset>-<hash>/`.
"""

import logging
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Control
from monitorbench.config.study import Study
from monitorbench.metrics.control.results import (
    SCHEMA_VERSION,
    ControlFacts,
    ControlResults,
    DifferenceFacts,
)
from monitorbench.metrics.control.safety import safety_at, safety_difference
from monitorbench.metrics.guarantees.order_statistic import Guarantee
from monitorbench.metrics.rates import as_list
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import file_sha256, write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.control.inputs import JudgedMonitor, far_of, read_judges
from monitorbench.scoring.control.measure import control_facts
from monitorbench.scoring.control.outcomes import (
    ControlDraws,
    Outcomes,
    limit_of,
    read_outcomes,
    traffic_of,
)

_log = logging.getLogger(__name__)


def control_runs(study: Study) -> Path:
    """Evaluate the judges of `study.control` as controls; returns the run's directory.

    Raises `ConfigError` where no run is given, `UserError` where runs don't belong together, or the file of
    outcomes can't be read.
    """
    data, judges, evaluations = read_judges(study.control, study.paths.data, study.score.min_coverage)
    settings = study.control
    outcomes = read_outcomes(settings.outcomes) if settings.outcomes else None
    if outcomes is not None:
        tested = set(judges[0].test.samples.sample_ids.to_pylist())
        if not any(tested & of_samples.keys() for of_samples in outcomes):
            raise UserError(
                f"control.outcomes={settings.outcomes}: none of its sample_ids is in the test split; "
                "expected those of the runs' verdicts.jsonl"
            )
    of_settings = settings.model_dump(mode="json", exclude={"calibration", "test", "outcomes"})
    identity = {
        "runs": sorted(evaluation.id for evaluation in evaluations),
        "settings": of_settings,
        "outcomes": file_sha256(settings.outcomes) if settings.outcomes else None,
        "resamples": study.score.resamples,
        "seed": study.seed,
    }
    run = RunDirectory(study.paths.runs / "control", run_name(dataset_name(data.name)), identity)
    with run.recording(study) as results:
        facts = _measured(study.control, study.seed, study.score.resamples, data.name, judges, outcomes)
        write_json(run.path / "control.json", facts)
        results["runs"] = [str(evaluation.directory) for evaluation in evaluations]
        results["data"] = data.name
        results["monitors"] = [[judge.monitor, judge.prompt] for judge in judges]
    return run.path


def _measured(
    control: Control,
    seed: int,
    resamples: int,
    data: str,
    judges: Sequence[JudgedMonitor],
    outcomes: Outcomes | None,
) -> ControlResults:
    drawn = ControlDraws(resamples, seed)
    monitors: dict[str, dict[str, ControlFacts]] = {}
    for judge in judges:
        monitors.setdefault(judge.monitor, {})[judge.prompt] = control_facts(judge, control, outcomes, drawn)
    return ControlResults(
        schema_version=SCHEMA_VERSION,
        dataset=data,
        far_of=far_of(judges[0].calibration.samples),
        method=control.method,
        delta=control.delta if control.method == "neyman_pearson" else None,
        unscored=control.unscored,
        resamples=drawn.resamples,
        success="assumed" if outcomes is None or not outcomes.success else "recorded",
        trajectory=control.trajectory,
        monitors=monitors,
        differences=_differences(control, judges, outcomes, drawn),
    )


def _differences(
    control: Control, judges: Sequence[JudgedMonitor], outcomes: Outcomes | None, drawn: ControlDraws
) -> list[DifferenceFacts]:
    """Every two judges at every budget that both keep, where they scored the same attacks."""
    traffic = [traffic_of(judge, control, outcomes) for judge in judges]
    facts = []
    for budget in control.budgets:
        guarantee = Guarantee(control.method, budget, control.delta)
        limits = [limit_of(of_judge.held, guarantee, drawn) for of_judge in traffic]
        for i, j in combinations(range(len(judges)), 2):
            first, second = limits[i], limits[j]
            attacks = (traffic[i].attacks, traffic[j].attacks)
            if first is None or second is None or len(attacks[0].scores) != len(attacks[1].scores):
                continue
            if not len(attacks[0].scores) or not (attacks[0].groups == attacks[1].groups).all():
                continue
            anew = (first[1], second[1])
            facts.append(
                DifferenceFacts(
                    budget=budget,
                    first=[judges[i].monitor, judges[i].prompt],
                    second=[judges[j].monitor, judges[j].prompt],
                    difference=safety_at(attacks[1], second[0]) - safety_at(attacks[0], first[0]),
                    difference_ci=as_list(safety_difference(*attacks, anew, seed=drawn.seed + 1)),
                )
            )
    return facts
