"""The runs of a probe's study: found by what decides them, and made where they are missing.

Promises: a run that is there is never made again; one that was interrupted goes on; everything that is made
is made in a process of its own, so that no model stays in memory.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.probe.points import evaluation_study, folder_of, points, training_study
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.files import write_atomically
from monitorbench.runs.training_run import training_run

_SCRIPTS = {"train": "train/sft.py", "evaluate": "eval/evaluate.py"}
_log = logging.getLogger(__name__)


class Step(NamedTuple):
    """One run of the study; a training comes before the evaluation of its adapter."""

    stage: str
    """`train` or `evaluate`."""
    name: str
    study: Study


def runs_of(study: Study) -> tuple[Path, ...]:
    """The evaluation runs of the study that `study.probe` names, the base's first.

    Raises `UserError` where some are missing and `probe.make` is false (the log has a command for each), and
    where one can't be made; `ConfigError` for an engine that is an endpoint.
    """
    if not study.engine.takes_token_ids:
        raise ConfigError(
            f"engine={study.engine.kind}: a study's adapters are judged in this process; expected "
            "transformers or vllm"
        )
    data = directory_of(study)
    steps = list(_steps(study, data))
    owed = [step for step in steps if not _is_done(step, data)]
    _log.info("probe: %d runs, %d of them there", len(steps), len(steps) - len(owed))
    if owed and not study.probe.make:
        for step in owed:
            _log.info("missing: python %s frozen=%s", _SCRIPTS[step.stage], _frozen(study, step))
        trainings = sum(step.stage == "train" for step in owed)
        raise UserError(
            f"probe: {len(owed)} of {len(steps)} runs are missing ({trainings} of them trainings); make them "
            "with the commands above, or here with probe.make=true"
        )
    for number, step in enumerate(owed, start=1):
        _log.info("probe: %s %s (%d of %d)", step.stage, step.name, number, len(owed))
        _make(study, step)
        if not _is_done(step, data):
            raise UserError(f"{step.stage} {step.name}: it ended well, but not where its run was expected")
    return tuple(_evaluation(step.study, data).path for step in steps if step.stage == "evaluate")


def _steps(study: Study, data: RunDirectory) -> Iterator[Step]:
    weights = weights_identity(study.monitor)
    yield Step("evaluate", "base", evaluation_study(study, None))
    for point in points(study.probe):
        trained = training_study(study, point)
        yield Step("train", point.name, trained)
        adapter = training_run(trained, data.path.name, weights).path
        yield Step("evaluate", point.name, evaluation_study(study, adapter))


def _evaluation(study: Study, data: RunDirectory) -> RunDirectory:
    return planned_evaluation(study, data.path).run


def _is_done(step: Step, data: RunDirectory) -> bool:
    if not data.done:  # its prompts and examples are part of an evaluation's name
        return False
    if step.stage == "train":
        return training_run(step.study, data.path.name, weights_identity(step.study.monitor)).done
    # The adapter's hash is part of it too.
    adapter = step.study.monitor.adapter
    if adapter is not None and not (
        (adapter / "manifest.json").is_file() and read_manifest(adapter)["status"] == "done"
    ):
        return False
    return planned_evaluation(step.study, data.path).done


def _frozen(study: Study, step: Step) -> Path:
    """The step's study as a file that its script takes as `frozen=FILE`."""
    file = folder_of(study) / f"{step.stage}-{step.name}.json"
    write_atomically(file, freeze(step.study))
    return file


def _make(study: Study, step: Step) -> None:
    """Do what the step's script does, in a child process."""
    command = [sys.executable, "-m", "monitorbench.probe.child", step.stage, f"frozen={_frozen(study, step)}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            child.communicate()  # its last line, the directory; the rest goes to stderr, which is ours
        except Preempted:
            child.send_signal(signal.SIGUSR1)
            raise
    if child.returncode == os.EX_TEMPFAIL:
        raise Preempted(f"{step.stage} {step.name}: stopped; the same command goes on from here")
    if child.returncode == 130:
        raise KeyboardInterrupt
    if child.returncode:
        raise UserError(
            f"{step.stage} {step.name}: failed with exit code {child.returncode}, for the reason above; the "
            "same command goes on from here"
        )
