"""Ensembles and cascades from finished runs to a threshold and a table, through the files of the stages."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from sealed import seal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.classifiers import classifier
from monitorbench.corpus.store import read_split, write_split
from monitorbench.metrics.table import base_of
from monitorbench.records import Category, Label, Sample, Split, UnscoredReason, Verdict
from monitorbench.report.write import report
from monitorbench.runs import directory as runs_directory
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts
from monitorbench.runs.provenance import CodeState
from monitorbench.runs.run_folders import read_run
from monitorbench.runs.selectors import sources
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.calibration_split import calibration_scores, divide
from monitorbench.scoring.combination.cascade import Band, Cascade
from monitorbench.scoring.combination.combined_run import _label, _names, combine_runs
from monitorbench.scoring.combination.ensembles import Ensemble
from monitorbench.scoring.combination.members import Member
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.operating_point import read_operating_point
from monitorbench.scoring.score import score_run, transfer

SKILLS = {"small": 0.8, "middle": 1.2, "large": 2.5}
SECONDS = {"small": 0.01, "middle": 0.05, "large": 0.2}
Judge = Callable[..., Path]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, make_sample: Callable[..., Sample]) -> Path:
    """A dataset of 80 pairs for calibration and 40 for the test, in two categories."""
    directory = tmp_path_factory.mktemp("data") / "made-0123456789ab"
    for split, pairs in ((Split.CALIBRATION, 80), (Split.TEST, 40)):
        samples = [
            make_sample(
                f"Question {split} {i}?",
                f"Answer {label}.",
                pair_id=f"{split}{i}",
                group_id=f"{split}{i}",
                category=list(Category)[i % 2],
                label=label,
                split=split,
            )
            for i in range(pairs)
            for label in Label
        ]
        write_split(directory, split, samples)
    results = {"splits": {"calibration": {}, "test": {}}}
    seal(directory, {"status": "done", "identity": {}, "results": results})
    return directory


@pytest.fixture(scope="module")
def worded(data: Path, make_sample: Callable[..., Sample]) -> Path:
    """The same with a train split, and answers whose words tell something of the label."""
    directory = data.parent / "worded-0123456789ab"
    rng = np.random.default_rng(7)
    for split, pairs in ((Split.TRAIN, 60), (Split.CALIBRATION, 80), (Split.TEST, 40)):
        samples = [
            make_sample(
                f"Question {split} {i}?",
                " ".join([*rng.choice(["plain", "odd"], 5, p=[q, 1 - q]), f"{split}{i}{label}"]),
                pair_id=f"{split}{i}",
                group_id=f"{split}{i}",
                label=label,
                split=split,
            )
            for i in range(pairs)
            for label in Label
            for q in [0.65 if label is Label.BENIGN else 0.35]
        ]
        write_split(directory, split, samples)
    seal(directory, {"status": "done", "identity": {}, "results": {"splits": {s: {} for s in Split}}})
    return directory


@pytest.fixture(scope="module", autouse=True)
def no_git() -> Iterator[None]:
    """Runs don't ask git what the code is: sixty of them would do little else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs_directory, "code_state", lambda: CodeState(None, b""))
        yield


@pytest.fixture(scope="module")
def study(
    compose_study: Callable[..., Study], data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Study]:
    """A study over the made dataset, with some settings changed; composed once, which is the slow part."""
    paths = [f"paths.data={data.parent}", f"paths.runs={tmp_path_factory.mktemp('runs')}"]
    composed = compose_study("combine", *paths, "score.resamples=100")

    def made(**changes: Any) -> Study:
        parts = {
            key: getattr(composed, key).model_copy(update=value) if isinstance(value, dict) else value
            for key, value in changes.items()
        }
        return composed.model_copy(update=parts)

    return made


