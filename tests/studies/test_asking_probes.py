"""What a probe sees, compared: a head for each view, on the real starter and a tiny model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_models import tiny_model

from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.head import HEAD_FILE
from monitorbench.records import Split
from monitorbench.runs.directory import read_manifest
from monitorbench.studies.asking import compare_what_is_seen, print_views_plan
from monitorbench.training.fit_head import fit_head

SPLITS = (Split.TRAIN, Split.VALIDATION)

TYPED = (
    "views.probe=true",
    "views.views=[all,no_reasoning]",
    "views.units=[trajectory,action]",
    "head=linear",
    "head.layers=[0.5]",
    "head.positions=[mean]",
    "head.regularisation=[0.1]",
    "engine=transformers",
    "engine.dtype=float32",
    "score.resamples=100",
    "dataset.train.pairs_per_cell=6",
    "dataset.validation.pairs_per_cell=3",
    "dataset.test.pairs_per_cell=2",
)


@pytest.fixture
def compose(
    compose_study: Callable[..., Study], starter: Path, tmp_path: Path
) -> Callable[[Sequence[str]], Study]:
    """Composes what was typed with more behind it, for a tiny model."""
    tiny = tiny_model(tmp_path / "tiny")
    own = (f"paths.data={starter.parent}", f"monitor.path={tiny}")
    folders = tuple(f"paths.{name}={tmp_path / name}" for name in ("runs", "models"))
    return lambda more: compose_study("views", *own, *folders, *TYPED, *more)


@pytest.mark.slow
def test_a_head_is_fitted_for_each_way_and_judges_what_it_was_fitted_on(compose: Any, capsys: Any):
    """One head would read what it was not fitted on, or the fits would be made again each time."""
    directory = compare_what_is_seen(compose([]), compose)
    facts = json.loads((directory / "views.json").read_text())
    names = ["direct", "direct+no_reasoning", "direct+action", "direct+no_reasoning+action"]
    assert list(facts["asked"]) == names
    runs = [Path(run) for run in read_manifest(directory)["results"]["runs"]]
    assert [read_manifest(run)["results"]["judge"]["prompt"] for run in runs] == names
    fits = sorted((directory.parents[1] / "fit").glob(f"*/{HEAD_FILE}"))
    assert len({fit.read_bytes() for fit in fits}) == len(fits) == 2, "whole responses, in each view"
    assert facts["asked"]["direct"]["auroc"] is not None
    assert facts["asked"]["direct+no_reasoning"]["changes"]["auroc"]["difference"] is not None
    made = [fit.stat().st_mtime_ns for fit in fits]
    assert compare_what_is_seen(compose([]), compose) == directory
    assert [fit.stat().st_mtime_ns for fit in fits] == made
    capsys.readouterr()


@pytest.mark.slow
def test_a_plan_counts_the_fits(compose: Any, capsys: Any):
    """What takes longest would be left out of the forecast."""
    print_views_plan(compose([]), compose)
    printed = capsys.readouterr().out
    assert "fit linear" in printed
    assert "evaluate direct" in printed


def test_what_a_view_does_not_show_is_not_fitted_on(compose: Any):
    """A head that is to read reasoning would learn from empty responses, and choose its layer on them."""
    study = compose(["view=reasoning_only", "seed=1"])
    run = fit_head(study)
    results = read_manifest(run)["results"]
    samples = {
        split: read_split(ensure(study, [split]), split, study.dataset.view(split)) for split in SPLITS
    }
    traced = {split: sum(sample.has_thinking for sample in of) for split, of in samples.items()}
    assert results["n_samples"] == traced[Split.TRAIN] < len(samples[Split.TRAIN])
    assert results["n_samples"] + results["n_not_shown"] == len(samples[Split.TRAIN])
    assert results["n_validation"] == traced[Split.VALIDATION] < len(samples[Split.VALIDATION])
