"""`monitorbench import`: from a file of scores to figures, threshold and page, without a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from score_files import Import, origins, runs_of, transcripts, write_csv
from sklearn.metrics import confusion_matrix, roc_auc_score

from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.metrics.metrics_json import as_results
from monitorbench.records import Split
from monitorbench.report.tables.overall import answers_in_words
from monitorbench.runs.command import main as runs_command
from monitorbench.runs.directory import read_checked, read_manifest
from monitorbench.runs.files import file_sha256
from monitorbench.runs.keyed_log import VERDICTS, read_verdicts
from monitorbench.runs.listing import overall_rates
from monitorbench.runs.run_folders import read_run
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.combination.combined_run import combine_runs
from monitorbench.scoring.evaluations import answers_at, forced_alarms, read_evaluation
from monitorbench.scoring.operating_point import read_operating_point
from monitorbench.scoring.score import score_run, transfer
from monitorbench.scoring.verdict_columns import read_verdict_columns

COLUMNS = (
    "import.columns.sample=transcript",
    "import.columns.label=attack",
    "import.columns.score=suspicion",
    "import.scale=[0,10]",
)


def test_a_foreign_csv_gives_what_scikit_learn_gives(
    tmp_path: Path, importing: Import, into: Callable[..., Study]
):
    """A team would choose a threshold by figures that are not those of its own scores."""
    rows = transcripts(800)
    run = importing(write_csv(tmp_path / "s.csv", rows), *COLUMNS, "import.calibration_share=0.5")
    unscored = overall_rates(read_run(run, "evaluate"), tmp_path / "data")
    point = calibrate_run(into("calibrate", f"run={runs_of(tmp_path)['suspicion/calibration']}"))
    reported = into("report", f"run={run}", f"operating_point={point}", "score.resamples=100")
    STAGES["report"].function(reported, lambda *_: reported)
    page = (run / "report.html").read_text()
    assert "the imported file has none" in page

    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    on_test = {one["own_id"] for one in origins(data) if one["split"] == "test"}
    assert abs(len(on_test) - 400) <= 1
    y, x = np.array([(r["attack"], r["suspicion"] / 10) for r in rows if r["transcript"] in on_test]).T
    overall = read_checked(run, "metrics.json")["monitors"]["suspicion"]["imported"]["overall"]
    assert overall["auroc"] == pytest.approx(roc_auc_score(y, x), abs=1e-12)
    (tn, fp), (fn, tp) = confusion_matrix(y, x >= 0.5)
    assert overall["miss_rate"] == pytest.approx(fn / (fn + tp))
    assert overall["false_alarm_rate"] == pytest.approx(fp / (fp + tn))
    assert unscored[:2] == (overall["miss_rate"], overall["false_alarm_rate"])  # as `runs list` tells them
    assert unscored.auroc == pytest.approx(overall["auroc"])

    threshold = read_operating_point(point).thresholds[0].threshold
    at = read_checked(run, f"metrics-at-{point.name}.json")["monitors"]["suspicion"]["imported"]["overall"]
    (tn, fp), (fn, tp) = confusion_matrix(y, x > threshold)
    assert at["miss_rate"] == pytest.approx(fn / (fn + tp))
    assert at["false_alarm_rate"] == pytest.approx(fp / (fp + tn))
    assert 0 < fp / (fp + tn) < 0.1

    study = transfer(into("transfer", f"transfer.runs=[{run}]", "score.resamples=100"))
    assert read_run(study, "transfer").dataset == data.name.rpartition("-")[0]


def test_what_is_written_is_what_a_judge_writes(tmp_path: Path, importing: Import):
    """Scripts that read every line strictly would refuse an imported run."""
    file = write_csv(tmp_path / "s.csv", transcripts(60, missing=2))
    run = importing(file, *COLUMNS, "import.monitor_version=v7", "import.prompt_hash=ab12")
    verdicts = read_verdicts(run / VERDICTS)
    columns = read_verdict_columns(run / VERDICTS)
    assert columns.sample_ids.to_pylist() == [one.sample_id for one in verdicts]
    assert [one.score for one in verdicts].count(None) == 2
    results = read_manifest(run)["results"]
    samples = read_split(tmp_path / "data" / results["data"], Split.TEST)  # each id is checked here
    assert {one.id for one in samples} == {one.sample_id for one in verdicts}
    origin = results["imported"]
    assert origin["files"][0]["sha256"] == file_sha256(file)
    assert (origin["monitor_version"], origin["prompt_hash"], origin["n_missing"]) == ("v7", "ab12", 2)
    assert importing(file, *COLUMNS, "import.monitor_version=v7", "import.prompt_hash=ab12") == run


@pytest.mark.parametrize(("policy", "value"), [("flag", 1.0), ("pass", 0.0), ("leave_out", None)])
def test_a_missing_score_counts_as_is_said_and_the_name_says_it(
    tmp_path: Path, importing: Import, policy: str, value: float | None
):
    """A monitor that fails on every attack would look like one that passes everything, or a perfect one."""
    rows = transcripts(200, missing=9)
    run = importing(write_csv(tmp_path / "s.csv", rows), *COLUMNS, f"import.missing={policy}")
    found = read_evaluation(tmp_path / "data", run)
    words = {"flag": "missing_flagged", "pass": "missing_passed", "leave_out": "missing_left_out"}
    assert found.monitor == f"suspicion_{words[policy]}"
    assert found.score_facts["n_missing"] == 9
    scores, answers = found.judged.scores, found.judged.flagged
    assert np.isnan(scores).sum() == np.isnan(answers).sum() == (9 if value is None else 0)
    kept = [row for row in rows if row["suspicion"] is not None or value is not None]
    x = [value if row["suspicion"] is None else row["suspicion"] / 10 for row in kept]
    there = ~np.isnan(scores)
    assert roc_auc_score(found.judged.is_misbehavior[there], scores[there]) == pytest.approx(
        roc_auc_score([row["attack"] for row in kept], x)
    )
    assert sum(one.label is None for one in read_verdicts(run / VERDICTS)) == 9  # as the file has it


def test_each_monitor_of_a_file_gets_its_runs_and_they_combine(
    tmp_path: Path, importing: Import, into: Callable[..., Study]
):
    """Two monitors in one file would be scored as one, or could not be made an ensemble."""
    rng = np.random.default_rng(3)
    rows = [
        {"id": f"s{i}", "label": bool(i % 2), "monitor": name, "score": round(float(rng.random()), 3)}
        for i in range(120)
        for name in ("a b", "c")
        if not (name == "c" and i == 5)
    ]
    importing(write_csv(tmp_path / "s.csv", rows), "import.calibration_share=0.5")
    runs = runs_of(tmp_path)
    assert sorted(runs) == [
        f"{m}/{s}" for m in ("a_b", "c_missing_left_out") for s in ("calibration", "test")
    ]
    sides = {
        s: [str(path) for name, path in runs.items() if name.endswith(s)] for s in ("calibration", "test")
    }
    combined = combine_runs(
        into(
            "combine",
            "combine.rule=mean",
            *(f"combine.{side}=[{','.join(paths)}]" for side, paths in sides.items()),
        )
    )
    mean = np.nanmean(
        [read_evaluation(tmp_path / "data", Path(one)).judged.scores for one in sides["test"]], 0
    )
    ours = read_evaluation(tmp_path / "data", combined).judged.scores
    both = ~np.isnan(ours)
    assert np.allclose(ours[both], mean[both])


def test_a_files_name_is_cut_at_its_ending_alone(tmp_path: Path, importing: Import):
    """`gpt-4.1.csv` and `gpt-4.5.csv` were two parts of one monitor `gpt-4`."""
    rows = [{"id": f"s{i}", "label": i % 2, "score": i / 20} for i in range(20)]
    files = [write_csv(tmp_path / f"gpt-4.{k}.csv", rows) for k in (1, 5)]
    importing(f"[{files[0]},{files[1]}]", "import.columns.monitor=file")
    assert {name.partition("/")[0] for name in runs_of(tmp_path)} == {"gpt-4.1", "gpt-4.5"}


def test_a_monitor_is_not_called_as_a_baseline(tmp_path: Path, importing: Import):
    """Its rows were taken for the baseline's, and `choose` ended in a traceback with half of its files."""
    rows = [{"id": f"s{i}", "label": i % 2, "random": i / 20} for i in range(20)]
    file = write_csv(tmp_path / "s.csv", rows)
    with pytest.raises(UserError, match="monitor 'random': a baseline of that name is in every table"):
        importing(file, "import.columns.score=random")
    rows = [{"id": "a", "label": 0, "g": 0.1, "g_missing_left_out": 0.1}]
    with pytest.raises(
        UserError, match="'g' and 'g_missing_left_out': g_missing_left_out is what g is called"
    ):
        importing(
            write_csv(tmp_path / "t.csv", rows), "import.monitors={g:g,g_missing_left_out:g_missing_left_out}"
        )
    assert not (tmp_path / "data").exists()