@pytest.fixture(scope="module")
def judged(study: Callable[..., Study], data: Path) -> Judge:
    """A finished run of a judge of some skill, as `evaluate` leaves it; scores are missing of `without`."""

    def run(
        name: str,
        split: Split,
        *,
        prompt: str = "direct",
        without: int = 0,
        dtype: str = "float32",
        of: Path = data,
    ) -> Path:
        composed = study()
        view = composed.dataset.view(split.value)
        samples = read_split(of, split, view)
        judge = {"weights": f"w-{name}", "adapter": "", "prompt": {"name": prompt}, "dtype": dtype}
        identity = {
            "data": of.name,
            "split": split.value,
            "view": view.model_dump(mode="json"),
            "judge": judge,
            "without": without,
        }
        made = RunDirectory(composed.paths.runs / "evaluate", f"{name}-{prompt}", identity)
        if made.done:
            return made.path
        seed = [len(name), len(prompt), split is Split.TEST]
        draws = np.random.default_rng(seed).normal(
            [SKILLS[name] * (2 * (sample.label is Label.MISBEHAVIOR) - 1) for sample in samples]
        )
        scores = [None] * without + (1 / (1 + np.exp(-draws))).tolist()[without:]
        with made.recording(composed) as results, open_verdict_log(made.path / "verdicts.jsonl") as log:
            for sample, score in reversed(list(zip(samples, scores, strict=True))):
                log.append(_verdict(f"{name} {prompt} {sample.id}", sample, prompt, score, SECONDS[name]))
            results |= {
                "judge": {**judge, "name": name, "prompt": prompt},
                "data": of.name,
                "training": None,
                "n": len(samples),
                "n_unscored": without,
            }
        return made.path

    return run


def _verdict(key: str, sample: Sample, prompt: str, score: float | None, seconds: float) -> Verdict:
    label = Label.MISBEHAVIOR if score is not None and score > 0.5 else Label.BENIGN
    return Verdict(
        key=key,
        sample_id=sample.id,
        prompt=prompt,
        answer="no",
        label=None if score is None else label,
        unscored=UnscoredReason.TOO_LONG if score is None else None,
        score=score,
        label_mass=None if score is None else 0.9,
        finish_reason="stop",
        prompt_tokens=100,
        completion_tokens=1,
        seconds=seconds,
        cost=seconds / 10,
    )


@pytest.fixture(scope="module")
def combined(study: Callable[..., Study], judged: Judge) -> Judge:
    """The run over the test split of a combination of judges by name; `settings` are of `combine`."""

    def run(
        rule: str, *names: str, settings: Mapping[str, Any] = MappingProxyType({}), **fields: Any
    ) -> Path:
        sides = {
            split.value: tuple(judged(name, split, **fields) for name in names)
            for split in (Split.CALIBRATION, Split.TEST)
        }
        return combine_runs(study(combine={"rule": rule, **sides, **settings}))

    return run


def _calibrated(run: Path) -> Path:
    """The run over the calibration split that was written with a run over the test split."""
    judge = read_manifest(run)["identity"]["judge"]
    (found,) = (
        other
        for other in run.parent.iterdir()
        if other != run and read_manifest(other)["identity"]["judge"] == judge
    )
    return found


def _scores(run: Path, samples: list[Sample]) -> np.ndarray:
    scores = {verdict.sample_id: verdict.score for verdict in read_verdicts(run / "verdicts.jsonl")}
    assert len(scores) == len(samples)
    return np.array([scores[sample.id] for sample in samples], dtype=float)


def _flags(samples: list[Sample]) -> np.ndarray:
    return np.array([sample.label is Label.MISBEHAVIOR for sample in samples])


def test_the_stack_is_fitted_on_the_first_half_of_calibration_alone(
    combined: Judge, judged: Judge, data: Path
):
    """Weights that saw the test split, or the samples of the threshold, make every later number flattery."""
    names = ["small", "middle", "large"]
    run = combined("stacked", *names)
    held, test = read_split(data, Split.CALIBRATION), read_split(data, Split.TEST)

    def logits(split: Split, samples: list[Sample]) -> np.ndarray:
        table = np.column_stack([_scores(judged(name, split), samples) for name in names])
        return np.log(table / (1 - table))

    first = np.isin([sample.group_id for sample in held], sorted(_first_half(held)))
    assert 40 < first.sum() < 120
    oracle = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
    oracle.fit(logits(Split.CALIBRATION, held)[first], _flags(held)[first])
    expected = oracle.predict_proba(logits(Split.TEST, test))[:, 1]
    assert _scores(run, test) == pytest.approx(expected, abs=1e-6)
    assert roc_auc_score(_flags(test), expected) > roc_auc_score(
        _flags(test), _scores(judged("middle", Split.TEST), test)
    )


