"""A run directory: its name, what it records, and when it counts as done."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus import starter as starter_dataset
from monitorbench.runs.directory import RunDirectory, read_finished, read_manifest

IDENTITY = {"data": "starter-0123456789ab", "judge": {"weights": "w", "adapter": ""}}


def test_the_same_settings_find_the_same_directory(tmp_path: Path):
    """The same command run again has to find its results, not pay for them twice."""
    again = {"judge": {"adapter": "", "weights": "w"}, "data": "starter-0123456789ab"}
    assert RunDirectory(tmp_path, "base", IDENTITY).path == RunDirectory(tmp_path, "base", again).path


def test_a_moved_folder_keeps_the_name(tmp_path: Path):
    """Results copied from the cluster to a laptop are still the same results."""
    assert (
        RunDirectory(tmp_path / "a", "base", IDENTITY).path.name
        == RunDirectory(tmp_path / "b", "base", IDENTITY).path.name
    )


@pytest.mark.parametrize(
    "changed", [{"data": "starter-ffffffffffff"}, {"judge": {"weights": "v", "adapter": ""}}, {"seed": 1}]
)
def test_another_input_has_another_directory(tmp_path: Path, changed: dict[str, Any]):
    """Other data under the old name: yesterday's numbers would pass for today's."""
    assert (
        RunDirectory(tmp_path, "base", IDENTITY | changed).path
        != RunDirectory(tmp_path, "base", IDENTITY).path
    )


def test_the_name_is_readable(tmp_path: Path):
    """`<name>-<hash>` tells a person in a listing what a run was."""
    name, _, digest = RunDirectory(tmp_path, "smollm2_135m-direct", IDENTITY).path.name.rpartition("-")
    assert name == "smollm2_135m-direct"
    assert len(digest) >= 12
    assert set(digest) <= set("0123456789abcdef")


def test_no_path_enters_a_datasets_identity(compose_study: Callable[..., Study]):
    """Another mount point on another machine must not mean another dataset."""
    one = compose_study("build", "paths.data=/a", "paths.runs=/b", "paths.models=/c")
    other = compose_study("build", "paths.data=/x", "paths.runs=/y", "paths.models=/z")
    assert starter_dataset.inputs(one.dataset) == starter_dataset.inputs(other.dataset)
    assert "/a" not in json.dumps(starter_dataset.inputs(one.dataset))


@pytest.mark.parametrize(
    "setting",
    [
        "dataset.seed=1",
        "dataset.generated_pairs=91",
        "dataset.shares={train: 0.5, validation: 0.1, calibration: 0.1, test: 0.3}",
    ],
)
def test_what_decides_the_data_enters_its_identity(compose_study: Callable[..., Study], setting: str):
    """Reusing the data of another seed would make three seeds of a study one."""
    changed = compose_study("build", setting).dataset
    assert starter_dataset.inputs(changed) != starter_dataset.inputs(compose_study("build").dataset)


@pytest.mark.parametrize(
    "setting",
    [
        "dataset.splits=[test]",
        "dataset.train.subset=safety_permission",
        "dataset.test.pairs_per_cell=3",
        "seed=5",
    ],
)
def test_a_view_of_the_data_is_no_other_data(compose_study: Callable[..., Study], setting: str):
    """An ablation over train subsets has to share one dataset, else its test splits differ."""
    assert starter_dataset.inputs(compose_study("build", setting).dataset) == starter_dataset.inputs(
        compose_study("build").dataset
    )


def test_a_manifest_says_where_a_result_comes_from(tmp_path: Path, compose_study: Callable[..., Study]):
    """Commit, versions and input hashes are what lets another person redo a number, or doubt it."""
    study = compose_study("evaluate", "seed=3")
    run = RunDirectory(tmp_path, "base", IDENTITY)
    assert not run.done
    with run.recording(study) as results:
        results["n"] = 5
    manifest = read_finished(run.path)
    assert run.done
    assert manifest["status"] == "done"
    assert manifest["results"] == {"n": 5}
    assert manifest["identity"].items() >= IDENTITY.items()
    assert manifest["identity"]["schema_version"] >= 1
    assert {"python", "monitorbench", "torch", "transformers", "pyarrow"} <= set(manifest["versions"])
    assert "git_commit" in manifest
    assert isinstance(manifest["git_dirty"], bool)
    assert manifest["seconds"] >= 0
    assert 1 <= manifest["peak_memory_mib"] < 2**20
    assert datetime.fromisoformat(manifest["started"]).tzinfo is not None
    assert Study.model_validate_json((run.path / "config.json").read_text()) == study
    assert (run.path / "code.diff").is_file()


def test_a_run_that_failed_is_not_done(tmp_path: Path, compose_study: Callable[..., Study]):
    """A crashed run that counts as done is reported with the verdicts it happens to have."""
    run = RunDirectory(tmp_path, "base", IDENTITY)

    def fails() -> None:
        with run.recording(compose_study("evaluate")) as results:
            results["n"] = 1
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        fails()
    assert read_manifest(run.path)["status"] == "running"
    assert not run.done
    with pytest.raises(UserError, match=run.path.name):
        read_finished(run.path)
    with run.recording(compose_study("evaluate")):
        assert not run.done
    assert RunDirectory(tmp_path, "base", IDENTITY).done


def test_a_folder_that_is_no_run_is_named(tmp_path: Path):
    """`run=` with a wrong path has to end in a line that shows the path."""
    with pytest.raises(UserError, match=str(tmp_path / "none")):
        read_manifest(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ('{"status": "do', "not JSON"),
        ("[1, 2]", "a JSON list"),
        ("null", "a JSON NoneType"),
        ("{}", "not as a stage wrote it"),
        ('{"status": "done", "results": []}', "results is no object"),
    ],
)
def test_a_broken_manifest_is_one_line(tmp_path: Path, text: str, words: str):
    """A `KeyError: 'status'` names neither the file nor what to do."""
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        read_finished(tmp_path)
    assert str(tmp_path / "manifest.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_that_a_manifest_lacks_is_named_wherever_it_stands(tmp_path: Path):
    """Each reader asks for keys of its own, deep inside; none of them must end in a `KeyError`."""
    seal(tmp_path, {"status": "done", "results": {"judge": {"name": "m"}}})
    manifest = read_finished(tmp_path)
    assert manifest["results"]["judge"]["name"] == "m"
    assert manifest["results"].get("training") is None
    for read, place in (
        (lambda: manifest["identity"]["view"], "no identity in it"),
        (lambda: manifest["results"]["data"], r"no results\.data in it"),
        (lambda: manifest["results"]["judge"]["prompt"], r"no results\.judge\.prompt in it"),
    ):
        with pytest.raises(UserError, match=place):
            read()
