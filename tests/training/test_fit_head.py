"""Probes end to end: fitted to a planted signal on a tiny model, judged with, whole and in windows."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_runs import settings
from torch.nn.functional import scaled_dot_product_attention

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.head import HEAD_FILE, FittedHead, ReadFrom, read_head, windows
from monitorbench.judging import evaluate as evaluating
from monitorbench.judging.states import States
from monitorbench.records import Label, Split
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.training import fit_head as fitting
from monitorbench.training import heads

ENGINE = ("engine=transformers", "engine.dtype=float32", "engine.device=cpu")


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


@pytest.mark.parametrize("head", ["linear", "mlp", "attention"])
def test_a_probe_finds_the_planted_phrase_and_judges(asked: Any, planted: Path, head: str):
    """If it failed: a probe would fit noise, or its verdicts not be its head's."""
    run = fitting.fit_head(asked(f"head={head}"))
    judged = evaluating.evaluate(asked(f"monitor.head={run}"))
    labels, scores = scored(judged, planted / "data" / "planted-0")
    assert roc_auc_score(labels, scores) > 0.9
    verdicts = read_verdicts(judged / "verdicts.jsonl")
    assert all((one.label is Label.MISBEHAVIOR) == (one.score >= 0.5) for one in verdicts)
    assert {one.completion_tokens for one in verdicts} == {0}
    assert judged.name.startswith(f"smollm2_135m+all_{head}_probe-")
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
    split = heads.HeadSplit(states, np.ones(120, int), labels)
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


def test_attention_is_what_its_formula_says(asked: Any):
    """If it failed: the head that was fitted, and the one that judges, would be two."""
    draw = np.random.default_rng(0)
    states = [draw.normal(3, 2, (n, 6)).astype(np.float16) for n in draw.integers(1, 40, 60)]
    labels = draw.random(60) < 0.5
    for one, is_misbehavior in zip(states, labels, strict=True):
        one[draw.integers(len(one)), 0] += 12 * is_misbehavior  # at one token of many
    split = heads.TokenSplit(lambda number: states[number], labels)
    study = asked("head=attention", "head.regularisation=[0.01]", "head.queries=2", "head.window=16")
    head = study.head.model_copy(update={"epochs": 150, "learning_rate": 0.02})
    (found,) = heads.attention_candidates(head, split, split, 0)
    read_from = ReadFrom("w", "r", (1.0,), ("tokens",), 1, "tokens", 16)
    ours = [FittedHead(read_from, found.tensors).suspicion(one) for one in states]
    assert found.auroc == pytest.approx(roc_auc_score(labels, ours), abs=1e-3)
    assert found.auroc > 0.95
    t = {name: torch.from_numpy(tensor.astype(np.float64)) for name, tensor in found.tensors.items()}
    for one, score in zip(states, ours, strict=True):
        z = (torch.from_numpy(one.astype(np.float64)) - t["mean"]) / t["scale"]
        parts = [z[start:end] for start, end in windows(len(z), 16)]
        # Scaled dot-product attention as torch has it, a query on the tokens and the readout's value of each.
        logits = [
            sum(
                scaled_dot_product_attention(q[None], part, (part @ v)[:, None]).item()
                for q, v in zip(t["q"], t["v"], strict=True)
            )
            for part in parts
        ]
        assert score == pytest.approx(torch.tensor(max(logits) + t["c"].item()).sigmoid().item(), abs=1e-6)


