"""Finding and making the runs of a study: real run directories, no model."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_engine import completion

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.adapters import evaluate_each
from monitorbench.runs.files import write_json
from monitorbench.runs.run_folders import subset_name, training_run
from monitorbench.scoring.evaluations import read_evaluation, with_distinct_names
from monitorbench.studies import transfer as transfer_runs
from monitorbench.studies.transfer import transfer

CELLS = {
    "safety_permission/code": ["safety_permission/code"],
    "all-safety_permission": ["sycophancy_bias/qa", "sycophancy_bias/reasoning", "specification_gaming/qa"],
}


@pytest.fixture
def asked(
    compose_study: Callable[..., Study], starter: Path, tmp_path: Path, model_folder: Path
) -> Callable[..., Study]:
    """A study of two subsets over two pairs of each cell; its model is a folder of the tokenizer."""
    model = shutil.copytree(model_folder, tmp_path / "model")

    def made(*overrides: str) -> Study:
        return compose_study(
            "transfer",
            f"paths.data={starter.parent}",
            f"paths.runs={tmp_path / 'runs'}",
            f"monitor.path={model}",
            "dataset.test.pairs_per_cell=2",
            "transfer.subsets=[safety_permission/code,all-safety_permission]",
            "score.resamples=100",
            *overrides,
        )

    return made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> list[str]:
    """Children's work done here: an adapter of bytes, verdicts by a hash; returns what was made."""
    import hashlib
    import math

    yes, no = (tokenizer(word).input_ids[0] for word in ("yes", "no"))

    class Engine:
        salt = ""

        def take(self, adapter: Path | None) -> None:
            self.salt = (adapter / "adapter_model.safetensors").read_text() if adapter else ""

        def complete(self, prompts: Any, decoding: Any, *, with_adapter: bool = True) -> Any:
            for i, ids in enumerate(prompts):
                salt = self.salt if with_adapter else ""
                p = hashlib.sha256(f"{salt}{tuple(ids)}".encode()).digest()[0] / 256 * 0.9 + 0.05
                logprobs = dict.fromkeys(range(len(tokenizer)), -math.inf)
                logprobs |= {yes: math.log(0.9 * p), no: math.log(0.9 * (1 - p))}
                word = "yes" if p > 0.5 else "no"
                yield i, completion((yes if p > 0.5 else no,), word, "stop", logprobs, 0.01)

        def close(self) -> None: ...

    monkeypatch.setattr("monitorbench.engines.open.open_engine", lambda *_: Engine())
    done: list[str] = []

    def make(folder: Path, run: Any) -> None:
        done.append(f"{run.stage} {run.name}")
        frozen = read_frozen(transfer_runs._frozen(folder, run))
        assert frozen == run.study
        evaluate_each(frozen) if run.stage == "evaluate" else fake_training(frozen)

    monkeypatch.setattr(transfer_runs, "_make", make)
    return done


def fake_training(study: Study) -> None:
    """A finished training run where `train/sft.py` would write it."""
    run = training_run(study, directory_of(study).path.name, weights_identity(study.monitor))
    with run.recording(study) as results:
        folder = run.path / "adapter"
        folder.mkdir()
        (folder / "adapter_config.json").write_text('{"r": 8}')
        (folder / "adapter_model.safetensors").write_text(
            f"{subset_name(study.dataset.train.subset)} {study.seed}"
        )
        write_json(run.path / "learning_curve.json", [{"step": 1, "loss": 0.5, "auroc": 0.6}])
        results |= {
            "name": subset_name(study.dataset.train.subset),
            "trained_on": CELLS[study.dataset.train.subset[0]],
        }


def test_a_study_makes_what_is_missing_and_finds_it_again(asked: Any, made: list[str]):
    """If it failed: the hour of training would be spent again at every call, or the wrong runs compared."""
    directory = transfer(asked("transfer.make=true"))
    points = ["safety_permission_code-sft-seed0", "all-safety_permission-sft-seed0"]
    assert made == [*(f"train {point}" for point in points), "evaluate base-and-2-more"]
    results = json.loads((directory / "metrics.json").read_text())
    names = {"smollm2_135m+safety_permission_code", "smollm2_135m+all-safety_permission"}
    assert set(results["matrix"]["words"]) == set(results["transfer"]) == names
    assert results["trained_on"]["smollm2_135m+all-safety_permission"] == CELLS["all-safety_permission"]

    del made[:]
    assert transfer(asked()) == directory, "the same runs, so the same run"
    assert made == []
    transfer(
        asked(
            "transfer.make=true", "+transfer.also={again: {subsets: [safety_permission/code], seeds: [1, 2]}}"
        )
    )
    point = "safety_permission_code-sft-seed"
    assert made == [f"train {point}1", f"train {point}2", f"evaluate {point}1-and-1-more"]


