"""From verdicts on the calibration split to labels at a threshold, through the files of three stages."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Label, Split
from monitorbench.runs.verdict_log import read_verdicts
from monitorbench.scoring.calibrate import calibrate_run, read_operating_point
from monitorbench.scoring.score import score_run

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
    results = json.loads(
        (score_run(study(f"run={run}", f"operating_point={point}")) / "metrics.json").read_text()
    )
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
    greedy = json.loads((score_run(study(f"run={run}")) / "metrics.json").read_text())
    assert greedy["monitors"]["smollm2_135m"]["direct"]["overall"]["false_alarm_rate"] == 0
    assert "operating_point" not in greedy


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
