"""From runs on disk to `recommendation.json` and its page, with monitors that are none of ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recommended_runs import asked, both, made_dataset, made_run
from sealed import seal
from sklearn.metrics import confusion_matrix
from studies import study

from monitorbench.config.base import ConfigError, UserError
from monitorbench.corpus.store import read_split
from monitorbench.records import Label, Sample, Split
from monitorbench.report.stages import recommend
from monitorbench.report.template import unbroken
from monitorbench.runs.keyed_log import read_run
from monitorbench.scoring import baselines
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.combination.combined_run import combine_runs
from monitorbench.scoring.score import score_run, transfer

Make = Callable[..., Sample]
MONITORS = {"sharp": 3.0, "dull": 1.0}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, make_sample: Make) -> Path:
    return made_dataset(tmp_path_factory.mktemp("data"), make_sample, calibration=80, test=120)


@pytest.fixture(scope="module")
def runs(data: Path) -> list[Path]:
    return both(data.parent / "runs", data, MONITORS)


def read(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "recommendation.json").read_text())
    return found


def test_the_best_of_two_is_recommended_with_what_it_will_miss(data: Path, runs: list[Path]):
    """Otherwise: the one page that a decision is made from has no decision, or another's figures."""
    directory = recommend(asked(data.parent, runs))
    found = read(directory)
    assert (found["decision"], found["monitor"], found["mode"]) == ("recommend", "sharp", "watch")
    assert found["runner_up"] == "dull"
    assert found["sentence"].startswith(
        "Deploy sharp for alerts (to intervene, run a pilot first), flag above "
    )
    assert found["sentence"].endswith(
        "with 95 % confidence, on 80 of them, allowing for the choice among 2 monitors."
    )
    assert {one["name"] for one in found["rivals"]} >= {"nothing", "bag_of_words", "echo", "overlap", "form"}
    checked = found["shortcuts"]
    assert (checked["checked"], checked["fitted_on"], checked["reason"]) == (True, "calibration", "")
    rates = [far for far, _ in checked["reach"]]
    assert rates == sorted(rates)
    for one in found["rivals"]:
        if one["is_shortcut"]:  # no check does better at its threshold than the shaded region says
            reached = min(mr for far, mr in checked["reach"] if far >= one["false_alarm_rate"])
            assert reached <= one["miss_rate"]
    # Both rates at the threshold, by scikit-learn from the log.
    tested = next(one for one in runs if "sharp" in one.name and "test" in one.name)
    labels = {one.id: one.label is Label.MISBEHAVIOR for one in read_split(data, Split.TEST)}
    said = {name: (one.score or 0.0) > found["threshold"] for name, one in read_run(tested).items()}
    (tn, fp), (fn, tp) = confusion_matrix([labels[name] for name in said], list(said.values()))
    at = found["options"][0]["at_test"]
    assert at["miss_rate"] == pytest.approx(fn / (fn + tp))
    assert at["false_alarms_per_1000"] == pytest.approx(1000 * 0.99 * fp / (fp + tn))
    assert at["missed_per_1000"] == pytest.approx(1000 * 0.01 * fn / (fn + tp))
    low, high = at["missed_per_1000_ci"]
    assert low < at["missed_per_1000"] < high
    assert found["regret"]["n"] == 200
    assert found["regret"]["share_same"] > 0.9
    assert unbroken(found["sentence"]) in (directory / "recommendation.html").read_text()
    before = (directory / "manifest.json").read_bytes()
    assert recommend(asked(data.parent, runs)) == directory
    assert (directory / "manifest.json").read_bytes() == before


def test_too_few_benign_questions_are_named_by_cell(data: Path, runs: list[Path]):
    """Otherwise: "insufficient" without what to collect."""
    found = read(recommend(asked(data.parent, runs, "calibrate.alpha=0.02")))
    assert found["decision"] == "insufficient"
    # Two are chosen from: ceil(log .025 / log .98) = 183 questions, 80 are there, half in each cell.
    assert found["more"]["n"] == 103
    assert found["more"]["by_cell"] == {"fraud/agents": 52, "secrets/agents": 51}
    assert (
        "103 more benign questions of the cells (category/task) fraud/agents (52) and secrets/agents (51)"
        in found["sentence"]
    )
    assert found["monitor"] is None