def test_trainings_side_by_side_are_the_same_runs(
    asked: Any, made: list[str], monkeypatch: pytest.MonkeyPatch
):
    """`transfer.jobs` must change neither what is trained nor that all evaluations share one start."""
    together: list[tuple[str, list[str], int]] = []

    def run_stages(stage: str, frozen: Mapping[str, Path], jobs: int) -> None:
        together.append((stage, list(frozen), jobs))
        for file in frozen.values():
            fake_training(read_frozen(file))

    monkeypatch.setattr(transfer_runs, "run_stages", run_stages)
    directory = transfer(asked("transfer.make=true", "transfer.jobs=2"))
    names = ["safety_permission_code-sft-seed0", "all-safety_permission-sft-seed0"]
    assert together == [("train", names, 2)]
    assert made == ["evaluate base-and-2-more"]
    assert transfer(asked()) == directory, "one at a time finds the same runs"


def test_several_seeds_are_told_apart_and_summed_up(asked: Any, made: list[str]):
    """Three seeds under one name would be one row; their spread is what shows whether a finding is luck."""
    directory = transfer(
        asked("transfer.make=true", "transfer.seeds=[0,1,2]", "transfer.subsets=[safety_permission/code]")
    )
    results = json.loads((directory / "metrics.json").read_text())
    family = results["seeds"]["smollm2_135m+safety_permission_code"]
    assert family["seeds"] == [0, 1, 2]
    values = [results["monitors"][name]["direct"]["overall"]["auroc"] for name in family["adapters"]]
    spread = family["spread"]["direct"]["overall"]["auroc"]
    assert spread["mean"] == pytest.approx(sum(values) / 3)
    assert (spread["low"], spread["high"]) == (min(values), max(values))
    name = "smollm2_135m+safety_permission_code"
    assert list(results["effects"]) == list(results["matrix"]["words"]) == [name], "no word for a seed alone"
    assert results["effects"][name]["direct"]["overall"]["n_seeds"] == 3
    assert results["adapters"] == {name: family["adapters"]}
    read = json.loads((directory / "manifest.json").read_text())["results"]["runs"]
    base, *tuned = (read_evaluation(asked().paths.data, Path(run)) for run in read)
    once = tuned[0]._replace(prompt="evidence")  # the costly prompt, tried on one seed
    named = [e.monitor for e in with_distinct_names([base, *tuned, once])]
    assert named == ["smollm2_135m", *family["adapters"], family["adapters"][0]]


def test_what_is_missing_is_said_with_a_command_that_makes_it(
    asked: Any, made: list[str], caplog: pytest.LogCaptureFixture
):
    """`5 runs are missing` without saying which sends a person searching through hashes."""
    caplog.set_level("INFO", "monitorbench")
    with pytest.raises(UserError, match=r"5 of 5 runs are missing \(2 of them trainings\)") as caught:
        transfer(asked())
    assert "\n" not in str(caught.value)
    commands = [line for line in caplog.messages if line.startswith("missing: ")]
    assert len(commands) == 3, "all evaluations are one command"
    for line in commands:
        stage, _, file = line.removeprefix("missing: monitorbench ").partition(" frozen=")
        frozen = read_frozen(Path(file))
        if stage == "train":
            fake_training(frozen)
    assert sum("monitorbench train" in line for line in commands) == 2
    assert any(
        "monitorbench evaluate" in line and "evaluate-base-and-2-more.json" in line for line in commands
    )

    caplog.clear()
    with pytest.raises(UserError, match="3 of 5 runs are missing"):
        transfer(asked())
    for line in caplog.messages:
        if line.startswith("missing: "):
            evaluate_each(read_frozen(Path(line.partition("frozen=")[2])))
    transfer(asked())


def test_a_study_of_nothing_says_what_it_takes(compose_study: Callable[..., Study]):
    """Neither runs nor a study: the line has to name both ways."""
    with pytest.raises(ConfigError, match=r"transfer\.runs=\[DIR,DIR\]', or a study as 'transfer\.subsets"):
        transfer(compose_study("transfer"))


@pytest.mark.slow
def test_a_child_that_fails_ends_the_study_with_its_reason(
    asked: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A failure in the fortieth run that is passed over leaves a hole in the matrix nobody sees."""
    (tmp_path / "model" / "tokenizer.json").unlink()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with pytest.raises(UserError, match="train safety_permission_code-sft-seed0: failed with exit code"):
        transfer(asked("transfer.make=true"))
    assert capfd.readouterr().err.strip()
