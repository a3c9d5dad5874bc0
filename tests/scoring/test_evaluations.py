"""An evaluation run read back, and the baselines that are kept beside it."""

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sealed import seal, seal_log

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import UnscoredReason, Verdict
from monitorbench.runs.keyed_log import (
    FAILURES,
    VERDICTS,
    Failure,
    open_failure_log,
    open_verdict_log,
    read_verdicts,
)
from monitorbench.scoring import baselines
from monitorbench.scoring.baselines import FITTED
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.combination.combined_run import combine_runs
from monitorbench.scoring.evaluations import read_evaluation, unscored_reasons
from monitorbench.scoring.score import score_run, transfer


@pytest.fixture
def run(study: Callable[..., Study], use_engine: Any, says_by_prompt: Any) -> Path:
    """A finished evaluation run."""
    use_engine(says_by_prompt)
    return evaluate(study())


def test_each_sample_has_its_own_verdict_and_the_last_one_counts(run: Path, study: Any, starter: Path):
    """A verdict beside another sample is a wrong number that nothing shows."""
    log = run / "verdicts.jsonl"
    verdicts = {one.sample_id: one for one in read_verdicts(log)}
    samples = read_evaluation(study().paths.data, run).judged
    assert samples.scores.tolist() == [verdicts[name].score for name in samples.sample_ids.to_pylist()]
    first = samples.sample_ids[0].as_py()
    again = verdicts[first].model_copy(update={"key": "again", "score": 0.123})
    foreign = verdicts[first].model_copy(update={"key": "foreign", "sample_id": "of another view"})
    with log.open("a") as stream:
        stream.write(again.model_dump_json() + "\n" + foreign.model_dump_json() + "\n")
    seal_log(log)
    found = read_evaluation(study().paths.data, run).judged
    assert len(found) == len(verdicts)
    assert found.scores.tolist() == [0.123, *samples.scores.tolist()[1:]]


def lose(run: Path, n: int) -> list[Verdict]:
    """Make the last verdicts of a run failed requests; returns them as they were."""
    log = run / VERDICTS
    lost = read_verdicts(log)[-n:]
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-n]))
    with open_failure_log(run / FAILURES) as failures:
        for one, reason in zip(lost, cycle((UnscoredReason.HTTP_ERROR, UnscoredReason.EMPTY)), strict=False):
            failed = {"label": None, "score": None, "unscored": reason, "answer": ""}
            for attempt in (1, 2):
                failures.append(Failure(attempt=attempt, verdict=one.model_copy(update=failed)))
    return lost


def test_a_failed_request_is_unscored_until_there_is_a_verdict(run: Path, study: Any):
    """Dropped from the rates, or from the run, an outage would make a judge look better or be hidden."""
    before = read_evaluation(study().paths.data, run)
    lost = lose(run, 2)
    after = read_evaluation(study().paths.data, run)
    assert len(after.judged) == len(before.judged)
    no_label = unscored_reasons(before)["no_label"] - sum(one.label is None for one in lost)
    assert unscored_reasons(after) == {"no_label": no_label, "http_error": 1, "empty": 1}
    of_lost = pc.is_in(after.judged.sample_ids, pa.array([one.sample_id for one in lost])).to_numpy(False)
    assert np.isnan(after.judged.flagged[of_lost]).all()
    assert np.isnan(after.judged.scores[of_lost]).all()
    assert np.array_equal(after.judged.scores[~of_lost], before.judged.scores[~of_lost])
    with open_verdict_log(run / VERDICTS) as log:
        for one in lost:
            log.append(one)
    healed = read_evaluation(study().paths.data, run)
    assert healed.judged.scores.tolist() == before.judged.scores.tolist()
    assert unscored_reasons(healed) == unscored_reasons(before)


def test_a_run_that_lost_too_many_answers_is_refused_unless_told(run: Path, study: Any):
    """Rates over what an outage left are rates of the outage."""
    lose(run, 4)
    no_label = [one.label for one in read_verdicts(run / VERDICTS)].count(None)
    line = (
        r"4 of 28 samples got no answer \(2 empty, 2 http_error\), coverage 0\.857 is below .*=0\.9; run the"
    )
    for stage in (
        lambda *told: score_run(study(f"run={run}", *told)),
        lambda *told: transfer(study(f"transfer.runs=[{run}]", *told)),
    ):
        with pytest.raises(UserError, match=line):
            stage()
        results = json.loads((stage("score.min_coverage=0.8") / "metrics.json").read_text())
        overall = results["monitors"]["smollm2_135m"]["direct"]["overall"]
        assert (overall["n"], overall["n_unscored"]) == (28, 4 + no_label)
        reasons = {"no_label": no_label, "http_error": 2, "empty": 2}
        assert results["unscored"] == {"smollm2_135m": {"direct": reasons}}
    for other in (calibrate_run, combine_runs):
        with pytest.raises(UserError, match=line):
            other(study(f"run={run}", f"combine.calibration=[{run}]"))


def test_a_sample_without_a_verdict_is_refused(run: Path, study: Any):
    """Scored without it, the run would look complete and be of other samples than its neighbours."""
    log = run / "verdicts.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-2]))
    with pytest.raises(UserError, match="2 samples have no verdict"):
        read_evaluation(study().paths.data, run)


@pytest.mark.parametrize("key", ["status", "results", "results.data", "results.judge.name", "identity.view"])
def test_a_missing_manifest_key_is_named(run: Path, study: Any, key: str):
    """A `KeyError` and its traceback say neither which file is at fault nor what to do about it."""
    manifest = json.loads((run / "manifest.json").read_text())
    *above, last = key.split(".")
    inside = manifest
    for name in above:
        inside = inside[name]
    del inside[last]
    seal(run, manifest)
    with pytest.raises(UserError, match=rf"manifest\.json: no {key} in it; ") as error:
        read_evaluation(study().paths.data, run)
    assert "\n" not in str(error.value)


def test_baselines_are_worked_out_once(run: Path, study: Any, monkeypatch: pytest.MonkeyPatch):
    """They cost more than the judge; reused under another seed or other stakes they would be another table's.

    Their intervals are worked out: how many draws a paired test makes changes nothing in them.
    """
    scored = study(f"run={run}", "score.resamples=100")
    first = (score_run(scored) / "metrics.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(baselines, "judge_with_baselines", lambda *_, **__: pytest.fail("again"))
        assert (score_run(scored) / "metrics.json").read_bytes() == first
    kept = run.parent.parent / "baselines"
    assert len(list(kept.glob("*/metrics.json"))) == 1
    for changed in ("seed=1", "stakes.cost_miss=7", "score.resamples=101"):
        score_run(study(f"run={run}", "score.resamples=100", changed))
    assert len(list(kept.glob("*/metrics.json"))) == 3
    assert len(list(kept.glob("*/shortcut_scores.parquet"))) == 1  # whatever is drawn, and whatever it costs
    costs = json.loads((run / "metrics.json").read_text())["overall"]
    assert set(costs) == {
        "smollm2_135m",
        "always_benign",
        "always_misbehavior",
        "random",
        *FITTED,
    }
