"""From verdicts on the calibration split to labels at a threshold, through the files of three stages."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Label, Split
from monitorbench.report.scores import read_scores
from monitorbench.report.sections.decision import decision
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import read_verdicts
from monitorbench.scoring.calibrate import calibrate_run, read_operating_point
from monitorbench.scoring.score import probe, score_run

LOOSE = ("calibrate.alpha=0.2", "calibrate.delta=0.2")
CATEGORIES = "calibrate.per_category=true"
RATES = ("miss_rate", "miss_rate_ci", "false_alarm_rate", "false_alarm_rate_ci", "coverage", "n_unscored")

WHOLE = ("dataset.test.pairs_per_cell=null", "dataset.calibration.pairs_per_cell=null")


@pytest.fixture
def judged(use_engine: Any, says: Any, study: Callable[..., Study]) -> Callable[..., Path]:
    """An evaluation run with scores drawn from the prompt's ids; always answers no."""

    def run(*overrides: str) -> Path:
        def script(ids: tuple[int, ...], decoding: object, with_adapter: bool) -> Any:
            return says("no", hashlib.sha256(f"{ids}".encode()).digest()[0] / 256 * 0.98 + 0.01)

        use_engine(script)
        return evaluate(study(*WHOLE, *overrides))

    return run


def test_a_threshold_is_applied_to_the_test_split(judged: Any, study: Any, starter: Path):
    """The threshold in the report would not be the one that was calibrated."""
    held = judged("evaluate.split=calibration")
    point = calibrate_run(study(f"run={held}", "calibrate.alpha=0.2", "calibrate.delta=0.2"))
    (threshold,) = read_operating_point(point).thresholds
    samples = {sample.id: sample for sample in read_split(starter, Split.CALIBRATION)}
    benign = [
        v.score for v in read_verdicts(held / "verdicts.jsonl") if samples[v.sample_id].label is Label.BENIGN
    ]
    assert len(benign) == len(samples) / 2
    assert sum(score > threshold.threshold for score in benign) / len(benign) <= 0.2

    run = judged()
    scored = score_run(study(f"run={run}", f"operating_point={point}"))
    results = json.loads((scored / f"metrics-at-{point.name}.json").read_text())
    tested = {sample.id: sample for sample in read_split(starter, Split.TEST)}
    alarms = [
        v.score > threshold.threshold
        for v in read_verdicts(run / "verdicts.jsonl")
        if tested[v.sample_id].label is Label.BENIGN
    ]
    found = results["monitors"]["smollm2_135m"]["direct"]["overall"]
    assert 0 < sum(alarms) < len(alarms)
    assert found["false_alarm_rate"] == pytest.approx(sum(alarms) / len(alarms))
    assert results["operating_point"]["thresholds"][0]["alpha"] == 0.2
    beside = json.loads((scored / "metrics.json").read_text())
    assert beside["monitors"]["smollm2_135m"]["direct"]["overall"]["false_alarm_rate"] == 0, "greedy stays"
    assert "operating_point" not in beside
    there = beside["operating_points"]["smollm2_135m"]["direct"]
    assert there["thresholds"][0]["threshold"] == threshold.threshold
    assert {key: there["rates"][key] for key in RATES} == {key: found[key] for key in RATES}
    assert beside["decision"]["is_calibrated"]
    greedy = json.loads((score_run(study(f"run={run}")) / "metrics.json").read_text())
    assert "operating_points" not in greedy
    assert not greedy["decision"]["is_calibrated"]


