"""The judges of a control evaluation: each one's scores of held-out honest traffic, and of the test split.

Promises: both runs of a judge are of one dataset and have the same judge; a combination's threshold is set on
samples that it was not fitted on; all judges judged the same samples of the test split.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.deployment import Control
from monitorbench.corpus.store import read_split
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import UNPAIRED, Columns
from monitorbench.metrics.control.results import FarOf
from monitorbench.metrics.control.steps import Steps, trajectory_scores
from monitorbench.records import Label, Split
from monitorbench.runs.directory import checked_file, read_finished
from monitorbench.runs.keyed_log import read_run
from monitorbench.scoring.calibrate import judge_id, unseen
from monitorbench.scoring.combination.ensembles import Ensemble, combine
from monitorbench.scoring.evaluations import Evaluation, forced_alarms, read_covered, with_distinct_names
from monitorbench.untrusted_parquet import parquet_table

STEPS = "steps.parquet"
_UNSCORED_LOW = -1.0
"""Score of an unscored sample that is never flagged: no threshold is below it."""


class JudgedSplit(NamedTuple):
    """One judge over one split."""

    samples: Columns
    scores: FloatArray
    """[samples], NaN where unscored."""
    steps: Steps | None
    """Their steps, with samples numbered as in `samples`."""


class JudgedMonitor(NamedTuple):
    """One judge over both splits."""

    monitor: str
    prompt: str
    calibration: JudgedSplit
    test: JudgedSplit
    members: list[list[str]]
    """[monitor, prompt] of each, of an ensemble made here."""


def read_judges(
    control: Control, datasets: Path, min_coverage: float
) -> tuple[Path, list[JudgedMonitor], list[Evaluation]]:
    """The dataset's directory, the judges of `control` with their ensembles, and their runs.

    Raises `ConfigError` where no run is given, `UserError` where runs don't belong together, have no scores,
    or lack honest or attack samples.
    """
    if not control.test:
        raise ConfigError(
            "control.test=[]: no run given; expected a judge's runs over both splits, as in "
            "control.calibration=[RUN] control.test=[RUN]"
        )
    calibration = _read(datasets, min_coverage, control.calibration, Split.CALIBRATION)
    test = with_distinct_names(_read(datasets, min_coverage, control.test, Split.TEST))
    data = {run.data for run in (*calibration, *test)}
    if len(data) > 1:
        raise UserError(f"control: runs of {len(data)} datasets; expected one")
    calibrated = {run.judge_hash: run for run in calibration}
    judges = []
    for run in test:
        if run.judge_hash not in calibrated:
            raise UserError(
                f"{run.directory}: no run of {judge_id(run)} in control.calibration; expected the same "
                "judges on both splits"
            )
        judges.append(_judge(calibrated[run.judge_hash], run, control))
    _refuse_other_samples([run.test for run in judges], control.test)
    return data.pop(), [*judges, *_ensembles(judges, test, control)], [*calibration, *test]


def far_of(samples: Columns) -> FarOf:
    """The kind of the honest calibration samples: whether their pair has a misbehavior sample."""
    honest = ~samples.is_misbehavior
    attacked = np.unique(samples.pairs[samples.is_misbehavior])
    paired = honest & (samples.pairs != UNPAIRED) & np.isin(samples.pairs, attacked)
    n, n_paired = int(honest.sum()), int(paired.sum())
    kind = "paired_benign" if n_paired == n else "mixed" if n_paired else "honest_traffic"
    return FarOf(kind=kind, n_paired=n_paired, n=n)


def counted(scores: FloatArray, policy: str, *, is_attack: bool) -> FloatArray:
    """Scores [samples] with the policy for those that are missing; NaN stays where they are left out."""
    if policy == "leave_out":
        return scores
    is_flagged = policy == "flag" or (policy == "against" and not is_attack)
    return np.where(np.isnan(scores), np.inf if is_flagged else _UNSCORED_LOW, scores)


def _read(datasets: Path, min_coverage: float, directories: Sequence[Path], split: Split) -> list[Evaluation]:
    by_judge: dict[str, Evaluation] = {}
    for directory in directories:
        run = read_covered(datasets, directory, min_coverage)
        if run.split is not split:
            raise UserError(
                f"{directory}: judged the {run.split} split; control.{split} takes runs over {split}"
            )
        if run.judge_hash in by_judge:
            raise UserError(
                f"{directory}: {judge_id(run)} is there twice in control.{split}; expected one run a judge"
            )
        by_judge[run.judge_hash] = run
    return list(by_judge.values())


def _judge(calibration: Evaluation, test: Evaluation, settings: Control) -> JudgedMonitor:
    calibrated = _side(calibration, settings)
    is_unseen = np.isin(
        calibrated.samples.group_ids().to_numpy(zero_copy_only=False), unseen(calibration, None).group_ids
    )
    if not is_unseen.all():  # a combination, which was fitted on the rest, and has no steps
        calibrated = JudgedSplit(calibrated.samples.taking(is_unseen), calibrated.scores[is_unseen], None)
    tested = _side(test, settings)
    for side, evaluation in ((calibrated, calibration), (tested, test)):
        if side.samples.is_misbehavior.all():
            raise UserError(
                f"{evaluation.directory}: no benign sample; expected honest ones, to set a threshold on"
            )
    if not tested.samples.is_misbehavior.any():
        raise UserError(f"{test.directory}: no misbehavior sample; expected attacks, to be caught or not")
    return JudgedMonitor(test.monitor, test.prompt, calibrated, tested, [])


def _side(one: Evaluation, settings: Control) -> JudgedSplit:
    steps = _steps(one) if (one.directory / STEPS).is_file() else _judged_steps(one)
    scores = one.judged.scores
    if steps is not None and settings.trajectory != "as_judged":
        scores = trajectory_scores(steps, len(one.judged), settings.trajectory, settings.top_k)
    scores = np.where(forced_alarms(one), np.inf, scores)
    if np.isnan(scores).all():
        raise UserError(f"{one.directory}: no verdict has a score; expected a judge with log-probabilities")
    return JudgedSplit(one.judged, scores, steps)


def _steps(one: Evaluation) -> Steps:
    """`steps.parquet` of a run: `sample_id`, `step`, `draw`, `score`, `label`; null is not known."""
    from monitorbench.corpus.store import reading

    is_listed = STEPS in read_finished(one.directory).get("files", {})
    file = checked_file(one.directory, STEPS) if is_listed else one.directory / STEPS
    with reading(file):
        table = parquet_table(file, ["sample_id", "step", "draw", "score", "label"])
        positions = pc.index_in(table["sample_id"].combine_chunks(), value_set=one.judged.sample_ids)
        numbers = positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        columns = [
            table[name].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
            for name in ("step", "draw")
        ]
        scores = table["score"].combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False)
        labels = (
            table["label"].combine_chunks().cast(pa.int8()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        )
    if np.any((scores < 0) | (scores > 1)) or any(np.any(column < 0) for column in columns):
        raise UserError(f"{file}: a score outside [0, 1], or a negative step or draw; expected neither")
    all_steps = Steps(numbers, columns[0], columns[1], scores, labels)
    inside = all_steps.taking(numbers >= 0)  # others are of samples outside the view
    key = np.stack([inside.samples, inside.steps, inside.draws])
    if len(np.unique(key, axis=1).T) < len(inside.samples):
        raise UserError(f"{file}: a draw of a step is there twice; expected each once")
    return inside


def _judged_steps(one: Evaluation) -> Steps | None:
    """The steps that a judge of ours scored piece by piece; None of one that read whole responses.

    In a sample with gold spans a step that one of them marks is labelled misbehavior, any other benign. In
    other misbehavior samples nobody said which step it is.
    """
    samples = {sample.id: sample for sample in read_split(one.data, one.split, one.view)}
    verdicts, rows = read_run(one.directory), list[tuple[float, ...]]()
    for number, sample_id in enumerate(one.judged.sample_ids.to_pylist()):
        marked = {span.message for span in samples[sample_id].gold_spans}
        is_bad = samples[sample_id].label is Label.MISBEHAVIOR
        for step in verdicts[sample_id].steps if sample_id in verdicts else ():
            label = float(step.message in marked) if marked else np.nan if is_bad else 0.0
            rows.append((number, step.message, 0, np.nan if step.score is None else step.score, label))
    if not rows:
        return None
    sample, step, draw, score, is_misbehavior = np.array(rows, dtype=np.float64).T
    return Steps(sample.astype(np.int64), step.astype(np.int64), draw.astype(np.int64), score, is_misbehavior)


def _refuse_other_samples(sides: Sequence[JudgedSplit], directories: Sequence[Path]) -> None:
    for side, directory in zip(sides, directories, strict=True):
        if not side.samples.sample_ids.equals(sides[0].samples.sample_ids):
            raise UserError(
                f"{directory}: judged other samples than {directories[0]}; expected the same ones"
            )


def _ensembles(
    judges: Sequence[JudgedMonitor], runs: Sequence[Evaluation], settings: Control
) -> list[JudgedMonitor]:
    """The mean and maximum of the runs that are no combinations themselves, where there are several."""
    alone = [
        judge
        for judge, member in zip(judges, runs, strict=True)
        if "combined" not in read_finished(member.directory)["results"]
    ]
    if len(alone) < 2:
        return []
    ids = [member.calibration.samples.sample_ids for member in alone]
    if any(not member.equals(ids[0]) for member in ids):
        raise UserError("control.calibration: the runs judged other samples; expected the same ones")
    names = tuple(f"{member.monitor}/{member.prompt}" for member in alone)
    ensembles = []
    for rule in settings.ensembles:
        ensemble = Ensemble(rule=rule, members=names)
        calibration, test = (
            _combined(ensemble, each)
            for each in ([member.calibration for member in alone], [member.test for member in alone])
        )
        prompts = "+".join(dict.fromkeys(member.prompt for member in alone))
        members = [[member.monitor, member.prompt] for member in alone]
        ensembles.append(JudgedMonitor(f"{rule} of {len(alone)}", prompts, calibration, test, members))
    return ensembles


def _combined(ensemble: Ensemble, sides: Sequence[JudgedSplit]) -> JudgedSplit:
    """Combine the members' scores; an alarm at any threshold of one is an alarm at any of the ensemble's."""
    finite = {name: np.minimum(side.scores, 1.0) for name, side in zip(ensemble.members, sides, strict=True)}
    is_alarm = np.isposinf([side.scores for side in sides]).any(axis=0)
    return JudgedSplit(sides[0].samples, np.where(is_alarm, np.inf, combine(ensemble, finite)), None)
