"""Build what the rule chooses among: contenders from runs, and shortcut checks as if they were monitors.

Contenders stand at any threshold, at an operating point, or by their own answers. Promises: a shortcut check
gets its threshold as a monitor does.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate
from monitorbench.metrics.columns import Columns
from monitorbench.scoring.baselines import ShortcutScores
from monitorbench.scoring.calibrate import unseen
from monitorbench.scoring.evaluations import Evaluation, answers_at, forced_alarms
from monitorbench.scoring.mix import mix_asked
from monitorbench.scoring.points import PointAt
from monitorbench.scoring.recommendation.candidates import CandidateRuns, Contender, contender, sample_weights
from monitorbench.scoring.recommendation.deployment import Deployment, beyond_means, budget_of
from monitorbench.scoring.recommendation.more import Promise, promise_of


def settings_of(calibrate: Calibrate, one: PointAt) -> Calibrate:
    """Return the settings that a point was calibrated with, as far as the point tells.

    Raises `UserError` for a threshold from a few labels of a log, which no calibration split can set anew.
    """
    promise = one.point.thresholds[0]
    if promise.method == "few_labels":
        raise UserError(
            f"{one.name}: its threshold is promised for the traffic of one log, and isn't compared on a test "
            "split; calibrate on the calibration split of the dataset"
        )
    changes: dict[str, object] = {"method": promise.method, "alpha": promise.alpha}
    changes |= {"delta": promise.delta} if promise.delta is not None else {}
    changes |= {"n_candidates": promise.n_candidates}
    changes |= {"mix": promise.mix} if promise.mix != "given" else {}
    return calibrate.model_copy(update=changes)


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


def at_point(
    calibrate: Calibrate, recommend: Recommend, one: PointAt, pair: CandidateRuns, deployment: Deployment
) -> tuple[Contender, Promise | None]:
    """Build a contender at an operating point: its one threshold with what it was set by, or its answers
    without a promise where categories differ.
    """
    limits = limits_of(one)
    if list(limits) == [""]:
        return any_threshold(settings_of(calibrate, one), recommend, pair, deployment, limits[""])
    answers = answers_at(one.point, pair.calibration)
    rows = np.isin(answers.judged.group_ids().to_numpy(zero_copy_only=False), unseen(answers, None).group_ids)
    candidate = contender(
        pair.monitor,
        pair.prompt,
        answers.judged.taking(rows),
        pair.test.judged,
        promise=None,
        budget=budget_of(deployment, pair.test.usage),
        unscored=recommend.unscored,
        outside=beyond_means(deployment, pair.test.usage),
        limits=limits,
    )
    return candidate, None


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
    judged = checks.judged(of.judged)
    of, strata = of.taking(judged), strata and np.array(strata)[judged].tolist()
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
