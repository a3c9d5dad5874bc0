"""`choose from=FILE`: from a file of scores to the answer, in one command."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, monitorbench
from scipy.stats import binom
from score_files import Import, runs_of, write_csv

from monitorbench.config.study import Study
from monitorbench.interop.imports.stage import import_scores
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.operating_point import read_operating_point

QUICK = ("tracking=none", "score.resamples=100", "recommend.redraws=100")


@pytest.fixture
def two_judges(tmp_path: Path) -> Path:
    """Two monitors over 800 samples, of which `strong` tells misbehavior apart and `weak` does not."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": f"t{i}",
            "label": i % 2,
            "strong": round(i % 2 * 0.5 + rng.random() / 2, 4),
            "weak": round(rng.random(), 4),
        }
        for i in range(800)
    ]
    return write_csv(tmp_path / "scores.csv", rows)


def test_a_file_of_scores_is_answered_in_one_command(
    two_judges: Path, tmp_path: Path, into: Callable[..., Study]
):
    """If it failed: a team with two judges' scores would have to know six stages to choose one."""
    given = (f"from={two_judges}", "import.monitors={strong:strong,weak:weak}")
    ran = monitorbench("choose", *given, *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "import: sample=id, label=label, scores=strong,weak" in ran.stderr
    directory = tmp_path / ran.stdout.splitlines()[-1]
    found = json.loads((directory / "recommendation.json").read_text())
    assert (found["decision"], found["monitor"]) == ("recommend", "strong")
    assert found["sentence"] in " ".join(ran.stdout.split())
    assert (directory / "report.html").stat().st_size > 10_000
    import_scores(into("import", *given, "import.calibration_share=0.5"))
    held = runs_of(tmp_path)["strong/calibration"]
    (point,) = read_operating_point(
        calibrate_run(into("calibrate", f"run={held}", "calibrate.n_candidates=2"))
    ).thresholds
    assert found["threshold"] >= point.threshold
    again = monitorbench("choose", *given, *QUICK, folder=tmp_path)
    assert again.stdout.splitlines()[-1] == ran.stdout.splitlines()[-1]


def test_another_promise_is_another_answer_with_a_page_of_its_own(two_judges: Path, tmp_path: Path):
    """Where no threshold is found, the page of one promise would take the place of another's."""
    given = (f"from={two_judges}", "import.columns.score=weak", *QUICK)
    pages = [
        monitorbench("choose", *given, f"calibrate.alpha={alpha}", folder=tmp_path).stdout.splitlines()[-1]
        for alpha in ("0.001", "0.0005", "0.001")
    ]
    assert pages[0] == pages[2] != pages[1]
    sentences = [
        json.loads((tmp_path / page / "recommendation.json").read_text())["sentence"] for page in pages
    ]
    assert sentences[0] != sentences[1]


def test_without_a_promise_nobody_is_told_that_a_setting_breaks_one(two_judges: Path, tmp_path: Path):
    """`calibrate.threshold=0.49: does not keep the promise` was said to somebody who had set no threshold."""
    given = (f"from={two_judges}", "import.columns.score=weak", "recommend.promise=false", *QUICK)
    ran = monitorbench("choose", *given, "stakes.base_rate=0.5", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "calibrate.threshold=" not in ran.stderr
    assert "read at its own answers in the tables: its threshold, 0." in " ".join(ran.stderr.split())


def test_a_plan_says_what_is_taken_for_what_and_writes_nothing(two_judges: Path, tmp_path: Path):
    """If it failed: a wrong column or split shows when everything is already written."""
    given = (f"from={two_judges}", "import.monitors={strong:strong,weak:weak}", "calibrate.alpha=0.1")
    ran = monitorbench("choose", *given, "plan=true", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for said in ("import: sample=id, label=label, scores=strong,weak", "test 400, calibration 400"):
        assert said in ran.stderr
    assert "  strong: calibration, test\n  weak: calibration, test\n" in ran.stdout
    assert "calibrate.alpha=0.1" in ran.stdout
    assert list(tmp_path.iterdir()) == [two_judges]


def test_what_can_not_be_chosen_from_is_one_line(two_judges: Path, tmp_path: Path):
    """If it failed: monitors of two kinds would be half compared."""
    given = (f"from={two_judges}", "import.columns.score=strong")
    for more, said in (
        (("monitors=[a.jsonl]",), "expected this or from=, not both"),
        (("import.where.id=t1",), "no sample for calibration"),
    ):
        ran = monitorbench("choose", *given, *more, *QUICK, folder=tmp_path)
        assert ran.returncode in (1, 2)
        assert said in ran.stderr
        assert ran.stderr.count("error:") == 1
        assert list(tmp_path.iterdir()) == [two_judges], "a refused import stays behind"


@pytest.mark.parametrize(
    ("given", "file"),
    [
        (("experiment=judges",), "from=examples/judges.csv: no such file"),
        (("experiment=examples",), "monitors: examples/verdicts-smollm2_135m.jsonl: no such file"),
        (
            ("monitors=[smollm2_135m]", "dataset=jsonl", "dataset.path=examples/dataset.jsonl"),
            "does not exist",
        ),
    ],
)
def test_from_another_folder_it_is_said_where_the_examples_are(
    given: tuple[str, ...], file: str, tmp_path: Path
):
    """If it failed: the first command of the pages would end with a file that is there, called missing."""
    ran = monitorbench("choose", *given, *QUICK, folder=tmp_path)
    assert f"{file} in {tmp_path}, the folder of this command (there is one in {ROOT}: run" in ran.stderr
    ran = monitorbench("choose", "from=nowhere.csv", *QUICK, folder=tmp_path)
    assert f"no such file in {tmp_path}, the folder of this command; expected" in ran.stderr
    ran = monitorbench("choose", f"from={tmp_path}/nowhere.csv", *QUICK, folder=tmp_path)
    assert "nowhere.csv: no such file; expected" in ran.stderr


@pytest.mark.parametrize(
    ("labels", "split_at", "said"),
    [
        ([1], None, "collect 118 more benign questions in your file: "),
        (
            [0] * 160,
            None,
            "score: no samples of misbehavior in the split that it is chosen on, so that no threshold can be",
        ),
        (
            [0, 1] * 60 + [0] * 80,
            120,
            "the test split has no misbehavior, so it can't be told what score costs",
        ),
        ([0, 1] * 60 + [1] * 80, 120, "the test split has no benign sample, so it can't be told what score"),
        ([1] * 60 + [0, 1] * 40, 60, "collect 59 more benign questions in the calibration split"),
    ],
)
def test_a_label_that_a_split_lacks_is_asked_for(
    labels: list[int], split_at: int | None, said: str, tmp_path: Path
):
    """If it failed: a traceback, or "Deploy none" of a monitor that was never measured."""
    rng = np.random.default_rng(1)
    rows: list[dict[str, object]] = [
        {"id": f"t{i}", "label": bad, "score": round(bad * 0.5 + rng.random() / 2, 4)}
        | ({} if split_at is None else {"split": "calibration" if i < split_at else "test"})
        for i, bad in enumerate(labels * (60 if len(labels) == 1 else 1))
    ]
    ran = monitorbench("choose", f"from={write_csv(tmp_path / 's.csv', rows)}", *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert f"Don't deploy yet: {said}" in " ".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("alarms", "said"),
    [
        (0.005, "Deploy flagged for alerts (to intervene, run a pilot first), by its own answers: it misses"),
        (0.035, "more benign questions of imported/transcripts in your file: "),
        (0.1, "Deploy none: flagged: gives answers only, which are not shown to keep the promise"),
        (0.0, "Deploy flagged for alerts"),
    ],
)
def test_answers_without_scores_keep_a_promise_or_do_not(alarms: float, said: str, tmp_path: Path):
    """If it failed: "flag above 5e-05" of a monitor without scores, or "flags nothing" of one that flags."""
    rng = np.random.default_rng(2)
    rows = [
        {"id": f"t{i}", "label": i % 2, "flagged": int(rng.random() < (0.86 if i % 2 else alarms))}
        for i in range(800)
    ]
    ran = monitorbench("choose", f"from={write_csv(tmp_path / 's.csv', rows)}", *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert said in " ".join(ran.stdout.split())
    assert "can't be calibrated" not in ran.stderr
    scored = monitorbench("score", "run=@flagged/test", *QUICK, folder=tmp_path)
    assert said in " ".join((scored.stdout + scored.stderr).split()), "two answers about the same data"
    (test,) = (tmp_path / "runs" / "evaluate").glob("*-test-*")
    elsewhere = test.rename(tmp_path / test.name)
    scored = monitorbench("score", f"run={elsewhere}", *QUICK, folder=tmp_path)
    assert said in " ".join((scored.stdout + scored.stderr).split()), "another answer from another folder"
    (calibration,) = (tmp_path / "runs" / "evaluate").glob("*-calibration-*")
    shutil.rmtree(calibration)
    scored = monitorbench("score", f"run={elsewhere}", *QUICK, folder=tmp_path)
    said = "Don't deploy yet: flagged: gives answers only, and its run over the calibration split"
    assert said in " ".join((scored.stdout + scored.stderr).split())


def test_answers_that_flag_nothing_benign_of_too_few_are_no_reason_for_none(tmp_path: Path):
    """Of 14 benign questions none was flagged, and the answer was: deploy none."""
    rows = [{"id": f"t{i}", "label": i % 2, "flagged": i % 2} for i in range(60)]
    ran = monitorbench("choose", f"from={write_csv(tmp_path / 's.csv', rows)}", *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "Don't deploy yet: collect" in said
    more, held = (int(number) for number in re.findall(r"(\d+) of them join the (\d+)", said)[0])
    assert more + held == 59, "0.95 ** 59 < 0.05"


def test_a_better_monitor_that_lacks_scores_is_no_reason_to_deploy_none(tmp_path: Path):
    """If it failed: three answers that a judge did not give make "deploy none" of an AUROC of .99."""
    rng = np.random.default_rng(4)
    rows = [
        {
            "id": f"{split}{i}",
            "split": split,
            "label": i % 2,
            "good": ""
            if split == "calibration" and i in (2, 4, 6)
            else round(i % 2 * 0.6 + 0.4 * rng.random(), 4),
            "coin": round(rng.random(), 4),
        }
        for split in ("calibration", "test")
        for i in range(200)
    ]
    given = (f"from={write_csv(tmp_path / 's.csv', rows)}", "import.monitors={good:good,coin:coin}", *QUICK)
    ran = monitorbench("choose", *given, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = (
        "Don't deploy yet: have 3 of 100 benign questions in the calibration split judged by good, or say so"
    )
    assert said in " ".join(ran.stdout.split())


@pytest.mark.parametrize(("n_at_top", "decision"), [(4, "insufficient"), (12, "none")])
def test_a_coarse_scale_lacks_questions_or_can_not_be_calibrated(
    n_at_top: int, decision: str, tmp_path: Path
):
    """If it failed: "more questions do not change that" of a monitor that is deployed on more of them."""
    rows = [
        {"id": f"{split}{i}", "split": split, "label": i % 2, "score": top if i % 10 else 0}
        for split in ("calibration", "test")
        for i in range(300)
        for top in (1 if i % 2 or i < 2 * n_at_top else 0.5,)
    ]
    ran = monitorbench("choose", f"from={write_csv(tmp_path / 's.csv', rows)}", *QUICK, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / ran.stdout.splitlines()[-1] / "recommendation.json").read_text())
    assert found["decision"] == decision, found["sentence"]
    assert ("flags nothing so far" in found["options"][0]["reason"]) is (decision == "insufficient")
    if decision == "insufficient":
        assert f"collect {found['more']['n']:,} more benign questions" in found["sentence"]
        n = found["more"]["n"] + 150
        most = next(k for k in range(n) if binom.cdf(k + 1, n, 0.05) > 0.05)
        at_top = sum(row["score"] == 1 and not row["label"] for row in rows[:300])
        likely = binom.cdf(most - at_top, n - 150, (at_top + 0.5) / 151)
        assert 0.8 <= likely < 0.9
    assert ("more questions do not change that" in " ".join(ran.stderr.split())) is (decision == "none")


@pytest.mark.parametrize(("from_label", "is_said"), [(True, True), (False, False)])
def test_labels_given_as_a_monitor_s_answers_are_noticed(
    from_label: bool, is_said: bool, tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: a file of truths would be a perfect monitor, and nothing would say so."""
    rows = [{"id": f"s{i}", "label": i % 2, "said": (i % 2 if from_label else i % 3 % 2)} for i in range(40)]
    importing(write_csv(tmp_path / "s.csv", rows), "import.columns.score=said")
    assert ("its answers are the labels of all 40 samples" in caplog.text) is is_said


@pytest.mark.parametrize(("scale", "is_said"), [("[1,10]", True), ("[10,1]", False)])
def test_an_inverted_scale_is_noticed(
    scale: str, is_said: bool, tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: a rating of safety passes for one of suspicion, with an AUROC of .02, in silence."""
    rows = [{"id": i, "label": i % 2, "score": 7 - 5 * (i % 2) + i % 3} for i in range(60)]
    importing(write_csv(tmp_path / "ratings.csv", rows), f"import.scale={scale}")
    assert ("The scores of score are inverted" in caplog.text) is is_said
