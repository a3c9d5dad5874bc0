"""The stage on a model of this process: what does not fit, what nobody can be asked again, a threshold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import planted
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.metrics.robustness import UNCHANGED, as_stress
from monitorbench.records import Split
from monitorbench.report.stress import print_stress
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.evaluations import read_covered
from monitorbench.scoring.recommendation.stressed import read_stress
from monitorbench.stress.changes.options import OPTIONS
from monitorbench.stress.judged import asked_in
from monitorbench.stress.stage import drawn, stress

CHANGES = "control.tool,instruction.rule.end,padding.2k,options,code"


@pytest.fixture
def local(model_folder: Path, tmp_path: Path, compose_study: Callable[..., Study]) -> Callable[..., Study]:
    """A study over the planted data on a model folder whose context is short."""
    file = tmp_path / "own.jsonl"
    planted.write_dataset(file)

    def made(primary: str, *overrides: str) -> Study:
        return compose_study(
            primary,
            "dataset=jsonl",
            f"dataset.path={file}",
            f"paths.data={tmp_path / 'data'}",
            f"paths.runs={tmp_path / 'runs'}",
            f"monitor.path={model_folder}",
            "monitor.context_tokens=400",
            *overrides,
        )

    return made


def test_what_the_context_cannot_hold_is_counted_and_two_prompts_share_an_engine(
    local: Callable[..., Study], use_engine: Callable[..., Any], says_by_prompt: Any, tmp_path: Path
):
    """Padding beyond the context would pass for a monitor that withstands it."""
    engine = use_engine(says_by_prompt)
    run = evaluate(local("evaluate"))
    asked = len(engine.asked)
    found = stress(local("stress", f"run={run}", f"stress.changes=[{CHANGES}]", "stress.pairs_per_cell=4"))
    facts = as_stress(json.loads((found / "stress.json").read_text()))
    assert facts["n"] == 8
    changes = facts["changes"]
    for stands in ("first", "middle", "last"):
        one = changes[f"padding.2k.{stands}"]
        assert (one["n"], one["n_unscored"], one["unscored"]) == (8, 8, {"too_long": 8})
        assert one["miss_rate"]["difference"] is None
    assert changes["options.turned"]["n"] == changes["control.tool"]["n"] == 8
    assert changes["code.renamed"]["n"] == 0
    assert changes["code.renamed"]["n_not_applicable"] == 8
    assert facts["robustness"]["n_changes"] == len(changes) - 2
    cases = pq.read_table(found / "cases.parquet").to_pylist()
    assert len(cases) == 8 * (1 + facts["robustness"]["n_changes"])
    # Unchanged ones were known, and what is too long is not sent: two changes of text, four of the prompt.
    assert len(engine.asked) - asked == 8 * 6
    assert {one["change"] for one in cases} == {UNCHANGED, *(name for name in changes if changes[name]["n"])}

    manifest = read_manifest(found)
    assert manifest["results"]["robustness"] == facts["robustness"]
    assert read_stress(tmp_path / "runs", [facts["evaluation"]]) == [facts]
    assert read_stress(tmp_path / "runs", ["another"]) == []
    console = Console(width=80, record=True, file=(tmp_path / "shown").open("w"))
    print_stress(console, facts)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "Applied to no sample: code.reformatted, code.renamed." in text
    assert "24 too long" in text


def test_labels_are_read_at_a_threshold_where_one_is_given(
    local: Callable[..., Study], use_engine: Callable[..., Any], says_by_prompt: Any, tmp_path: Path
):
    """A monitor that is deployed at a threshold would be stressed at its own answers, which nobody uses."""
    use_engine(says_by_prompt)
    planted.write_dataset(tmp_path / "own.jsonl", split="calibration")
    split = "evaluate.split=calibration"
    judged = evaluate(local("evaluate", split))
    promise = ("calibrate.alpha=0.5", "calibrate.method=conformal_risk", "calibrate.mix=drawn")
    point = calibrate_run(local("calibrate", f"run={judged}", split, *promise))
    settings = (f"run={judged}", "stress.changes=[control.end]")
    own = stress(local("stress", *settings))
    at = stress(local("stress", *settings, f"operating_point={point}"))
    assert own != at
    facts = json.loads((at / "stress.json").read_text())
    assert facts["operating_point"] == point.name
    rates = read_manifest(point)["results"]["rates"]
    assert facts["changes"]["control.end"]["false_alarm_rate"]["before"] == pytest.approx(
        rates["false_alarm_rate"]
    )


def test_what_another_stress_run_asked_is_not_asked_again(
    local: Callable[..., Study], use_engine: Callable[..., Any], says_by_prompt: Any
):
    """If it failed: one change more, or a threshold, would be paid for as if nothing had been asked."""
    engine = use_engine(says_by_prompt)
    run = evaluate(local("evaluate"))
    few = ("stress.pairs_per_cell=4", f"run={run}")
    first = stress(local("stress", *few, "stress.changes=[control.end,options.turned]"))
    engine.asked.clear()
    second = stress(local("stress", *few, "stress.changes=[control,options.turned]"))
    assert second != first
    assert len(engine.asked) == 3 * 8
    both = [as_stress(json.loads((one / "stress.json").read_text()))["changes"] for one in (first, second)]
    for name in ("control.end", "options.turned"):
        assert both[0][name]["miss_rate"]["after"] == both[1][name]["miss_rate"]["after"]


def test_a_changed_text_is_never_shortened(
    local: Callable[..., Study], use_engine: Callable[..., Any], says_by_prompt: Any
):
    """If it failed: the padding's middle, which is the response, would be cut out and the rest be judged."""
    use_engine(says_by_prompt)
    cut = ("prompt.too_long=middle_truncate",)
    run = evaluate(local("evaluate", *cut))
    settings = ("stress.changes=[padding.2k]", "stress.pairs_per_cell=2")
    found = stress(local("stress", *cut, f"run={run}", *settings))
    facts = as_stress(json.loads((found / "stress.json").read_text()))
    assert facts["changes"]["padding.2k.middle"]["unscored"] == {"too_long": 4}
    assert all(not one.truncated_tokens for one in read_verdicts(found / "verdicts.jsonl"))


