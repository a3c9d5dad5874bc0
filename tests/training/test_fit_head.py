"""Probes end to end: fitted to a planted signal on a tiny model, judged with, resumed after SIGKILL."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_runs import plant, settings

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.head import FILE, FittedHead, ReadFrom, read_head
from monitorbench.judging import evaluate as evaluating
from monitorbench.records import Label, Split
from monitorbench.runs.verdict_log import read_verdicts
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.training import fit_head as fitting
from monitorbench.training import heads

ENGINE = ("engine=transformers", "engine.dtype=float32", "engine.device=cpu")
KILLED = """
import os, signal, sys
from pathlib import Path
from small_runs import settings
from monitorbench.engines.stored import states
from monitorbench.training import fit_head

at, part = int(sys.argv[3]), sys.argv[4]
fit_head.ensure = lambda *_: Path(sys.argv[1]) / "data" / "planted-0"
real = states.StateStore.append

def append(self, key, found, seconds):
    if len(self._log.entries) == at:
        if part == "behind the states":
            os.pwrite(self._stream, found.tobytes(), at * self._row_bytes)
        if part == "behind half of them":
            os.pwrite(self._stream, found.tobytes()[:17], at * self._row_bytes)
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, key, found, 0.0)

states.StateStore.append = append
print(fit_head.fit_head(settings(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[5:])))
"""


@pytest.fixture
def asked(planted: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch):
    """A study on the planted data."""
    for module in (fitting, evaluating):
        monkeypatch.setattr(module, "ensure", lambda study, splits: planted / "data" / "planted-0")

    def made(*overrides: str) -> Study:
        return settings(planted, tiny, *ENGINE, *overrides)

    return made


def scored(run: Path, data: Path) -> tuple[list[bool], list[float]]:
    scores = {one.sample_id: one.score for one in read_verdicts(run / "verdicts.jsonl")}
    samples = read_split(data, Split.TEST)
    return [one.label is Label.MISBEHAVIOR for one in samples], [scores[one.id] for one in samples]


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_probe_finds_the_planted_phrase_and_judges(asked: Any, planted: Path, head: str):
    """If it failed: a probe would fit noise, or its verdicts not be its head's."""
    run = fitting.fit_head(asked(f"head={head}"))
    judged = evaluating.evaluate(asked(f"monitor.head={run}"))
    labels, scores = scored(judged, planted / "data" / "planted-0")
    assert roc_auc_score(labels, scores) > 0.9
    verdicts = read_verdicts(judged / "verdicts.jsonl")
    assert all((one.label is Label.MISBEHAVIOR) == (one.score >= 0.5) for one in verdicts)
    assert {one.completion_tokens for one in verdicts} == {0}
    assert judged.name.startswith("smollm2_135m+all-")
    # The adapter's way to the tables: it is a change of its base.
    evaluation = read_evaluation(planted / "data", judged)
    assert evaluation.monitor == f"smollm2_135m+all_{head}_probe"
    assert evaluation.has_adapter
    base = read_evaluation(planted / "data", evaluating.evaluate(asked()))
    assert (base.basis, base.has_adapter) == (evaluation.basis, False)


def test_the_linear_head_is_scikit_learns(asked: Any):
    """If it failed: regularisation, standardisation or the intercept would not be what the page says."""
    draw = np.random.default_rng(0)
    labels = draw.random(120) < 0.3
    states = (draw.normal(size=(120, 5)) * 3 + 7 + labels[:, None]).astype(np.float16)
    split = heads.Split(states, labels)
    study = asked("head=linear", "head.regularisation=[0.05]")
    (found,) = heads.candidates(study.head, split, split, 0)
    read_from = ReadFrom("w", "r", (1.0,), ("last",), 1, "last")
    ours = FittedHead(read_from, found.tensors).scores(states)
    model = make_pipeline(
        StandardScaler(), LogisticRegression(C=1 / (0.05 * 120), class_weight="balanced", max_iter=2000)
    )
    theirs = model.fit(states.astype(np.float64), labels).predict_proba(states.astype(np.float64))[:, 1]
    assert np.allclose(ours, theirs, atol=2e-4)
    assert found.auroc == pytest.approx(roc_auc_score(labels, theirs), abs=1e-3)


def test_a_fit_is_reused_and_repeated_to_the_same_bytes(asked: Any, planted: Path, tmp_path: Path):
    """If it failed: two machines, or two days, would have different probes of one name."""
    run = fitting.fit_head(asked("head=mlp", "head.epochs=4"))
    first = (run / FILE).read_bytes()
    before = (run / "manifest.json").stat().st_mtime_ns
    assert fitting.fit_head(asked("head=mlp", "head.epochs=4")) == run
    assert (run / "manifest.json").stat().st_mtime_ns == before
    again = fitting.fit_head(asked("head=mlp", "head.epochs=4", f"paths.runs={tmp_path / 'again'}"))
    assert (again / FILE).read_bytes() == first
    other = fitting.fit_head(asked("head=mlp", "head.epochs=4", "seed=1"))
    assert (other / FILE).read_bytes() != first