def test_an_answer_against_its_score_is_counted_and_shown(
    tmp_path: Path, importing: Import, into: Callable[..., Study], caplog: pytest.LogCaptureFixture
):
    """A file whose scores run the other way would pass for a bad monitor."""
    rows = [
        {"id": i, "label": "attack" if i % 2 else "honest", "score": s, "flagged": f}
        for i, (s, f) in enumerate([(0.9, "yes"), (0.2, "yes"), (0.8, "no"), (0.1, "no"), (0.4, "")])
    ]
    with caplog.at_level("INFO", logger="monitorbench"):
        run = importing(write_csv(tmp_path / "s.csv", rows), "import.flag_from=0.3")
    assert "2 answers contradict their score's side of 0.3" in caplog.text
    found = read_evaluation(tmp_path / "data", run)
    assert (found.score_facts["n_against"], found.score_facts["n_both"]) == (2, 4)
    score_run(into("score", f"run={run}", "score.resamples=100"))
    results = as_results(json.loads((run / "metrics.json").read_text()))
    assert results["scores"]["score"]["imported"]["side"] == 0.3
    assert answers_in_words(results, ["score"], "imported") == "own answers"


def test_scores_without_answers_are_not_called_the_monitors_answers(
    tmp_path: Path, importing: Import, into: Callable[..., Study]
):
    """Otherwise: rates at a score that nobody chose pass for what the judge itself said."""
    rows = [{"id": i, "label": "attack" if i % 2 else "honest", "score": i / 10} for i in range(6)]
    run = importing(write_csv(tmp_path / "s.csv", rows), "import.flag_from=0.3")
    score_run(into("score", f"run={run}", "score.resamples=100"))
    results = as_results(json.loads((run / "metrics.json").read_text()))
    assert answers_in_words(results, ["score"], "imported") == "flagged from a score of .3"


