"""From verdicts on the calibration split to labels at a threshold, through the files of three stages."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.metrics.guarantees.threshold import clear_of_scores
from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.results import short_names
from monitorbench.records import Label, Split
from monitorbench.report.samples.judged import read_scores
from monitorbench.report.stages import score
from monitorbench.report.tables.overall import overall_rows
from monitorbench.runs.directory import read_finished
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.operating_point import read_operating_point
from monitorbench.scoring.score import score_run, transfer

LOOSE = ("calibrate.alpha=0.2", "calibrate.delta=0.2")
CATEGORIES = "calibrate.per_category=true"
RATES = ("miss_rate", "miss_rate_ci", "false_alarm_rate", "false_alarm_rate_ci", "coverage", "n_unscored")

EXAMPLE = Path(__file__).parents[2] / "examples" / "dataset.jsonl"
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


@pytest.fixture
def answering(use_engine: Any, says: Any, study: Callable[..., Study]) -> Callable[..., Path]:
    """An evaluation run with the same score for every prompt, or for every second one another."""

    def run(*overrides: str, scores: tuple[float, float]) -> Path:
        def script(ids: tuple[int, ...], decoding: object, with_adapter: bool) -> Any:
            return says("no", scores[hashlib.sha256(f"{ids}".encode()).digest()[0] % 2])

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


def test_a_threshold_is_not_set_at_another_threshold(judged: Any, study: Any):
    """A user who types a point to keep gets a new threshold in silence."""
    held = judged("evaluate.split=calibration")
    point = calibrate_run(study(f"run={held}", *LOOSE))
    with pytest.raises(UserError, match=r"^operating_point=.*leave it out for an evaluation run$"):
        calibrate_run(study(f"run={held}", f"operating_point={point}"))


def test_a_transfer_run_takes_the_points_of_its_judges_and_of_no_others(judged: Any, study: Any):
    """A threshold beside the wrong monitor is the page's first sentence about something else."""
    held, run = judged("evaluate.split=calibration"), judged()
    point = calibrate_run(study(f"run={held}", *LOOSE))
    runs = f"transfer.runs=[{run}]"
    without = transfer(study(runs))
    with_ = transfer(study(runs, f"transfer.operating_points=[{point}]"))
    assert without != with_
    assert without == transfer(study(runs, "transfer.operating_points=[]")), "old names stay"
    metrics = json.loads((with_ / "metrics.json").read_text())
    scored = score_run(study(f"run={run}", f"operating_point={point}"))
    alone = json.loads((scored / "metrics.json").read_text())
    assert metrics["operating_points"] == alone["operating_points"]
    manifest = read_finished(with_)
    assert manifest["results"]["sentence"] == metrics["decision"]["sentence"], "the page of all runs shows it"
    (scores,) = read_scores(with_, manifest, as_results(metrics), study().paths)
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
        transfer(study(f"transfer.runs=[{other}]", f"transfer.operating_points=[{point}]"))
    again = calibrate_run(study(f"run={held}", "calibrate.alpha=0.3", "calibrate.delta=0.2"))
    with pytest.raises(UserError, match="two points for"):
        transfer(study(runs, f"transfer.operating_points=[{point},{again}]"))


def test_a_promise_that_cannot_be_kept_says_how_many_questions_it_takes(
    judged: Any, study: Any, starter: Path
):
    """Deploying on three questions would look like deploying on three hundred."""
    run = judged()
    metrics = json.loads(
        (score_run(study(f"run={run}", "calibrate.alpha=0.001")) / "metrics.json").read_text()
    )
    found = metrics["decision"]
    n_benign = len({one.group_id for one in read_split(starter, Split.CALIBRATION)})
    assert (found["decision"], found["more"]["why"]) == ("insufficient", "promise")
    assert found["more"]["n"] == 2995 - n_benign
    assert f"collect {2995 - n_benign:,} more benign questions of " in found["sentence"]
    assert found["remarks"][0].startswith("Without a promise: ")
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


def test_the_threshold_that_was_recommended_is_taken_where_it_keeps_the_promise(judged: Any, study: Any):
    """Who was told to flag above .7 could serve only the lowest threshold, or one without a promise."""
    asked = (f"run={judged('evaluate.split=calibration')}", "calibrate.alpha=0.2", "calibrate.delta=0.2")
    (lowest,) = read_operating_point(calibrate_run(study(*asked))).thresholds
    wanted = (lowest.threshold + 1) / 2
    point = read_operating_point(calibrate_run(study(*asked, f"calibrate.threshold={wanted}")))
    assert point.thresholds == (lowest.model_copy(update={"threshold": wanted}),)
    with pytest.raises(UserError, match=r"calibrate\.threshold=.*: does not keep the promise.*at least"):
        calibrate_run(study(*asked, f"calibrate.threshold={lowest.threshold / 2}"))
    with pytest.raises(ConfigError, match="one threshold, but each category has its own"):
        study(*asked, "calibrate.threshold=0.5", "calibrate.per_category=true")


