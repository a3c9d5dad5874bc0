"""The train × test study: adapters or heads, trained on parts of a corpus, beside their base on every cell.

Its runs are given, or named by the study: a frozen study for each training and evaluation, which differs from
the study's own settings in subset, seed and objective alone. So the runs that `train`, `fit` and `evaluate`
made under the same experiment count. A finished run is never made again, an interrupted one is resumed. Every
training has a process of its own, then all evaluations share one, in which the engine starts once. A study of
heads runs in this process: what takes time is the hidden states, which are extracted once.
"""

import json
import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import with_states
from monitorbench.config.evaluation import Transfer
from monitorbench.config.load import freeze, validate
from monitorbench.config.study import Study
from monitorbench.config.training import Head
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, is_finished
from monitorbench.runs.files import content_hash, write_atomically
from monitorbench.runs.run_folders import fit_run, training_run
from monitorbench.studies.forecast import PlannedRun
from monitorbench.studies.prompt_lengths import dataset_here, weights_here
from monitorbench.sweeps.worker import run_stage, run_stages

_SPLITS = (Split.TRAIN, Split.VALIDATION, Split.TEST)
_log = logging.getLogger(__name__)


class TrainingPoint(NamedTuple):
    """One training of the study."""

    subset: str
    seed: int
    objective: str
    """The objective of an adapter, or the name of a head."""

    @property
    def name(self) -> str:
        """Name of the training's files, such as `safety_permission_code-sft-seed0`."""
        return f"{self.subset.replace('/', '_')}-{self.objective}-seed{self.seed}"


def transfer(study: Study) -> Path:
    """Lay `transfer.runs`, or the runs of the study it names, side by side; returns the run directory.

    The runs that `transfer.wordings` tested count as given. Raises `ConfigError` where neither runs nor a
    study are named, and what `runs_of` and `score.transfer` raise.
    """
    from monitorbench.scoring import score

    if study.transfer.runs or study.transfer.wordings:
        return score.transfer(study)
    if not training_points(study.transfer):
        raise ConfigError(
            "transfer.runs=[]: no run given; expected evaluation runs as 'transfer.runs=[DIR,DIR]', or a "
            "study as 'transfer.subsets=[all,safety_permission/code]'"
        )
    runs = [str(run) for run in runs_of(study)]
    return score.transfer(
        _changed(study, {"transfer": {**study.transfer.model_dump(mode="json"), "runs": runs}})
    )


def training_points(transfer: Transfer) -> list[TrainingPoint]:
    """The trainings that a study names, each once, in the order they are named."""
    further = [
        (trainings, transfer.seeds if trainings.seeds is None else trainings.seeds)
        for trainings in transfer.also.values()
    ]
    return list(
        dict.fromkeys(
            TrainingPoint(subset, seed, objective)
            for trainings, seeds in [(transfer, transfer.seeds), *further]
            for seed in seeds
            for objective in trainings.objectives
            for subset in trainings.subsets
        )
    )


def fitted_points(head: Head, transfer: Transfer) -> list[TrainingPoint]:
    """The fits of a study of heads, in the order they are named.

    Raises `ConfigError` where its seeds would all give the same head.
    """
    points = [point._replace(objective=head.name) for point in training_points(transfer)]
    if head.kind == "linear" and head.draw == "all" and len({point.seed for point in points}) > 1:
        raise ConfigError(
            "transfer.seeds: a linear head is the same with every seed; expected one seed, or "
            "head.draw=bootstrap"
        )
    return points


def frozen_folder(study: Study) -> Path:
    """The folder `runs/studies/<dataset>-<hash>/` with the frozen studies of the study's runs."""
    settings = study.model_dump(mode="json", exclude={"paths", "cluster", "tracking", "transfer", "run"})
    points = (
        training_points(study.transfer)
        if study.transfer.by == "adapter"
        else fitted_points(study.head, study.transfer)
    )
    return study.paths.runs / "studies" / f"{study.dataset.name}-{content_hash([settings, points])}"


def training_study(study: Study, point: TrainingPoint) -> Study:
    """The study that trains a point; `ConfigError` where its objective and the other settings don't fit."""
    training = study.training.model_dump(mode="json")
    if training.get("objective", "sft") != point.objective:
        training["objective"] = point.objective
    dataset = study.dataset.model_dump(mode="json")
    dataset["train"]["subset"] = [point.subset]
    return _changed(study, {"seed": point.seed, "dataset": dataset, "training": training})