def test_a_verdict_says_what_it_is_made_of(combined: Judge):
    """Scores, costs and tokens of the table would not be those of the members."""
    run = combined("mean", "small", "large", without=3)
    assert run.name.startswith("mean_large_small-direct-")
    verdicts = read_verdicts(run / "verdicts.jsonl")
    members = [
        {verdict.sample_id: verdict for verdict in read_verdicts(run.parent / name / "verdicts.jsonl")}
        for name in read_manifest(run)["results"]["combined"]["runs"]
    ]
    assert len(members) == 2
    unscored = 0
    for verdict in verdicts:
        parts = [held[verdict.sample_id] for held in members]
        assert verdict.seconds == pytest.approx(0.21)
        assert verdict.cost == pytest.approx(0.021)
        assert (verdict.prompt_tokens, verdict.completion_tokens) == (200, 2)
        if verdict.score is None:
            unscored += 1
            assert (verdict.label, verdict.unscored) == (None, UnscoredReason.NO_LABEL)
            assert verdict.detail == "no combined score; large/direct none, small/direct none"
        else:
            assert verdict.score == pytest.approx(np.mean([part.score for part in parts]))
            assert verdict.label is (Label.MISBEHAVIOR if verdict.score >= 0.5 else Label.BENIGN)
    results = read_manifest(run)["results"]
    assert unscored == results["n_unscored"] == 3
    assert results["combined"]["per_sample"]["seconds"] == pytest.approx(0.21)
    assert results["combined"]["rule"]["fitted_on"] is None
    assert len({verdict.key for verdict in verdicts}) == len(verdicts) == results["n"] == 80


def test_a_baseline_is_a_member_without_a_run(judged: Judge, worded: Path, study: Any):
    """What words give away needs no second model; fitted on what it judges, it would be flattery."""
    runs = {split: (judged("small", split, of=worded),) for split in (Split.CALIBRATION, Split.TEST)}
    sides = {split.value: found for split, found in runs.items()}
    run = combine_runs(study(combine={"rule": "stacked", "baselines": ("bag_of_words",), **sides}))
    assert run.name.startswith("stacked_bag_of_words_small-direct-")
    train, held, test = (read_split(worded, split) for split in (Split.TRAIN, *runs))
    words = classifier("bag_of_words").fit(train, _flags(train))

    def logits(split: Split, samples: list[Sample]) -> np.ndarray:
        table = [words.predict_proba(samples)[:, 1], _scores(judged("small", split, of=worded), samples)]
        return logit(np.column_stack(table))

    in_fit = np.isin([sample.group_id for sample in held], sorted(_first_half(held)))
    oracle = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
    oracle.fit(logits(Split.CALIBRATION, held)[in_fit], _flags(held)[in_fit])
    expected = oracle.predict_proba(logits(Split.TEST, test))[:, 1]
    assert _scores(run, test) == pytest.approx(expected, abs=1e-6)
    small = _scores(judged("small", Split.TEST, of=worded), test)
    assert roc_auc_score(_flags(test), expected) > roc_auc_score(_flags(test), small)

    verdicts = read_verdicts(run / "verdicts.jsonl")
    assert {(one.prompt_tokens, one.seconds) for one in verdicts} == {(100, 0.01)}
    assert "bag_of_words/none ." in verdicts[0].detail.replace(" 0.", " .")
    assert read_manifest(run)["results"]["combined"]["runs"] == ["bag_of_words", runs[Split.TEST][0].name]
    assert combine_runs(study(combine={"rule": "stacked", "baselines": ("bag_of_words",), **sides})) == run
    point = calibrate_run(study(run=_calibrated(run), calibrate={"alpha": 0.2, "delta": 0.2}))
    assert read_operating_point(point).thresholds[0].part == "threshold"