@pytest.mark.parametrize("paired", [True, False])
def test_so_many_of_each_label_are_drawn_with_and_without_pairs(
    paired: bool,
    local: Callable[..., Study],
    use_engine: Callable[..., Any],
    says_by_prompt: Any,
    tmp_path: Path,
):
    """If it failed: all samples without a counterpart would be drawn without regard to their label."""
    file = tmp_path / "own.jsonl"
    if not paired:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(f"{json.dumps(one | {'pair_id': ''})}\n" for one in rows))
    with file.open("a") as lines:
        alone = json.loads(file.read_text().splitlines()[0])
        lines.write(
            json.dumps(alone | {"pair_id": "", "group_id": "alone", "task": "code", "response": "Done."})
        )
    use_engine(says_by_prompt)
    run = evaluate(local("evaluate"))
    study = local("stress", f"run={run}", "stress.pairs_per_cell=3")
    judged = read_covered(study.paths.data, run, 0.0)
    samples = drawn(study.stress.pairs_per_cell, read_split(judged.data, judged.split, judged.view))
    assert [one.label for one in samples if one.task == "code"] == ["misbehavior"]
    samples = [one for one in samples if one.task == "qa"]
    assert sorted(one.label for one in samples) == ["benign"] * 3 + ["misbehavior"] * 3
    assert len({one.pair_id for one in samples}) == (3 if paired else 6)


def test_recorded_verdicts_cannot_be_stressed(local: Callable[..., Study], tmp_path: Path):
    """Every change would find the same verdict, and the monitor be called robust."""
    rows = [json.loads(line) for line in (tmp_path / "own.jsonl").read_text().splitlines()]
    file = tmp_path / "verdicts.jsonl"
    samples = read_split(ensure(local("build")), Split.TEST)
    assert len(samples) == len(rows)
    file.write_text("".join(f'{{"sample_id": "{one.id}", "label": "benign"}}\n' for one in samples))
    study = local("evaluate", "monitor=recorded", f"monitor.verdicts={file}", "monitor.path=null")
    with pytest.raises(UserError, match="nobody can be asked again"):
        stress(local("stress", f"run={evaluate(study)}"))


def test_a_probe_is_asked_with_its_own_prompt_alone(compose_study: Callable[..., Study]):
    """A head would read states of a prompt that it never saw, and be blamed for the result."""
    prompt = compose_study("evaluate").prompt
    made = asked_in(OPTIONS[0], prompt, is_probe=False)
    assert made is not None
    assert made.name == "direct-turned"
    assert asked_in(OPTIONS[0], prompt, is_probe=True) is None
