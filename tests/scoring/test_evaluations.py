"""An evaluation run read back, and the baselines that are kept beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sealed import seal, seal_log

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate
from monitorbench.runs.verdict_log import read_verdicts
from monitorbench.scoring import baselines
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.score import score_run


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
    """They cost more than the judge; reused under other draws or stakes they would be another table's."""
    scored = study(f"run={run}", "probe.resamples=100")
    first = (score_run(scored) / "metrics.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(baselines, "judge_with_baselines", lambda *_, **__: pytest.fail("again"))
        assert (score_run(scored) / "metrics.json").read_bytes() == first
    kept = {path.name for path in (run.parent.parent / "baselines").iterdir()}
    assert len(kept) == 1
    for changed in ("seed=1", "stakes.cost_miss=7", "probe.resamples=101"):
        score_run(study(f"run={run}", "probe.resamples=100", changed))
    assert len(list((run.parent.parent / "baselines").iterdir())) == 4
    costs = json.loads((run / "metrics.json").read_text())["overall"]
    assert set(costs) == {
        "smollm2_135m",
        "always_benign",
        "always_misbehavior",
        "random",
        "length",
        "bag_of_words",
    }
