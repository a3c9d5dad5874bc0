"""The library says of a run what the stages say of it."""

import hashlib
import json

import pytest

from monitorbench import auroc, rates, read_runs
from monitorbench.judging.evaluate import evaluate
from monitorbench.scoring.score import score_run


def test_a_run_read_back_has_the_numbers_of_its_metrics(use_engine, says, study, tmp_path):
    def script(ids, decoding, with_adapter):
        draw = hashlib.sha256(f"{ids}".encode()).digest()[0] / 256
        return says("maybe" if draw > 0.9 else "yes" if draw > 0.4 else "no", draw * 0.98 + 0.01)

    use_engine(script)
    run = evaluate(study())
    metrics = json.loads((score_run(study(f"run={run}")) / "metrics.json").read_text())
    of_all = metrics["monitors"]["smollm2_135m"]["direct"]["overall"]
    found = read_runs(tmp_path / "runs")
    assert found.table.equals(read_runs(run).table)
    rated = rates(found["label"], found["flagged"])
    assert rated.n_unscored == of_all["n_unscored"] > 0
    assert [rated.miss_rate.value, list(rated.miss_rate.interval)] == [
        of_all["miss_rate"],
        of_all["miss_rate_ci"],
    ]
    ranked = auroc(found["label"], found["score"], found["group_id"]).auroc
    assert ranked.value == of_all["auroc"]
    assert ranked.interval == pytest.approx(tuple(of_all["auroc_ci"]), abs=0.02)  # other draws


def test_a_run_that_did_not_finish_is_refused(use_engine, says, study):
    use_engine(lambda *_: says("yes"))
    run = evaluate(study())
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"done"', '"running"'))
    with pytest.raises(ValueError, match="not as a stage wrote it"):
        read_runs(run)
