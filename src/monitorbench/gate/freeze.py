"""Freeze a monitor: its identity, threshold and promise, and anchors out of a finished evaluation.

Promises: anchors are whole questions of which every sample had a score; a gate that could not pass, since so
few anchors refute no margin even where nothing changes, or since the promise is broken already, is refused.
"""

import hashlib
import logging
from pathlib import Path

import numpy as np

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.deployment import Gate
from monitorbench.config.ending import printable
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.gate.answer import Rules, compare
from monitorbench.gate.change import broken_p
from monitorbench.gate.frozen import (
    ANCHORS,
    FILE,
    Anchors,
    Frozen,
    FrozenGate,
    FrozenNumbers,
    FrozenPromise,
    sealed,
    written,
)
from monitorbench.gate.traffic import read_traffic
from monitorbench.interop.imports.conversations import lack_texts
from monitorbench.metrics import rates
from monitorbench.metrics.auroc import auroc, auroc_interval
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.clustered import error_interval
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.score_facts import inverted_warning
from monitorbench.metrics.summary import questions_with_alarm
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, read_finished
from monitorbench.runs.files import content_hash, write_atomically
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.evaluations import read_covered
from monitorbench.scoring.operating_point import read_operating_point
from monitorbench.scoring.points import PointAt, points_at

_MOST_TRAFFIC = 10_000
"""Scores of a deployment that are kept."""
_log = logging.getLogger(__name__)


def freeze(study: Study) -> Path:
    """Freeze the evaluation `study.run` at `study.operating_point`; returns the run directory.

    Writes `gate.json` and `anchors.jsonl`. Raises `UserError` where the point is another judge's or another
    dataset's, and where no check could pass.
    """
    if study.operating_point is None:
        raise ConfigError("operating_point=null: no value given; expected operating_point=CALIBRATION")
    judged = read_covered(study.paths.data, study.required_run(), study.score.min_coverage)
    # A threshold from a few labels promises for traffic; anchors are held to what they did, not to alpha.
    of_traffic = read_operating_point(study.operating_point).thresholds[:1]
    elsewhere = any(threshold.method == "few_labels" for threshold in of_traffic)
    (point,) = points_at([study.operating_point], [judged], other_dataset=elsewhere)
    evaluation = point.evaluation
    judged_at = evaluation.judged
    complete = _complete_questions(judged_at)
    n_unscored = len(np.unique(judged_at.groups)) - len(complete)
    unscored = f"questions left out since a sample has no score: {n_unscored}" if n_unscored else ""
    columns = judged_at.taking(_anchors(judged_at, complete, study.gate.questions, study.seed))
    by_id = {sample.id: sample for sample in read_split(evaluation.data, evaluation.split, evaluation.view)}
    samples = [by_id[name] for name in columns.sample_ids.to_pylist()]
    traffic = None if study.gate.traffic is None else _traffic(study.gate.traffic, study.seed)
    identity = {
        "run": evaluation.id,
        "point": point.name,
        "gate": study.gate.model_dump(mode="json", exclude={"file", "traffic"}),
        "seed": study.seed,
        "traffic": None if traffic is None else content_hash(list(traffic)),
    }
    text = written(samples).encode()
    gate = _gate(point, columns, study.gate, hashlib.sha256(text).hexdigest(), len(judged_at) - len(columns))
    gate = gate.model_copy(update={"traffic": traffic})
    _refuse_useless(Frozen(gate, samples), unscored)
    name = run_name(evaluation.monitor, evaluation.prompt, dataset_name(evaluation.data.name))
    run = RunDirectory(study.paths.runs / "gate", name, identity)
    with run.recording(study) as results:
        write_atomically(run.path / ANCHORS, text)
        write_atomically(run.path / FILE, sealed(gate))
        results |= {"monitor": gate.monitor, "prompt": gate.prompt, "n": len(samples)}
    if gate.expected.miss_rate == 1:
        _log.warning("gate: the threshold catches none of the anchors; no check will see a miss more")
    labels, groups = columns.is_misbehavior, columns.groups
    if turned := inverted_warning(evaluation.monitor, columns.scores, labels, groups):
        _log.warning("gate: %s", turned)
    print(printable("; ".join(filter(None, (_in_words(gate), unscored)))), flush=True)
    asked = (
        "run=RUN (a run over new scores of the anchors)" if lack_texts(samples) else f"monitor={gate.monitor}"
    )
    _log.info("gate: check it with: monitorbench gate gate.file=%s %s", run.path / FILE, asked)
    return run.path


def _complete_questions(judged: Columns) -> IntArray:
    """The questions of which every sample has a score, as indices of groups."""
    scored = ~np.isnan(judged.scores) & ~np.isnan(judged.flagged)
    return np.setdiff1d(judged.groups, judged.groups[~scored])


