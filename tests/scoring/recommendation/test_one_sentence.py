"""Of random studies all stages say the same: `recommend`, `score`, and the transfer run of `choose`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from recommended_runs import asked, both, made_dataset
from studies import study

from monitorbench.config.base import UserError
from monitorbench.records import Sample, Split
from monitorbench.report.stages import recommend
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.score import score_run, transfer

SAME = ("sentence", "decision", "monitor", "threshold", "promise", "at_test", "rivals", "n_candidates")


@draws(40, fast=3)
@given(
    above=st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 4.0]), min_size=1, max_size=3),
    sizes=st.tuples(st.sampled_from([40, 80, 160]), st.sampled_from([40, 120])),
    told=st.sampled_from([None, 0.0, 0.5, 1.0]),
    asks=st.lists(
        st.sampled_from(
            ["stakes.cost_miss=20", "stakes.base_rate=0.1", "calibrate.alpha=0.1", "calibrate.mix=drawn"]
        ),
        unique=True,
    ),
)
def test_every_stage_states_one_sentence_of_a_random_study(
    tmp_path_factory: pytest.TempPathFactory,
    make_sample: Callable[..., Sample],
    above: list[float],
    sizes: tuple[int, int],
    told: float | None,
    asks: list[str],
):
    """Otherwise: the same data, monitor and threshold say deploy on one page, and deploy none on the next."""
    folder = tmp_path_factory.mktemp("study")
    data = made_dataset(
        folder, make_sample, calibration=sizes[0], test=sizes[1], tells=told or 0.0, texts=told is not None
    )
    runs = both(folder / "runs", data, {"m" * (i + 1): each for i, each in enumerate(above)})
    chosen = _read(recommend(asked(folder, runs, *asks)) / "recommendation.json")
    places = (f"paths.data={folder}", f"paths.runs={folder / 'runs'}", "score.resamples=300")
    places = (*places, "recommend.redraws=200", *asks)
    tested = {one.name.partition("-")[0]: one for one in runs if Split.TEST in one.name}
    points = {}
    for option in chosen["options"]:
        (held,) = [
            one for one in runs if one.name.startswith(f"{option['monitor']}-") and "calibr" in one.name
        ]
        at = "null" if option["threshold"] is None else option["threshold"]
        shared = (f"calibrate.n_candidates={len(above)}", f"calibrate.threshold={at}")
        try:
            points[option["monitor"]] = calibrate_run(study(*places, *shared, f"run={held}"))
        except UserError:
            assert option["threshold"] is None
    if len(points) < len(above):  # who has no threshold is no operating point
        return
    named = ",".join(str(points[name]) for name in tested)
    given_runs = f"transfer.runs=[{','.join(map(str, tested.values()))}]"
    stages = [transfer(study(*places, given_runs, f"transfer.operating_points=[{named}]"))]
    if len(above) == 1:
        stages.append(score_run(study(*places, f"run={tested['m']}", f"operating_point={points['m']}")))
    for stage in stages:
        decided = _read(stage / "metrics.json")["decision"]
        assert {key: decided[key] for key in SAME} == {key: chosen[key] for key in SAME}


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found
