"""`recommend`: from scored runs to `recommendation.json` and its page, in `runs/recommend/<dataset>-<hash>/`.

No model is run. The same settings and runs find the same directory.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.datasets import DEFAULT_MEANING
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate
from monitorbench.config.study import Study
from monitorbench.metrics.choice.facts import FILE, SCHEMA_VERSION, PilotSaid, Recommendation, ShortcutsFacts
from monitorbench.metrics.columns import Columns
from monitorbench.report.recommendation.page import render_recommendation
from monitorbench.report.recommendation.words import remarks, sentence
from monitorbench.report.stress.read import Stressed
from monitorbench.runs.directory import RunDirectory, kind_of, read_checked, read_finished, record_files
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.run_folders import dataset_name
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.calibrate import unseen
from monitorbench.scoring.evaluations import Evaluation, forced_alarms
from monitorbench.scoring.mix import mix_asked
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.recommendation.assemble import assembled
from monitorbench.scoring.recommendation.candidates import CandidateRuns, pairs_of
from monitorbench.scoring.recommendation.contenders import Contender, contender, sample_weights
from monitorbench.scoring.recommendation.deployment import (
    Deployment,
    beyond_means,
    budget_of,
    deployment_of,
)
from monitorbench.scoring.recommendation.more import Promise, promise_of
from monitorbench.scoring.recommendation.shortcuts import ShortcutScores, shortcuts_over
from monitorbench.scoring.recommendation.stressed import Key, stressed, with_robustness

PAGE = "recommendation.html"
_DECISION = "decision.json"
_log = logging.getLogger(__name__)


def recommend(study: Study) -> Path:
    """Recommend one of the monitors of `study.recommend.runs`, or none; returns the run directory.

    Raises what `recommendation_run` raises.
    """
    directory = recommendation_run(study)
    found = read_checked(directory, FILE)
    for line in (found["sentence"], *found["remarks"]):
        _log.info("recommend: %s", line)
    return directory


def recommendation_run(study: Study) -> Path:
    """Write the recommendation among `study.recommend.runs` and its page; returns the run directory.

    Raises what `deployment_of` and `pairs_of` raise, `UserError` where `recommend.pilot` is no pilot.
    """
    deployment = deployment_of(study.stakes, study.recommend, study.calibrate)
    pairs = pairs_of(study.recommend.runs, study.paths.data, study.score.min_coverage)
    data = pairs[0].test.data
    pilot = _pilot(study.recommend.pilot)
    of_stress = stressed(study.paths.runs, pairs)
    settings = study.recommend.model_dump(mode="json", exclude={"runs", "pilot"})
    identity: dict[str, Any] = {
        "runs": sorted(content_hash([e.id, e.monitor, e.prompt]) for pair in pairs for e in pair),
        "recommend": settings,
        "stakes": study.stakes.model_dump(),
        "calibrate": study.calibrate.model_dump(mode="json"),
        "resamples": study.score.resamples,
        "seed": study.seed,
        "pilot": pilot,
    }
    identity["recommendation"] = SCHEMA_VERSION
    identity |= {"stress": sorted(content_hash(one.facts) for one in of_stress.values())} if of_stress else {}
    run = RunDirectory(study.paths.runs / "recommend", dataset_name(data.name), identity)
    if not run.done:
        with run.recording(study) as results:
            found = recommended(study, pairs, pilot, of_stress, deployment)
            write_json(run.path / FILE, found)
            results |= {
                "data": data.name,
                "runs": [str(e.directory) for pair in pairs for e in pair],
                "decision": found["decision"],
                "monitor": found["monitor"],
                "sentence": found["sentence"],
            }
        write_atomically(run.path / PAGE, render_recommendation(found, read_finished(run.path)))
        record_files(run.path, PAGE)
        track_results(study, run.path, "recommend", files=[run.path / PAGE])
    return run.path


def recommended(
    study: Study,
    pairs: Sequence[CandidateRuns],
    pilot: PilotSaid | None,
    of_stress: Mapping[Key, Stressed],
    deployment: Deployment,
) -> Recommendation:
    """The recommendation among these monitors, its words included."""
    data = pairs[0].test.data
    # The calibration split sets each threshold and chooses among them: delta is shared out.
    n_candidates = max(study.calibrate.n_candidates, len(pairs))
    calibrate = study.calibrate.model_copy(update={"n_candidates": n_candidates})
    deployment = deployment._replace(delta=calibrate.delta / n_candidates)
    contenders, promises = [], []
    for pair in pairs:
        one, promise = _contender(calibrate, study.recommend, pair, deployment)
        contenders.append(one)
        promises.append(promise)
    checks = shortcuts_over(study, data)
    means = read_finished(data)["results"].get("positive_means", DEFAULT_MEANING)
    found = assembled(
        contenders,
        [_shortcut(calibrate, study.recommend, name, checks, pairs[0], deployment) for name in checks.names],
        promises,
        [pair.test.usage for pair in pairs],
        deployment,
        ShortcutsFacts(checked=checks.table is not None, fitted_on=checks.fitted_on, reason=checks.reason),
        pilot,
        Drawn(resamples=study.score.resamples, seed=study.seed),
        data=data.name,
        positive_means=means,
    )
    with_robustness(found["options"], pairs, of_stress)
    found["remarks"] = [*remarks(found), *_of_settings(study.calibrate, study.recommend.promise)]
    found["sentence"] = sentence(found)
    return found


def _contender(
    calibrate: Calibrate, recommend: Recommend, pair: CandidateRuns, deployment: Deployment
) -> tuple[Contender, Promise | None]:
    """A monitor, its threshold from the samples of the calibration split that it was not fitted on."""
    of, taken = pair.calibration, pair.test.usage
    mix, strata = mix_asked(calibrate, of.judged, of.data, of.view)
    scored = unseen(of, strata)
    rows = np.isin(of.judged.group_ids().to_numpy(zero_copy_only=False), scored.group_ids)
    held = _above_all(of).taking(rows)
    promise = promise_of(calibrate, mix, scored, held) if recommend.promise else None
    one = contender(
        pair.monitor,
        pair.prompt,
        held,
        _above_all(pair.test),
        promise=promise,
        budget=budget_of(deployment, taken),
        unscored=recommend.unscored,
        weights=sample_weights(held.is_misbehavior, scored.strata, mix),
        outside=beyond_means(deployment, taken),
    )
    return one, promise


def _above_all(of: Evaluation) -> Columns:
    """The run's samples; a missing score that counts as an alarm is above every threshold."""
    return replace(of.judged, scores=np.where(forced_alarms(of), np.inf, of.judged.scores))