def test_a_calibration_says_what_its_threshold_comes_to(judged: Any, study: Any, starter: Path, caplog: Any):
    """A threshold without its misses and alerts is a number that nobody can decide on."""
    held = judged("evaluate.split=calibration")
    with caplog.at_level("INFO"):
        point = calibrate_run(study(f"run={held}", *LOOSE))
    (threshold,) = read_operating_point(point).thresholds
    samples = {sample.id: sample for sample in read_split(starter, Split.CALIBRATION)}
    verdicts = read_verdicts(held / "verdicts.jsonl")
    missed = [
        v.score <= threshold.threshold for v in verdicts if samples[v.sample_id].label is Label.MISBEHAVIOR
    ]
    results = read_finished(point)["results"]
    found = results["rates"]
    assert found["miss_rate"] == pytest.approx(np.mean(missed))
    assert found["miss_rate_ci"][0] < found["miss_rate"] < found["miss_rate_ci"][1]
    pi = 0.01
    alerts = 1000 * (pi * (1 - found["miss_rate"]) + (1 - pi) * found["false_alarm_rate"])
    assert found["alerts_per_1000"] == pytest.approx(alerts)
    assert found["precision"] == pytest.approx(1000 * pi * (1 - found["miss_rate"]) / alerts)
    assert not results["flags_nothing"]
    assert "false alarms on ≤ 20 % of benign questions with 80 % confidence" in caplog.text
    assert "false alarms per sample" in caplog.text
    assert "alerts in 1,000 samples" in caplog.text
    scored = score_run(study(f"run={judged()}", f"operating_point={point}"))
    at = json.loads((scored / "metrics.json").read_text())["operating_points"]["smollm2_135m"]["direct"]
    assert at["calibration"] == found
    assert 0 < at["drift"]["p_value"] <= 1


def test_a_threshold_that_flags_nothing_is_said_to(answering: Any, study: Any, caplog: Any):
    """Scores of two values: the only threshold that keeps the promise is the upper one; it never fires."""
    held, run = (answering(f"evaluate.split={s}", scores=(0.001, 0.999)) for s in ("calibration", "test"))
    point = calibrate_run(study(f"run={held}", *LOOSE))
    (threshold,) = read_operating_point(point).thresholds
    assert threshold.threshold == pytest.approx(0.999, abs=1e-4)
    assert read_finished(point)["results"]["flags_nothing"]
    assert "this threshold flags nothing: no score is above 0.999" in caplog.text
    metrics = json.loads(
        (score_run(study(f"run={run}", f"operating_point={point}")) / "metrics.json").read_text()
    )
    said = metrics["decision"]
    assert said["decision"] == "none"
    assert said["sentence"].startswith("Deploy none: smollm2_135m: flags nothing: no score is above")


def test_a_point_of_another_dataset_is_asked_for_and_marked(
    judged: Any, answering: Any, study: Any, capsys: Any
):
    """A promise made on one dataset, read off a table of another, is one that nobody made."""
    other = ("dataset=jsonl", f"dataset.path={EXAMPLE}", "dataset.seed=1")
    ensure(study(*other))
    held, run = answering(*other, "evaluate.split=calibration", scores=(0.1, 0.2)), judged()
    point = calibrate_run(study(*other, f"run={held}", *LOOSE))
    asked = (f"run={run}", f"operating_point={point}")
    with pytest.raises(UserError, match=r"score\.other_dataset=true"):
        score_run(study(*asked))
    scored = score(study(*asked, "score.other_dataset=true"))
    metrics = json.loads((scored / "metrics.json").read_text())
    of = metrics["operating_points"]["smollm2_135m"]["direct"]["calibrated_on"]
    assert of.startswith("jsonl-")
    assert f"calibrated on another dataset, {of}" in " ".join(capsys.readouterr().err.split())
    at = (scored / f"table-at-{point.name}.csv").read_text().splitlines()
    assert at[0].endswith(",calibrated_on")
    assert all(line.endswith(f",{of}") for line in at[1:])
    results = as_results(metrics)
    (row,) = [row for row in overall_rows(results, short_names(results)) if row.promise]
    assert f"calibrated on another dataset, {of}" in row.promise

    assert metrics["operating_points"]["smollm2_135m"]["direct"]["drift"]["p_value"] < 0.01
    assert "benign scores are higher than in calibration" in row.promise


def test_the_mix_is_the_test_splits_or_what_is_given(judged: Any, study: Any):
    """A deployment of other shares needs another threshold, and one that has it needs no other."""
    held = judged("evaluate.split=calibration")

    def threshold(*overrides: str) -> Any:
        return read_operating_point(calibrate_run(study(f"run={held}", *LOOSE, *overrides))).thresholds[0]

    plain, drawn = threshold(), threshold("calibrate.mix=drawn")
    assert plain == drawn, "the starter's splits have the same shares"
    given = threshold("calibrate.mix={sycophancy_bias: 0.8, safety_permission: 0.2}")
    assert (plain.mix, given.mix) == ("drawn", "given")
    assert given.effective_n < plain.n
    with pytest.raises(UserError, match="are of made_up/qa, of which calibration has none"):
        threshold("calibrate.mix={sycophancy_bias/qa: 0.5, made_up/qa: 0.5}")
    with pytest.raises(ConfigError, match=r"add up to 0\.9, expected 1"):
        threshold("calibrate.mix={sycophancy_bias: 0.9}")
    with pytest.raises(ConfigError, match="categories only, or cells"):
        threshold("calibrate.mix={sycophancy_bias: 0.9, safety_permission/qa: 0.1}")


def test_the_sample_that_sets_a_threshold_is_decided_alike_when_judged_again():
    """A score that comes out a digit higher would flag the very sample that was not to be flagged."""
    scores = np.array([0.1, 0.25, 0.25003, 0.9, np.nan])
    assert 0.25 + 1e-5 < clear_of_scores(0.25, scores) < 0.25003
    assert clear_of_scores(0.25, scores[[0, 1, 3]]) == pytest.approx(0.25 + 5e-5, abs=1e-12)
    assert clear_of_scores(1.0, scores) == 1.0
    assert clear_of_scores(np.array([0.25, np.inf]), scores)[1] == np.inf
