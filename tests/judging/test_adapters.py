"""Several adapters in one start of the engine: the runs that each alone gives. Real engine, tiny model."""

from pathlib import Path

import pytest
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from tuned_models import Studies, verdicts

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import in_process
from monitorbench.judging.adapters import evaluate_each, one_start
from monitorbench.runs.directory import read_manifest


@pytest.mark.slow
def test_one_start_gives_the_runs_of_three(
    asked: Studies, adapters: list[Path], loads: list[Path], capsys: pytest.CaptureFixture[str]
):
    """If it failed: an adapter would be judged under another's name, or have other verdicts in company."""
    last = evaluate_each(asked("one", f"adapters=[{adapters[0]},{adapters[1]}]"))
    runs = [*map(Path, capsys.readouterr().out.split()), last]
    assert len(loads) == 1
    alone = [
        evaluate_each(asked("three", *(f"monitor.adapter={one}" for one in given)))
        for given in ([], adapters[:1], adapters[1:])
    ]
    assert len(loads) == 4
    assert [run.name for run in runs] == [run.name for run in alone]
    assert [verdicts(run) for run in runs] == [verdicts(run) for run in alone]
    scores = [tuple(score for _, _, score, _ in verdicts(run).values()) for run in runs]
    assert len(set(scores)) == 3, "three models answer in three ways"
    gates = [read_manifest(run)["results"].get("adapter_gate") for run in runs]
    assert gates[0] is None
    assert all(gates[1:])


@pytest.mark.slow
def test_one_start_asks_several_prompts(asked: Studies, loads: list[Path]):
    """If it failed: a choice among five wordings would load the model five times, or mix up verdicts."""
    one = asked("one")
    with one_start(one.monitor, in_process(one.engine, "x"), one.paths.models, [None]) as judged:
        runs = [judged(asked("one", f"prompt={name}")) for name in ("direct", "direct_swapped")]
    assert len(loads) == 1
    alone = [evaluate_each(asked("two", f"prompt={name}")) for name in ("direct", "direct_swapped")]
    assert [verdicts(run) for run in runs] == [verdicts(run) for run in alone]
    assert verdicts(runs[0]) != verdicts(runs[1])


@pytest.mark.slow
def test_what_is_there_is_not_judged_again(asked: Studies, adapters: list[Path], loads: list[Path]):
    """If it failed: a study with one adapter more would pay for all of them again."""
    run = evaluate_each(asked("one", f"monitor.adapter={adapters[0]}"))
    before = (run / "verdicts.jsonl").stat().st_mtime_ns
    evaluate_each(asked("one", f"monitor.adapter={adapters[0]}", f"adapters=[{adapters[1]}]"))
    assert (run / "verdicts.jsonl").stat().st_mtime_ns == before
    assert len(loads) == 2
    evaluate_each(asked("one", f"adapters=[{adapters[1]}]"))  # the base alone is new
    evaluate_each(asked("one", f"adapters=[{adapters[1]},{adapters[0]}]"))
    assert len(loads) == 3


@pytest.mark.slow
def test_an_idle_adapter_among_others_is_refused(
    asked: Studies, adapters: list[Path], tiny: Path, tmp_path: Path
):
    """If it failed: the adapter taken before would answer in its name, and the gate see a difference."""
    idle = tmp_path / "idle"
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")  # B is zero
    get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), lora).save_pretrained(idle)
    with pytest.raises(UserError, match="the adapter changes no log-probability"):
        evaluate_each(asked("one", f"monitor.adapter={adapters[0]}", f"adapters=[{idle}]"))


def test_what_has_no_adapters_of_ours_is_refused(asked: Studies, tmp_path: Path):
    """If it failed: an endpoint's base would be judged once for every adapter named."""
    endpoint = ("engine=openai", "engine.base_url=http://127.0.0.1:9/v1", "engine.model=x")
    with pytest.raises(ConfigError, match=r"adapters: engine=openai has no adapters of ours"):
        evaluate_each(asked("one", *endpoint, f"adapters=[{tmp_path}]"))
    with pytest.raises(ConfigError, match="is there twice"):
        evaluate_each(asked("one", f"monitor.adapter={tmp_path}", f"adapters=[{tmp_path}]"))