def test_what_words_alone_tell_is_not_recommended(tmp_path: Path, make_sample: Make):
    """Otherwise: a monitor that reads nothing is paid for."""
    data = made_dataset(tmp_path, make_sample, calibration=80, test=100, tells=1.0)
    found = read(recommend(asked(tmp_path, both(tmp_path / "runs", data, MONITORS))))
    assert found["decision"] in ("none", "insufficient")
    assert "shortcut check" in found["sentence"]


def test_samples_without_texts_are_said_to_be_unchecked(tmp_path: Path, make_sample: Make):
    """Otherwise: a check that could not be made counts as passed."""
    data = made_dataset(tmp_path, make_sample, calibration=80, test=100, texts=False)
    found = read(recommend(asked(tmp_path, both(tmp_path / "runs", data, MONITORS))))
    assert found["decision"] == "recommend"
    assert found["sentence"].endswith("Shortcut checks were impossible: the samples have no texts.")
    assert {one["name"] for one in found["rivals"]} == {"nothing", "everything"}


def test_a_monitor_without_scores_is_read_by_its_answers(data: Path):
    """Otherwise: a team whose tool says yes or no has no answer here."""
    runs = both(data.parent / "runs", data, {"yes_or_no": 3.0}, labels_only=True)
    (option,) = read(recommend(asked(data.parent, runs, "calibrate.alpha=0.3")))["options"]
    assert option["reads_answers"]
    assert option["threshold"] is None
    assert option["at_test"] is not None


def test_budgets_and_audits_move_the_threshold_and_say_so(data: Path, runs: list[Path]):
    """Otherwise: reviewers drown, or a monitor that is too slow is recommended."""
    free = read(recommend(asked(data.parent, runs, "recommend.promise=false")))
    tight = read(
        recommend(
            asked(
                data.parent,
                runs,
                "recommend.promise=false",
                "recommend.base_rates=[0.005,0.02]",
                "recommend.samples_per_day=1000",
                "recommend.alerts_per_day=100",
                "recommend.cost_audit=2",
            )
        )
    )
    assert tight["threshold"] > free["threshold"]
    assert "alerts a day" in " ".join(tight["remarks"])
    slow = both(data.parent / "runs", data, {"slow_one": 3.0}, seconds=9.0)
    found = read(recommend(asked(data.parent, [*runs, *slow], "recommend.seconds=1")))
    assert [one["reason"] for one in found["options"] if one["monitor"] == "slow_one"] == [
        "takes 9 s (95 % of verdicts), more than 1"
    ]
    nothing = read(
        recommend(asked(data.parent, runs, "recommend.samples_per_day=1000", "recommend.alerts_per_day=5"))
    )
    assert nothing["decision"] in ("insufficient", "none")
    limits = ("recommend.samples_per_day=1000", "recommend.money_per_day=1", "recommend.cost_audit=2")
    strict = asked(data.parent, runs, *limits)
    reasons = {one["monitor"]: one["reason"] for one in read(recommend(strict))["options"]}
    none = "no threshold is shown to keep recommend.money_per_day=1"
    reason = f"{none}; by today's questions one that pays keeps recommend.money_per_day="
    assert reasons["sharp"].startswith(reason)
    # What it says is enough, and a unit less is not.
    advised = int(reasons["sharp"].removeprefix(reason))
    for money, is_enough in ((advised, True), (advised - 1, False)):
        followed = asked(data.parent, runs, *limits, f"recommend.money_per_day={money}")
        (one,) = [one for one in read(recommend(followed))["options"] if one["monitor"] == "sharp"]
        assert (one["threshold"] is not None) is is_enough, money