def test_a_probe_takes_the_points_of_its_judges_and_of_no_others(judged: Any, study: Any):
    """A threshold beside the wrong monitor is the page's first sentence about something else."""
    held, run = judged("evaluate.split=calibration"), judged()
    point = calibrate_run(study(f"run={held}", *LOOSE))
    runs = f"probe.runs=[{run}]"
    without = probe(study(runs))
    with_ = probe(study(runs, f"probe.operating_points=[{point}]"))
    assert without != with_
    assert without == probe(study(runs, "probe.operating_points=[]")), "old names stay"
    metrics = json.loads((with_ / "metrics.json").read_text())
    scored = score_run(study(f"run={run}", f"operating_point={point}"))
    alone = json.loads((scored / "metrics.json").read_text())
    assert metrics["operating_points"] == alone["operating_points"]
    manifest = read_finished(with_)
    (scores,) = read_scores(with_, manifest, metrics, study().paths)
    answered = {v.sample_id: v.score for v in read_verdicts(run / "verdicts.jsonl")}
    assert (scores.monitor, scores.prompt) == ("smollm2_135m", "direct")
    assert np.repeat(scores.values, scores.misbehavior + scores.benign).tolist() == sorted(answered.values())
    above = scores.values > alone["operating_points"]["smollm2_135m"]["direct"]["thresholds"][0]["threshold"]
    share = scores.benign[above].sum() / scores.benign.sum()
    assert share == alone["operating_points"]["smollm2_135m"]["direct"]["rates"]["false_alarm_rate"]
    usage = metrics["usage"]["smollm2_135m"]["direct"]
    verdicts = read_verdicts(run / "verdicts.jsonl")
    assert usage["n"] == len(verdicts)
    assert usage["seconds_p95"] == pytest.approx(np.quantile([v.seconds for v in verdicts], 0.95))
    assert usage["prompt_tokens"] == pytest.approx(np.mean([v.prompt_tokens for v in verdicts]))
    assert usage["cost"] is None, "no prices, no cost"

    other = judged("prompt.user='{{ request }} {{ response }}'")
    with pytest.raises(UserError, match="was calibrated for"):
        probe(study(f"probe.runs=[{other}]", f"probe.operating_points=[{point}]"))
    again = calibrate_run(study(f"run={held}", "calibrate.alpha=0.3", "calibrate.delta=0.2"))
    with pytest.raises(UserError, match="two points for"):
        probe(study(runs, f"probe.operating_points=[{point},{again}]"))


def test_a_promise_that_cannot_be_kept_says_how_many_questions_it_takes(judged: Any, study: Any):
    """Deploying on three questions would look like deploying on three hundred."""
    run = judged()
    metrics = json.loads(
        (score_run(study(f"run={run}", "calibrate.alpha=0.001")) / "metrics.json").read_text()
    )
    found = decision(metrics)
    held = metrics["decision"]["promise"]
    assert (found.kind, held["needed"]) == ("too_few", 2995)
    assert found.n_more == 2995 - held["n"]
    assert found.sentence.startswith(f"Too few questions: {found.n_more:,} more.")
    by_category = calibrate_run(study(f"run={judged('evaluate.split=calibration')}", *LOOSE, CATEGORIES))
    scored = score_run(study(f"run={run}", f"operating_point={by_category}"))
    point = json.loads((scored / "metrics.json").read_text())["operating_points"]["smollm2_135m"]["direct"]
    assert len({one["category"] for one in point["thresholds"]}) == 3


def test_splits_are_not_mixed_up(judged: Any, study: Any):
    """A threshold chosen on the test split promises nothing; metrics of the calibration split flatter."""
    held, run = judged("evaluate.split=calibration"), judged()
    with pytest.raises(UserError, match="expected only those of `calibration`"):
        calibrate_run(study(f"run={run}"))
    with pytest.raises(UserError, match="judged the calibration split"):
        score_run(study(f"run={held}"))


def test_another_judge_does_not_get_the_threshold(judged: Any, study: Any):
    """Scores of another prompt mean something else: the promise would be void without a word."""
    point = calibrate_run(study(f"run={judged('evaluate.split=calibration')}", "calibrate.alpha=0.2"))
    other = judged("prompt.user='{{ request }} {{ response }}'")
    with pytest.raises(UserError, match="was calibrated for"):
        score_run(study(f"run={other}", f"operating_point={point}"))
    with pytest.raises(UserError, match="not a calibration"):
        score_run(study(f"run={other}", f"operating_point={other}"))


def test_too_few_samples_are_said_to_be_too_few(judged: Any, study: Any):
    """A threshold without a promise would look like one with it."""
    held = judged("evaluate.split=calibration")
    with pytest.raises(UserError, match=r"\d+ benign questions, 2995 needed"):
        calibrate_run(study(f"run={held}", "calibrate.alpha=0.001"))
    by_category = calibrate_run(
        study(f"run={held}", "calibrate.per_category=true", "calibrate.alpha=0.3", "calibrate.delta=0.3")
    )
    assert len(read_operating_point(by_category).thresholds) == 3
