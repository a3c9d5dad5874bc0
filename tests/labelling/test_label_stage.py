"""From a log without labels and a few labels by people to a recommendation, a threshold and a page."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from traffic import N, Traffic, asked, return_batches

from monitorbench.annotation.files import read_returned
from monitorbench.cli.stage import imported
from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import read_calibrated
from monitorbench.labelling.answer import answer
from monitorbench.labelling.pool import read_pool
from monitorbench.labelling.stage import label, labelled_pool, print_plan, queue
from monitorbench.runs.run_folders import read_run
from monitorbench.runs.selectors import resolved
from monitorbench.scoring.labelled import recommend_round, score_round


@pytest.fixture
def traffic(tmp_path: Path, compose_study: Callable[..., Study]) -> Traffic:
    return Traffic(tmp_path, compose_study)


def test_a_log_and_a_few_labels_come_to_a_recommendation(
    traffic: Traffic, capsys: pytest.CaptureFixture[str]
):
    print_plan(traffic.study(f"label.scores=[{traffic.folder / 'strong.jsonl'}]", "label.budget=150"))
    assert "150 of 1500 samples would be asked for (active)" in capsys.readouterr().out
    first = traffic.begin("strong", "weak")
    assert len(asked(first)) == 150
    assert all(0 < one["probability"] <= 1 for one in asked(first))
    second = traffic.read(first)
    said = capsys.readouterr().out
    assert "insufficient" in said
    assert "strong" in said
    third = traffic.read(second, "label.margin=0.25", "stakes.cost_miss=10")
    rows = traffic.estimates(third)
    strong, weak = (traffic.scores[name] > 0.5 for name in ("strong", "weak"))
    bad = traffic.is_bad
    truths = {
        ("strong", "miss_rate"): (~strong)[bad].mean(),
        ("strong", "false_alarm_rate"): strong[~bad].mean(),
        ("weak", "miss_rate"): (~weak)[bad].mean(),
        ("strong", "base_rate"): bad.mean(),
    }
    for key, truth in truths.items():
        assert float(rows[key]["low"]) <= truth <= float(rows[key]["high"]), key
    apart = traffic.estimates(third, against="strong")["weak", "miss_rate"]
    assert float(apart["low"]) <= strong[bad].mean() - weak[bad].mean() <= float(apart["high"])
    assert rows["strong", "miss_rate"]["part"] == "estimated:ipw"
    n_labels = int(rows["strong", "miss_rate"]["n"])
    assert n_labels == sum(one["label"] is not None for one in asked(third)) > 150
    assert float(rows["strong", "auroc"]["low"]) <= roc_auc_score(bad, traffic.scores["strong"])
    assert "deploy strong: miss rate" in capsys.readouterr().out
    assert not (third / "batches").exists()


def test_batches_are_blind_and_no_sample_is_asked_for_twice(traffic: Traffic):
    second = traffic.read(traffic.begin("strong", budget=60))
    names = [one["sample_id"] for one in asked(second)]
    assert len(set(names)) == len(names) > 60
    batch = (second / "batches/first/batch.csv").read_text("utf-8-sig")
    assert "0." not in batch
    assert not any(f",{name}," in batch for name in names)
    orders = [
        [row.item for row in read_returned(second / "batches" / r / "batch.csv")] for r in ("first", "second")
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_what_readers_leave_open_widens_the_interval_and_a_third_one_settles_it(traffic: Traffic):
    first = traffic.begin("strong")
    sure = traffic.estimates(traffic.read(first))["strong", "base_rate"]
    run = traffic.read(first, doubted=10)
    open_ = traffic.estimates(run)["strong", "base_rate"]
    assert float(open_["low"]) <= float(sure["low"])
    assert float(open_["high"]) > float(sure["high"])
    assert sum(one["label"] == "open" for one in asked(run)) == 10
    assert len(read_returned(run / "adjudication.csv")) == 10


def test_the_next_batch_goes_to_the_same_readers(traffic: Traffic):
    """Ana and Ben would have no second batch, and two people whom nobody knows one each."""
    named = ("annotation.annotators=[ana,ben]", "annotation.guidelines=Be kind.")
    first = label(traffic.study(f"label.scores=[{traffic.folder / 'strong.jsonl'}]", *named))
    run, readers = first, ["ana", "ben"]
    for more, after in (((), ["ana", "ben"]), (("annotation.annotators=[ann,bo]",), ["ann", "bo"])):
        files = return_batches(run, traffic.folder, lambda *_: "benign", readers)
        returned = f"annotation.returned=[{','.join(map(str, files))}]"
        run, readers = label(traffic.study(f"run={run}", returned, *more)), after
        assert sorted(folder.name for folder in (run / "batches").iterdir()) == readers
        assert (run / "batches" / readers[0] / "guidelines.txt").read_text() == "Be kind.\n"


def test_a_third_reader_is_heard_with_the_run_that_asked(traffic: Traffic):
    """Whoever paid a third reader would get the old answer, and not learn that the file was not read."""
    first = traffic.begin("strong")
    answers = traffic.answers(first, doubted=10)
    open_ = label(traffic.study(f"run={first}", answers, "stakes.cost_miss=10"))
    third = traffic.third_answers(open_)
    again = label(traffic.study(f"run={first}", answers, third))
    assert not any(one["label"] == "open" for one in asked(again)), "the command that made the run"
    wanted = rf"samples of {open_.name} wait .* or run={first.name} annotation.returned=\["
    with pytest.raises(ConfigError, match=wanted):
        label(traffic.study(f"run={open_}", third))
    both = traffic.read(open_, third, doubted=5)
    assert sum(one["label"] == "open" for one in asked(both)) == 5, "the next batch's are open in their turn"
    labels = {one["item"]: one["label"] for one in asked(both)}
    for row in read_returned(open_ / "adjudication.csv"):
        assert labels[row.item] == (
            "misbehavior" if traffic.is_bad[int((row.response or "")[1:])] else "benign"
        )
    rest = traffic.third_answers(both)
    for run in (open_, again):
        with pytest.raises(UserError, match=f"no sample in it awaits a third reader in {run.name}"):
            traffic.read(run, rest)


def test_a_third_reader_is_heard_where_no_batch_waits(traffic: Traffic):
    """A round that asks for nothing more would take any file for its third reader's, and read none."""
    file = traffic.folder / "strong.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:40]))
    run = traffic.read(traffic.begin("strong"), doubted=4)
    assert not (run / "batches").exists()
    third = traffic.third_answers(run)
    whole = (traffic.folder / "third.csv").read_text()
    for text, problem in (
        ("a,b\n1,2\n", "expected the columns"),
        (whole.replace("benign", "wat"), "'wat' is no label"),
        ("".join(whole.splitlines(keepends=True)[:-1]), "is missing; put its row back"),
    ):
        (traffic.folder / "third.csv").write_text(text)
        with pytest.raises(UserError, match=problem):
            label(traffic.study(f"run={run}", third))
    (traffic.folder / "third.csv").write_text(whole)
    settled = label(traffic.study(f"run={run}", third))
    assert {one["label"] for one in asked(settled)} == {"benign", "misbehavior"}
    assert not (settled / "adjudication.csv").exists()
    (traffic.folder / "third.csv").unlink()
    with pytest.raises(UserError, match=r"third\.csv"):
        label(traffic.study(f"run={run}", third))
    with pytest.raises(ConfigError, match="adjudicated: of which round"):
        label(traffic.study(f"label.scores=[{file}]", third))


