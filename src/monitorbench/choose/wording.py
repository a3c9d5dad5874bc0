"""`wording`: which prompt a monitor is asked with, chosen on the validation split and on no other.

Every prompt is judged there in one start of the engine; the choice is `wording.json`, in
`runs/wording/<monitor>-<dataset>-<hash>/`. Then the test split is judged under the chosen prompt, under all
of them, or not at all: what it says has no part in the choice.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import in_process
from monitorbench.config.study import Prompt, Study
from monitorbench.corpus.build import ensure
from monitorbench.judging.adapters import one_start
from monitorbench.judging.evaluate import evaluate
from monitorbench.metrics.wordings import WordingChoice, choose_wording
from monitorbench.records import Split
from monitorbench.report.tables.tables import show_choice
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_json
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.evaluations import Evaluation, read_covered
from monitorbench.scoring.wordings import FILE


def choose_a_wording(study: Study, prompt: Callable[[str], Prompt]) -> Path:
    """Choose among `study.wording.prompts` for `study.monitor`; returns the run directory of the choice.

    `prompt` gives a prompt by the name of its file. The runs over the test split are printed, a line each.
    Raises `ConfigError` for a monitor that is asked nothing in words, `UserError` where no prompt has both
    labels scored on the validation split, and what `evaluate` raises.
    """
    _refuse_wordless(study)
    asked = {name: study.model_copy(update={"prompt": prompt(name)}) for name in study.wording.prompts}
    ensure(study, [Split.VALIDATION, *([] if study.wording.test == "none" else [Split.TEST])])
    with _judging(study) as judged:
        runs = {name: judged(_on(one, Split.VALIDATION)) for name, one in asked.items()}
        least = study.score.min_coverage
        read = {name: read_covered(study.paths.data, run, least) for name, run in runs.items()}
        first, choice = next(iter(read.values())), _chosen(study, read)
        run = _run(study, read)
        with run.recording(study) as results:
            write_json(run.path / FILE, choice)
            show_choice(choice, first.monitor)
            wanted = {"none": [], "chosen": [choice["chosen"]], "all": [*asked]}[study.wording.test]
            tested = [judged(_on(asked[name], Split.TEST)) for name in wanted]
            results |= {
                "monitor": first.monitor,
                "data": first.data.name,
                "n": choice["n"],
                "chosen": choice["chosen"],
                "runs": [str(one) for one in runs.values()],
                "tested": [str(one) for one in tested],
            }
    for one in tested:
        print(one, flush=True)
    return run.path


def _refuse_wordless(study: Study) -> None:
    monitor = study.monitor
    if monitor.head is not None:
        raise ConfigError("monitor.head: a probe is fitted under one prompt; expected monitor.head=null")
    if monitor.kind != "language_model":
        raise ConfigError(f"monitor.kind={monitor.kind}: it reads no prompt; expected a language model")
    if study.adapters:
        raise ConfigError("adapters: a wording is chosen for one monitor; expected monitor.adapter alone")


@contextmanager
def _judging(study: Study) -> Iterator[Callable[[Study], Path]]:
    """What judges: a model of this process in one start of its engine."""
    if not study.engine.takes_token_ids:
        yield evaluate
        return
    engine = in_process(study.engine, "wording")
    with one_start(study.monitor, engine, study.paths.models, [study.monitor.adapter]) as judged:
        yield judged


def _on(study: Study, split: Split) -> Study:
    return study.model_copy(update={"evaluate": study.evaluate.model_copy(update={"split": split.value})})


def _chosen(study: Study, read: Mapping[str, Evaluation]) -> WordingChoice:
    judged = {name: one.judged for name, one in read.items()}
    split = Split.VALIDATION.value
    choice = choose_wording(judged, split, resamples=study.transfer.resamples, seed=study.seed)
    if choice is None:
        raise UserError(
            "wording: no prompt has scores of both labels on the same validation samples, so none can be "
            "chosen; expected an engine with log-probabilities, and both labels in dataset.validation"
        )
    return choice


def _run(study: Study, read: Mapping[str, Evaluation]) -> RunDirectory:
    """Named by the runs over the validation split, which alone decide the choice."""
    first = next(iter(read.values()))
    identity = {
        "data": first.data.name,
        "runs": [content_hash(one.id) for one in read.values()],
        "resamples": study.transfer.resamples,
        "seed": study.seed,
    }
    name = run_name(first.monitor, dataset_name(first.data.name))
    return RunDirectory(study.paths.runs / "wording", name, identity)