@pytest.mark.parametrize(
    "reads",
    [("head=linear", "head.positions=[mean,max]"), ("head=attention", "head.storage=int8")],
)
def test_a_response_of_windows_is_as_bad_as_its_worst(asked: Any, reads: tuple[str, ...]):
    """If it failed: one bad moment would be lost in a long trajectory, or a score be of no window."""
    study = asked(*reads, "head.window=8", "head.regularisation=[0.1]", "dataset.train.pairs_per_cell=30")
    run = fitting.fit_head(study)
    head = read_head(run / HEAD_FILE)
    assert head.read_from.window == 8
    judged = evaluating.evaluate(asked(f"monitor.head={run}"))
    scores = {one.sample_id: one.score for one in read_verdicts(judged / "verdicts.jsonl")}
    samples = read_split(fitting.ensure(study, []), Split.TEST)[:6]
    of = head.read_from
    reads_again = States(
        study.monitor, study.engine, study.prompt, study.paths.models, of.shares, of.positions, 8, of.storage
    )
    with reads_again:
        for sample in samples:
            prompt = reads_again.rendering.prompt(sample)
            kept = reads_again.store.read(prompt.key)[:, reads_again.layers.index(of.layer)]
            found = head.scores(kept[:, of.positions.index(of.position)])
            assert len(found) == -(-(prompt.response[1] - prompt.response[0]) // 8) > 1
            assert scores[sample.id] == found.max()


def test_a_window_weighs_as_its_share_of_its_sample(asked: Any):
    """If it failed: long responses would decide what a probe takes for misbehavior."""
    draw = np.random.default_rng(0)
    labels = np.arange(80) % 3 == 0
    states = (draw.normal(size=(80, 5)) + labels[:, None]).astype(np.float16)
    head = asked("head=linear", "head.regularisation=[0.05]").head
    once = heads.HeadSplit(states, np.ones(80, int), labels)
    # Every sample four times over, as windows of it; their mean and spread are the same.
    again = heads.HeadSplit(np.repeat(states, 4, 0), np.full(80, 4), labels)
    (whole,), (cut,) = (list(heads.candidates(head, split, split, 0)) for split in (once, again))
    assert np.allclose(whole.tensors["v"], cut.tensors["v"], atol=1e-4)
    assert whole.auroc == pytest.approx(cut.auroc, abs=1e-3)


def test_a_fit_is_reused_and_repeated_to_the_same_bytes(asked: Any, planted: Path, tmp_path: Path):
    """If it failed: two machines, or two days, would have different probes of one name."""
    run = fitting.fit_head(asked("head=mlp", "head.epochs=4"))
    first = (run / HEAD_FILE).read_bytes()
    before = (run / "manifest.json").stat().st_mtime_ns
    assert fitting.fit_head(asked("head=mlp", "head.epochs=4")) == run
    assert (run / "manifest.json").stat().st_mtime_ns == before
    again = fitting.fit_head(asked("head=mlp", "head.epochs=4", f"paths.runs={tmp_path / 'again'}"))
    assert (again / HEAD_FILE).read_bytes() == first
    other = fitting.fit_head(asked("head=mlp", "head.epochs=4", "seed=1"))
    assert (other / HEAD_FILE).read_bytes() != first


def test_the_states_are_extracted_once(asked: Any, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a matrix of heads would run the model once for each of them."""
    fitting.fit_head(asked("dataset.train.pairs_per_cell=20"))

    def load(*_: Any) -> None:
        raise AssertionError("the model was loaded again")

    monkeypatch.setattr("monitorbench.judging.states.HiddenStates", load)
    fitting.fit_head(asked("dataset.train.pairs_per_cell=20", "head.regularisation=[1.0]"))


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


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("head=attention", "head.positions=[mean]"), r"attention reads positions=\[tokens\]"),
        (("head=linear", "head.positions=[mean,tokens]"), "the others last, mean or max"),
        (("head=linear", "head.window=100"), "the prompt's last token is in no window"),
    ],
)
def test_a_head_that_reads_what_it_cannot_is_refused(asked: Any, overrides: tuple[str, ...], said: str):
    """If it failed: the setting would pass, and fail behind an extraction of hours or do nothing."""
    with pytest.raises(ConfigError, match=said):
        asked(*overrides)


def test_a_head_of_another_prompt_or_other_weights_is_refused(
    asked: Any, tmp_path_factory: pytest.TempPathFactory
):
    """If it failed: the head would answer, and every answer mean nothing."""
    run = fitting.fit_head(asked("head.regularisation=[1.0]"))
    with pytest.raises(ConfigError, match="fitted with another prompt than direct"):
        evaluating.evaluate(asked(f"monitor.head={run}", "prompt.user='{{ response }}\n{{ request }}'"))
    other = read_head(run / HEAD_FILE)
    moved = tmp_path_factory.mktemp("head") / HEAD_FILE
    FittedHead(ReadFrom(**{**vars(other.read_from), "weights": "sha256:0"}), other.tensors).save(moved)
    with pytest.raises(ConfigError, match="fitted on sha256:0"):
        evaluating.evaluate(asked(f"monitor.head={moved}"))


def test_a_head_that_is_none_or_changed_is_refused(asked: Any, tmp_path: Path):
    """If it failed: whatever lies there would judge."""
    run = fitting.fit_head(asked("head.regularisation=[1.0]"))
    tensors = load_file(run / HEAD_FILE)
    tensors["c"] += 1
    save_file(tensors, run / HEAD_FILE)
    with pytest.raises(UserError, match=HEAD_FILE):
        evaluating.evaluate(asked(f"monitor.head={run}"))
    (tmp_path / HEAD_FILE).write_bytes(b"no head")
    with pytest.raises(UserError, match=r"no head as `monitorbench fit` writes it"):
        evaluating.evaluate(asked(f"monitor.head={tmp_path / HEAD_FILE}"))
    with pytest.raises(UserError, match=r"expected a run of `monitorbench fit`"):
        evaluating.evaluate(asked(f"monitor.head={tmp_path / 'none'}"))


def test_one_label_is_no_split_to_fit_on(asked: Any):
    """If it failed: a regression on one class would end in scikit-learn's own words."""
    one = heads.HeadSplit(np.ones((4, 2), np.float16), np.ones(4, int), np.array([True] * 4))
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
