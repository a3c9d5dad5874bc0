"""What a freeze says of the questions that it takes and leaves out."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.gate.stage import gate
from monitorbench.interop.imports.stage import imported_runs
from monitorbench.records import Split
from monitorbench.scoring.calibrate import calibrate_run


def test_questions_without_a_score_are_counted_where_they_are_left_out(
    tmp_path: Path, compose_study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
):
    """A team would believe that all of its questions are anchors, or look for those that it has."""

    def composed(stage: str, *overrides: str) -> Study:
        return compose_study(stage, f"paths.data={tmp_path}/data", f"paths.runs={tmp_path}/runs", *overrides)

    with (tmp_path / "s.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("id", "group", "label", "split", "score"))
        for i in range(160):
            for label in (0, 1):
                score = "" if i % 2 and i < 10 and label else (i % 40) / 200 + 0.7 * label
                rows.writerow((2 * i + label, f"g{i}", label, "test" if i < 80 else "calibration", score))
    runs = imported_runs(composed("import", f"from={tmp_path / 's.csv'}")).runs
    of = {split: run for (_, split), run in runs.items()}
    point = calibrate_run(composed("calibrate", f"run={of[Split.CALIBRATION]}", "calibrate.alpha=0.1"))
    freezing = f"run={of[Split.TEST]}", f"operating_point={point}"
    gate(composed("gate", *freezing))
    said = capsys.readouterr().out
    assert "150 anchors of 75 questions" in said
    assert said.endswith("; questions left out since a sample has no score: 5\n")
    few = r"20 questions \(questions left out since a sample has no score: 5\) are too few"
    with pytest.raises(UserError, match=few):
        gate(composed("gate", *freezing, "gate.questions=20"))