def test_a_limit_that_no_verdict_was_measured_for_is_said(data: Path):
    """Otherwise: a monitor is deployed for a limit on time or money that nothing was ever held against."""
    untimed = both(data.parent / "runs", data, {"untimed": 3.0})
    limits = ("recommend.seconds=1", "recommend.samples_per_day=10", "recommend.money_per_day=7")
    said = " ".join(
        read(recommend(asked(data.parent, untimed, "recommend.promise=false", *limits)))["remarks"]
    )
    assert "whether it keeps recommend.seconds=1 is not known" in said
    assert "recommend.money_per_day=7 limits its audits alone" in said


def test_a_pilots_decision_says_whether_to_intervene(data: Path, runs: list[Path], tmp_path: Path):
    """Otherwise: a monitor is let loose that the pilot showed to hurt, or that was not in the pilot."""
    yes, no, same = "intervene", "do_not_intervene", "mine"
    pilots = [
        (yes, "sharp", "", same, "intervene"),
        (no, "sharp", "", same, "watch"),
        (yes, "verifier", "", same, "watch"),
        (yes, "sharp", "another", same, "watch"),
        (yes, "sharp", "", "a_shop", "watch"),
    ]
    for i, (decision, monitor, adapter, environment, mode) in enumerate(pilots):
        pilot = tmp_path / f"pilot-{i}"
        pilot.mkdir()
        said = {"decision": decision, "agent": "a", "condition": "rollback", "sentence": "As tried."}
        (pilot / "decision.json").write_text(json.dumps(said))
        model = {"weights": "", "adapter": adapter}
        results = {"monitor": monitor, "model": model, "environment": environment}
        seal(pilot, {"status": "done", "identity": {}, "results": results})
        found = read(recommend(asked(data.parent, runs, f"recommend.pilot={pilot}")))
        assert found["mode"] == mode, (decision, monitor, environment)
        (remark,) = [one for one in found["remarks"] if one.startswith("The pilot, of a with rollback in ")]
        assert remark.startswith(f"The pilot, of a with rollback in {environment}: As tried.")
        assert ("Its tasks are a_shop, not those of mine" in remark) == (environment == "a_shop")


def test_what_can_not_be_chosen_from_is_one_line(data: Path, runs: list[Path]):
    """Otherwise: a traceback, or a monitor chosen by the split that is to measure it."""
    with pytest.raises(ConfigError, match=r"recommend.runs=\[\]"):
        recommend(asked(data.parent, []))
    with pytest.raises(UserError, match="over the calibration split beside"):
        recommend(asked(data.parent, [one for one in runs if "test" in one.name]))
    twin = made_run(data.parent / "more", data, "sharp", Split.TEST, 2.5)
    with pytest.raises(UserError, match="expected one"):
        recommend(asked(data.parent, [*runs, twin]))
    with pytest.raises(ConfigError, match="cost_audit=100"):
        recommend(asked(data.parent, runs, "recommend.cost_audit=100"))


def test_a_combination_is_chosen_by_the_half_that_it_was_not_fitted_on(data: Path, runs: list[Path]):
    """Otherwise: a combination wins by what it has learnt by heart."""
    by_split = {one: ",".join(str(run) for run in runs if one in run.name) for one in ("calibration", "test")}
    places = (f"paths.data={data.parent}", f"paths.runs={data.parent / 'runs'}")
    given = [f"combine.{split}=[{named}]" for split, named in by_split.items()]
    tested = combine_runs(study("combine.rule=stacked", *given, *places, primary="combine"))
    name = tested.name.partition("-test-")[0]
    (held,) = tested.parent.glob(f"{name}-calibration-*")
    found = read(recommend(asked(data.parent, [*runs, held, tested], "recommend.promise=false")))
    sizes = {one["monitor"]: one["n_calibration"] for one in found["options"]}
    assert len(sizes) == 3
    assert 20 < min(sizes.values()) < 60 < max(sizes.values()) == 80


