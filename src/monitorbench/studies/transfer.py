"""The runs of a transfer study: found by what decides them, and made where they are missing.

Promises: a run that is there is never made again; one that was interrupted is resumed. Every training has a
process of its own, then all evaluations one together, in which the engine starts once. A study by heads runs
in this process: what takes time is the states, which are extracted once.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import with_states
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, is_finished
from monitorbench.runs.files import write_atomically
from monitorbench.runs.run_folders import fit_run, training_run
from monitorbench.studies.points import (
    evaluation_study,
    fit_study,
    folder_of,
    heads,
    points,
    training_study,
)
from monitorbench.sweeps.child import run_stage, run_stages

_SCRIPTS = {"train": "train/sft.py", "fit": "train/fit.py", "evaluate": "eval/evaluate.py"}
_SPLITS = (Split.TRAIN, Split.VALIDATION, Split.TEST)
_log = logging.getLogger(__name__)


class PlannedRun(NamedTuple):
    """One run of the study; a training or fit comes before the evaluation of what it made."""

    stage: str
    """`train`, `fit` or `evaluate`."""
    name: str
    study: Study


def runs_of(study: Study) -> tuple[Path, ...]:
    """The evaluation runs of the study that `study.transfer` names, the base's first.

    Raises `UserError` where some are missing and `transfer.make` is false (the log has a command for each),
    and where one can't be made; `ConfigError` for an engine that is an endpoint.
    """
    if not study.engine.takes_token_ids:
        raise ConfigError(
            f"engine={study.engine.kind}: a study's adapters are judged in this process; expected "
            "transformers or vllm"
        )
    data, folder = directory_of(study), folder_of(study)
    planned = list(_planned_runs(study, data))
    pending = [run for run in planned if not _is_done(run, data)]
    _log.info("transfer: %d runs, %d of them there", len(planned), len(planned) - len(pending))
    if pending and not study.transfer.make:
        raise _missing(study, folder, planned, pending)
    if pending and study.transfer.by == "head":
        _make_heads(study, pending)
    elif pending:
        _make_adapters(study, folder, pending)
    for run in pending:
        if not _is_done(run, data):
            raise UserError(f"{run.stage} {run.name}: it ended well, but not where its run was expected")
    return tuple(
        planned_evaluation(run.study, data.path).run.path for run in planned if run.stage == "evaluate"
    )


def _missing(
    study: Study, folder: Path, planned: Sequence[PlannedRun], pending: Sequence[PlannedRun]
) -> UserError:
    """What to raise; a command for each goes to the log."""
    trained, evaluations = _by_stage(pending)
    together = [_together(evaluations)] if evaluations and study.transfer.by == "adapter" else evaluations
    for run in (*trained, *together):
        _log.info("missing: python %s frozen=%s", _SCRIPTS[run.stage], _frozen(folder, run))
    made = "fits" if study.transfer.by == "head" else "trainings"
    return UserError(
        f"transfer: {len(pending)} of {len(planned)} runs are missing ({len(trained)} of them {made}); make "
        "them with the commands above, or here with transfer.make=true"
    )


def _by_stage(runs: Sequence[PlannedRun]) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """Those that train or fit something, and the evaluations."""
    judging = [run for run in runs if run.stage == "evaluate"]
    return [run for run in runs if run.stage != "evaluate"], judging


def _make_adapters(study: Study, folder: Path, pending: Sequence[PlannedRun]) -> None:
    """Every training in a process of its own, `transfer.jobs` at a time, then all evaluations in one."""
    trainings, evaluations = _by_stage(pending)
    missing = [*trainings, _together(evaluations)] if evaluations else trainings
    if study.transfer.jobs > 1 and len(trainings) > 1:
        ensure(study, _SPLITS)  # else each would build the data
        run_stages("train", {run.name: _frozen(folder, run) for run in trainings}, study.transfer.jobs)
        missing = missing[len(trainings) :]
    for number, run in enumerate(missing, start=1):
        _log.info("transfer: %s %s (%d of %d)", run.stage, run.name, number, len(missing))
        _make(folder, run)


def _make_heads(study: Study, pending: Sequence[PlannedRun]) -> None:
    """The fits and then the evaluations, one after another in this process."""
    from monitorbench.judging.evaluate import evaluate
    from monitorbench.training.fit_head import fit_head

    ensure(study, _SPLITS)
    fits, evaluations = _by_stage(pending)
    for number, run in enumerate((*fits, *evaluations), start=1):
        _log.info("transfer: %s %s (%d of %d)", run.stage, run.name, number, len(pending))
        (fit_head if run.stage == "fit" else evaluate)(run.study)


def _planned_runs(study: Study, data: RunDirectory) -> Iterator[PlannedRun]:
    weights = weights_identity(study.monitor)
    yield PlannedRun("evaluate", "base", evaluation_study(study, None))
    if study.transfer.by == "head":
        dtype = with_states(study.engine).resolved_dtype
        for point in heads(study):
            fitted = fit_study(study, point)
            yield PlannedRun("fit", point.name, fitted)
            head = fit_run(fitted, data.path.name, weights, dtype).path
            yield PlannedRun("evaluate", point.name, evaluation_study(study, None, head))
        return
    for point in points(study.transfer):
        trained = training_study(study, point)
        yield PlannedRun("train", point.name, trained)
        adapter = training_run(trained, data.path.name, weights).path
        yield PlannedRun("evaluate", point.name, evaluation_study(study, adapter))


def _together(evaluations: Sequence[PlannedRun]) -> PlannedRun:
    """All of them as one run of `eval/evaluate.py`: with the first's adapter, then each of the others'."""
    first, *others = evaluations
    if not others:
        return first
    adapters = tuple(adapter for run in others if (adapter := run.study.monitor.adapter))
    study = first.study.model_copy(update={"adapters": adapters})
    return PlannedRun("evaluate", f"{first.name}-and-{len(others)}-more", study)


def _is_done(run: PlannedRun, data: RunDirectory) -> bool:
    if not data.done:  # its prompts and examples are part of an evaluation's name
        return False
    weights = weights_identity(run.study.monitor)
    if run.stage == "train":
        return training_run(run.study, data.path.name, weights).done
    if run.stage == "fit":
        return fit_run(run.study, data.path.name, weights, with_states(run.study.engine).resolved_dtype).done
    # The hash of what was trained is part of it too.
    on_top = run.study.monitor.adapter or run.study.monitor.head
    if on_top is not None and not is_finished(on_top):
        return False
    return planned_evaluation(run.study, data.path).done


def _frozen(folder: Path, run: PlannedRun) -> Path:
    """The study of a run as a file that its script takes as `frozen=FILE`."""
    file = folder / f"{run.stage}-{run.name}.json"
    write_atomically(file, freeze(run.study))
    return file


def _make(folder: Path, run: PlannedRun) -> None:
    """Do what the run's stage does, in a child process."""
    run_stage(run.stage, _frozen(folder, run), f"{run.stage} {run.name}")