def test_labels_that_may_be_wrong_widen_what_they_say(traffic: Traffic):
    first = traffic.begin("strong")
    right = traffic.estimates(traffic.read(first))["strong", "base_rate"]
    wrong = "label.error_of_benign=[0,0.05]"
    bounded = traffic.estimates(traffic.read(first, wrong))["strong", "base_rate"]
    assert float(bounded["low"]) < float(right["low"])
    assert float(bounded["high"]) >= float(right["high"])
    with pytest.raises(ConfigError, match="expected the lower one first"):
        traffic.study("label.error_of_benign=[0.1,0]")


def test_the_same_settings_ask_for_the_same_samples(traffic: Traffic):
    first = traffic.begin("strong")
    before = (first / "asked.jsonl").read_bytes()
    assert traffic.begin("strong") == first
    assert (first / "asked.jsonl").read_bytes() == before


def test_stages_take_a_round_as_a_partly_labelled_run(traffic: Traffic, caplog: pytest.LogCaptureFixture):
    """Score, calibrate, recommend and report: one table, by which estimator, from how many labels."""
    caplog.set_level("INFO", "monitorbench")
    run = traffic.read(traffic.begin("strong", "weak"))

    def on(stage: str, *more: str) -> Path:
        asked_of = "recommend.runs=[" + str(run) + "]" if stage == "recommend" else f"run={run}"
        study = resolved(traffic.study(asked_of, *more, stage=stage), stage)
        function = STAGES[stage].function
        return imported(function)(study) if isinstance(function, str) else function(study, traffic.compose)

    before = (run / "table.csv").read_bytes()
    assert on("score") == run
    assert (run / "table.csv").read_bytes() == before, "the batch that waits says nothing yet"
    assert on("score", "label.estimator=ppi") == run
    assert traffic.estimates(run)["strong", "miss_rate"]["part"] == "estimated:ppi"
    calibration = on("calibrate", "calibrate.alpha=0.1")
    point = json.loads((calibration / "operating_point.json").read_text())["thresholds"][0]
    assert (point["method"], point["alpha"], point["delta"]) == ("few_labels", 0.1, 0.025)
    assert (traffic.scores["strong"] > point["threshold"])[~traffic.is_bad].mean() <= 0.1
    read = read_run(calibration, "calibrate")
    assert (read.state, read.parts[0]) == ("done", "strong")
    with pytest.raises(UserError, match="no monitor of this project gave, so that none can be served"):
        read_calibrated(traffic.study(f"operating_point={calibration}", stage="serve"))
    with pytest.raises(UserError, match="expected a round of the log of the one monitor"):
        on("calibrate", "calibrate.alpha=0.1", f"operating_point={calibration}")
    with pytest.raises(UserError, match=r"no threshold for strong: at the highest threshold tried .* may be"):
        on("calibrate", "calibrate.alpha=0.001")
    assert on("recommend") == run
    said = " ".join(caplog.text.split())
    assert "insufficient, flagging everything may cost no more; its miss rate is known to" in said
    assert f"label {run / 'batches'} next" in said
    assert "another monitor would be the cheapest" in said
    assert on("report") == run
    page = (run / "report.html").read_text()
    waiting = sum(one["label"] is None for one in asked(run))
    for text in ("What a few labels say", "150 labels", "false alarm rate", f"Label these {waiting} next"):
        assert text in page
    with pytest.raises(UserError, match="expected it alone"):
        recommend_round(traffic.study(f"recommend.runs=[{run},{run}]", stage="recommend"))
    empty, study = traffic.begin("weak"), traffic.study()
    with pytest.raises(UserError, match="no label came back yet"):
        labelled_pool(empty, study.label, study.stakes, study.calibrate)


