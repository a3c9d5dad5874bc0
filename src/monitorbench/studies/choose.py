"""`choose`: build, judge calibration and test, calibrate, lay side by side, recommend, write the page.

Each step is the stage of that name, so finished runs are reused, and the same command resumes. A model judges
in a process of its own, so that none stays in memory.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.engine import refuse_fast_scores
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.judging.evaluate import evaluate, judge_name, planned_evaluation
from monitorbench.judging.serving.served import reach
from monitorbench.metrics.choice import FILE, Option, as_recommendation
from monitorbench.records import Split
from monitorbench.runs.directory import read_checked, read_finished, record_files
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.recommendation.deployment import deployment_of
from monitorbench.scoring.recommendation.stage import recommendation_run
from monitorbench.scoring.score import transfer
from monitorbench.studies import ahead
from monitorbench.studies.candidates import refuse_twins
from monitorbench.sweeps.worker import run_stage

SPLITS = (Split.CALIBRATION, Split.TEST)
_CALIBRATION_SHARE = 0.5
_log = logging.getLogger(__name__)


class _Candidate(NamedTuple):
    """A monitor with its finished evaluations, and the study that its threshold is set by."""

    study: Study
    runs: Mapping[Split, Path]


def choose(study: Study, candidates: Sequence[Study]) -> Path:
    """Answer which of some candidates to deploy; returns the run directory of the comparison.

    The sentence of `recommend` stands on top of its page. Raises `ConfigError` for two candidates of one name
    or one judge and for an engine on whose scores nothing is calibrated, and what the stages raise.
    """
    refuse_twins(candidates)
    deployment_of(study.stakes, study.recommend, study.calibrate)  # refused before hours of judging
    for candidate in candidates:
        refuse_fast_scores(candidate.engine, "`choose` calibrates")
    data = ensure(study, SPLITS)
    return _answered(
        study,
        [
            _Candidate(one, {split: _evaluated(one.on_split(split), data) for split in SPLITS})
            for one in candidates
        ],
    )


def choose_imported(study: Study) -> Path:
    """Answer which of the monitors whose scores `from` holds to deploy; returns as `choose` does.

    Half of the groups calibrate where neither the file nor a setting says which do. Raises what `import`
    raises, and `UserError` where a split has no sample.
    """
    from monitorbench.interop.imports.stage import imported_runs  # recorded verdicts don't need it

    deployment_of(study.stakes, study.recommend, study.calibrate)
    data, runs = imported_runs(study, calibration_share=_CALIBRATION_SHARE, needed=SPLITS)
    ahead.fit(study.paths.runs, data, study.stakes, study.seed)
    return _answered(
        study, [_Candidate(study, {split: runs[name, split] for split in SPLITS}) for name in _monitors(runs)]
    )


def print_import_plan(study: Study) -> None:
    """Print what `choose` would import from `from`, calibrate and write; raises what `choose_imported` does.

    The files are read and checked, with a line in the log on what was taken for what. Nothing is written.
    """
    from monitorbench.interop.imports.stage import imported_runs

    deployment_of(study.stakes, study.recommend, study.calibrate)
    data, runs = imported_runs(study, calibration_share=_CALIBRATION_SHARE, needed=SPLITS)
    print(f"imports: the dataset {data}-HASH, and below {study.paths.runs / 'evaluate'} a run for each of")
    for monitor in _monitors(runs):
        print(f"  {monitor}: {', '.join(split.value for of, split in runs if of == monitor)}")
    promise = f"{study.calibrate.method}, calibrate.alpha={study.calibrate.alpha:g}"
    print(
        f"then: a threshold for each on calibration ({promise}), measured on test;\n"
        f"the recommendation, all side by side, report.html below {study.paths.runs / 'transfer'}; "
        "no model is run"
    )


def _monitors(runs: Mapping[tuple[str, Split], Path]) -> list[str]:
    """Return the names of the imported monitors, in their order."""
    return list(dict.fromkeys(monitor for monitor, _ in runs))


def _answered(study: Study, candidates: Sequence[_Candidate]) -> Path:
    """Recommend one of the candidates, lay them side by side at their thresholds, and write the page."""
    # What draws is imported here: a second process may be fitting meanwhile.
    from monitorbench.report.stages import with_page
    from monitorbench.report.write import report

    evaluations = tuple(run for candidate in candidates for run in candidate.runs.values())
    candidates_runs = study.recommend.model_copy(update={"runs": evaluations})
    asked = study.model_copy(update={"recommend": candidates_runs})
    ahead.wait()
    recommendation = with_page(asked, recommendation_run(asked))
    found = as_recommendation(read_checked(recommendation, FILE))
    options = {(option["monitor"], option["prompt"]): option for option in found["options"]}
    points = [_calibrated(one, options.get(_named(one)), len(candidates)) for one in candidates]
    compared = study.transfer.model_copy(
        update={
            "runs": tuple(candidate.runs[Split.TEST] for candidate in candidates),
            "operating_points": tuple(one for one in points if one is not None),
        }
    )
    directory = transfer(study.model_copy(update={"transfer": compared}), found)
    write_json(directory / FILE, found)
    record_files(directory, FILE)
    report(study.model_copy(update={"run": directory}), is_brief=True)
    for candidate, point in zip(candidates, points, strict=True):
        is_chosen = _named(candidate) == (found["monitor"], found["prompt"])
        if found["decision"] == "recommend" and point is not None and is_chosen:
            run = candidate.runs[Split.TEST]
            print(f"to hold it to this in CI: monitorbench gate run={run} operating_point={point}")
    print(f"all tables: monitorbench report run={directory}\nthe page: {directory / 'report.html'}")
    return directory


def _evaluated(study: Study, data: Path) -> Path:
    """The evaluation run, made in a process of its own where a model has to judge."""
    planned = planned_evaluation(reach(study, waits=False), data)
    if planned.done or study.monitor.verdicts or not study.engine.takes_token_ids:
        return evaluate(study)
    file = study.paths.runs / "studies" / f"choose-{content_hash(planned.run.path.name)}.json"
    write_atomically(file, freeze(study))
    return run_stage("evaluate", file, f"evaluate {planned.name}")


def _named(candidate: _Candidate) -> tuple[str, str]:
    """The names of a candidate's monitor and prompt in a recommendation."""
    judge = read_finished(candidate.runs[Split.CALIBRATION])["results"]["judge"]
    return judge["name"], judge["prompt"]


