"""The transfer study: adapters against their base, on trained and on held-out cells, from logs alone."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sealed import seal
from sklearn.metrics import roc_auc_score

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Category, Label, Split
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.baselines import FITTED
from monitorbench.scoring.score import transfer

TRAINED_ON = ["safety_permission/code", "safety_permission/qa"]


@pytest.fixture
def training_run(tmp_path: Path, adapter: Path) -> Path:
    """A finished training run by its looks: manifest, curve, adapter."""
    run = tmp_path / "runs" / "train" / "smollm2_135m-safety_permission-abc"
    run.mkdir(parents=True)
    adapter.rename(run / "adapter")
    results = {"name": "safety_permission", "trained_on": TRAINED_ON}
    (run / "learning_curve.json").write_text(json.dumps([{"step": 1, "loss": 0.5, "auroc": 0.6}]))
    seal(run, {"status": "done", "results": results, "identity": {"seed": 0}})
    return run


@pytest.fixture
def judged(use_engine: Any, says: Any, study: Callable[..., Study]) -> Callable[..., Path]:
    """An evaluation run with scores drawn from the prompt's ids and a salt."""

    def run(salt: str, *overrides: str) -> Path:
        def script(ids: tuple[int, ...], decoding: object, with_adapter: bool) -> Any:
            p = hashlib.sha256(f"{salt}{with_adapter}{ids}".encode()).digest()[0] / 256 * 0.98 + 0.01
            return says("yes" if p > 0.5 else "no", p)

        use_engine(script)
        return evaluate(study(*overrides))

    return run


def _transfer(study: Callable[..., Study], *runs: Path) -> dict[str, Any]:
    directory = transfer(study(f"transfer.runs=[{','.join(map(str, runs))}]"))
    results: dict[str, Any] = json.loads((directory / "metrics.json").read_text())
    return results


def _auroc(run: Path, starter: Path, held_out: bool) -> float:
    samples = {sample.id: sample for sample in read_split(starter, Split.TEST)}
    chosen = [
        (samples[v.sample_id].label is Label.MISBEHAVIOR, v.score)
        for v in read_verdicts(run / "verdicts.jsonl")
        if (samples[v.sample_id].category is not Category.SAFETY_PERMISSION) is held_out
    ]
    return float(roc_auc_score(*zip(*chosen, strict=True)))


def test_differences_are_those_of_the_logs(judged: Any, study: Any, training_run: Path, starter: Path):
    """If it failed: the transfer matrix, the project's main figure, would be wrong."""
    base, tuned = judged("a"), judged("b", f"monitor.adapter={training_run}")
    results = _transfer(study, base, tuned)

    name = "smollm2_135m+safety_permission"
    assert results["trained_on"] == {name: TRAINED_ON}
    assert results["learning_curves"][name][0]["auroc"] == 0.6
    found = results["transfer"][name]["direct"]
    for part, held_out in (("held_out", True), ("trained", False)):
        expected = _auroc(tuned, starter, held_out) - _auroc(base, starter, held_out)
        assert found[part]["auroc_difference"] == pytest.approx(expected)
    baselines = {"always_benign", "always_misbehavior", "random", *FITTED}
    assert set(results["monitors"]) == {"smollm2_135m", name} | baselines


def test_an_adapter_is_compared_with_its_own_base_only(judged: Any, study: Any, training_run: Path):
    """If it failed: the base of another prompt, engine or model would be subtracted."""
    other = judged("a", "prompt.user='{{ request }} {{ response }}'")
    tuned = judged("b", f"monitor.adapter={training_run}")
    with pytest.raises(UserError, match="no run of its base"):
        _transfer(study, other, tuned)


def test_runs_over_other_samples_are_refused(judged: Any, study: Any, training_run: Path):
    """If it failed: a difference would compare unlike samples."""
    base = judged("a", "dataset.test.pairs_per_cell=1")
    tuned = judged("b", f"monitor.adapter={training_run}")
    with pytest.raises(UserError, match="judged different samples"):
        _transfer(study, base, tuned)


@pytest.mark.parametrize("calibration_first", [True, False])
def test_runs_over_other_splits_are_refused(judged: Any, study: Any, calibration_first: bool):
    """If it failed: numbers of the calibration split would stand in the report as judged on test samples."""
    runs = [judged("a"), judged("a", "evaluate.split=calibration")]
    with pytest.raises(UserError) as caught:
        _transfer(study, *(reversed(runs) if calibration_first else runs))
    said = str(caught.value)
    assert "\n" not in said
    assert f"{runs[1]} judged the calibration split, {runs[0]} the test split" in said


def test_the_adapter_folder_itself_keeps_its_name_and_cells(judged: Any, study: Any, training_run: Path):
    """If it failed: held-out cells would pass for trained ones when an adapter is named by its folder."""
    results = _transfer(study, judged("a"), judged("b", f"monitor.adapter={training_run / 'adapter'}"))
    assert results["trained_on"] == {"smollm2_135m+safety_permission": TRAINED_ON}


def test_objectives_are_compared_on_held_out_cells_at_a_fixed_far(
    judged: Any, study: Any, training_run: Path, starter: Path
):
    """If it failed: the better objective would be the one with the luckier threshold, or on trained cells."""
    other = training_run.with_name("smollm2_135m-safety_permission-def")
    shutil.copytree(training_run, other)
    (other / "adapter" / "adapter_model.safetensors").write_bytes(b"another")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["identity"]["training"] = {"objective": "pairwise"}
    seal(other, manifest)
    sft, pairwise = judged("b", f"monitor.adapter={training_run}"), judged("c", f"monitor.adapter={other}")
    results = _transfer(study, judged("a"), sft, pairwise)

    names = ["smollm2_135m+safety_permission", "smollm2_135m+safety_permission_pairwise"]
    assert sorted(results["transfer"]) == names
    (test,) = results["objectives"]
    assert (test["objective"], test["subset"], test["seed"]) == ("pairwise", "safety_permission", 0)
    held_out = [results["transfer"][name]["direct"]["held_out"] for name in names]
    assert test["n"] == held_out[0]["n"]
    assert test["auroc_difference"] == pytest.approx(
        _auroc(pairwise, starter, True) - _auroc(sft, starter, True)
    )
    assert test["miss_rate_at_far_5_sft"] == held_out[0]["miss_rate_at_far_5_tuned"]
    assert test["miss_rate_at_far_5_other"] == held_out[1]["miss_rate_at_far_5_tuned"]
    assert test["p"] == test["p_holm"], "one comparison"
