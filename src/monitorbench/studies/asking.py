"""One monitor asked over the same samples in several ways: under several prompts, or with several views.

Each way is an evaluation run of its own, all in one start of the engine, and the comparison is a run, too.
`wording` chooses a prompt on the validation split and on no other, in `wording.json`; then the test split is
judged under the chosen prompt, under all of them, or not at all: its scores have no part in the choice.
`views` compares every view, unit and policy with the first, in `views.json`, and draws it in `views.svg`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.config.terminal import opened
from monitorbench.corpus.build import ensure
from monitorbench.judging.adapters import judging_in_one_start
from monitorbench.judging.evaluate import evaluate
from monitorbench.metrics.prompts import choose_wording
from monitorbench.metrics.views import Asked, compare_views
from monitorbench.records import Split, UnscoredReason
from monitorbench.report.tables.tables import print_choice
from monitorbench.report.views import seen_figure, show_views
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.evaluations import Evaluation, read_covered, unscored_reasons
from monitorbench.scoring.points import points_at
from monitorbench.scoring.score import WORDING_FILE
from monitorbench.studies.candidates import Compose
from monitorbench.studies.forecast import PlannedRun, forecast, print_forecast

VIEWS_FILE, VIEWS_FIGURE = "views.json", "views.svg"


def choose_a_wording(study: Study, compose: Compose) -> Path:
    """Choose among `study.wording.prompts` for `study.monitor`; returns the run directory of the choice.

    `compose` gives the typed study with another prompt. The runs over the test split are printed, a line
    each. Raises `ConfigError` for a monitor that is asked nothing in words, `UserError` where no prompt has
    both labels scored on the validation split, and what `evaluate` raises.
    """
    by_prompt = _study_by_prompt(study, compose)
    ensure(study, [Split.VALIDATION, *([] if study.wording.test == "none" else [Split.TEST])])
    with judging_in_one_start(study.monitor, study.engine, study.paths.models) as judge:
        runs = [judge(asking.on_split(Split.VALIDATION)) for asking in by_prompt.values()]
        read = [read_covered(study.paths.data, run, study.score.min_coverage) for run in runs]
        judged = {name: evaluation.judged for name, evaluation in zip(by_prompt, read, strict=True)}
        choice = choose_wording(
            judged, Split.VALIDATION.value, resamples=study.score.resamples, seed=study.seed
        )
        if choice is None:
            raise UserError(
                "wording: no prompt has scores of both labels on the same validation samples, so none can be "
                "chosen; expected an engine with log-probabilities, and both labels in dataset.validation"
            )
        # The runs over the validation split alone decide the choice.
        run, said = _comparison(study, "wording", read, runs, {"data": read[0].data.name})
        with run.recording(study) as results:
            write_json(run.path / WORDING_FILE, choice)
            print_choice(opened(), choice, read[0].monitor)
            names = {"none": [], "chosen": [choice["chosen"]], "all": [*by_prompt]}[study.wording.test]
            tested = [judge(by_prompt[name].on_split(Split.TEST)) for name in names]
            results |= {**said, "n": choice["n"], "chosen": choice["chosen"]}
            results["tested"] = [str(path) for path in tested]
    for path in tested:
        print(path, flush=True)
    return run.path


def compare_what_is_seen(study: Study, compose: Compose) -> Path:
    """Judge in each of the ways that `study.views` names; returns the directory of the comparison.

    `compose` gives the typed study with other options of the groups view, unit and policy. With `views.probe`
    a head is fitted for each way, on the train split as it is shown in this way, and judges. Raises
    `ConfigError` for a monitor that is shown nothing, and what `fit_head` and `evaluate` raise.
    """
    studies = studies_of(study, compose)
    if study.views.probe:
        studies = [_with_probe(asking) for asking in studies]
    calibrating = [Split.CALIBRATION] if study.views.at_thresholds else []
    ensure(study, [Split(study.evaluate.split), *calibrating])
    with _judging(study) as judge:
        runs = [judge(asking) for asking in studies]
        before = [judge(asking.on_split(Split.CALIBRATION)) for asking in studies if calibrating]
    read = [read_covered(study.paths.data, run, study.score.min_coverage) for run in runs]
    calibrations = [calibrate_run(study.model_copy(update={"run": run})) for run in before]
    at = {
        point.evaluation.prompt: point.evaluation.judged
        for point in points_at(calibrations, read, other_dataset=False)
    }
    asked = {
        of.prompt: Asked(
            of.judged,
            unscored_reasons(of).get(UnscoredReason.NOT_SHOWN.value, 0),
            of.usage,
            at.get(of.prompt),
        )
        for of in read
    }
    points = {"points": ",".join(path.name for path in calibrations)} if calibrations else {}
    run, said = _comparison(study, "views", read, runs, points)
    with run.recording(study) as results:
        facts = compare_views(asked, resamples=study.score.resamples, seed=study.seed)
        write_json(run.path / VIEWS_FILE, facts)
        write_atomically(run.path / VIEWS_FIGURE, seen_figure(facts))
        show_views(facts, read[0].monitor)
        results |= {**said, "n": len(read[0].judged)}
    for path in runs:
        print(path, flush=True)
    return run.path


def _with_probe(asking: Study) -> Study:
    """The same with a head that was fitted on what this way of asking shows."""
    # Here, so that a comparison of prompts loads no PyTorch.
    from monitorbench.training.fit_head import fit_head

    monitor = asking.monitor.model_copy(update={"head": fit_head(asking)})
    return asking.model_copy(update={"monitor": monitor})


def _judging(study: Study) -> AbstractContextManager[Callable[[Study], Path]]:
    """`evaluate` for all ways of asking; probes differ in the layer at which they end the model."""
    if study.views.probe:
        return nullcontext(evaluate)
    return judging_in_one_start(study.monitor, study.engine, study.paths.models)


def _comparison(
    study: Study, kind: str, read: Sequence[Evaluation], runs: Sequence[Path], more: dict[str, str]
) -> tuple[RunDirectory, dict[str, Any]]:
    """The run `runs/<kind>/<monitor>-<dataset>-<hash>/` that compares some evaluations, and what it is of.

    `more` is added to its identity.
    """
    of = read[0]
    ids = [content_hash(evaluation.id) for evaluation in read]
    identity = {**more, "runs": ids, "resamples": study.score.resamples, "seed": study.seed}
    run = RunDirectory(study.paths.runs / kind, run_name(of.monitor, dataset_name(of.data.name)), identity)
    return run, {"monitor": of.monitor, "data": of.data.name, "runs": [str(path) for path in runs]}


def print_wording_plan(study: Study, compose: Compose) -> None:
    """Print what judging the prompts takes. Which is chosen is not known yet: the first stands for it."""
    by_prompt = list(_study_by_prompt(study, compose).values())
    tested = {"none": [], "chosen": by_prompt[:1], "all": by_prompt}[study.wording.test]
    runs = [asking.on_split(Split.VALIDATION) for asking in by_prompt]
    runs += [asking.on_split(Split.TEST) for asking in tested]
    print_forecast(forecast(PlannedRun("evaluate", run) for run in runs))


def print_views_plan(study: Study, compose: Compose) -> None:
    """Print what judging in all these ways takes; with `views.probe` the fits as well."""
    studies = studies_of(study, compose)
    fits = [PlannedRun("fit", asking) for asking in studies if study.views.probe]
    # Rates at thresholds are compared by the same ways of asking on the calibration split.
    runs = [*studies, *(of.on_split(Split.CALIBRATION) for of in studies if study.views.at_thresholds)]
    print_forecast(forecast([*fits, *(PlannedRun("evaluate", asking) for asking in runs)]))


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


def _study_by_prompt(study: Study, compose: Compose) -> dict[str, Study]:
    if study.monitor.head is not None:
        raise ConfigError("monitor.head: a probe is fitted under one prompt; expected monitor.head=null")
    if study.monitor.kind != "language_model":
        raise ConfigError(f"monitor.kind={study.monitor.kind}: it reads no prompt; expected a language model")
    if study.adapters:
        raise ConfigError("adapters: a wording is chosen for one monitor; expected monitor.adapter alone")
    prompts = {name: compose([f"prompt={name}"]).prompt for name in study.wording.prompts}
    return {name: study.model_copy(update={"prompt": prompt}) for name, prompt in prompts.items()}
