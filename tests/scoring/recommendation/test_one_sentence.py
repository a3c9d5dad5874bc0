"""Of random studies all stages say the same: `recommend`, `score`, and the transfer run of `choose`."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from recommended_runs import asked, both, made_dataset
from scipy.stats import norm
from studies import study

from monitorbench.config.base import UserError
from monitorbench.config.project import trees_of
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.records import Label, Sample, Split
from monitorbench.report.stages import recommend
from monitorbench.report.template import unbroken
from monitorbench.runs.directory import read_finished
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.score import score_run, transfer
from monitorbench.studies.candidates import candidate_studies
from monitorbench.studies.choose import choose

SAME = ("sentence", "decision", "monitor", "threshold", "rivals", "n_candidates")
ASKS = ["stakes.cost_miss=20", "stakes.base_rate=0.1", "calibrate.alpha=0.1", "calibrate.mix=drawn"]
EXAMPLE = Path(__file__).parents[3] / "examples" / "dataset.jsonl"


@draws(40, fast=3)
@given(
    above=st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 4.0]), min_size=1, max_size=3),
    sizes=st.tuples(st.sampled_from([40, 80, 160]), st.sampled_from([40, 120])),
    told=st.sampled_from([None, 0.0, 0.5, 1.0]),
    asks=st.lists(st.sampled_from(ASKS), unique=True),
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
        assert _said(_read(stage / "metrics.json")["decision"]) == _said(chosen)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example dataset is built."""
    folder = tmp_path_factory.mktemp("chosen")
    ensure(study("dataset=jsonl", f"dataset.path={EXAMPLE}", f"paths.data={folder / 'data'}"))
    return folder


@draws(8, fast=2)
@given(
    above=st.lists(st.sampled_from([0.0, 2.0, 4.0, 6.0]), min_size=1, max_size=3),
    asks=st.lists(st.sampled_from(ASKS), unique=True),
    seed=st.integers(0, 99),
)
def test_choose_states_the_sentence_of_recommend_and_report(
    example: Path, above: list[float], asks: list[str], seed: int
):
    """Otherwise: the first command that a team types answers otherwise than those that it is made of."""
    (data,) = (example / "data").iterdir()
    rng, files = np.random.default_rng(seed), []
    for i, apart in enumerate(above):
        files.append(example / f"m{'x' * i}-{seed}.jsonl")
        rows = [
            {
                "sample_id": one.id,
                "label": one.label.value,
                "score": round(
                    float(norm.cdf(rng.normal() + apart * (one.label is Label.MISBEHAVIOR) - 2)), 6
                ),
            }
            for split in (Split.CALIBRATION, Split.TEST)
            for one in read_split(data, split)
        ]
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    quick = (
        "score.resamples=300",
        "recommend.redraws=200",
        "calibrate.alpha=0.15",
        *asks,
        f"paths.data={example / 'data'}",
    )

    def composed(more: Sequence[str], runs: str = "runs", primary: str = "choose") -> Study:
        of_data = ("dataset=jsonl", f"dataset.path={EXAMPLE}") if primary == "choose" else ()
        return study(*of_data, *quick, f"paths.runs={example / runs}", *more, primary=primary)

    asked = composed([f"monitors=[{','.join(map(str, files))}]"])
    directory = choose(asked, candidate_studies(asked, composed, trees_of()))
    chosen = _read(directory / "recommendation.json")
    assert (directory / "report.html").read_text().count(unbroken(chosen["sentence"])) == 1
    found = read_finished(directory)["results"]
    tested, points = found["runs"], found["operating_points"]
    held = [read_finished(Path(one))["results"]["judged"] for one in points]
    if len(points) < len(above):  # who flags nothing is no operating point
        return
    again = composed([f"recommend.runs=[{','.join([*held, *tested])}]"], "again", "recommend")
    assert _said(_read(recommend(again) / "recommendation.json")) == _said(chosen)
    named = (f"transfer.runs=[{','.join(tested)}]", f"transfer.operating_points=[{','.join(points)}]")
    side_by_side = transfer(composed(named, "again", "transfer"))
    assert _said(_read(side_by_side / "metrics.json")["decision"]) == _said(chosen)


def _said(decided: dict[str, Any]) -> dict[str, Any]:
    """What the answer says, with what the named monitor promises and comes to on the test split."""
    judge = decided["monitor"], decided["prompt"]
    named = [one for one in decided["options"] if (one["monitor"], one["prompt"]) == judge]
    numbers = [(one["promise"], one["at_test"]) for one in named]
    return {key: decided[key] for key in SAME} | {"numbers": numbers}


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found