def test_a_cascade_may_begin_with_a_baseline(judged: Judge, worded: Path, study: Any):
    """The cheapest first judge reads nothing; behind the judge with a run it would save nothing."""
    sides = {split.value: (judged("large", split, of=worded),) for split in (Split.CALIBRATION, Split.TEST)}
    settings = {"rule": "cascade", "baselines": ("bag_of_words",), "budget": 0.3, **sides}
    run = combine_runs(study(combine=settings))
    assert run.name.startswith("cascade_bag_of_words_large_0.3-direct-")
    assert read_manifest(run)["results"]["combined"]["rule"]["cheap"].startswith("bag_of_words/none/")
    spent = {verdict.prompt_tokens for verdict in read_verdicts(run / "verdicts.jsonl")}
    assert spent == {0, 100}
    with pytest.raises(UserError, match="1 runs and 2 baselines for rule cascade; expected two"):
        combine_runs(study(combine=settings | {"baselines": ("bag_of_words", "form")}))


def _first_half(samples: list[Sample]) -> set[str]:
    """The questions that a combination is fitted on."""
    whole = calibration_scores(
        "x",
        splits=[Split.CALIBRATION] * len(samples),
        scores={"row": np.zeros(len(samples))},
        is_misbehavior=_flags(samples),
        group_ids=[sample.group_id for sample in samples],
        categories=["c"] * len(samples),
    )
    return set(divide(whole)[0].group_ids.tolist())


def test_a_cascade_pays_the_strong_judge_only_where_it_is_asked(
    combined: Judge, caplog: pytest.LogCaptureFixture
):
    """The saving a cascade is chosen for would be a promise that its own log does not keep."""
    caplog.set_level("INFO")
    run = combined("cascade", "small", "large", settings={"budget": 0.4})
    assert run.name.startswith("cascade_small_large_0.4-direct-")
    verdicts = read_verdicts(run / "verdicts.jsonl")
    sent = [verdict for verdict in verdicts if verdict.prompt_tokens == 200]
    assert all(verdict.seconds == pytest.approx(0.21) for verdict in sent)
    assert {verdict.seconds for verdict in verdicts if verdict.prompt_tokens == 100} == {0.01}
    facts = read_manifest(run)["results"]["combined"]
    assert facts["share_sent"] == pytest.approx(len(sent) / len(verdicts))
    assert 0.2 < facts["share_sent"] < 0.6
    seconds = 0.01 + 0.2 * facts["share_sent"]
    assert facts["per_sample"]["seconds"] == pytest.approx(seconds, abs=1e-4)
    low, high = facts["share_sent_ci"]
    # A question's two samples are judged apart, yet are one piece of evidence.
    assert low < facts["share_sent"] < high
    said = f"test: {facts['share_sent']:.1%} sent on [{100 * low:.1f}-{100 * high:.1f}], asked: at most 40%"
    assert said in caplog.text
    assert f"time saved: {1 - seconds / 0.2:.0%}" in caplog.text
    assert str(_calibrated(run)) in caplog.text
    assert read_manifest(_calibrated(run))["results"]["combined"]["rule"]["calibration_share"] <= 0.4


def test_the_cheap_judge_is_the_one_named_first(combined: Judge):
    """Sorted or swapped, the dear judge would read everything."""
    run = combined("cascade", "small", "large")
    rule = read_manifest(run)["results"]["combined"]["rule"]
    assert rule["cheap"].startswith("small/")
    turned = combined("cascade", "large", "small")
    assert read_manifest(turned)["results"]["combined"]["rule"]["cheap"].startswith("large/")