def _shortcut(
    calibrate: Calibrate,
    recommend: Recommend,
    name: str,
    checks: ShortcutScores,
    beside: CandidateRuns,
    deployment: Deployment,
) -> Contender:
    """A shortcut check over the samples of a monitor's runs, its threshold chosen by the same rule."""
    scored: list[Columns] = []
    for of in beside:
        scores = checks.scores(name, of.judged)
        scored.append(of.judged.answering((scores >= 0.5).astype(np.float64), scores))
    of = beside.calibration
    mix, strata = mix_asked(calibrate, of.judged, of.data, of.view)
    promise = None
    whole = unseen(of._replace(judged=scored[0]), strata)
    rows = np.isin(of.judged.group_ids().to_numpy(zero_copy_only=False), whole.group_ids)
    held = scored[0].taking(rows)
    if recommend.promise:
        promise = promise_of(calibrate, mix, whole, held)
    return contender(
        name,
        "none",
        held,
        scored[1],
        promise=promise,
        budget=budget_of(deployment, None),
        unscored=recommend.unscored,
        weights=sample_weights(held.is_misbehavior, whole.strata, mix),
    )


def _pilot(directory: Path | None) -> PilotSaid | None:
    """The decision of a finished pilot; `UserError` where the directory is none."""
    if directory is None:
        return None
    if _DECISION not in read_finished(directory).get("files", {}):
        raise UserError(
            f"recommend.pilot={directory}: {kind_of(directory)} without {_DECISION}; expected a run of "
            "eval/pilot.py"
        )
    said = read_checked(directory, _DECISION)
    return PilotSaid(
        run=directory.resolve().name,
        decision=said["decision"],
        agent=said["agent"],
        condition=said["condition"],
        sentence=said["sentence"],
    )


def _of_settings(calibrate: Calibrate, promise: bool) -> list[str]:
    """What settings of other stages do not reach."""
    found = []
    if calibrate.per_category and promise:
        found.append("One threshold for all categories: calibrate.per_category is for calibrate alone.")
    if isinstance(calibrate.mix, dict):
        found.append("Figures are in the test split's own shares of cells, not in those of calibrate.mix.")
    return found