def fit_study(study: Study, point: TrainingPoint) -> Study:
    """The study that fits a head; validation samples come from the cells that it is trained on.

    So no cell that is called held out takes part in the choice of a layer and position.
    """
    dataset = study.dataset.model_dump(mode="json")
    for split in ("train", "validation"):
        dataset[split]["subset"] = [point.subset]
    return _changed(study, {"seed": point.seed, "dataset": dataset})


def evaluation_study(study: Study, adapter: Path | None, head: Path | None = None) -> Study:
    """The study that judges the test split with an adapter, with a head, or with the base."""
    on_top = {"adapter": str(adapter) if adapter else None, "head": str(head) if head else None}
    monitor = study.monitor.model_dump(mode="json") | on_top
    return _changed(study, {"monitor": monitor, "adapters": [], "evaluate": {"split": "test"}})


def _changed(study: Study, changes: Mapping[str, Any]) -> Study:
    """The study with other settings; W&B shows it under `tracking.group`, or the name of the runs' folder."""
    tree = {**study.model_dump(mode="json"), **changes}
    tree["tracking"]["group"] = study.tracking.group or frozen_folder(study).name
    return validate(json.dumps(tree))


def planned_runs(study: Study, dataset_name: str, weights: str) -> list[PlannedRun]:
    """The runs that the study comes to, finished or not: the base's evaluation, then each training's two.

    `dataset_name` is the name of the dataset's folder, `weights` identifies the base's weights. Raises
    `ConfigError` for an objective that no training of the study has.
    """
    runs = [PlannedRun("evaluate", evaluation_study(study, None), "base")]
    if study.transfer.by == "head":
        dtype = with_states(study.engine).resolved_dtype
        for point in fitted_points(study.head, study.transfer):
            fit = fit_study(study, point)
            head = fit_run(fit, dataset_name, weights, dtype).path
            evaluation = evaluation_study(study, None, head)
            runs += [PlannedRun("fit", fit, point.name), PlannedRun("evaluate", evaluation, point.name)]
        return runs
    points, objective = training_points(study.transfer), study.training.objective
    if objective not in {"sft", *(point.objective for point in points)}:
        raise ConfigError(
            f"training.objective={objective}: a study trains towards the objectives that `transfer` names; "
            f"expected transfer.objectives=[{objective}]"
        )
    for point in points:
        training = training_study(study, point)
        evaluation = evaluation_study(study, training_run(training, dataset_name, weights).path)
        runs += [PlannedRun("train", training, point.name), PlannedRun("evaluate", evaluation, point.name)]
    return runs


def coming_runs(study: Study) -> list[PlannedRun]:
    """The runs that a forecast of the study counts, on a machine without its data or weights too.

    Raises `ConfigError` where `transfer` names no training, or trains heads.
    """
    if study.transfer.runs or study.transfer.wordings or not training_points(study.transfer):
        raise ConfigError(
            "plan=true: finished runs are laid side by side in seconds; expected a study to plan, as "
            "'transfer.subsets=[all]' or experiment=transfer/cpu, and no transfer.runs"
        )
    if study.transfer.by == "head":
        raise ConfigError(
            "transfer.by=head: a plan is for adapters; heads take what extracting the states once takes, "
            "which `monitorbench fit plan=true` says"
        )
    # Without data or weights the adapters' folders are not known; nor can there be any.
    data = dataset_here(study)
    return planned_runs(study, data.path.name if data else "", weights_here(study.monitor) or "")


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
    data = directory_of(study)
    runs = planned_runs(study, data.path.name, weights_identity(study.monitor))
    missing = [run for run in runs if not _is_done(run, data)]
    _log.info("transfer: %d runs, %d of them there", len(runs), len(runs) - len(missing))
    if missing and not study.transfer.make:
        raise _missing_runs(study.transfer.by, frozen_folder(study), len(runs), missing)
    if missing and study.transfer.by == "head":
        ensure(study, _SPLITS)
        _make_heads(missing)
    elif missing:
        _make_adapters(frozen_folder(study), missing, study.transfer.jobs)
    for run in missing:
        if not _is_done(run, data):
            raise UserError(f"{run.stage} {run.name}: it ended well, but not where its run was expected")
    return tuple(planned_evaluation(run.study, data.path).run.path for run in runs if run.stage == "evaluate")