@pytest.mark.parametrize(
    ("rule", "settings", "halved"),
    [("stacked", {}, True), ("cascade", {}, True), ("mean", {"size": 1}, True), ("max", {}, False)],
)
def test_a_threshold_is_set_on_what_was_not_fitted_on(
    combined: Judge, study: Any, data: Path, rule: str, settings: dict[str, Any], halved: bool
):
    """Fitted and calibrated on the same samples, the promised false-alarm rate does not hold."""
    run = combined(rule, "small", "large", settings=settings)
    held = _calibrated(run)
    point = calibrate_run(study(run=held, calibrate={"alpha": 0.2, "delta": 0.2}))
    (threshold,) = read_operating_point(point).thresholds
    fitted_on = read_manifest(held)["results"]["combined"]["rule"]["fitted_on"]
    if halved:
        assert threshold.part == "threshold"
        assert fitted_on["part"] == "fit"
        assert fitted_on["n"] // 2 + threshold.n == 80  # a question has two samples, one of them benign
        assert 20 < threshold.n < 60
    else:
        assert (threshold.part, threshold.n, fitted_on) == ("whole", 80, None)

    scored = score_run(study(run=run, operating_point=point))
    metrics = json.loads((scored / f"metrics-at-{point.name}.json").read_text())
    ((_, by_prompt),) = ((name, one) for name, one in metrics["monitors"].items() if "direct" in one)
    test = read_split(data, Split.TEST)
    alarms = _scores(run, test)[~_flags(test)] > threshold.threshold
    assert by_prompt["direct"]["overall"]["false_alarm_rate"] == pytest.approx(alarms.mean())
    by_category = calibrate_run(study(run=held, calibrate={"per_category": True, "alpha": 0.3, "delta": 0.3}))
    thresholds = read_operating_point(by_category).thresholds
    assert sum(one.n for one in thresholds) == threshold.n


def test_a_threshold_of_another_combination_is_refused(combined: Judge, study: Any):
    """One letter of a directory mistyped, and a stack would run at the threshold of a mean."""
    stack = combined("stacked", "small", "large")
    others = [
        combined("mean", "small", "large"),
        combined("stacked", "small", "middle", "large"),
        combined("stacked", "small", "large", without=5),  # other weights
        combined("stacked", "small", "large", dtype="bfloat16_batch_invariant"),
    ]
    point = calibrate_run(study(run=_calibrated(stack), calibrate={"alpha": 0.2}))
    for other in others:
        with pytest.raises(UserError, match="was calibrated for stacked_large_small/direct"):
            score_run(study(run=other, operating_point=point))


def test_the_same_runs_give_the_same_combination_in_any_order(combined: Judge, judged: Judge, study: Any):
    """A threshold would be lost because somebody typed the runs in another order."""
    first = combined("stacked", "small", "large")
    assert combined("stacked", "large", "small") == first
    turned = (judged("large", Split.TEST), judged("small", Split.TEST))
    assert combined("stacked", "small", "large", settings={"test": turned}) == first
    held, run = (read_evaluation(study().paths.data, one) for one in (_calibrated(first), first))
    assert (held.judge_hash, held.split) == (run.judge_hash, Split.CALIBRATION)


def test_a_combination_that_was_cut_off_goes_on(combined: Judge):
    """A torn log would be refused, or have samples twice."""
    run = combined("stacked", "small", "large")
    log = run / "verdicts.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    manifest = read_manifest(run)
    seal(run, {**manifest, "status": "running"})
    assert combined("stacked", "small", "large") == run
    assert log.read_bytes() == whole
    assert read_manifest(run)["results"] == manifest["results"]


def test_prompts_are_joined(judged: Judge, study: Any):
    """One judge asked two ways is two members; a table has to tell them and their combination apart."""
    runs = {
        split.value: (
            judged("small", split),
            judged("small", split, prompt="evidence"),
            judged("large", split),
        )
        for split in (Split.CALIBRATION, Split.TEST)
    }
    every = combine_runs(study(combine={"rule": "mean", **runs}))
    assert every.name.startswith("mean_large_small-direct+evidence-")
    (verdict, *_) = read_verdicts(every / "verdicts.jsonl")
    assert (verdict.prompt_tokens, verdict.seconds) == (300, pytest.approx(0.22))


