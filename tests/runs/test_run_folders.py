"""What runs are called."""

import shutil
from collections.abc import Callable
from pathlib import Path

from sealed import seal

from monitorbench.config.study import Study
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.run_folders import evaluation_id, evaluation_run, run_name, training_run

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
