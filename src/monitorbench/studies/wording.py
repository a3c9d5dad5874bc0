"""`wording`: which prompt a monitor is asked with, chosen on the validation split and on no other.

Every prompt is judged there in one start of the engine; the choice is `wording.json`, in
`runs/wording/<monitor>-<dataset>-<hash>/`. Then the test split is judged under the chosen prompt, under all
of them, or not at all: its scores have no part in the choice.
"""

from collections.abc import Callable
from pathlib import Path

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Prompt, Study
from monitorbench.corpus.build import ensure
from monitorbench.judging.adapters import judging_in_one_start
from monitorbench.metrics.prompts import choose_wording
from monitorbench.records import Split
from monitorbench.report.tables.tables import show_choice
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.evaluations import read_covered
from monitorbench.scoring.score import WORDING_FILE
from monitorbench.studies.choose import on_split
from monitorbench.studies.forecast import PlannedRun, forecast, print_forecast


def choose_a_wording(study: Study, prompt: Callable[[str], Prompt]) -> Path:
    """Choose among `study.wording.prompts` for `study.monitor`; returns the run directory of the choice.

    `prompt` gives a prompt by the name of its file. The runs over the test split are printed, a line each.
    Raises `ConfigError` for a monitor that is asked nothing in words, `UserError` where no prompt has both
    labels scored on the validation split, and what `evaluate` raises.
    """
    _refuse_wordless(study.monitor, study.adapters)
    by_prompt = _study_by_prompt(study, prompt)
    ensure(study, [Split.VALIDATION, *([] if study.wording.test == "none" else [Split.TEST])])
    with judging_in_one_start(study) as judge:
        runs = {name: judge(on_split(asking, Split.VALIDATION)) for name, asking in by_prompt.items()}
        least, resamples, seed = study.score.min_coverage, study.score.resamples, study.seed
        evaluations = {name: read_covered(study.paths.data, run, least) for name, run in runs.items()}
        judged = {name: evaluation.judged for name, evaluation in evaluations.items()}
        choice = choose_wording(judged, Split.VALIDATION.value, resamples=resamples, seed=seed)
        if choice is None:
            raise UserError(
                "wording: no prompt has scores of both labels on the same validation samples, so none can be "
                "chosen; expected an engine with log-probabilities, and both labels in dataset.validation"
            )
        first = next(iter(evaluations.values()))
        identity = {  # the runs over the validation split alone decide the choice
            "data": first.data.name,
            "runs": [content_hash(evaluation.id) for evaluation in evaluations.values()],
            "resamples": resamples,
            "seed": seed,
        }
        name = run_name(first.monitor, dataset_name(first.data.name))
        run = RunDirectory(study.paths.runs / "wording", name, identity)
        with run.recording(study) as results:
            write_json(run.path / WORDING_FILE, choice)
            show_choice(choice, first.monitor)
            names = {"none": [], "chosen": [choice["chosen"]], "all": [*by_prompt]}[study.wording.test]
            tested = [judge(on_split(by_prompt[name], Split.TEST)) for name in names]
            results |= {
                "monitor": first.monitor,
                "data": first.data.name,
                "n": choice["n"],
                "chosen": choice["chosen"],
                "runs": [str(path) for path in runs.values()],
                "tested": [str(path) for path in tested],
            }
    for path in tested:
        print(path, flush=True)
    return run.path


def print_wording_plan(study: Study, prompt: Callable[[str], Prompt]) -> None:
    """Print what judging the prompts takes. Which is chosen is not known yet: the first stands for it."""
    _refuse_wordless(study.monitor, study.adapters)
    by_prompt = list(_study_by_prompt(study, prompt).values())
    tested = {"none": [], "chosen": by_prompt[:1], "all": by_prompt}[study.wording.test]
    runs = [on_split(asking, Split.VALIDATION) for asking in by_prompt]
    runs += [on_split(asking, Split.TEST) for asking in tested]
    print_forecast(forecast(PlannedRun("evaluate", run) for run in runs))


def _study_by_prompt(study: Study, prompt: Callable[[str], Prompt]) -> dict[str, Study]:
    return {name: study.model_copy(update={"prompt": prompt(name)}) for name in study.wording.prompts}


def _refuse_wordless(monitor: Monitor, adapters: tuple[Path, ...]) -> None:
    if monitor.head is not None:
        raise ConfigError("monitor.head: a probe is fitted under one prompt; expected monitor.head=null")
    if monitor.kind != "language_model":
        raise ConfigError(f"monitor.kind={monitor.kind}: it reads no prompt; expected a language model")
    if adapters:
        raise ConfigError("adapters: a wording is chosen for one monitor; expected monitor.adapter alone")