def test_combinations_stand_beside_their_members_in_transfer_and_report(
    combined: Judge, judged: Judge, study: Any, capsys: pytest.CaptureFixture[str]
):
    """A combination that the table can't show is of no use; one that breaks its columns hardly more."""
    names = ["small", "large"]
    runs = [judged(name, Split.TEST) for name in names]
    runs += [combined("cascade", *names, settings={"budget": budget}) for budget in (0.1, 0.5)]
    runs.append(combined("stacked", *names))
    directory = transfer(study(transfer={"runs": tuple(runs)}))
    metrics = json.loads((directory / "metrics.json").read_text())
    found = ["cascade_small_large_0.1", "cascade_small_large_0.5", "stacked_large_small"]
    assert list(metrics["monitors"])[:5] == [*names, *found]
    assert all(metrics["monitors"][name]["direct"]["overall"]["n"] == 80 for name in found)
    capsys.readouterr()
    report(study(run=directory))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in found)


def test_runs_that_do_not_belong_together_are_one_line(
    combined: Judge, judged: Judge, study: Any, tmp_path: Path
):
    """Fitted on one judge and applied to another, nothing would look wrong but the numbers."""
    (small, large, middle), (small_test, large_test, middle_test) = (
        [judged(name, split) for name in ("small", "large", "middle")]
        for split in (Split.CALIBRATION, Split.TEST)
    )
    test = (small_test, large_test)
    other_part = tmp_path / "other_part"
    shutil.copytree(small_test, other_part)
    manifest = read_manifest(other_part)
    manifest["identity"]["view"]["pairs_per_cell"] = 2
    seal(other_part, manifest)
    stack, mute = (
        _calibrated(combined("stacked", "small", "large")),
        judged("large", Split.CALIBRATION, without=160),
    )
    wrong: list[tuple[str, str, tuple[Path, ...], tuple[Path, ...]]] = [
        ("combine.test: no run of middle/direct", "max", (small, large, middle), test),
        ("combine.calibration: no run of large/direct", "max", (small,), test),
        ("judged the test split; combine.calibration takes", "max", test, test),
        ("judged the calibration split; combine.test takes", "max", (small, large), (small, large)),
        ("small/direct/[0-9a-f]+ is there twice in combine.calibration", "max", (small, small), test),
        ("1 runs for rule stacked; expected at least two", "stacked", (small,), (small_test,)),
        ("3 runs for rule cascade; expected two", "cascade", (small, large, middle), (*test, middle_test)),
        ("a combination itself", "max", (small, stack), test),
        ("no verdict has a score", "max", (small, mute), test),
        ("no manifest.json", "max", (small, tmp_path), test),
        ("other samples of the test split than", "max", (small, large), (other_part, large_test)),
    ]
    one_run = {"calibration": (small,), "test": (small_test,)}
    with pytest.raises(UserError, match="no train split with both labels to fit them on"):
        combine_runs(study(combine={"rule": "max", "baselines": ("form",), **one_run}))
    for words, rule, held, tested in wrong:
        with pytest.raises(UserError, match=words) as caught:
            combine_runs(study(combine={"rule": rule, "calibration": held, "test": tested}))
        assert "\n" not in str(caught.value)


def test_settings_that_say_nothing_are_refused(compose_study: Any, judged: Judge, study: Any):
    """Without runs there is nothing to combine, and a size does nothing to a cascade."""
    with pytest.raises(ConfigError, match=r"combine.calibration=\[\]: no run given"):
        combine_runs(study())
    with pytest.raises(ConfigError, match=r"combine.test=\[\]: no run given"):
        combine_runs(study(combine={"calibration": (judged("small", Split.CALIBRATION),)}))
    with pytest.raises(ConfigError, match="size=1: a cascade has two judges"):
        compose_study("combine", "combine.rule=cascade", "combine.size=1")
    with pytest.raises(ConfigError, match="a baseline is named twice"):
        compose_study("combine", "combine.baselines=[form,form]")


