"""Decide from runs: build candidates, promises and shortcut checks, apply the rule and put it into words.

`recommended` decides among runs over both splits, at any threshold that keeps the promise; `decision_of`
among the runs that are scored, at their operating points or by their own answers.
"""

from collections.abc import Mapping, Sequence
from glob import escape
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.config.datasets import DEFAULT_MEANING
from monitorbench.config.evaluation import Calibrate
from monitorbench.config.study import Study
from monitorbench.metrics.choice import (
    PilotSaid,
    PromiseKept,
    Recommendation,
    ShortcutsFacts,
)
from monitorbench.metrics.columns import Columns
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished
from monitorbench.scoring.baselines import ShortcutScores, shortcuts_over
from monitorbench.scoring.evaluations import Evaluation, read_evaluation
from monitorbench.scoring.points import PointAt
from monitorbench.scoring.recommendation.assemble import assembled
from monitorbench.scoring.recommendation.candidates import CandidateRuns
from monitorbench.scoring.recommendation.contenders import (
    any_threshold,
    at_point,
    limits_of,
    own_answers,
    settings_of,
    shortcuts_at,
    shortcuts_on_test,
)
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.scoring.recommendation.more import has_calibration_split, more_for_any_scores
from monitorbench.scoring.recommendation.stressed import Key, Stressed, with_robustness
from monitorbench.scoring.recommendation.words import remarks, sentence

_UNJUDGED = (
    "gives answers only, and its run over the calibration split, by which these count, is not here; "
    "expected it beside the run over the test split"
)


def recommended(
    study: Study,
    pairs: Sequence[CandidateRuns],
    pilot: PilotSaid | None,
    of_stress: Mapping[Key, Stressed],
    deployment: Deployment,
) -> Recommendation:
    """Recommend among these monitors, and put the recommendation into words."""
    data = pairs[0].test.data
    # The calibration split sets each threshold and chooses among them: delta is shared out.
    n_candidates = max(study.calibrate.n_candidates, len(pairs))
    deployment = deployment._replace(n_candidates=n_candidates)
    each = study.calibrate.model_copy(update={"n_candidates": n_candidates})
    candidates = [any_threshold(each, study.recommend, pair, deployment) for pair in pairs]
    contenders = [contender for contender, _ in candidates]
    checks = shortcuts_over(study.paths.runs, data)
    recommendation = assembled(
        contenders,
        shortcuts_at(each, study.recommend, checks, pairs[0], deployment),
        [promise for _, promise in candidates],
        [pair.test.usage for pair in pairs],
        deployment,
        _checked(checks, pairs[0].test.judged),
        pilot,
        study.seed,
        data=data.name,
        positive_means=_meaning(data),
        kept=[
            None
            if contender.allowed.promised is None
            else PromiseKept(
                alpha=study.calibrate.alpha,
                delta=study.calibrate.delta if study.calibrate.method == "neyman_pearson" else None,
                n_candidates=n_candidates,
                n=contender.allowed.promised.n,
                effective_n=contender.allowed.promised.effective_n,
                method=study.calibrate.method,
            )
            for contender in contenders
        ],
    )
    _with_file(recommendation, [pair.test for pair in pairs])
    with_robustness(recommendation["options"], pairs, of_stress)
    recommendation["remarks"] = [
        *remarks(recommendation),
        *_of_settings(study.calibrate, study.recommend.promise),
    ]
    recommendation["sentence"] = sentence(recommendation)
    return recommendation