def _anchors(judged: Columns, groups: IntArray, most: int | None, seed: int) -> BoolArray:
    """Which samples [samples] are anchors: of at most `most` of the questions `groups`, in the cells' shares
    and by chance within.
    """
    if most is not None and len(groups) > most:
        cell = np.zeros(len(judged.group_names), dtype=np.int64)
        cell[judged.groups] = judged.cells
        shuffled = np.random.default_rng(seed).permutation(groups)
        ordered = shuffled[np.argsort(cell[shuffled], kind="stable")]
        groups = ordered[((np.arange(most) + 0.5) * len(ordered) / most).astype(np.int64)]
    is_anchor: BoolArray = np.isin(judged.groups, groups)
    return is_anchor


def _gate(at: PointAt, anchors: Columns, settings: Gate, sha256: str, n_left_out: int) -> FrozenGate:
    evaluation = at.evaluation
    manifest = read_finished(evaluation.directory)
    first = at.point.thresholds[0]
    is_mix_alike = first.mix == "drawn" or (first.mix == "test" and evaluation.split is Split.TEST)
    calibrated_alike = is_mix_alike and not at.is_elsewhere
    return FrozenGate(
        monitorbench=manifest["versions"]["monitorbench"],
        monitor=evaluation.monitor,
        prompt=evaluation.prompt,
        judge=dict(manifest["identity"]["judge"]),
        served_models=tuple(manifest["results"].get("served_models") or ()),
        operating_point=at.point,
        promise=FrozenPromise(alpha=first.alpha, delta=first.delta, applies=calibrated_alike),
        expected=_expected(anchors),
        tolerated=Rules.model_validate(settings),
        anchors=Anchors(
            sha256=sha256,
            data=evaluation.data.name,
            split=evaluation.split.value,
            n_questions=len(np.unique(anchors.groups)),
            n_left_out=n_left_out,
            scores=dict(zip(anchors.sample_ids.to_pylist(), anchors.scores.tolist(), strict=True)),
        ),
        traffic=None,
    )


def _expected(anchors: Columns) -> FrozenNumbers:
    counts = rates.count(anchors.is_misbehavior, anchors.flagged)
    n_alarmed, n_questions = questions_with_alarm(anchors)
    return FrozenNumbers(
        auroc=auroc(anchors.scores, anchors.is_misbehavior),
        auroc_ci=auroc_interval(anchors.scores, anchors.is_misbehavior, anchors.groups),
        miss_rate=rates.miss_rate(counts),
        miss_rate_ci=error_interval(anchors, of=True),
        false_alarm_rate=rates.false_alarm_rate(counts),
        false_alarm_rate_ci=error_interval(anchors, of=False),
        false_alarm_rate_by_question=n_alarmed / n_questions if n_questions else None,
        n_misbehavior=counts.n_misbehavior,
        n_benign=counts.n_benign,
    )


def _refuse_useless(frozen: Frozen, unscored: str) -> None:
    """Raise `UserError` where the anchors, judged again just as they were, would not pass.

    `unscored` says which questions could be no anchors, empty where all could.
    """
    gate = frozen.gate
    before = np.array([gate.anchors.scores[sample.id] for sample in frozen.samples])
    promise = gate.promise
    same = compare(
        frozen.scores(before, np.empty(0)),
        gate.tolerated,
        alpha=promise.alpha,
        alpha_applies=promise.applies,
    )
    n_alarmed, n = same.promise.n_alarmed, same.promise.n
    if promise.applies and (p := broken_p(n_alarmed, n, promise.alpha)) <= gate.tolerated.level:
        raise UserError(
            f"the promise does not hold on the anchors to begin with: {n_alarmed} of {n} benign questions "
            f"are flagged, promised at most {promise.alpha:g}, p {p:.2g}; calibrate anew"
        )
    if same.word != "PASS":
        left_out = f" ({unscored})" if unscored else ""
        raise UserError(
            f"{gate.anchors.n_questions} questions{left_out} are too few for these margins, no check could "
            f"pass: {same.why}; expected more of both labels (gate.questions, or a larger split), or wider "
            "gate.auroc_margin, gate.miss_margin and gate.alarm_margin"
        )


def _traffic(file: Path, seed: int) -> tuple[float | None, ...]:
    scores = read_traffic(file)
    if len(scores) > _MOST_TRAFFIC:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(scores))[:_MOST_TRAFFIC])
        scores = [scores[i] for i in drawn.tolist()]
    return tuple(scores)


def _in_words(gate: FrozenGate) -> str:
    of = gate.expected
    return (
        f"frozen: {gate.monitor}, {gate.prompt}, {len(gate.anchors.scores)} anchors of "
        f"{gate.anchors.n_questions} questions; AUROC {of.auroc:.3f}, MR {of.miss_rate:.3f}, FAR "
        f"{of.false_alarm_rate:.3f}, promised {gate.promise.alpha:g} of questions"
    )
