"""A monitor asked in several ways: a prompt is chosen on the validation split, views are compared."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, monitorbench

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.report.write import report
from monitorbench.runs.directory import read_manifest
from monitorbench.scoring.score import read_wording, transfer
from monitorbench.studies.asking import choose_a_wording, compare_what_is_seen, studies_of

PROMPTS = ("direct", "direct_swapped")
DATA = (
    "dataset=jsonl",
    *(f"dataset.{split}.pairs_per_cell=1" for split in ("validation", "test")),
    *(f"dataset.{split}.subset=[safety_permission,sycophancy_bias/qa]" for split in ("validation", "test")),
    f"paths.models={ROOT / 'models'}",
    "tracking=none",
)


@pytest.mark.slow
@pytest.mark.figures
def test_the_choice_is_made_on_validation_and_shown_on_the_page(
    tmp_path: Path, compose_study: Callable[..., Study]
):
    """Otherwise: a wording is chosen by the samples that it is measured on, or by nobody knows what."""
    data = (*DATA, f"dataset.path={_undivided(tmp_path)}")
    given = ("monitor=smollm2_135m", f"wording.prompts=[{','.join(PROMPTS)}]", *data)
    ran = monitorbench("wording", *given, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    *before, last = ran.stdout.splitlines()
    directory = tmp_path / last
    choice = json.loads((directory / "wording.json").read_text())
    aurocs = {name: of["auroc"] for name, of in choice["prompts"].items()}
    assert list(aurocs) == list(PROMPTS)
    assert aurocs[choice["chosen"]] == max(aurocs.values())
    assert choice["split"] == "validation"
    n = choice["n"]
    assert n >= 4
    assert all(of["auroc_ci"] and of["n"] == n for of in choice["prompts"].values())
    splits = [read_manifest(tmp_path / run)["identity"]["split"] for run in _runs(directory, "runs")]
    assert splits == ["validation", "validation"]
    (tested,) = _runs(directory, "tested")
    assert before[-1] == str(tested), "printed in front of the last line"
    manifest = read_manifest(tmp_path / tested)
    assert manifest["identity"]["split"] == "test"
    assert manifest["results"]["judge"]["prompt"] == choice["chosen"]

    # The same, under all: only the other prompt's test samples are judged anew, and the page shows both.
    again = monitorbench("wording", *given, "wording.test=all", folder=tmp_path)
    assert again.stdout.splitlines()[-1] == last
    assert again.stderr.count("samples to judge") == 1
    runs = [tmp_path / run for run in _runs(directory, "tested")]
    assert len(runs) == 2
    # Their paths are relative to where the command was typed.
    here = [f"paths.{name}={tmp_path / name}" for name in ("data", "runs")]
    study = compose_study("transfer", f"transfer.wordings=[{directory}]", *data, *here)
    found = transfer(_at(study, runs))
    metrics = json.loads((found / "metrics.json").read_text())
    assert metrics["wordings"]["smollm2_135m"]["chosen"] == choice["chosen"]
    assert set(metrics["prompts"]["smollm2_135m"]["by_prompt"]) == set(PROMPTS)
    page = (report(study.model_copy(update={"run": found})) / "report.html").read_text(encoding="utf-8")
    section = page.partition("<h2>One monitor under several prompts</h2>")[2].partition("<h2>")[0]
    assert f"{choice['chosen']} was chosen on {n} validation samples" in section
    assert section.count('id="wordings-0-mark-') == 6, "a mark for each number of each prompt"


def _undivided(folder: Path) -> Path:
    """The examples without their splits, of which none is called validation."""
    lines = (ROOT / "examples" / "dataset.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{key: value for key, value in json.loads(line).items() if key != "split"} for line in lines]
    file = folder / "own.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def _runs(directory: Path, key: str) -> list[Path]:
    return [Path(one) for one in read_manifest(directory)["results"][key]]


def _at(study: Study, runs: list[Path]) -> Study:
    return study.model_copy(update={"transfer": study.transfer.model_copy(update={"runs": tuple(runs)})})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("+monitor.head=head.safetensors",), "a probe is fitted under one prompt"),
        (("monitor=recorded", "monitor.verdicts=a.jsonl"), "it reads no prompt"),
        (("adapters=[a]",), "a wording is chosen for one monitor"),
    ],
)
def test_a_monitor_without_words_is_refused(
    settings: tuple[str, ...], said: str, compose_study: Callable[..., Study]
):
    """Otherwise: the same verdicts are compared with themselves, or a head reads states of another prompt."""
    with pytest.raises(ConfigError, match=said):
        choose_a_wording(compose_study("wording", *settings), lambda more: compose_study("evaluate", *more))


def test_a_mistyped_prompt_is_one_line(tmp_path: Path):
    """Otherwise: a traceback of Hydra's."""
    ran = monitorbench("wording", "wording.prompts=[direct,dirct_act]", folder=tmp_path)
    assert ran.returncode == 2
    assert "prompt=dirct_act" in ran.stderr
    assert "Traceback" not in ran.stderr
    ran = monitorbench("wording", "wording.prompts=[direct]", folder=tmp_path)
    assert "expected at least two prompts" in ran.stderr