def decision_of(
    study: Study,
    evaluations: Sequence[Evaluation],
    points: Sequence[PointAt],
    voids: Mapping[tuple[str, str], Sequence[str]],
) -> Recommendation:
    """Decide among scored runs, for `metrics.json`.

    Candidates are the operating points, each at its own threshold; without any point they are all monitors,
    by their own answers. Monitors that give no scores are read as `recommended` reads them, by their runs
    over the calibration split; where there is such a split without these runs, nothing is decided. Where that
    split is too small for a promise, what `recommended` says of such runs is said here as well. Where the run
    that a point was calibrated on is gone, or is of another dataset, all is decided on the test split, as for
    own answers. `voids` says by monitor and prompt what makes a point's promise void.
    """
    read = _on_shared_samples([judged.evaluation for judged in points] or evaluations)
    data, n = read[0].data, len(read)
    calibrations = [_calibration_run(judged) for judged in points]
    on_both = [(judged, of) for judged, of in zip(calibrations, read, strict=False) if judged is not None]
    is_calibrated = bool(points) and len(on_both) == n
    deployment = Deployment(study.stakes, study.recommend, study.calibrate.delta, n)
    gives_answers_only = not points and all(np.isnan(of.judged.scores).all() for of in read)
    runs = study.paths.runs / "evaluate"
    if gives_answers_only and (pairs := _on_both(read, runs)):
        return recommended(study, pairs, None, {}, deployment)
    checks = shortcuts_over(study.paths.runs, data)
    if is_calibrated:
        pairs = [CandidateRuns(judged._replace(monitor=of.monitor), of) for judged, of in on_both]
        candidates = [
            at_point(study.calibrate, study.recommend, point, pair, deployment)
            for point, pair in zip(points, pairs, strict=True)
        ]
        contenders, promises = map(list, zip(*candidates, strict=True))
        settings = settings_of(study.calibrate, points[0])
        shortcuts = shortcuts_at(settings, study.recommend, checks, pairs[0], deployment)
    else:
        limits = [limits_of(judged) for judged in points] or [{}] * n
        promises = [None] * n
        contenders = [
            own_answers(study.recommend, of, deployment, limit)
            for of, limit in zip(read, limits, strict=True)
        ]
        shortcuts = shortcuts_on_test(study.recommend, checks, read[0])
    recommendation = assembled(
        contenders,
        shortcuts,
        promises,
        [of.usage for of in read],
        deployment,
        _checked(checks, read[0].judged),
        None,
        study.seed,
        data=data.name,
        positive_means=_meaning(data),
        kept=[_kept(judged, n) for judged in points] if is_calibrated else [None] * n,
        is_calibrated=is_calibrated,
    )
    _with_file(recommendation, read)
    if recommendation["monitor"] is not None and recommendation["prompt"] is not None:
        recommendation["voids"] = list(voids.get((recommendation["monitor"], recommendation["prompt"]), ()))
    recommendation["remarks"], recommendation["sentence"] = remarks(recommendation), sentence(recommendation)
    more = None if points else more_for_any_scores(study.calibrate, n, data, deployment.of_errors)
    is_unjudged = gives_answers_only and has_calibration_split(data)
    if more is not None or is_unjudged:
        recommendation["remarks"].insert(0, f"Without a promise: {recommendation['sentence']}")
        recommendation["decision"] = "insufficient"
    if is_unjudged:
        recommendation["monitor"] = recommendation["prompt"] = recommendation["more"] = None
        outside = {(contender.monitor, contender.prompt): contender.outside for contender in contenders}
        for option in recommendation["options"]:
            option["reason"] = outside[option["monitor"], option["prompt"]] or _UNJUDGED
    elif more is not None and study.recommend.promise and (pairs := _on_both(read, runs)):
        # The scores over that split are known: it may be that no number of questions helps.
        found = recommended(study, pairs, None, {}, deployment)
        recommendation["decision"], recommendation["more"] = found["decision"], found["more"]
        recommendation["sentence"] = found["sentence"]
        return recommendation
    elif more is not None:
        recommendation["more"] = more
        _with_file(recommendation, read)
    recommendation["sentence"] = sentence(recommendation)
    return recommendation


def _with_file(recommendation: Recommendation, evaluations: Sequence[Evaluation]) -> None:
    """Fill in, in place, what is told in terms of an imported file: each `scale`, and how it was split."""
    scales = {(of.monitor, of.prompt): of.scale for of in evaluations}
    for option in recommendation["options"]:
        scale = scales.get((option["monitor"], option["prompt"]))
        option["scale"] = None if scale is None else list(scale)
    if recommendation["more"] is not None:
        imported = read_finished(evaluations[0].data)["results"].get("imported", {})
        recommendation["more"]["calibration_share"] = imported.get("calibration_share", 0.0)


