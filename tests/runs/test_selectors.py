"""Short names of runs: what they give, and that they never give what a stage can't read."""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command import Done, script
from hypothesis import given
from hypothesis import strategies as st
from made_runs import DATA, calibrated, evaluated, sealed_run, trained, transferred

from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.engines.weights import weights_identity
from monitorbench.runs.directory import KINDS
from monitorbench.runs.run_folders import Run
from monitorbench.runs.selectors import READS, Wanted, by_beginning, by_description, find, resolved

ROOT = Path(__file__).resolve().parents[2]
NAMES = st.text("ab-_", min_size=1, max_size=6)
HASHES = st.text("0123456789abcdef", min_size=12, max_size=12)
BASES_ALONE = {"train", "fit", "transfer", "doctor"}
"""Stages that take a monitor as it was before any training."""
WANTED = st.sampled_from([wanted for by_key in READS.values() for wanted in by_key.values()])


@st.composite
def some_runs(draw: st.DrawFn) -> list[Run]:
    """Runs of every kind, split and state, with names that are often the beginnings of others."""
    made = []
    drawn = st.tuples(
        NAMES, NAMES, HASHES, st.sampled_from(list(KINDS)), st.sampled_from(["test", "calibration"])
    )
    states = st.sampled_from(["done", "running", "incomplete", "stale", "damaged"])
    for i, (monitor, prompt, digest, kind, split) in enumerate(
        draw(st.lists(drawn, max_size=8, unique_by=lambda one: one[2]))
    ):
        parts = (monitor, prompt, "data", split) if kind == "evaluate" else (monitor, prompt)
        made.append(
            Run(
                path=Path("runs") / kind / "-".join([*parts, digest]),
                kind=kind,
                parts=parts,
                dataset="data",
                split=split if kind == "evaluate" else "",
                state=draw(states),
                started=datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=i),
                changed=0,
                manifest={},
            )
        )
    return made


@given(some_runs(), WANTED, NAMES)
def test_a_beginning_gives_all_runs_that_begin_so_and_fit_and_no_other(
    runs: list[Run], wanted: Wanted, text: str
):
    """A run of the wrong split or kind is scored, merged or removed in place of the one that was meant."""
    found = by_beginning(text, [run for run in runs if wanted.takes(run)])
    for run in found:
        assert run.kind in wanted.kinds
        assert run.path.name.startswith(text) or run.path.name.split("-")[-1].startswith(text)
        assert not wanted.split or (run.kind, run.split) in (("evaluate", wanted.split), ("label", ""))
        assert run.state == "done" or not wanted.is_done
    missed = [
        run for run in runs if run not in found and run.path.name.startswith(text) and wanted.takes(run)
    ]
    assert not missed or [run.path.name for run in found] == [text]


@given(some_runs(), WANTED, st.integers(1, 40))
def test_a_unique_beginning_gives_that_run(runs: list[Run], wanted: Wanted, length: int):
    """What is typed up to where it is unique has to mean the run whose name goes on so."""
    fitting = [run for run in runs if wanted.takes(run)]
    for run in fitting:
        text = run.path.name[:length]
        begin_so = [one for one in fitting if one.path.name.startswith(text) or one.id.startswith(text)]
        if len(begin_so) == 1:
            assert by_beginning(text, fitting) == [run]
        assert run in by_beginning(text, fitting) or any(one.path.name == text for one in fitting)
        assert by_beginning(run.path.name, fitting) == [run]


@given(some_runs(), WANTED, st.sampled_from(["", "/test", "/calibration"]))
def test_a_description_gives_the_newest_that_fits(runs: list[Run], wanted: Wanted, split: str):
    """An older run, or one of another monitor, would be reported as the latest."""
    newest_first = sorted((run for run in runs if wanted.takes(run)), key=lambda run: run.age, reverse=True)
    assert by_description("latest", newest_first) is (newest_first[0] if newest_first else None)
    for run in newest_first:
        name = f"{run.parts[0]}-{run.parts[1]}"
        found = by_description(f"@{name}{split}", newest_first)
        if found is not None:
            assert "-".join(found.parts).startswith(name)
            assert not split or found.split == split[1:]
            newer = newest_first[: newest_first.index(found)]
            assert not any(one.parts[:2] == run.parts[:2] and one.split == found.split for one in newer)
        else:
            assert split
            assert run.split != split[1:]


@pytest.fixture
def study(compose_study: Callable[..., Study], tmp_path: Path) -> Callable[..., Study]:
    """A study over the runs in a folder."""

    def made(*overrides: str) -> Study:
        return compose_study("evaluate", f"paths.runs={tmp_path}/runs", *overrides)

    return made