@pytest.mark.parametrize("stage", ["report", "score", "calibrate", "recommend"])
def test_whoever_reads_a_round_keeps_its_costs(
    traffic: Traffic, stage: str, caplog: pytest.LogCaptureFixture
):
    """A page opened once more would put the costs of a miss of 100 in the place of the answer at 10."""
    caplog.set_level("INFO", "monitorbench")
    run = traffic.read(traffic.begin("strong"), "stakes.cost_miss=10", "stakes.cost_alarm=2")
    before = (run / "table.csv").read_bytes()
    cost = float(traffic.estimates(run)["strong", "expected_cost"]["value"])
    asked_of = f"recommend.runs=[{run}]" if stage == "recommend" else f"run={run}"

    def read(*more: str) -> None:
        function, study = STAGES[stage].function, traffic.study(asked_of, *more, stage=stage)
        imported(function)(study) if isinstance(function, str) else function(study, traffic.compose)

    read("calibrate.alpha=0.2")
    assert (run / "table.csv").read_bytes() == before
    assert "by its own stakes.cost_miss=10 stakes.cost_alarm=2" in " ".join(caplog.text.split())
    read("calibrate.alpha=0.2", "stakes.cost_alarm=5")
    assert float(traffic.estimates(run)["strong", "expected_cost"]["value"]) > cost
    read("calibrate.alpha=0.2")
    assert (run / "table.csv").read_bytes() == before