def _on_shared_samples(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Cut the evaluations to the test samples that all of them judged, in the first one's order."""
    first = evaluations[0].judged
    if all(evaluation.judged.sample_ids.equals(first.sample_ids) for evaluation in evaluations):
        return list(evaluations)
    shared = first.sample_ids
    for evaluation in evaluations[1:]:
        shared = shared.filter(pc.is_in(shared, value_set=evaluation.judged.sample_ids))
    aligned = []
    for evaluation in evaluations:
        rows = pc.index_in(shared, value_set=evaluation.judged.sample_ids).to_numpy(zero_copy_only=False)
        aligned.append(evaluation.taking(rows.astype(np.int64)))
    return aligned


def _calibration_run(one: PointAt) -> Evaluation | None:
    """Read an operating point's calibration run; None where it is gone, or of another dataset."""
    if one.is_elsewhere:
        return None
    judged = Path(read_finished(one.directory)["results"]["judged"])
    try:
        return read_evaluation(one.evaluation.data.parent, judged)
    except UserError:  # moved or removed; `points` says so
        return None


def _on_both(evaluations: Sequence[Evaluation], runs: Path) -> list[CandidateRuns]:
    """Pair monitors with their runs over the calibration split, beside theirs or in `runs`.

    Nothing is returned unless each has one.
    """
    pairs = []
    for of in evaluations:
        stem = escape(of.directory.name.rpartition(f"-{Split.TEST}-")[0] or "?")
        folders = dict.fromkeys((of.directory.parent, runs))
        for directory in chain(*(sorted(at.glob(f"{stem}-{Split.CALIBRATION}-*")) for at in folders)):
            held = read_evaluation(of.data.parent, directory)
            if (held.judge_hash, held.data) == (of.judge_hash, of.data):
                pairs.append(CandidateRuns(held._replace(monitor=of.monitor), of))
                break
    return pairs if len(pairs) == len(evaluations) else []


def _kept(one: PointAt, n_candidates: int) -> PromiseKept | None:
    """Say what a point promises though it was chosen among several, each of which keeps its promise alone."""
    promises = [each for each in one.point.thresholds if each.threshold is not None]
    first = promises[0]
    more = max(1.0, n_candidates / first.n_candidates)  # it keeps its share of so many already
    alpha = first.alpha if first.delta is not None else first.alpha * more
    delta = None if first.delta is None else first.delta * more
    if alpha >= 1 or (delta is not None and delta >= 1):
        return None
    return PromiseKept(
        alpha=alpha,
        delta=delta,
        n_candidates=max(n_candidates, first.n_candidates),
        n=min(each.n for each in promises),
        effective_n=first.effective_n,
        method=first.method,
    )


def _checked(checks: ShortcutScores, test: Columns) -> ShortcutsFacts:
    """Tell whether the shortcut checks were made, what they were fitted on, or why they were not made."""
    return ShortcutsFacts(
        checked=checks.table is not None,
        fitted_on=checks.fitted_on,
        reason=checks.reason,
        n_test=int(checks.judged(test).sum()),
        reach=[],
    )


def _meaning(data: Path) -> str:
    """Read what the label `misbehavior` means in a dataset."""
    means: str = read_finished(data)["results"].get("positive_means", DEFAULT_MEANING)
    return means


def _of_settings(calibrate: Calibrate, promise: bool) -> list[str]:
    """Remark on settings of other stages that do not reach the recommendation."""
    notes = []
    if calibrate.per_category and promise:
        notes.append("One threshold for all categories: calibrate.per_category is for calibrate alone.")
    if isinstance(calibrate.mix, dict):
        notes.append("Figures are in the test split's own shares of cells, not in those of calibrate.mix.")
    return notes
