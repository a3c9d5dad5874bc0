"""`runs list`: what is there, what it is called and in which state, in 80 columns."""

import io
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from made_runs import DATA, calibrated, evaluated, sealed_run, trained, transferred
from rich.console import Console
from sealed import seal

from monitorbench.config.study import Study
from monitorbench.runs.command import main
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.files import DIRECTORY_LOCK, locked
from monitorbench.runs.listing import print_list, size_in_words
from monitorbench.runs.run_folders import (
    age_in_words,
    evaluation_id,
    evaluation_run,
    read_run,
    run_name,
    runs_in,
    training_run,
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A study's runs."""
    folder = tmp_path / "runs"
    test = evaluated(folder, rates=(0.25, 0.125), second=5)
    calibration = evaluated(folder, split="calibration", second=4)
    calibrated(folder, calibration, second=6)
    trained(folder, second=1)
    transferred(folder, test, second=7)
    sealed_run(folder / "baselines" / "starter-000000000000", {}, {}, second=8)
    return folder


def test_the_list_as_json_has_every_number(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Scripts read these keys; a wrong rate beside a name is a wrong choice of monitor."""
    assert main(["list", "--runs", str(runs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in found] == ["transfer", "calibrate", "evaluate", "evaluate", "train"]
    shown = ("name", "dataset", "split", "n", "miss_rate", "false_alarm_rate", "state")
    assert [tuple(one[key] for key in shown) for one in found] == [
        ("starter", "starter", "", 1, None, None, "done"),
        ("small-direct", "starter", "", 40, None, None, "done"),
        ("small-direct", "starter", "test", 28, 0.25, 0.125, "done"),
        ("small-direct", "starter", "calibration", 28, None, None, "done"),
        ("small-all-seed0", "starter", "", 408, None, None, "done"),
    ]
    for one in found:
        files = [path for path in Path(one["run"]).rglob("*") if path.is_file()]
        assert one["bytes"] == sum(path.stat().st_size for path in files)


def test_filters_keep_what_was_asked_for(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Among a thousand runs the one that is looked for."""

    def names(*arguments: str) -> list[str]:
        assert main(["list", "--runs", str(runs), "--json", *arguments]) == 0
        return [Path(one["run"]).parent.name for one in json.loads(capsys.readouterr().out)]

    assert names("--kind", "train", "--kind", "transfer") == ["transfer", "train"]
    assert names("--kind", "baselines") == ["baselines"]
    assert names("small", "test") == ["evaluate"]
    assert names("-n", "2") == ["transfer", "calibrate"]


def test_no_match_is_told_from_no_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Sent to look for another folder, one would not see that nothing in this one is damaged."""
    n = len(runs_in(runs))

    def refusal(folder: Path, *arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["list", "--runs", str(folder), *arguments])
        assert ended.value.code == 1
        return capsys.readouterr().err

    for arguments in (("nothing",), ("--state", "damaged"), ("--kind", "serve")):
        assert refusal(runs, *arguments).startswith(f"error: {runs}: none of the {n} runs matches; expected")
    one = tmp_path / "one"
    evaluated(one)
    assert "the one run there does not match; expected" in refusal(one, "--state", "damaged")
    assert refusal(tmp_path / "no").startswith(f"error: {tmp_path}/no: no run there; expected a folder")


def test_each_state_is_told_from_the_others(tmp_path: Path):
    """A crashed run that looks alive is waited for; one that is alive and looks crashed is started twice."""
    run = evaluated(tmp_path, status="running")
    state = lambda: read_run(run, "evaluate").state  # noqa: E731
    assert state() == "stale"
    with locked(run / DIRECTORY_LOCK):
        assert state() == "running"
    assert state() == "stale"
    assert read_run(evaluated(tmp_path, status="incomplete", salt=1), "evaluate").state == "incomplete"
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace("28", "29"))
    assert state() == "damaged"
    manifest.unlink()
    assert state() == "stale"


def test_a_damaged_run_does_not_hide_the_others(runs: Path):
    """One flipped bit, and nothing can be found any more."""
    for text in ("{", "[]", '{"status": 3}', "\0"):
        folder = runs / "evaluate" / f"broken-{abs(hash(text)):012d}"[:40]
        folder.mkdir()
        (folder / "manifest.json").write_text(text)
    (runs / "evaluate" / "a file").write_text("")
    found = runs_in(runs, ["evaluate"])
    assert [run.state for run in found] == ["done", "done", *["damaged"] * 4]


def test_it_fits_80_columns(runs: Path):
    """Wider, and a terminal folds every line in two."""
    long = evaluated(runs, f"{'m' * 60}-{'p' * 60}", status="incomplete", rates=(1.0, 0.0))
    shutil.copytree(long, long.with_name(f"{'q' * 80}[red]-ffffffffffff"))
    stream = io.StringIO()
    print_list(Console(file=stream, width=80), runs_in(runs), runs.parent / "data")
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = "".join(lines).replace(" ", "")
    assert ".25.12done" in text
    assert "m" * 10 in text


def test_ages_and_sizes_in_words():
    """Read at a glance, so a wrong unit is believed."""
    now = datetime(2026, 11, 23, tzinfo=UTC)
    ages = [timedelta(seconds=9), timedelta(minutes=5), timedelta(hours=3), timedelta(days=12)]
    assert [age_in_words(now - age, now) for age in ages] == ["<1m", "5m", "3h", "12d"]
    assert [age_in_words(now - timedelta(days=800), now), age_in_words(None)] == ["2y", "?"]
    assert [size_in_words(n) for n in (0, 512, 45_600, 1_234_000, 15e6, 3e9)] == [
        "0",
        "512",
        "46k",
        "1.2M",
        "15M",
        "3.0G",
    ]


IDENTITY = {"data": "starter-0123456789ab", "split": "test", "judge": {"weights": "w"}}


def test_a_name_says_monitor_prompt_dataset_and_split(compose_study: Callable[..., Study], tmp_path: Path):
    """Twenty folders of one monitor that differ in a hash alone can't be told apart."""
    run = evaluation_run(tmp_path, "small", "direct", IDENTITY)
    assert run.path.name.startswith("small-direct-starter-test-")
    study = compose_study(
        "train", f"paths.runs={tmp_path}", "dataset.train.subset=safety_permission", "seed=3"
    )
    training = training_run(study, "starter-0123456789ab", "weights")
    assert training.path.name.startswith("smollm2_135m-safety_permission-starter-seed3-")


def test_a_run_is_named_alike_in_hashes_whatever_its_folder_is_called(tmp_path: Path):
    """Calibrations and transfer runs of a folder that somebody renamed would be made anew."""
    judge = {"judge": {"name": "small", "prompt": "direct"}}
    run = evaluation_run(tmp_path, "small", "direct", IDENTITY)
    seal(run.path, {"status": "done", "identity": run.identity, "results": judge})
    moved = tmp_path / "elsewhere"
    shutil.copytree(run.path, moved)
    expected = RunDirectory(tmp_path, "small-direct", IDENTITY).path.name
    assert {evaluation_id(read_manifest(path)) for path in (run.path, moved)} == {expected}


def test_names_as_long_as_they_may_be_fit_a_file_system(tmp_path: Path):
    """`OSError: File name too long`, after everything was judged."""
    long = ["n" * 80 + "+" + "s" * 150, "ü" * 60, "d" * 80, "calibration"]
    name = run_name(*long)
    assert len(name.encode()) <= 160
    assert [part[:1] for part in name.split("-")] == ["n", "ü", "d", "c"]
    identity = {**IDENTITY, "data": f"{long[2]}-0123456789ab", "split": long[3]}
    path = evaluation_run(tmp_path, long[0], long[1], identity).path
    path.mkdir(parents=True)
    assert run_name("a", "", "b") == "a-b"


def test_a_monitor_that_has_its_datasets_name_keeps_it(tmp_path: Path) -> None:
    """A run of the monitor would be listed as `direct`, and a recommendation by a hash."""
    assert read_run(evaluated(tmp_path, "starter-direct"), "evaluate").title == "starter-direct"
    recommended = sealed_run(tmp_path / "recommend" / "starter-0123456789ab", {"data": DATA}, {})
    assert read_run(recommended, "recommend").title == "starter"