def test_each_stage_finds_its_own_kind(study: Callable[..., Study], tmp_path: Path):
    """`run=latest` after a calibration has to be the evaluation that `score.py` reads, not what is newest."""
    runs = tmp_path / "runs"
    old = evaluated(runs, second=1)
    test = evaluated(runs, second=2, salt=1, rates=(0.1, 0.2))
    calibration = evaluated(runs, split="calibration", second=3)
    training, point = trained(runs, second=4), calibrated(runs, calibration, second=5)
    other = calibrated(runs, evaluated(runs, "other-direct", "calibration", second=6), 7, "bbbbbbbbbbbb")
    transfer = transferred(runs, test, second=8)

    assert resolved(study("run=latest"), "score").run == test
    assert resolved(study("run=latest"), "calibrate").run == evaluated_of(other)
    assert resolved(study("run=latest"), "report").run == transfer
    assert resolved(study("run=latest"), "merge").run == training
    assert resolved(study("run=@small-direct"), "calibrate").run == calibration
    assert resolved(study("run=@small-direct/test"), "report").run == test
    assert resolved(study(f"run={old.name[-12:-6]}"), "score").run == old
    scored = resolved(study("run=latest", "operating_point=latest"), "score")
    assert scored.operating_point == point, "of the same judge, not the newest"
    both = resolved(study("transfer.runs=[latest,@small]"), "transfer").transfer.runs
    assert both == (test, test)
    every = resolved(study("transfer.runs=[@*]"), "transfer").transfer.runs
    assert set(every) == {old, test}, "finished evaluations over the test split"
    combined = resolved(study("combine.calibration=[@other]", "combine.test=[@small]"), "combine").combine
    assert (combined.calibration, combined.test) == ((evaluated_of(other),), (test,))
    alone = resolved(study("recommend.runs=[@*]"), "recommend").recommend.runs
    labels = sealed_run(runs / "label" / "log-fedcba987654", {}, {"n_labels": 3}, second=9)
    assert resolved(study("run=latest"), "score").run == labels
    together = resolved(study("recommend.runs=[@*]"), "recommend").recommend.runs
    assert together == alone, "a round of labels is recommended by alone"


def test_what_is_served_is_what_was_recommended(study: Callable[..., Study], tmp_path: Path):
    """`choose` said *deploy a*, and its newest threshold, which the guardrail took, was b's."""
    runs = tmp_path / "runs"
    judged = evaluated(runs, split="calibration", second=1)
    point = calibrated(runs, judged, second=2)
    rival = calibrated(runs, judged, 3, "bbbbbbbbbbbb", "rival")
    assert resolved(study("operating_point=latest"), "serve").operating_point == rival
    results = {"decision": "recommend", "data": DATA, "monitor": "small", "prompt": "direct"}
    sealed_run(runs / "recommend" / "starter-aaaaaaaaaaaa", {}, results, second=1)
    assert resolved(study("operating_point=latest"), "serve").operating_point == point


def test_a_monitor_s_adapter_and_probes_have_short_names_at_every_stage_that_asks_it():
    """`monitor.head_beside=latest` was a path to no head, where `monitor.head=latest` was the newest fit."""
    asked = {name for name, stage in STAGES.items() if "monitor" in stage.reads.split()}
    names = {"monitor.adapter", "monitor.head", "monitor.head_beside"}
    assert {name for name in asked if names <= READS.get(name, {}).keys()} == asked - BASES_ALONE


def test_the_latest_adapter_is_one_of_the_monitors_weights(study: Callable[..., Study], tmp_path: Path):
    """An adapter of another base is refused a minute later, when the model was loaded."""
    ours = trained(tmp_path / "runs", 1, weights_identity(study().monitor))
    other = trained(tmp_path / "runs", 2, "others", "bbbbbbbbbbbb")
    for stage in ("evaluate", "serve", "pilot"):
        assert resolved(study("monitor.adapter=latest"), stage).monitor.adapter == ours
        assert resolved(study("monitor.adapter=@small-all"), stage).monitor.adapter == ours
        assert resolved(study("monitor.adapter=bbbb"), stage).monitor.adapter == other


def test_a_sweep_freezes_the_path(tmp_path: Path):
    """`latest` in a queue of tomorrow would be another run than the one that was meant today."""
    run = evaluated(tmp_path / "runs")
    overrides = ["run=latest", f"paths.runs={tmp_path}/runs", "score.min_coverage=0.5,0.6"]
    made = script("slurm/submit.py", "score", *overrides, "--print-commands", folder=tmp_path)
    files = (tmp_path / made.stderr.splitlines()[-1]).glob("run-???.json")
    assert [read_frozen(file).run for file in files] == [run, run]


@pytest.mark.parametrize("digits", ["13351221", "13351221e163", "204962680012345678901234", "1_000"])
def test_a_beginning_that_reads_as_a_number_is_taken_as_it_was_typed(digits: str, tmp_path: Path):
    """The ids of `runs list` that are digits alone, or digits and an e, would name no run in a setting."""

    def run(key: str, word: str) -> Study:
        return STAGES["score"].study([f"{key}={word}", f"paths.runs={tmp_path}/runs"])

    assert run("run", digits).run == Path(digits)
    assert run("operating_point", digits).operating_point == Path(digits)
    assert run("recommend.runs", f"[{digits}, abc]").recommend.runs == (Path(digits), Path("abc"))
    assert run("+run", f'"{digits}"').run == Path(digits)


