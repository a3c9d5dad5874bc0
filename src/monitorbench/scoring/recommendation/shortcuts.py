"""Build what the rule chooses among: contenders from runs, and shortcut checks as if they were monitors.

Shortcut checks see the texts and do not read them. They are fitted on the train split, as the baselines of
every table are (`scoring.baselines`). A dataset without one, as imported data often is, has them fitted on
the calibration split: there each sample is scored by a fit on the folds without its group, the test split by
a fit on all of it. Promises: a shortcut gets its threshold as a monitor does; where the samples have no texts
nothing is fitted, and it is said why.

What was fitted is kept under `runs/baselines/`, since it depends on the dataset alone.

Contenders stand at any threshold, at an operating point, or by their own answers.
"""

import importlib.metadata
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate
from monitorbench.config.study import Study
from monitorbench.corpus.columns import read_batches, read_some
from monitorbench.corpus.texts import response_text
from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.marks import Surface
from monitorbench.records import Label, Sample, Split
from monitorbench.runs.directory import RunDirectory, checked_file, read_finished
from monitorbench.scoring.baselines import BASELINES_VERSION, fitted_scores, train_samples
from monitorbench.scoring.calibrate import unseen
from monitorbench.scoring.calibration_split import mix_asked
from monitorbench.scoring.evaluations import Evaluation, forced_alarms
from monitorbench.scoring.operating_point import answers_at
from monitorbench.scoring.points import PointAt
from monitorbench.scoring.recommendation.candidates import CandidateRuns, Contender, contender, sample_weights
from monitorbench.scoring.recommendation.deployment import Deployment, beyond_means, budget_of
from monitorbench.scoring.recommendation.more import Promise, promise_of

SHORTCUTS: tuple[Surface, ...] = ("length", "bag_of_words", "echo", "overlap", "form", "all_shortcuts")
FittedOn = Literal["train", "calibration", ""]
_FILE = "shortcut_scores.parquet"
_FOLDS = 5
_FITTED_PER_CELL = 3000
_VERSION = 2
_log = logging.getLogger(__name__)


class ShortcutScores(NamedTuple):
    """Scores of each shortcut check, by its name and the sample's id."""

    table: pa.Table | None
    fitted_on: FittedOn
    reason: str
    """Reason why there are no scores; empty where there are."""

    def answers(self, samples: Columns) -> dict[str, Columns]:
        """Return the samples with each check's scores, and its answers at .5; none where none was fitted."""
        if self.table is None:
            return {}
        positions = pc.index_in(
            samples.sample_ids, value_set=self.table["sample_id"].combine_chunks()
        ).to_numpy()
        scores: dict[str, FloatArray] = {name: self.table[name].to_numpy()[positions] for name in SHORTCUTS}
        return {
            name: samples.answering((of_check >= 0.5).astype(np.float64), of_check)
            for name, of_check in scores.items()
        }


