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


def test_what_decides_the_results_names_the_directory(tmp_path: Path):
    """The same command has to find its results, on another machine too; other data must not find them."""

    def name(identity: dict[str, Any], folder: str = "a") -> str:
        return RunDirectory(tmp_path / folder, "smollm2_135m-direct", identity).path.name

    title, _, digest = name(IDENTITY).rpartition("-")
    assert title == "smollm2_135m-direct", "what tells a person in a listing what a run was"
    assert len(digest) >= 12
    assert set(digest) <= set("0123456789abcdef")
    in_another_order = {"judge": {"adapter": "", "weights": "w"}, "data": "starter-0123456789ab"}
    assert name(IDENTITY) == name(in_another_order) == name(IDENTITY, "b")
    for changed in (
        {"data": "starter-ffffffffffff"},
        {"judge": {"weights": "v", "adapter": ""}},
        {"seed": 1},
    ):
        assert name(IDENTITY | changed) != name(IDENTITY)


def test_no_path_enters_a_datasets_identity(compose_study: Callable[..., Study]):
    """Another mount point on another machine must not mean another dataset."""
    one = compose_study("build", "paths.data=/a", "paths.runs=/b", "paths.models=/c")
    other = compose_study("build", "paths.data=/x", "paths.runs=/y", "paths.models=/z")
    assert starter_dataset.inputs(one.dataset) == starter_dataset.inputs(other.dataset)
    assert "/a" not in json.dumps(starter_dataset.inputs(one.dataset))


@pytest.mark.parametrize(
    ("setting", "is_other"),
    [
        ("dataset.seed=1", True),
        ("dataset.generated_pairs=91", True),
        ("dataset.shares={train: 0.5, validation: 0.1, calibration: 0.1, test: 0.3}", True),
        ("dataset.splits=[test]", False),
        ("dataset.train.subset=safety_permission", False),
        ("dataset.test.pairs_per_cell=3", False),
        ("seed=5", False),
    ],
)
def test_what_decides_the_data_alone_enters_its_identity(
    compose_study: Callable[..., Study], setting: str, is_other: bool
):
    """Three seeds must not share data, and an ablation over train subsets has to share its test split."""
    changed, plain = (starter_dataset.inputs(compose_study("build", *of).dataset) for of in ((setting,), ()))
    assert (changed != plain) is is_other


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