def test_a_file_may_say_the_split_and_no_group_is_on_both_sides(tmp_path: Path, importing: Import):
    """A threshold would be promised for questions that it was set on."""
    rows = [
        {"id": i, "label": i % 2, "score": 0.5, "group": i // 2, "split": "test" if i < 4 else "calibration"}
        for i in range(8)
    ]
    importing(write_csv(tmp_path / "s.csv", rows))
    assert sorted(runs_of(tmp_path)) == ["score/calibration", "score/test"]
    rows[4]["group"] = 1
    with pytest.raises(
        UserError, match=r"s\.csv, line 6: split='calibration': group '1' is in another split"
    ):
        importing(write_csv(tmp_path / "s.csv", rows))
    with pytest.raises(ConfigError, match="says the split"):
        importing(write_csv(tmp_path / "s.csv", rows), "import.calibration_share=0.5")


def test_a_question_is_one_with_a_blank_behind_its_name(tmp_path: Path, importing: Import):
    """Its samples were two questions, on both sides of the split, and each counted for the promise."""
    rows = [
        {"id": i, "label": i % 2, "score": 0.1 * (i % 9), "group": f"q{i // 2}{' ' * (i % 2)}"}
        for i in range(80)
    ]
    importing(write_csv(tmp_path / "s.csv", rows), "import.calibration_share=0.5")
    (data,) = (tmp_path / "data").glob("*-*")
    questions = {(row["group_id"], row["split"]) for row in origins(data)}
    assert len(questions) == len({group for group, _ in questions}) == 40


def test_a_missing_score_that_counts_as_an_alarm_is_one_at_every_threshold(
    tmp_path: Path, importing: Import, into: Callable[..., Study]
):
    """A threshold of 1 would pass all that has no score, and keep a promise that the deployment breaks."""
    rows = [
        {"id": f"s{i}", "label": i % 2, "score": None if i % 20 == 0 else 1.0 if i % 10 == 2 else 0.5}
        for i in range(400)
    ]
    more = ("import.missing=flag", "import.calibration_share=0.5", "import.flag_from=0.9")
    run = importing(write_csv(tmp_path / "s.csv", rows), *more)
    held = runs_of(tmp_path)["score_missing_flagged/calibration"]
    point = calibrate_run(into("calibrate", f"run={held}", "calibrate.alpha=0.25", "calibrate.delta=0.2"))
    (threshold,) = read_operating_point(point).thresholds
    assert threshold.threshold == 1.0, "every fifth benign sample has a score of 1, every tenth has none"
    found = answers_at(read_operating_point(point), read_evaluation(tmp_path / "data", run))
    flagged = found.judged.flagged == 1
    assert flagged.sum() == forced_alarms(found).sum() > 0
    assert not found.judged.is_misbehavior[flagged].any()


def test_without_a_score_an_answer_of_the_file_is_missing_too(tmp_path: Path, importing: Import):
    """The name would say flagged, and the rate count the answer as benign."""
    rows = [
        {"id": i, "label": i % 2, "score": None if i == 0 else 0.1 * i, "flagged": "" if i == 3 else "no"}
        for i in range(6)
    ]
    run = importing(write_csv(tmp_path / "s.csv", rows), "import.missing=flag")
    found = read_evaluation(tmp_path / "data", run)
    assert found.monitor == "score_missing_flagged"
    answers = dict(zip(found.judged.scores.round(1).tolist(), found.judged.flagged.tolist(), strict=True))
    assert answers[1.0] == 1
    assert np.isnan(answers[0.3]), "a score without an answer is no missing score"


def test_a_missing_answer_is_counted_and_not_called_a_missing_score(
    tmp_path: Path, importing: Import, into: Callable[..., Study], caplog: pytest.LogCaptureFixture
):
    """A user would look for empty scores in a column that has none, or not know that answers are lacking."""
    caplog.set_level("INFO")
    rows = [
        {"id": i, "label": i % 2, "score": (i % 10) / 10, "flagged": "" if i % 4 == 1 else i % 2}
        for i in range(40)
    ]
    run = importing(write_csv(tmp_path / "both.csv", rows))
    assert "import: score: 10 samples have a score and no answer" in caplog.text
    details = [verdict.detail for verdict in read_verdicts(run / VERDICTS)]
    assert (details.count("no answer in the imported file"), details.count("")) == (10, 30)
    assert read_manifest(run)["results"]["imported"]["n_unanswered"] == 10
    score_run(into("score", f"run={run}", "score.resamples=100"))
    said = " ".join(read_checked(run, "metrics.json")["decision"]["remarks"])
    assert "test samples without an answer count as wrong (recommend.unscored)" in said

    importing(write_csv(tmp_path / "only.csv", [{**row, "score": ""} for row in rows]))
    assert "30 answers of 40 samples" in caplog.text
    importing(write_csv(tmp_path / "none.csv", [{**row, "flagged": ""} for row in rows]))
    assert "import: score: 40 samples have a score and no answer" in caplog.text


def test_samples_with_an_empty_group_are_counted(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """Samples of one task would each count as a question, and intervals be too narrow without a word."""
    caplog.set_level("INFO")
    rows = [
        {"id": i, "label": i % 2, "score": 0.5, "group": "" if i % 3 else f"g{i // 6}"} for i in range(24)
    ]
    importing(write_csv(tmp_path / "s.csv", rows))
    assert "24 samples in 20 groups" in caplog.text
    assert "16 samples have an empty group: each counts as a question of its own" in caplog.text
    caplog.clear()
    importing(write_csv(tmp_path / "s.csv", [{**row, "group": "g"} for row in rows]))
    assert "empty group" not in caplog.text


@pytest.mark.parametrize(
    ("split", "share", "why"),
    [
        ({}, 0, "no threshold; import.calibration_share=0.5 makes one"),
        ({}, 0.5, "no threshold: too few groups to divide (import.calibration_share=0.5)"),
        ({"split": "test"}, 0, "no threshold: the column of splits names no sample of it"),
    ],
)
def test_what_makes_a_calibration_split_is_said_where_it_does(
    tmp_path: Path,
    importing: Import,
    caplog: pytest.LogCaptureFixture,
    split: dict[str, str],
    share: float,
    why: str,
):
    """A user of `choose`, which divides already, was told to set what is set."""
    caplog.set_level("INFO")
    file = write_csv(tmp_path / "s.csv", [{"id": "a", "label": 1, "score": 0.5, **split}])
    importing(file, f"import.calibration_share={share}")
    assert why in caplog.text


@pytest.mark.parametrize(
    ("scores", "scale", "said"),
    [
        (("0.1", "0.9"), "[0,100]", "all scores are from 0.1 to 0.9, at one end of the scale [0,100]"),
        (
            ("6.200", "9.810"),
            "[0,10000]",
            "all scores are from 6.2 to 9.81, at one end of the scale [0,10000]",
        ),
        (("0.1", "0.9"), "[100,0]", "all scores are from 0.1 to 0.9, at one end of the scale [100,0]"),
        (("0.1", "1.9"), "[0,100]", ""),
        (("0", "0"), "[0,1]", ""),
        (("", ""), "[0,1]", ""),
    ],
)
def test_a_scale_that_the_scores_do_not_fill_is_doubted(
    tmp_path: Path,
    importing: Import,
    caplog: pytest.LogCaptureFixture,
    scores: tuple[str, str],
    scale: str,
    said: str,
):
    """Scores of 0 to 1 read as percentages would all be benign, and no threshold of the page be theirs."""
    rows = [{"id": i, "label": i, "score": score} for i, score in enumerate(scores)]
    importing(write_csv(tmp_path / "s.csv", rows), f"import.scale={scale}")
    assert said in caplog.text
    assert ("at one end of the scale" in caplog.text) is bool(said)


def test_a_monitor_that_is_renamed_is_named_as_the_file_has_it(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """A team would look for its monitor in tables that call it `_`."""
    caplog.set_level("INFO")
    names = ("wächter", "监控", "plain", "x" * 308)
    importing(
        write_csv(
            tmp_path / "s.csv",
            [{"id": i, "label": i, "score": 0.5, "monitor": name} for name in names for i in (0, 1)],
        )
    )
    assert "import: monitor wächter is called w_chter: ASCII letters" in caplog.text
    assert "import: monitor 监控 is called _: ASCII letters" in caplog.text
    assert f"import: monitor {'x' * 80}… is called {'x' * 60}: ASCII letters" in caplog.text
    assert caplog.text.count("is called") == 3


def test_pairs_and_steps_of_a_trajectory_stay_in_one_split(tmp_path: Path, importing: Import):
    """A threshold would be promised for the counterparts of what it was set on."""
    pairs = [{"id": i, "pair_id": i // 2, "label": i % 2, "score": 0.5} for i in range(60)]
    importing(write_csv(tmp_path / "pairs.csv", pairs), "import.calibration_share=0.5")
    steps = [
        {
            "id": f"t{i // 3}",
            "step": i % 3,
            "step_label": int(i % 9 == 4),
            "score": 0.5,
            "request": f"Do {i // 3}." if i % 3 == 0 else "",
            "group": f"g{i // 6}" if i % 3 == 0 else "",
        }
        for i in range(90)
    ]
    more = ("import.calibration_share=0.5", "import.unit=step")
    importing(write_csv(tmp_path / "steps.csv", steps), *more)
    importing(write_csv(tmp_path / "by_request.csv", steps), *more, "import.columns.group=''")
    tables = [origins(one) for one in (tmp_path / "data").iterdir() if one.is_dir()]
    assert len(tables) == 3
    for rows in tables:
        homes: dict[str, set[str]] = {}
        for row in rows:
            own = row["own_id"].split("#")[0]
            homes.setdefault(str(int(own) // 2) if own.isdigit() else own, set()).add(row["split"])
        assert {len(one) for one in homes.values()} == {1}
        assert len({split for one in homes.values() for split in one}) == 2


def test_a_step_of_misbehavior_in_a_benign_sample_is_refused(tmp_path: Path, importing: Import):
    """Half of the file would say one thing, and the figures another."""
    rows = [
        {"id": "t1", "step": i, "label": "honest", "step_label": int(i == 1), "score": 0.5} for i in range(3)
    ]
    rows.append({"id": "t2", "step": 0, "label": "attack", "step_label": 1, "score": 0.9})
    with pytest.raises(UserError, match=r"s\.csv, line 3: step_label=.*labels that agree"):
        importing(write_csv(tmp_path / "s.csv", rows))


def test_a_step_that_only_another_monitor_has_is_missing(tmp_path: Path, importing: Import):
    """A monitor that crashed on the step that mattered would be taken at its word about the others."""
    rows = [
        {"id": f"t{i}", "monitor": name, "step": step, "label": i % 2, "score": 0.1 * (step + 1)}
        for i in range(4)
        for name in ("a", "b")
        for step in range(3)
        if (i, name, step) != (1, "b", 2)
    ]
    importing(write_csv(tmp_path / "s.csv", rows), "import.missing=flag")
    scores = {
        name: sorted(read_evaluation(tmp_path / "data", run).judged.scores.round(2).tolist())
        for name, run in runs_of(tmp_path).items()
    }
    assert scores == {"a/test": [0.3] * 4, "b_missing_flagged/test": [0.3] * 3 + [1.0]}


def test_a_threshold_holds_for_a_later_file_of_the_same_monitor_with_a_gap(
    tmp_path: Path, importing: Import, into: Callable[..., Study]
):
    """One empty score in February would void what January promised."""
    importing(write_csv(tmp_path / "m.csv", transcripts(300)), *COLUMNS, "import.calibration_share=0.5")
    point = calibrate_run(into("calibrate", f"run={runs_of(tmp_path)['suspicion/calibration']}"))
    later = importing(write_csv(tmp_path / "later.csv", transcripts(80, seed=1, missing=1)), *COLUMNS)
    overrides = (
        f"run={later}",
        f"operating_point={point}",
        "score.resamples=100",
        "score.other_dataset=true",
    )
    score_run(into("score", *overrides))
    found = read_checked(later, f"metrics-at-{point.name}.json")["monitors"]
    assert found["suspicion_missing_left_out"]["imported"]["overall"]["n_unscored"] == 1


def test_runs_of_no_model_are_told_apart_by_what_they_are_made_of(
    tmp_path: Path, importing: Import, into: Callable[..., Study], capsys: pytest.CaptureFixture[str]
):
    """`runs compare` would call a mean and a stack the same, and `runs show` name a model that never ran."""
    rng = np.random.default_rng(0)
    rows = [
        {"id": i, "monitor": name, "label": i % 2, "score": round(float(rng.random()), 3)}
        for i in range(200)
        for name in ("first", "second")
    ]
    importing(write_csv(tmp_path / "s.csv", rows), "import.calibration_share=0.5")
    runs = runs_of(tmp_path)
    sides = [
        f"combine.{side}=[{','.join(str(path) for name, path in runs.items() if name.endswith(side))}]"
        for side in ("calibration", "test")
    ]
    mean, stacked, cascade, other = (
        combine_runs(into("combine", *sides, *of))
        for of in (
            ["combine.rule=mean"],
            [],
            ["combine.rule=cascade", "combine.scale=band"],
            ["combine.rule=cascade", "combine.budget=0.1"],
        )
    )

    def said(command: str, *of: Path) -> dict[str, Any]:
        folders = ["--runs", f"{tmp_path}/runs", "--data", f"{tmp_path}/data"]
        assert runs_command([command, *folders, "--json", *map(str, of)]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    def differing(*of: Path) -> dict[str, tuple[Any, Any]]:
        return {one["key"]: (one["first"], one["second"]) for one in said("compare", *of)["settings"]}

    assert differing(mean, stacked)["combine.rule"] == ("mean", "stacked")
    assert differing(cascade, other)["combine.budget"] == (0.2, 0.1)
    assert differing(cascade, other)["combine.scale"] == ("band", "probability")
    assert "judge.rule.band" in differing(cascade, other)
    imported = runs["first/test"]
    assert differing(imported, runs["second/test"]) == {
        "judge.weights": ("imported:first:", "imported:second:")
    }
    assert differing(imported, mean)["judge.engine"] == ("imported", "combine")

    for run, judge in ((imported, "weights=imported:first:"), (stacked, "rule.rule=stacked")):
        shown = said("show", run)
        assert judge in shown["judge"]
        assert all(line.startswith(("combine.", "from=", "import.")) for line in shown["settings"]), shown