def shortcuts_over(study: Study, data: Path) -> ShortcutScores:
    """Score calibration and test split of `data` by the shortcut checks; reuse scores that are there."""
    splits = read_finished(data)["results"]["splits"]
    used = (Split.TRAIN, Split.CALIBRATION, Split.TEST)
    identity = {
        "data": data.name,
        "scores": _VERSION,
        "splits": {name: splits[name] for name in used if name in splits},
        "version": BASELINES_VERSION,
        "versions": {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
    run = RunDirectory(study.paths.runs / "baselines", data.name.rpartition("-")[0], identity)
    with run.owned():
        if not run.done:
            _log.info("decide: shortcut checks of %s, kept in %s", data.name, run.path)
            with run.recording(study) as results:
                fitted = _fit(data)
                results |= {"fitted_on": fitted.fitted_on, "reason": fitted.reason}
                if fitted.table is not None:
                    pq.write_table(fitted.table, run.path / _FILE)
        finished = read_finished(run.path)["results"]
        is_fitted = not finished["reason"]
        table = pq.read_table(checked_file(run.path, _FILE)) if is_fitted else None
    return ShortcutScores(table, finished["fitted_on"], finished["reason"])


def _fit(data: Path) -> ShortcutScores:
    results = read_finished(data)["results"]
    judged = [name for name in (Split.CALIBRATION, Split.TEST) if name in results["splits"]]
    is_told = results.get("without_texts", False)  # of an import
    if is_told or not _have_texts(data, judged):
        return ShortcutScores(None, "", "the samples have no texts")
    train = train_samples(data)
    if len({sample.label for sample in train}) == len(Label):
        ids: list[str] = []

        def batches() -> Iterator[list[Sample]]:
            for split in judged:
                for batch in read_batches(data, split):
                    ids.extend(sample.id for sample in batch)
                    yield batch

        return ShortcutScores(_table(fitted_scores(train, batches(), SHORTCUTS), ids), "train", "")
    if Split.CALIBRATION not in judged:
        return ShortcutScores(None, "", "no train or calibration split with both labels to fit them on")
    return _on_calibration(data)


def _have_texts(data: Path, splits: Sequence[Split]) -> bool:
    """Whether responses differ in anything: a check that sees one text only can't be made."""
    seen: set[str] = set()
    for split in splits:
        for batch in read_batches(data, split):
            for sample in batch:
                seen.add(response_text(sample).strip())
                if len(seen) > 1:
                    return True
    return False


def _on_calibration(data: Path) -> ShortcutScores:
    some = read_some(data, Split.CALIBRATION, _FITTED_PER_CELL)
    samples = [sample for batch in read_batches(data, Split.CALIBRATION) for sample in batch]
    fold = group_index([sample.group_id for sample in samples]) % _FOLDS
    in_fold = {sample.id: int(k) for sample, k in zip(samples, fold.tolist(), strict=True)}
    parts: list[tuple[Mapping[Surface, FloatArray], list[Sample]]] = []
    for k in range(_FOLDS):
        fold_samples = [sample for sample in samples if in_fold[sample.id] == k]
        if fold_samples:
            training = [sample for sample in some if in_fold[sample.id] != k]
            parts.append((fitted_scores(training, [fold_samples], SHORTCUTS), fold_samples))
    tested = list(read_batches(data, Split.TEST))
    parts.append((fitted_scores(some, tested, SHORTCUTS), [sample for batch in tested for sample in batch]))
    if not all(fitted for fitted, _ in parts):
        return ShortcutScores(None, "", "the calibration split has too few samples of a label to fit them on")
    scores = {name: np.concatenate([fitted[name] for fitted, _ in parts]) for name in SHORTCUTS}
    return ShortcutScores(
        _table(scores, [row.id for _, fold_samples in parts for row in fold_samples]), "calibration", ""
    )


def _table(scores: Mapping[Surface, FloatArray], ids: Sequence[str]) -> pa.Table:
    return pa.table({"sample_id": pa.array(ids, pa.string()), **{str(k): v for k, v in scores.items()}})


def settings_of(study: Study, one: PointAt) -> Calibrate:
    """Return the settings that a point was calibrated with, as far as the point tells."""
    promise = one.point.thresholds[0]
    changes: dict[str, object] = {"method": promise.method, "alpha": promise.alpha}
    changes |= {"delta": promise.delta} if promise.delta is not None else {}
    changes |= {"n_candidates": promise.n_candidates}
    changes |= {"mix": promise.mix} if promise.mix != "given" else {}
    return study.calibrate.model_copy(update=changes)


def limits_of(one: PointAt) -> dict[str, float]:
    """Map categories to the point's thresholds; the category "" stands for all of them."""
    return {each.category: each.threshold for each in one.point.thresholds if each.threshold is not None}


def any_threshold(
    calibrate: Calibrate,
    recommend: Recommend,
    pair: CandidateRuns,
    deployment: Deployment,
    limit: float | None = None,
) -> tuple[Contender, Promise | None]:
    """Build a contender and its promise; calibration samples that it was not fitted on set its threshold."""
    of, usage = pair.calibration, pair.test.usage
    mix, strata = mix_asked(calibrate, of.judged, of.data, of.view)
    scored = unseen(of, strata)
    rows = np.isin(of.judged.group_ids().to_numpy(zero_copy_only=False), scored.group_ids)
    calibration = _above_all(of).taking(rows)
    promise = promise_of(calibrate, mix, scored, calibration) if recommend.promise else None
    candidate = contender(
        pair.monitor,
        pair.prompt,
        calibration,
        _above_all(pair.test),
        promise=promise,
        budget=budget_of(deployment, usage),
        unscored=recommend.unscored,
        weights=sample_weights(calibration.is_misbehavior, scored.strata, mix),
        outside=beyond_means(deployment, usage),
        limit=limit,
    )
    return candidate, promise


def at_point(study: Study, one: PointAt, pair: CandidateRuns, deployment: Deployment) -> Contender:
    """Build a contender at an operating point: its one threshold, or its answers where categories differ."""
    limits = limits_of(one)
    if list(limits) == [""]:
        return any_threshold(settings_of(study, one), study.recommend, pair, deployment, limits[""])[0]
    answers = answers_at(one.point, pair.calibration)
    rows = np.isin(answers.judged.group_ids().to_numpy(zero_copy_only=False), unseen(answers, None).group_ids)
    return contender(
        pair.monitor,
        pair.prompt,
        answers.judged.taking(rows),
        pair.test.judged,
        promise=None,
        budget=budget_of(deployment, pair.test.usage),
        unscored=study.recommend.unscored,
        outside=beyond_means(deployment, pair.test.usage),
        limits=limits,
    )


def own_answers(
    recommend: Recommend, of: Evaluation, deployment: Deployment, limits: Mapping[str, float]
) -> Contender:
    """Build a contender from the answers that it is read with, to be chosen on the test split."""
    return contender(
        of.monitor,
        of.prompt,
        of.judged,
        of.judged,
        promise=None,
        budget=budget_of(deployment, of.usage),
        unscored=recommend.unscored,
        outside=beyond_means(deployment, of.usage),
        limits=limits,
    )


def _above_all(of: Evaluation) -> Columns:
    """Return the run's samples; a missing score that counts as an alarm is put above every threshold."""
    return replace(of.judged, scores=np.where(forced_alarms(of), np.inf, of.judged.scores))


def shortcuts_at(
    calibrate: Calibrate,
    recommend: Recommend,
    checks: ShortcutScores,
    beside: CandidateRuns,
    deployment: Deployment,
) -> list[Contender]:
    """Build shortcut checks over the samples of a monitor's runs; the same rule chooses their thresholds."""
    of = beside.calibration
    mix, strata = mix_asked(calibrate, of.judged, of.data, of.view)
    on_test, on_calibration = checks.answers(beside.test.judged), checks.answers(of.judged)
    contenders = []
    for name, samples in on_calibration.items():
        scored = unseen(of._replace(judged=samples), strata)
        rows = np.isin(of.judged.group_ids().to_numpy(zero_copy_only=False), scored.group_ids)
        calibration = samples.taking(rows)
        contenders.append(
            contender(
                name,
                "none",
                calibration,
                on_test[name],
                promise=promise_of(calibrate, mix, scored, calibration) if recommend.promise else None,
                budget=budget_of(deployment, None),
                unscored=recommend.unscored,
                weights=sample_weights(calibration.is_misbehavior, scored.strata, mix),
            )
        )
    return contenders


def shortcuts_on_test(recommend: Recommend, checks: ShortcutScores, beside: Evaluation) -> list[Contender]:
    """Build shortcut checks at the thresholds that the test split shows to be best, in hindsight."""
    return [
        contender(name, "none", tested, tested, promise=None, budget=None, unscored=recommend.unscored)
        for name, tested in checks.answers(beside.judged).items()
    ]