@pytest.mark.parametrize("design", ["active", "alerts"])
def test_a_log_that_was_read_to_its_end_asks_for_nothing(traffic: Traffic, design: str):
    """A log of a few samples ends in an answer, not in a batch of none."""
    file = traffic.folder / "strong.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:40]))
    run = traffic.read(traffic.begin("strong", design=design), f"label.design={design}")
    assert [one["label"] is None for one in asked(run)] == [False] * 40
    assert json.loads((run / "metrics.json").read_text())["decision"] == "insufficient"
    assert not (run / "batches").exists()


def test_labels_that_came_with_the_scores_count_as_drawn(traffic: Traffic):
    file, rng = traffic.folder / "strong.jsonl", np.random.default_rng(3)
    chance = np.where(traffic.scores["strong"] > 0.5, 0.8, 0.1)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for i, line in enumerate(lines):
        if rng.random() < chance[i]:
            line |= {"label": "misbehavior" if traffic.is_bad[i] else "benign", "probability": chance[i]}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = traffic.begin("strong")
    rate = traffic.estimates(run)["strong", "base_rate"]
    assert float(rate["low"]) <= traffic.is_bad.mean() <= float(rate["high"])
    assert not any("label" in line and line["round"] == 0 and line["label"] is None for line in asked(run))
    for line in lines:
        line.pop("probability", None)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match="expected for each label the probability"):
        traffic.begin("strong")