def test_a_sweep_takes_a_hash_that_reads_as_a_number(tmp_path: Path):
    """One start over two runs would end at the one whose id has digits alone."""
    runs = [trained(tmp_path / "runs", digest=digest) for digest in ("13351221e163", "204962681234")]
    typed = [f"paths.runs={tmp_path}/runs", "run=13351221e163,20496268"]
    done = script("eval/verify.py", *typed, "-m", folder=tmp_path)
    assert all(f": {run}" in done.stderr for run in runs), done.stderr


def test_a_number_stays_one_where_a_setting_is_no_path(study: Callable[..., Study]):
    """Quoted, every seed would be refused; `null` as a path is none."""
    of = study("seed=7", "score.min_coverage=0.5", "run=null")
    assert (of.seed, of.score.min_coverage, of.run) == (7, 0.5, None)


def evaluated_of(calibration: Path) -> Path:
    """The evaluation run that a calibration was made from."""
    return Path(json.loads((calibration / "manifest.json").read_text())["results"]["judged"])


def test_what_is_resolved_is_said(
    study: Callable[..., Study], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """A person who typed `latest` has to see which run the numbers are of."""
    run = evaluated(tmp_path / "runs")
    with caplog.at_level(logging.INFO, "monitorbench"):
        resolved(study("run=@small"), "score")
        resolved(study(f"run={run}"), "score")
    assert caplog.messages == [f"run=@small: {run}"]


def test_several_that_fit_are_named(study: Callable[..., Study], tmp_path: Path):
    """Taking any of them would be a guess."""
    both = [evaluated(tmp_path / "runs", salt=i) for i in (1, 2)]
    evaluated(tmp_path / "runs", split="calibration")
    with pytest.raises(UserError, match=r"^run=small: 2 runs begin so; expected one") as caught:
        resolved(study("run=small"), "score")
    assert {line.split()[0] for line in str(caught.value).splitlines()[1:]} == {run.name for run in both}


def test_a_run_of_another_kind_is_refused_by_name(study: Callable[..., Study], tmp_path: Path):
    """Told only that nothing is there, a person looks for a run that is in the next line."""
    evaluated(tmp_path / "runs")
    training = trained(tmp_path / "runs")
    evaluated(tmp_path / "runs", "half-direct", status="running")
    with pytest.raises(
        UserError, match="run=small-all: no run that begins so fits; expected a finished ev"
    ) as e:
        resolved(study("run=small-all"), "score")
    assert training.name in str(e.value)
    with pytest.raises(UserError, match=r"half-direct-.*\(evaluate, stale,"):
        resolved(study("run=half"), "score")


def test_no_run_given_lists_the_three_latest(study: Callable[..., Study], tmp_path: Path):
    """The line after the mistake is what one wants to type next."""
    runs = [evaluated(tmp_path / "runs", second=i, salt=i) for i in range(5)]
    with pytest.raises(ConfigError, match=r"^run=null: no value given; expected run=RUN") as caught:
        resolved(study(), "score")
    assert [line.split()[0] for line in str(caught.value).splitlines()[1:]] == [r.name for r in runs[:1:-1]]
    assert resolved(study(), "verify").run is None
    assert resolved(study(), "evaluate").run is None


def test_a_name_without_what_an_import_put_behind_it_is_answered_with_the_whole(tmp_path: Path):
    """`@safe` after `import.monitor=safe` finds nothing where samples had no score, and it is right there."""
    evaluated(tmp_path / "runs", "safe_missing_left_out-imported")
    with pytest.raises(UserError, match=r"no such run in .*; did you mean @safe_missing_left_out"):
        find(tmp_path / "runs", "@safe/test")


def test_a_path_is_left_alone(study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A sweep's link that is not there yet, or a folder from elsewhere, is no short name."""
    evaluated(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    for path in ("small", "sweeps/x/run-000.done", "/nowhere/at/all"):
        assert find(tmp_path / "runs", path) == Path(path)
    assert resolved(study("monitor.adapter=small"), "evaluate").monitor.adapter == Path("small")


def test_the_scripts_resolve(tmp_path: Path):
    """An empty `run=`, as an unset shell variable gives it, is asked for with what is there."""
    run = evaluated(tmp_path / "runs")

    def score(*arguments: str) -> Done:
        return script("eval/score.py", f"paths.runs={tmp_path}/runs", *arguments, folder=tmp_path)

    for arguments in ((), ("run=",), ("run=null",)):
        done = score(*arguments)
        lines = done.stderr.splitlines()
        assert (done.returncode, done.stdout, len(lines)) == (2, "", 2), done.stderr
        assert "no value given; expected run=RUN" in lines[0]
        assert lines[1].split()[0] == run.name
    assert score("run=small").stderr.splitlines()[0] == f"run=small: {run}"