def _calibrated(candidate: _Candidate, option: Option | None, n_candidates: int) -> Path | None:
    """The calibration of one of so many candidates, at the threshold that the recommendation names.

    None of a monitor that gives answers only and, with a line that says why, where no threshold keeps the
    promise.
    """
    study, settings = candidate.study, candidate.study.calibrate
    if option is not None and option["reads_answers"]:
        return None
    shared = {
        "n_candidates": max(settings.n_candidates, n_candidates),
        "threshold": settings.threshold if settings.per_category else option and option["threshold"],
    }
    try:
        return calibrate_run(
            study.model_copy(
                update={
                    "run": candidate.runs[Split.CALIBRATION],
                    "calibrate": settings.model_copy(update=shared),
                }
            )
        )
    except UserError as error:
        if study.recommend.promise or option is None or option["threshold"] is None:
            _log.warning("choose: %s", error)
        else:
            _log.info(
                "choose: %s is read at its own answers in the tables: its threshold, %g, keeps no promise",
                option["monitor"],
                option["threshold"],
            )
        return None


def print_choice_plan(study: Study, candidates: Sequence[Study]) -> None:
    """Print what `choose` would judge, what of it is finished, and how long the rest takes.

    Nothing is kept, judged or written. Raises `ConfigError` for two candidates of one name or one
    judge, and what `forecast` raises.
    """
    from monitorbench.studies.forecast import PlannedRun, forecast, print_forecast  # of trainings, too

    refuse_twins(candidates)
    data = directory_of(study)
    runs = [PlannedRun("evaluate", one.on_split(split)) for one in candidates for split in SPLITS]
    costs = [
        cost._replace(monitor=judge_name(run.study.monitor, run.study.engine))
        for run, cost in zip(runs, forecast(runs), strict=True)
    ]
    print(f"data: {data.path} ({'there' if data.done else 'to be built'})")
    print_forecast(costs)
    print("then: a threshold for each, all side by side, the page")
