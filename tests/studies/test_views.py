"""`monitorbench views` on the scripted engine's judge: runs, pairing, files, and what it refuses."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_engine import model_folder, says, says_by_prompt, use_engine
from scripted_engine import study as engine_study

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.runs.directory import read_manifest
from monitorbench.studies.views import compare_what_is_seen, studies_of

__all__ = ["engine_study", "model_folder", "says", "says_by_prompt", "use_engine"]
Studies = Callable[..., Study]


@pytest.fixture
def compose(engine_study: Studies) -> Callable[..., Callable[[Sequence[str]], Study]]:
    return lambda *typed: lambda overrides: engine_study(*typed, *overrides)


def test_each_way_is_a_run_and_is_compared_with_the_first(
    engine_study: Studies, compose: Any, use_engine: Any, says_by_prompt: Any, capsys: Any
):
    """A view would be judged under another's name, or twice, or be left out of the comparison."""
    typed = ("views.views=[all,no_reasoning,reasoning_only]", "views.units=[trajectory,action]")
    engine = use_engine(says_by_prompt)
    directory = compare_what_is_seen(engine_study(*typed), compose(*typed))
    facts = json.loads((directory / "views.json").read_text())
    suffixes = ("", "+no_reasoning", "+reasoning_only", "+action", "+no_reasoning+action")
    names = [f"direct{suffix}" for suffix in (*suffixes, "+reasoning_only+action")]
    assert list(facts["asked"]) == names
    assert facts["first"] == "direct"
    n = facts["asked"]["direct"]["n"]
    of = facts["asked"]["direct+reasoning_only"]
    assert of["n_not_shown"] > 0
    assert of["n_both"] + of["n_not_shown"] <= n, "what lacks a trace is compared with nothing"
    runs = [Path(run) for run in read_manifest(directory)["results"]["runs"]]
    assert [read_manifest(run)["results"]["judge"]["prompt"] for run in runs] == names
    printed = capsys.readouterr().out
    assert all(str(run) in printed for run in runs)
    assert "AUROC beside direct" in printed
    asked = len(engine.asked)
    assert compare_what_is_seen(engine_study(*typed), compose(*typed)) == directory
    assert len(engine.asked) == asked, "what was judged is judged once"


@pytest.mark.parametrize("typed", [("monitor.head=h.safetensors",), ("adapters=[a]",)])
def test_a_monitor_that_is_shown_nothing_is_refused(
    typed: tuple[str, ...], engine_study: Studies, compose: Any
):
    """The same verdicts would be compared with themselves."""
    with pytest.raises(ConfigError, match="expected one language model"):
        studies_of(engine_study(*typed), compose(*typed))


def test_each_way_has_a_threshold_of_its_own(
    engine_study: Studies, compose: Any, use_engine: Any, says_by_prompt: Any, capsys: Any
):
    """Rates would be compared at the threshold of another way of asking, or calibrated on the test split."""
    typed = ("views.views=[all,no_reasoning]", "views.at_thresholds=true")
    typed += ("dataset.calibration.pairs_per_cell=2", "calibrate.alpha=0.7", "calibrate.delta=0.5")
    engine = use_engine(says_by_prompt)
    directory = compare_what_is_seen(engine_study(*typed), compose(*typed))
    facts = json.loads((directory / "views.json").read_text())["asked"]
    assert all(set(of["rates_at_threshold"]) == {"miss_rate", "false_alarm_rate"} for of in facts.values())
    assert set(facts["direct+no_reasoning"]["at_threshold"]) == {"miss_rate", "false_alarm_rate"}
    assert len(engine.asked) > sum(of["n"] for of in facts.values()), (
        "the calibration split is judged as well"
    )
    assert (directory / "views.svg").read_text().startswith("<svg")
    assert "at calibrated thresholds" in capsys.readouterr().out
