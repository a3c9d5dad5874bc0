"""`views`: what a monitor should see, one monitor asked over the same samples in every way that is named.

Each view, unit and policy is an evaluation run of its own, all in one start of the engine; `views.json`, in
`runs/views/<monitor>-<dataset>-<hash>/`, compares each with the first, and `views.svg` draws it.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.judging.adapters import judging_in_one_start
from monitorbench.metrics.views import Asked, compare_views
from monitorbench.records import Split, UnscoredReason
from monitorbench.report.figures.views import seen_figure
from monitorbench.report.tables.views import show_views
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.evaluations import read_covered, unscored_reasons
from monitorbench.scoring.points import points_at
from monitorbench.studies.candidates import Compose
from monitorbench.studies.choose import on_split
from monitorbench.studies.forecast import PlannedRun, forecast, print_forecast

FILE, FIGURE = "views.json", "views.svg"


def compare_what_is_seen(study: Study, compose: Compose) -> Path:
    """Judge in each of the ways that `study.views` names; returns the directory of the comparison.

    `compose` gives the typed study with other options of the groups view, unit and policy. Raises
    `ConfigError` for a monitor that is shown nothing, and what `evaluate` raises.
    """
    studies = studies_of(study, compose)
    wanted = [Split(study.evaluate.split), *([Split.CALIBRATION] if study.views.at_thresholds else [])]
    ensure(study, wanted)
    with judging_in_one_start(study) as judge:
        runs = [judge(asking) for asking in studies]
        before = [judge(asking) for asking in _before(study, studies)]
    evaluations = [read_covered(study.paths.data, run, study.score.min_coverage) for run in runs]
    calibrations = [calibrate_run(study.model_copy(update={"run": run})) for run in before]
    points = points_at(calibrations, evaluations, other_dataset=False)
    at = {point.evaluation.prompt: point.evaluation.judged for point in points}
    asked = {
        one.prompt: Asked(
            one.judged,
            unscored_reasons(one).get(UnscoredReason.NOT_SHOWN.value, 0),
            one.usage,
            at.get(one.prompt),
        )
        for one in evaluations
    }
    first = evaluations[0]
    identity = {
        "runs": [content_hash(evaluation.id) for evaluation in evaluations],
        "points": [point.point.model_dump(mode="json") for point in points],
        "resamples": study.score.resamples,
        "seed": study.seed,
    }
    name = run_name(first.monitor, dataset_name(first.data.name))
    run = RunDirectory(study.paths.runs / "views", name, identity)
    with run.recording(study) as results:
        facts = compare_views(asked, resamples=study.score.resamples, seed=study.seed)
        write_json(run.path / FILE, facts)
        write_atomically(run.path / FIGURE, seen_figure(facts))
        show_views(facts, first.monitor)
        results |= {
            "monitor": first.monitor,
            "data": first.data.name,
            "n": len(first.judged),
            "runs": [str(path) for path in runs],
        }
    for path in runs:
        print(path, flush=True)
    return run.path


def print_views_plan(study: Study, compose: Compose) -> None:
    """Print what judging in all these ways takes."""
    studies = studies_of(study, compose)
    runs = [*studies, *_before(study, studies)]
    print_forecast(forecast(PlannedRun("evaluate", asking) for asking in runs))


def _before(study: Study, studies: Sequence[Study]) -> list[Study]:
    """The same ways of asking on the calibration split, where rates at thresholds are compared."""
    return [on_split(asking, Split.CALIBRATION) for asking in studies] if study.views.at_thresholds else []


def studies_of(study: Study, compose: Compose) -> list[Study]:
    """A study for each view with each unit and policy, the first of each first; `ConfigError` where none."""
    if study.monitor.kind != "language_model" or study.monitor.head is not None or study.adapters:
        raise ConfigError(
            "monitor: what it is shown is a prompt's; expected one language model, without head or adapters"
        )
    ways = product(study.views.units, study.views.policies, study.views.views)
    prompts = [
        compose([f"unit={unit}", f"policy={policy}", f"view={view}"]).prompt for unit, policy, view in ways
    ]
    return [study.model_copy(update={"prompt": prompt}) for prompt in prompts]
