"""From a log without labels and a few labels by people to a recommendation: what is asked and said."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from monitorbench.annotation.files import read_returned
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.labelling.stage import label, print_plan

N = 1_500
Compose = Callable[..., Study]


class Traffic:
    """Logs of two monitors over the same traffic, and people who know the answers."""

    def __init__(self, folder: Path, compose: Compose) -> None:
        self.folder, self.compose = folder, compose
        rng = np.random.default_rng(7)
        self.is_bad = rng.random(N) < 0.06
        self.scores = {}
        for name, shift in (("strong", 4.0), ("weak", 1.0)):
            score = 1 / (1 + np.exp(-(rng.normal(size=N) + shift * self.is_bad - 2)))
            self.scores[name] = score
            lines = [
                {"sample_id": f"s{i}", "score": value, "threshold": 0.5, "request": "q", "response": f"r{i}"}
                for i, value in enumerate(score.tolist())
            ]
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def study(self, *settings: str) -> Study:
        study = self.compose("label", *settings)
        return study.model_copy(
            update={"paths": study.paths.model_copy(update={"runs": self.folder / "runs"})}
        )

    def begin(self, *names: str, budget: int = 150, **more: str) -> Path:
        files = ",".join(str(self.folder / f"{name}.jsonl") for name in names)
        given = [f"{key}={value}" for key, value in more.items()]
        return label(self.study(f"label.scores=[{files}]", f"label.budget={budget}", *given))

    def read(self, run: Path, *more: str, doubted: int = 0) -> Path:
        """Both readers answer; the second is unsure about the first so many items."""
        files = []
        for reader in ("first", "second"):
            rows = read_returned(run / "batches" / reader / "batch.csv")
            out = self.folder / f"{run.name}-{reader}.csv"
            with out.open("w", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(("item", "batch", "label", "note", "request", "response"))
                for row in sorted(rows, key=lambda row: row.item):
                    told = "misbehavior" if self.is_bad[int((row.response or "")[1:])] else "benign"
                    told = "unsure" if reader == "second" and doubted > 0 else told
                    doubted -= reader == "second"
                    writer.writerow((row.item, f"batch-{row.reader}", told, "", row.request, row.response))
            files.append(str(out))
        return label(self.study(f"run={run}", f"annotation.returned=[{','.join(files)}]", *more))

    def estimates(self, run: Path) -> dict[tuple[str, str], dict[str, str]]:
        with (run / "estimates.csv").open(newline="") as stream:
            return {(row["monitor"], row["metric"]): row for row in csv.DictReader(stream)}


@pytest.fixture
def traffic(tmp_path: Path, compose_study: Compose) -> Traffic:
    return Traffic(tmp_path, compose_study)


def asked(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "asked.jsonl").read_text().splitlines()]


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
    third = traffic.read(second, "label.margin=0.25")
    rows = traffic.estimates(third)
    strong, weak = (traffic.scores[name] > 0.5 for name in ("strong", "weak"))
    bad = traffic.is_bad
    truths = {
        ("strong", "miss_rate"): (~strong)[bad].mean(),
        ("strong", "false_alarm_rate"): strong[~bad].mean(),
        ("weak", "miss_rate"): (~weak)[bad].mean(),
        ("weak - strong", "miss_rate"): (~weak)[bad].mean() - (~strong)[bad].mean(),
        ("strong", "base_rate"): bad.mean(),
    }
    for key, truth in truths.items():
        assert float(rows[key]["low"]) <= truth <= float(rows[key]["high"]), key
    assert rows["strong", "miss_rate"]["part"] == "estimated:ipw"
    assert (
        int(rows["strong", "miss_rate"]["n"]) == sum(one["label"] is not None for one in asked(third)) > 150
    )
    assert "deploy strong: miss rate" in capsys.readouterr().out
    assert not (third / "batches").exists()


def test_batches_are_blind_and_no_sample_is_asked_for_twice(traffic: Traffic):
    second = traffic.read(traffic.begin("strong", budget=60))
    names = [one["sample_id"] for one in asked(second)]
    assert len(set(names)) == len(names) > 60
    batch = (second / "batches" / "first" / "batch.csv").read_text("utf-8-sig")
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


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"sample_id": "s0"', "line 1"),
        ("[]", "no row|no object|expected"),
        ('{"score": 1}', "sample_id=None"),
        ('{"sample_id": "a", "score": "high", "threshold": 0.5}', "score='high'"),
        ('{"sample_id": "a", "score": NaN, "threshold": 0.5}', "line 1"),
        ('{"sample_id": "a", "score": 1, "threshold": 0.5, "request": 3, "response": "x"}', "neither a text"),
        ('{"sample_id": "a", "score": 1}', "0 thresholds in it"),
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
    rows = traffic.estimates(traffic.read(traffic.begin("strong", budget=400)))
    scored = np.arange(N) % 2 == 1
    flagged = traffic.scores["strong"] > 0.5
    flagged[1] = True  # judged twice: the highest score counts
    truth = flagged[scored & ~traffic.is_bad].mean()
    of = rows["strong", "false_alarm_rate"]
    assert float(of["low"]) <= truth <= float(of["high"])