def test_the_states_are_extracted_once(asked: Any, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a matrix of heads would run the model once for each of them."""
    fitting.fit_head(asked("dataset.train.pairs_per_cell=20"))

    def load(*_: Any) -> None:
        raise AssertionError("the model was loaded again")

    monkeypatch.setattr("monitorbench.judging.states.HiddenStates", load)
    fitting.fit_head(asked("dataset.train.pairs_per_cell=20", "head.regularisation=[1.0]"))


def test_killed_at_five_places_it_ends_in_the_same_bytes(tiny: Path, tmp_path: Path):
    """If it failed: an extraction of hours would begin anew, or end in other states."""
    small = ("dataset.train.pairs_per_cell=8", *ENGINE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def fit(root: Path, at: int, part: str) -> int:
        command = [sys.executable, "-c", KILLED, str(root), str(tiny), str(at), part, *small]
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    plant(tmp_path / "whole")
    plant(tmp_path / "killed")
    assert fit(tmp_path / "whole", -1, "") == 0
    places = [
        (0, ""),
        (3, "behind the states"),
        (7, "behind half of them"),
        (15, ""),
        (20, "behind the states"),
    ]
    for at, part in places:
        assert fit(tmp_path / "killed", at, part) == -signal.SIGKILL
    assert fit(tmp_path / "killed", -1, "") == 0
    left = {
        file.relative_to(root).as_posix(): file.read_bytes()
        for root in (tmp_path / "whole",)
        for pattern in ("models/states/*/[!.]*", "runs/fit/*/*.safetensors", "runs/fit/*/search.json")
        for file in root.glob(pattern)
    }
    assert len(left) == 4
    for name, content in left.items():
        assert (tmp_path / "killed" / name).read_bytes() == content, name


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("engine=vllm",), "engine=vllm: a probe reads hidden states; expected engine=transformers"),
        (("prompt=evidence",), "prompt=evidence: a probe reads the states in front of the answer"),
    ],
)
def test_what_has_no_states_is_refused(asked: Any, overrides: tuple[str, ...], said: str):
    """If it failed: a probe would be fitted to states that judging never sees."""
    with pytest.raises(ConfigError, match=said):
        fitting.fit_head(asked(*overrides))


def test_a_head_of_another_prompt_or_other_weights_is_refused(
    asked: Any, tmp_path_factory: pytest.TempPathFactory
):
    """If it failed: the head would answer, and every answer mean nothing."""
    run = fitting.fit_head(asked("head.regularisation=[1.0]"))
    with pytest.raises(ConfigError, match="fitted with another prompt than direct"):
        evaluating.evaluate(asked(f"monitor.head={run}", "prompt.user='{{ response }}\n{{ request }}'"))
    other = read_head(run / FILE)
    moved = tmp_path_factory.mktemp("head") / FILE
    FittedHead(ReadFrom(**{**vars(other.read_from), "weights": "sha256:0"}), other.tensors).save(moved)
    with pytest.raises(ConfigError, match="fitted on sha256:0"):
        evaluating.evaluate(asked(f"monitor.head={moved}"))


def test_a_head_that_is_none_or_changed_is_refused(asked: Any, tmp_path: Path):
    """If it failed: whatever lies there would judge."""
    run = fitting.fit_head(asked("head.regularisation=[1.0]"))
    tensors = load_file(run / FILE)
    tensors["c"] += 1
    save_file(tensors, run / FILE)
    with pytest.raises(UserError, match=FILE):
        evaluating.evaluate(asked(f"monitor.head={run}"))
    (tmp_path / FILE).write_bytes(b"no head")
    with pytest.raises(UserError, match=r"no head as train/fit\.py writes it"):
        evaluating.evaluate(asked(f"monitor.head={tmp_path / FILE}"))
    with pytest.raises(UserError, match=r"expected a run of train/fit\.py"):
        evaluating.evaluate(asked(f"monitor.head={tmp_path / 'none'}"))


def test_one_label_is_no_split_to_fit_on(asked: Any):
    """If it failed: a regression on one class would end in scikit-learn's own words."""
    one = heads.Split(np.ones((4, 2), np.float16), np.array([True] * 4))
    with pytest.raises(ValueError, match="the train split holds one label"):
        list(heads.candidates(asked().head, one, one, 0))


@pytest.mark.parametrize(
    ("module", "stage", "engine"),
    [
        ("monitorbench.training.fit_head", "fit_head", ()),
        ("monitorbench.training.sft", "train", ()),
        ("monitorbench.corpus.elicit", "elicit", ()),
    ],
)
def test_a_stage_that_has_no_use_for_a_head_says_so(
    asked: Any, module: str, stage: str, engine: tuple[str, ...], tmp_path: Path
):
    """If it failed: the base would be served, trained or asked under the probe's name."""
    study = asked(*engine, f"monitor.head={tmp_path}")
    with pytest.raises(ConfigError, match=r"monitor\.head=.*; expected null"):
        getattr(importlib.import_module(module), stage)(study)
