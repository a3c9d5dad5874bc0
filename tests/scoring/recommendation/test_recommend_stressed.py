"""What a stress run says of a monitor at the threshold that is recommended, whatever it was stressed at."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recommended_runs import asked, both, made_dataset
from sealed import seal

from monitorbench.metrics.robustness import STRESS_VERSION, UNCHANGED
from monitorbench.records import Sample, Verdict
from monitorbench.report.stages import recommend
from monitorbench.runs.directory import read_finished
from monitorbench.runs.keyed_log import read_run
from monitorbench.runs.run_folders import evaluation_id

Change = Callable[[float], float | None]


def made_stress(runs: Path, tested: Path, changes: dict[str, Change], point: str = "") -> None:
    """A finished stress run that judged every sample, unchanged answers but for the score."""
    rows: list[dict[str, Any]] = []
    verdicts: dict[str, Verdict] = read_run(tested)
    for name, change in {UNCHANGED: lambda score: score, **changes}.items():
        for one in verdicts.values():
            assert one.score is not None
            row = {"change": name, "sample_id": one.sample_id, "score": change(one.score)}
            rows.append(row | {"label": one.label and str(one.label)})
    folder = runs / "stress" / f"sharp-{len(changes)}{point}-0123456789ab"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "cases.parquet")
    told = {"version": 1, "n": len(verdicts), "n_not_applicable": 0}
    counted = ["miss_rate", "false_alarm_rate", "auroc", "unscored_rate"]
    facts = {
        "schema_version": STRESS_VERSION,
        "evaluation": evaluation_id(read_finished(tested)),
        "operating_point": point,
        "changes": dict.fromkeys(changes, told | {"counted": counted}),
    }
    (folder / "stress.json").write_text(json.dumps(facts))
    seal(folder, {"status": "done", "identity": {}, "results": {}, "started": "2026"})


@pytest.mark.parametrize("point", ["", "sharp-direct-fedcba987654"])
def test_robustness_is_that_of_the_recommended_threshold(
    point: str, tmp_path: Path, make_sample: Callable[..., Sample]
):
    """If it failed: a monitor whose scores a change pushes below its threshold would be called robust, since
    its own answers stay; or the numbers would be those of another threshold."""
    data = made_dataset(tmp_path, make_sample, calibration=80, test=60)
    runs = both(tmp_path / "runs", data, {"sharp": 3.0})
    (tested,) = [one for one in runs if "test" in one.name]
    lowered: dict[str, Change] = {
        "control.end": lambda score: score,
        "lowered": lambda score: score / 4,
        "silent": lambda _: None,
    }
    made_stress(tmp_path / "runs", tested, lowered, point)
    made_stress(tmp_path / "runs", tested, {"control.end": lambda score: score}, "another")
    found = json.loads((recommend(asked(tmp_path, runs)) / "recommendation.json").read_text())
    (option,) = found["options"]
    of = option["robustness"]
    assert option["robustness_at"] == "threshold"
    assert (of["exposed"], of["silenced"]) == (["lowered", "silent"], ["silent"])
    missed = of["worst_miss_rate"]
    scores = [one.score or 0.0 for one in read_run(tested).values()]
    assert max(scores) / 4 < found["threshold"], "so that all are missed"
    assert missed["change"] == "lowered"
    assert missed["difference"] == pytest.approx(1 - found["options"][0]["at_test"]["miss_rate"])
    assert of["worst_auroc"]["difference"] == 0
    assert "read at" in " ".join(found["remarks"])