def _missing_runs(
    by: Literal["adapter", "head"], folder: Path, n_runs: int, missing: Sequence[PlannedRun]
) -> UserError:
    """The error to raise for missing runs; the command that makes each goes to the log."""
    trainings, evaluations = _by_stage(missing)
    if evaluations and by == "adapter":
        evaluations = [_evaluated_together(evaluations)]
    for run in (*trainings, *evaluations):
        _log.info("missing: monitorbench %s frozen=%s", run.stage, shlex.quote(str(_frozen(folder, run))))
    noun = "fits" if by == "head" else "trainings"
    planned = "" if by == "head" else "; plan=true says how long that takes"
    return UserError(
        f"transfer: {len(missing)} of {n_runs} runs are missing ({len(trainings)} of them {noun}); make them "
        f"with the commands above, or all here with transfer.make=true behind the same command{planned}"
    )


def _by_stage(runs: Sequence[PlannedRun]) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """Runs that train or fit something, and evaluations."""
    trainings = [run for run in runs if run.stage != "evaluate"]
    return trainings, [run for run in runs if run.stage == "evaluate"]


def _make_adapters(folder: Path, missing: Sequence[PlannedRun], jobs: int) -> None:
    """Train every point in a process of its own, `jobs` at a time, then evaluate all in one.

    The frozen studies of these processes are written into `folder`.
    """
    trainings, evaluations = _by_stage(missing)
    in_turn = [*trainings, _evaluated_together(evaluations)] if evaluations else trainings
    if jobs > 1 and len(trainings) > 1:
        ensure(trainings[0].study, _SPLITS)  # else each would build the data
        run_stages("train", {run.name: _frozen(folder, run) for run in trainings}, jobs)
        in_turn = in_turn[len(trainings) :]
    for number, run in enumerate(in_turn, start=1):
        of_all = f"{number} of {len(trainings)} trainings" if run.stage == "train" else "all in one start"
        _log.info("transfer: %s %s (%s)", run.stage, run.name, of_all)
        _make(folder, run)


def _make_heads(missing: Sequence[PlannedRun]) -> None:
    """Fit and then evaluate heads, one after another in this process; the dataset is built."""
    from monitorbench.judging.evaluate import evaluate
    from monitorbench.training.fit_head import fit_head

    fits, evaluations = _by_stage(missing)
    for number, run in enumerate((*fits, *evaluations), start=1):
        _log.info("transfer: %s %s (%d of %d)", run.stage, run.name, number, len(missing))
        (fit_head if run.stage == "fit" else evaluate)(run.study)


def _evaluated_together(evaluations: Sequence[PlannedRun]) -> PlannedRun:
    """All evaluations as one run of the stage: with the first's adapter, then each of the others'."""
    first, *more = evaluations
    if not more:
        return first
    adapters = tuple(adapter for run in more if (adapter := run.study.monitor.adapter))
    study = first.study.model_copy(update={"adapters": adapters})
    return PlannedRun("evaluate", study, f"{first.name}-and-{len(more)}-more")


def _is_done(run: PlannedRun, data: RunDirectory) -> bool:
    if not data.done:  # its prompts and examples are part of an evaluation's name
        return False
    weights = weights_identity(run.study.monitor)
    if run.stage == "train":
        return training_run(run.study, data.path.name, weights).done
    if run.stage == "fit":
        return fit_run(run.study, data.path.name, weights, with_states(run.study.engine).resolved_dtype).done
    # An evaluation's name holds the hash of what was trained, too.
    on_top = run.study.monitor.adapter or run.study.monitor.head
    if on_top is not None and not is_finished(on_top):
        return False
    return planned_evaluation(run.study, data.path).done


def _frozen(folder: Path, run: PlannedRun) -> Path:
    """Write the study of a run as a file that its stage takes as `frozen=FILE`."""
    file = folder / f"{run.stage}-{run.name}.json"
    write_atomically(file, freeze(run.study))
    return file


def _make(folder: Path, run: PlannedRun) -> None:
    """Do what the run's stage does, in a child process."""
    run_stage(run.stage, _frozen(folder, run), f"{run.stage} {run.name}")