def test_another_run_is_no_choice(tmp_path: Path):
    """Otherwise: a transfer run reads a training for a wording and fails in its middle."""
    with pytest.raises(UserError):
        read_wording(tmp_path, tmp_path)


@pytest.fixture
def compose(study: Callable[..., Study]) -> Callable[..., Callable[[Sequence[str]], Study]]:
    """Composes what was typed with more behind it, for the scripted engine."""
    return lambda *typed: lambda overrides: study(*typed, *overrides)


def test_each_way_is_a_run_and_is_compared_with_the_first(
    study: Callable[..., Study], compose: Any, use_engine: Any, says_by_prompt: Any, capsys: Any
):
    """A view would be judged under another's name, or twice, or be left out of the comparison."""
    typed = ("views.views=[all,no_reasoning,reasoning_only]", "views.units=[trajectory,action]")
    engine = use_engine(says_by_prompt)
    directory = compare_what_is_seen(study(*typed), compose(*typed))
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
    assert compare_what_is_seen(study(*typed), compose(*typed)) == directory
    assert len(engine.asked) == asked, "what was judged is judged once"


@pytest.mark.parametrize("typed", [("monitor.head=h.safetensors",), ("adapters=[a]",)])
def test_a_monitor_that_is_shown_nothing_is_refused(
    typed: tuple[str, ...], study: Callable[..., Study], compose: Any
):
    """The same verdicts would be compared with themselves."""
    with pytest.raises(ConfigError, match="expected one language model"):
        studies_of(study(*typed), compose(*typed))


def test_each_way_has_a_threshold_of_its_own(
    study: Callable[..., Study], compose: Any, use_engine: Any, says_by_prompt: Any, capsys: Any
):
    """Rates would be compared at the threshold of another way of asking, or calibrated on the test split."""
    typed = ("views.views=[all,no_reasoning]", "views.at_thresholds=true")
    typed += ("dataset.calibration.pairs_per_cell=2", "calibrate.alpha=0.7", "calibrate.delta=0.5")
    engine = use_engine(says_by_prompt)
    directory = compare_what_is_seen(study(*typed), compose(*typed))
    facts = json.loads((directory / "views.json").read_text())["asked"]
    assert all(set(of["rates_at_threshold"]) == {"miss_rate", "false_alarm_rate"} for of in facts.values())
    assert set(facts["direct+no_reasoning"]["at_threshold"]) == {"miss_rate", "false_alarm_rate"}
    assert len(engine.asked) > sum(of["n"] for of in facts.values()), (
        "the calibration split is judged as well"
    )
    assert (directory / "views.svg").read_text().startswith("<svg")
    assert "at calibrated thresholds" in capsys.readouterr().out