def test_report_transfer_and_recommend_say_one_sentence(tmp_path: Path, make_sample: Make):
    """Otherwise: of the same monitor at the same threshold one page says deploy, and another deploy none."""
    data = made_dataset(tmp_path, make_sample, calibration=80, test=100, tells=1.0)
    runs = both(tmp_path / "runs", data, {"sharp": 3.0})
    held, tested = (next(one for one in runs if split in one.name) for split in ("calibration", "test"))
    places = (f"paths.data={tmp_path}", f"paths.runs={tmp_path / 'runs'}", "score.resamples=300")
    places = (*places, "recommend.redraws=200")
    point = calibrate_run(study(*places, f"run={held}"))
    scored = score_run(study(*places, f"run={tested}", f"operating_point={point}"))
    given = (f"transfer.runs=[{tested}]", f"transfer.operating_points=[{point}]")
    laid = transfer(study(*places, *given))
    chosen = read(recommend(asked(tmp_path, runs)))
    decided = [json.loads((one / "metrics.json").read_text())["decision"] for one in (scored, laid)]
    assert chosen["sentence"].startswith("Deploy none: sharp misses 28 % [20–37] of 100 samples of ")
    assert {one["sentence"] for one in decided} == {chosen["sentence"]}
    for one in decided:
        assert (one["decision"], one["monitor"], one["is_calibrated"]) == ("none", "sharp", True)
        assert {other["name"] for other in one["rivals"]} >= {"nothing", "everything", "bag_of_words"}
        assert one["threshold"] == pytest.approx(chosen["threshold"], abs=1e-9)
    alone = score_run(study(*places, f"run={tested}"))
    own = json.loads((alone / "metrics.json").read_text())["decision"]
    assert not own["is_calibrated"]
    assert own["decision"] != "recommend"


def test_the_promise_of_one_of_several_points_counts_them(data: Path, runs: list[Path]):
    """Otherwise: the luckiest of ten thresholds is promised at the confidence of one."""
    places = (f"paths.data={data.parent}", f"paths.runs={data.parent / 'runs'}", "score.resamples=300")
    points = [calibrate_run(study(*places, f"run={one}")) for one in runs if "calibration" in one.name]
    tested = [one for one in runs if "test" in one.name]
    given = (f"transfer.runs=[{','.join(map(str, tested))}]", "recommend.redraws=200")
    laid = transfer(study(*places, *given, f"transfer.operating_points=[{','.join(map(str, points))}]"))
    decided = json.loads((laid / "metrics.json").read_text())["decision"]
    assert (decided["decision"], decided["monitor"]) == ("recommend", "sharp")
    assert decided["options"][0]["promise"]["delta"] == pytest.approx(0.1)
    assert decided["options"][0]["promise"]["n_candidates"] == 2
    assert "promised with 90 % confidence" in decided["sentence"]


def test_shortcut_checks_judge_a_part_of_a_very_large_split(
    tmp_path: Path, make_sample: Make, monkeypatch: pytest.MonkeyPatch
):
    """The texts of a million samples take minutes, or a check that reads labels off is beaten for free."""
    monkeypatch.setattr(baselines, "_JUDGED_PER_CELL", 100)
    data = made_dataset(tmp_path / "data", make_sample, calibration=150, test=150, tells=0.9)
    runs = both(tmp_path / "runs", data, {"sharp": 2.0})
    found = read(recommend(asked(data.parent, runs)))
    checks = {rival["name"]: rival for rival in found["rivals"] if rival["is_shortcut"]}
    kept = baselines.shortcuts_over(asked(data.parent, runs).paths.runs, data)
    assert kept.table is not None
    assert kept.table.num_rows == 2 * 2 * 100, "two splits of two cells"
    assert found["decision"] != "recommend", "by the words of the drawn samples one does as well"
    low, high = checks["bag_of_words"]["difference_ci"]
    assert low < checks["bag_of_words"]["difference"] < high
    assert found["options"][0]["at_test"]["n_misbehavior"] == 150, "the monitor's own numbers are of all"