def test_the_script_prints_the_test_runs_directory(judged: Judge, data: Path, root: Path, tmp_path: Path):
    """A study chains its stages by this line, and reads the calibration run's name on stderr."""
    command = [sys.executable, "-X", "importtime", str(root / "eval" / "combine.py"), "combine.rule=cascade"]
    command += [f"paths.data={data.parent}", f"paths.runs={tmp_path}", "combine.budget=0.5"]
    for split in (Split.CALIBRATION, Split.TEST):
        command.append(f"combine.{split}=[{judged('small', split)},{judged('large', split)}]")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 0, said[-5:]
    (line,) = done.stdout.splitlines()
    assert read_manifest(Path(line))["identity"]["split"] == "test"
    assert said[-1].endswith(str(_calibrated(Path(line))))
    assert all(text.startswith("combine: ") for text in said)
    assert all(len(text) <= 80 for text in said[:-1])
    imported = {text.rpartition("|")[2].strip() for text in done.stderr.splitlines()}
    assert not imported & {"torch", "transformers", "vllm", "trl", "datasets"}


def test_what_no_judge_answered_has_no_label(make_sample: Any):
    """A judge that refuses still has a score, which would make its refusal benign."""
    sample = make_sample()
    answered = _verdict("a", sample, "direct", 0.9, 0.1)
    refused = answered.model_copy(update={"label": None, "unscored": UnscoredReason.REFUSED, "score": 0.2})
    cascade = Cascade(cheap="small", strong="large", band=Band(0.2, 0.8))
    assert _label(0.3, [answered, refused], cascade) == (None, UnscoredReason.REFUSED)
    assert _label(0.3, [refused, answered], cascade) == (Label.MISBEHAVIOR, None)
    stack = partial(Ensemble, rule="stacked", intercept=0)
    numbers = {"centres": (0.0,), "scales": (1.0,), "weights": (1.0,)}
    alone = stack(members=("small",), **numbers)
    both = stack(members=("small", "large"), **{key: 2 * value for key, value in numbers.items()})
    on_one_scale = cascade.model_copy(update={"alone": alone, "both": both})
    assert _label(0.3, [refused, answered], on_one_scale) == (Label.BENIGN, None)
    assert _label(0.9, [answered, refused], on_one_scale) == (None, UnscoredReason.REFUSED)
    mean = Ensemble(rule="mean", members=("small", "large"))
    assert _label(0.2, [refused, refused], mean) == (None, UnscoredReason.NO_LABEL)
    assert _label(0.55, [answered, refused], mean) == (Label.MISBEHAVIOR, None)


def test_the_combinations_name_has_neither_a_members_missing_scores_nor_an_adapters_plus():
    """The page said "(missing scores left out)" of a mean, scored wherever a member is; and `score` headed
    the table of a stack with the name of the adapter in it."""
    scores = np.array([0.1, np.nan])
    said = partial(
        Member, prompt="imported", seed=None, source="run", content="c", verdicts=[], scores=scores
    )
    members = [said(monitor=name) for name in ("cheap_missing_left_out", "strong_missing_flagged")]
    assert _names(Ensemble(rule="mean", members=("a", "b")), members) == ("mean_cheap_strong", "imported")
    members = [said(monitor=name) for name in ("length", "small+all")]
    name, _ = _names(Ensemble(rule="mean", members=("a", "b")), members)
    assert (name, base_of(name)) == ("mean_length_small_all", name)


def test_the_runs_that_a_combination_was_fitted_on_are_known_as_its_sources(combined: Judge, judged: Judge):
    """`runs rm` let the calibration runs of a combination go without a word."""
    run = combined("mean", "small", "large")
    splits = (Split.CALIBRATION, Split.TEST)
    members = {judged(name, split).name for name in ("small", "large") for split in splits}
    assert len(members) == 4
    assert members <= sources(read_run(run, "evaluate"))