def test_a_monitor_that_is_no_better_than_none_is_not_deployed(traffic: Traffic):
    """Whoever has a coin, a constant or an inverted scale would be told to put it into use."""
    rng = np.random.default_rng(5)
    useless = {"coin": rng.random(N), "constant": np.full(N, 0.2), "inverted": 1 - traffic.scores["strong"]}
    for name, scores in useless.items():
        lines = [
            {"sample_id": f"s{i}", "score": score, "threshold": 0.5, "label": ["benign", "misbehavior"][bad]}
            for i, (score, bad) in enumerate(zip(scores.tolist(), traffic.is_bad.tolist(), strict=True))
        ]
        (traffic.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = json.loads((traffic.begin(name) / "metrics.json").read_text())
        assert found["decision"] == "none"
        assert found["sentence"].startswith("deploy none, flagging ")
        assert [remark.split(":")[0] for remark in found["remarks"]] == (
            ["The scores of inverted are inverted"] if name == "inverted" else []
        )


def test_none_is_said_where_it_is_shown(traffic: Traffic, capsys: pytest.CaptureFixture[str]):
    """A team would put a monitor away that may well be worth it, and not hear that labels are still open."""
    run = traffic.read(traffic.begin("strong"), doubted=10)
    with (run / "table.csv").open(newline="") as stream:
        (cost,) = [row for row in csv.DictReader(stream) if row["metric"] == "expected_cost"]
    found = json.loads((run / "metrics.json").read_text())
    everything = 1 - traffic.is_bad.mean()
    assert float(cost["low"]) < everything < float(cost["value"]), "it seems dearer, and may be cheaper"
    assert found["decision"] == "insufficient"
    assert "flagging everything may cost no more" in found["sentence"]
    assert sum(one["label"] is None for one in asked(run)) == found["n_next"] > 0
    waits = f"10 samples await a third reader, in {run / 'adjudication.csv'}: "
    assert waits in capsys.readouterr().out
    assert found["remarks"][0].startswith(waits)
    settled = traffic.read(run, traffic.third_answers(run))
    assert "third reader" not in capsys.readouterr().out
    assert json.loads((settled / "metrics.json").read_text())["remarks"] == []


def test_a_monitor_without_scores_is_counted_as_wrong(traffic: Traffic):
    """Who refuses to judge what is bad would be the cheapest, at a base rate of its own."""
    lines = [json.loads(line) for line in (traffic.folder / "strong.jsonl").read_text().splitlines()]
    for name, refuses in (("strong", False), ("refusing", True)):
        for i, line in enumerate(lines):
            bad = bool(traffic.is_bad[i])
            line["label"] = "misbehavior" if bad else "benign"
            line["score"] = None if refuses and bad and i % 5 else traffic.scores["strong"][i]
        (traffic.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = traffic.begin("refusing", "strong")
    found, rows = json.loads((run / "metrics.json").read_text()), traffic.estimates(run)
    assert (found["decision"], found["monitor"]) == ("recommend", "strong")
    gone = sum(bool(bad) and i % 5 > 0 for i, bad in enumerate(traffic.is_bad))
    assert found["remarks"][0].startswith(f"refusing: {gone} of {N} samples have no score")
    for name in ("strong", "refusing"):
        assert float(rows[name, "base_rate"]["value"]) == pytest.approx(traffic.is_bad.mean())
    missed = sum((line["score"] or 0) <= 0.5 for i, line in enumerate(lines) if traffic.is_bad[i])
    alarms = (traffic.scores["strong"] > 0.5)[~traffic.is_bad].sum()
    cost = float(rows["refusing", "expected_cost"]["value"])
    assert cost == pytest.approx((100 * missed + alarms) / N)
    own = float(rows["strong", "expected_cost"]["value"])
    apart = traffic.estimates(run, against="strong")["refusing", "expected_cost"]
    assert float(apart["value"]) == pytest.approx(cost - own)


@pytest.mark.parametrize(("field", "other"), [("response", "another"), ("label", "benign")])
def test_one_id_of_two_samples_is_refused(traffic: Traffic, field: str, other: str):
    """The score of one text would get the label of another."""
    file = traffic.folder / "strong.jsonl"
    lines = [json.loads(line) | {"label": "misbehavior"} for line in file.read_text().splitlines()]
    lines += [dict(lines[0]), lines[0] | {field: other}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match=rf"line {N + 2}: 's0' stood there before with another"):
        traffic.begin("strong")


def test_chats_are_read_as_everywhere(traffic: Traffic):
    """A log that import and guardrail read would be refused, or read otherwise, by those who label."""
    call = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"to": "eve"}'}}
    chat = [{"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]}]
    file = traffic.folder / "strong.jsonl"
    lines = [json.loads(line) | {"response": chat} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = traffic.begin("strong")
    (response,) = {row.response for row in read_returned(run / "batches/first/batch.csv")}
    assert all(text in (response or "") for text in ("hm", "send", "eve"))


def test_what_monitors_contradict_is_read_again_and_keeps_both_labels(traffic: Traffic):
    first = traffic.begin("strong", "weak", budget=300, design="alerts")
    drawn = [int(str(one["sample_id"])[1:]) for one in asked(first)]
    flags = [traffic.scores[name] > 0.5 for name in ("strong", "weak")]
    wrong = frozenset(i for i in drawn if traffic.is_bad[i] and all(of[i] for of in flags))
    assert wrong
    second = traffic.read(first, f"label.read_again={len(wrong)}", wrong=wrong)
    batch = [one for one in asked(second) if one["label"] is None]
    again = {int(str(one["sample_id"])[1:]) for one in batch}
    assert again <= wrong | {i for i in drawn if all(of[i] for of in flags)}
    assert len(again & wrong) >= len(wrong) / 2
    third = traffic.read(second)
    for i in again & wrong:
        assert [one["label"] for one in asked(third) if one["sample_id"] == f"s{i}"] == [
            "benign",
            "misbehavior",
        ]
    before, after = (traffic.estimates(run)["strong", "base_rate"]["value"] for run in (second, third))
    assert float(after) > float(before)


def test_a_part_that_two_read_tells_how_often_readers_err(traffic: Traffic):
    first = traffic.begin("strong", budget=400, double_share="0.5")
    sizes = [len(read_returned(first / f"batches/{name}/batch.csv")) for name in ("first", "second")]
    assert 400 < sum(sizes) < 800
    plain = traffic.estimates(traffic.read(first))["strong", "base_rate"]
    with_errors = traffic.estimates(traffic.read(first, "label.errors=readings"))["strong", "base_rate"]
    assert float(with_errors["low"]) < float(plain["low"])
    alone = traffic.begin("strong", budget=60, double_share="0.0001")
    with pytest.raises(UserError, match="no sample was read by two people"):
        traffic.read(alone, "label.errors=readings")


def test_a_queue_takes_a_days_alerts_and_goes_on_with_what_came_since(traffic: Traffic):
    """Each day its own batch of new traffic; MR over all days, misses found by the blind share."""
    lines = (traffic.folder / "strong.jsonl").read_text().splitlines(keepends=True)
    log = traffic.folder / "decisions.jsonl"
    run, settings = None, ["label.budget=120", "label.blind_share=0.4"]
    for day in range(3):
        log.write_text("".join(lines[: 500 * (day + 1)]))
        if run is None:
            run = queue(traffic.study(f"label.scores=[{log}]", *settings, stage="queue"))
        else:
            run = queue(traffic.study(f"run={run}", traffic.answers(run), *settings, stage="queue"))
        batch = [one for one in asked(run) if one["label"] is None]
        rows = [int(str(one["sample_id"])[1:]) for one in batch]
        assert len(rows) == 120
        assert all(500 * day <= i < 500 * (day + 1) for i in rows)
        alerts = (traffic.scores["strong"] > 0.5)[500 * day : 500 * (day + 1)].sum()
        assert sum(one["probability"] == 1 for one in batch) == min(alerts, 72)
    run = queue(traffic.study(f"run={run}", traffic.answers(run), *settings, stage="queue"))
    assert not [one for one in asked(run) if one["label"] is None], "no traffic came since"
    assert not (run / "batches").exists()
    rows_of = traffic.estimates(run)
    flags, bad = traffic.scores["strong"] > 0.5, traffic.is_bad
    for key, truth in {"miss_rate": (~flags)[bad].mean(), "false_alarm_rate": flags[~bad].mean()}.items():
        of = rows_of["decisions", key]
        assert float(of["low"]) <= truth <= float(of["high"])
    read = [one for one in asked(run) if one["label"] == "misbehavior"]
    per_hour = len(read) / (360 / 30)
    assert float(rows_of["queue", "misbehavior_found_per_hour"]["value"]) == pytest.approx(per_hour)
    assert 0 < float(rows_of["queue", "false_alarm_rate"]["value"]) <= flags[~bad].mean() + 0.01
    weeks = [traffic.folder / f"{name}.jsonl" for name in ("monday", "tuesday")]
    for file, part in zip(weeks, (lines[:300], lines[300:600]), strict=True):
        file.write_text("".join(part))
    days = ("label.scores=[" + ",".join(map(str, weeks)) + "]", "label.thresholds=[0.4]", "label.budget=500")
    drawn = asked(queue(traffic.study(*days, stage="queue")))
    alerts = int((traffic.scores["strong"][:600] > 0.4).sum())
    assert sum(one["probability"] == 1 for one in drawn) == alerts, "at the threshold that was given"
    with pytest.raises(ConfigError, match=r"2 given; expected one for each of \['monday'\]"):
        queue(traffic.study(days[0], "label.thresholds=[0.4,0.5]", stage="queue"))
    log.write_text("".join(lines[1:]))
    with pytest.raises(UserError, match="not as it was"):
        queue(traffic.study(f"run={run}", stage="queue"))
    with pytest.raises(UserError, match="not of a queue"):
        queue(traffic.study(f"run={traffic.begin('strong')}", stage="queue"))


def test_a_queue_goes_on_with_what_came_since_in_whichever_file(traffic: Traffic):
    """A log that grew in its first file would ask for old samples as new ones, and leave the new ones out."""
    lines = (traffic.folder / "strong.jsonl").read_text().splitlines(keepends=True)
    files = [traffic.folder / f"{name}.jsonl" for name in ("monday", "tuesday")]
    for file, part in zip(files, (lines[:300], lines[300:600]), strict=True):
        file.write_text("".join(part))
    first = queue(
        traffic.study(f"label.scores=[{','.join(map(str, files))}]", "label.budget=60", stage="queue")
    )
    second = queue(traffic.study(f"run={first}", traffic.answers(first), "label.budget=60", stage="queue"))
    before = traffic.estimates(second)
    again = json.dumps({"sample_id": "s0", "score": 0.99, "threshold": 0.5}) + "\n"
    for file, part in zip(files, (lines[600:900], [again]), strict=True):
        file.write_text(file.read_text() + "".join(part))
    assert score_round(traffic.study(), second).decision
    assert traffic.estimates(second) == before, "a round is of what it read"
    third = queue(traffic.study(f"run={second}", "label.budget=60", stage="queue"))
    batch = [int(str(one["sample_id"])[1:]) for one in asked(third) if one["label"] is None]
    assert len(batch) == 60
    assert all(600 <= i < 900 for i in batch)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"sample_id": "s0"', "line 1"),
        ("[]", "no row|no object|expected"),
        ('{"sample_id": null, "score": 1}', "sample_id=None"),
        ('{"sample_id": "a", "score": "high", "threshold": 0.5}', "score='high'"),
        ('{"sample_id": "a", "score": NaN, "threshold": 0.5}', "line 1"),
        (
            '{"sample_id": "a", "score": 1, "threshold": 0.5, "request": 3, "response": "x"}',
            "expected text or a list",
        ),
        ('{"id": "a", "score": 1}', "line 1: sample_id: no such column; there are id, score"),
        ('{"sample_id": "a", "scores": 1}', "score: no such column; did you mean scores"),
        ('{"sample_id": "a", "score": 1}', "0 thresholds in it"),
        ('{"sample_id": "a", "score": 1, "threshold": 0.5, "label": "bad"}', "label='bad'"),
        ('{"sample_id": "a", "score": 1, "threshold": 0.5}', "no request and response"),
        ("", "no row in it"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(traffic: Traffic, line: str, problem: str):
    file = traffic.folder / "bad.jsonl"
    file.write_text(line)
    with pytest.raises(UserError, match=problem.replace("(", r"\(")):
        label(traffic.study(f"label.scores=[{file}]"))


def test_other_faults_are_told_in_a_line(traffic: Traffic):
    with pytest.raises(ConfigError, match=r"label\.scores=\[\]"):
        label(traffic.study())
    with pytest.raises(ConfigError, match="which round"):
        label(traffic.study(f"annotation.returned=[{traffic.folder / 'x.csv'}]"))
    (traffic.folder / "few.jsonl").write_text('{"sample_id": "s1", "score": 0.1, "threshold": 0.5}\n')
    with pytest.raises(UserError, match=r"1499 samples are in this file or in .* alone"):
        traffic.begin("strong", "few")
    silent = (traffic.folder / "weak.jsonl").read_text().splitlines()
    lines = [json.dumps(json.loads(line) | {"score": None}) + "\n" for line in silent]
    (traffic.folder / "silent.jsonl").write_text("".join(lines))
    with pytest.raises(UserError, match=r"silent\.jsonl: no sample has a score"):
        traffic.begin("strong", "silent")
    run = traffic.begin("strong")
    with pytest.raises(ConfigError, match="no file given"):
        label(traffic.study(f"run={run}"))
    with (traffic.folder / "strong.jsonl").open("a") as stream:
        stream.write("\n")
    with pytest.raises(UserError, match="not as it was"):
        traffic.read(run)


def test_a_sample_without_a_score_counts_for_neither_rate(traffic: Traffic):
    file = traffic.folder / "strong.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines[::2]:
        line["score"] = None
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {**lines[1], "score": 0.99}]))
    run = traffic.read(traffic.begin("strong", budget=400))
    rows = traffic.estimates(run)
    names = {f"s{i}" for i in range(0, N, 2)}
    benign = [one for one in asked(run) if one["label"] == "benign"]
    study = traffic.study()
    (promise,) = answer(labelled_pool(run, study.label, study.stakes, study.calibrate)).promises
    assert promise.n_unscored == sum(one["sample_id"] in names for one in benign) > 0
    scored = np.arange(N) % 2 == 1
    flagged = traffic.scores["strong"] > 0.5
    flagged[1] = True  # judged twice: the highest score counts
    truth = flagged[scored & ~traffic.is_bad].mean()
    of = rows["strong", "false_alarm_rate"]
    assert float(of["low"]) <= truth <= float(of["high"])


def test_an_empty_group_is_none_and_a_label_of_another_kind_is_refused(
    tmp_path: Path, compose_study: Callable[..., Study]
):
    """All rows without a group were one question, whose miss rate lay between 0 and 1."""
    file = tmp_path / "log.csv"
    groups = ["g", "g", *[""] * 8]
    file.write_text("sample_id,score,group\n" + "".join(f"s{i},0.{i},{g}\n" for i, g in enumerate(groups)))
    given = (f"label.scores=[{file}]", "label.thresholds=[0.5]")
    pool = read_pool(compose_study("label", *given).label)
    assert len(set(pool.groups.tolist())) == 9
    (tmp_path / "log.jsonl").write_text('{"sample_id": "a", "score": 0.1, "label": 0, "probability": 1}\n')
    with pytest.raises(UserError, match="line 1: label=0; expected misbehavior, benign or nothing"):
        read_pool(compose_study("label", f"label.scores=[{tmp_path}/log.jsonl]", given[1]).label)
