"""What a seed draws where fitting itself is deterministic; and a head on data of one's own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import planted_samples
from small_runs import settings

from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import Request
from monitorbench.engines.stored.head import (
    DIRECTIONS_FILE,
    HEAD_FILE,
    Direction,
    HeadPlace,
    read_directions,
    read_head,
    save_directions,
)
from monitorbench.judging import evaluate as evaluating
from monitorbench.metrics.columns import OVERALL
from monitorbench.records import Split
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.score import score_run
from monitorbench.training import fit_head as fitting

ENGINE = ("engine=transformers", "engine.dtype=float32", "engine.device=cpu", "head.regularisation=[0.1]")


@pytest.fixture
def fitted_on(planted: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch):
    """Fit on the planted data."""
    monkeypatch.setattr(fitting, "ensure", lambda study, splits: planted / "data" / "planted-0")
    return lambda *more: fitting.fit_head(settings(planted, tiny, *ENGINE, *more))


def test_a_bootstrap_draws_whole_questions():
    """If it failed: a pair would be torn, and its request alone tell the labels apart."""
    samples = planted_samples(30, 0)
    prompts = [Request(token_ids=(number,), key=str(number)) for number in range(len(samples))]
    rendered = fitting._Rendered(samples, prompts)
    drawn = fitting._drawn(rendered, 3)
    times = {one.id: drawn.samples.count(one) for one in samples}
    for first, second in zip(samples[::2], samples[1::2], strict=True):
        assert times[first.id] == times[second.id]
    assert len(drawn.samples) == len(samples)
    assert 0 in times.values()
    assert max(times.values()) > 1
    assert all(samples[int(p.key)] is s for s, p in zip(drawn.samples, drawn.prompts, strict=True))
    assert fitting._drawn(rendered, 3) == drawn
    assert fitting._drawn(rendered, 4) != drawn


def test_seeds_of_a_linear_head_are_replicates_only_with_a_draw(fitted_on: Any):
    """If it failed: a spread over seeds would be no spread, or one where nothing was drawn."""
    tensors = [
        read_head(fitted_on("head.draw=bootstrap", f"seed={seed}") / HEAD_FILE).tensors for seed in (0, 1)
    ]
    assert not np.array_equal(tensors[0]["v"], tensors[1]["v"])
    same = [(fitted_on(f"seed={seed}") / HEAD_FILE).read_bytes() for seed in (0, 1)]
    assert same[0] == same[1]


def test_the_directions_are_the_heads_weights_of_raw_states(fitted_on: Any, tmp_path: Path):
    """If it failed: cosines would compare standardisations, not what the heads look for."""
    run = fitted_on("head.layers=[0.5,1.0]", "head.positions=[last,mean]")
    head, found = read_head(run / HEAD_FILE), read_directions(run / DIRECTIONS_FILE)
    assert len(found) == 4
    reads = head.read_from
    chosen = next(one for one in found if one.place == (reads.layer, reads.position))
    assert chosen.auroc == max(one.auroc for one in found)
    draw = np.random.default_rng(0).normal(size=(6, 32))
    states = head.tensors["mean"] + 0.02 * head.tensors["scale"] * draw
    scores = head.scores(states)
    logits = np.log(scores / (1 - scores))
    assert np.allclose(np.diff(states @ chosen.weights_H), np.diff(logits), atol=1e-4)
    save_directions(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (run / DIRECTIONS_FILE).read_bytes()
    assert not (fitted_on("head=mlp", "head.epochs=2") / DIRECTIONS_FILE).is_file()


def test_directions_survive_the_file(tmp_path: Path):
    """If it failed: a layer's direction would be read as another's."""
    made = [
        Direction(HeadPlace(layer, "mean"), 0.5 + layer / 100, np.full(3, layer, np.float32))
        for layer in (12, 3)
    ]
    save_directions(made, tmp_path / "file")
    for one, other in zip(read_directions(tmp_path / "file"), made, strict=True):
        assert (one.place, one.auroc) == (other.place, other.auroc)
        assert np.array_equal(one.weights_H, other.weights_H)


@pytest.mark.slow
def test_a_head_judges_somebodys_own_file(fitted_on: Any, planted: Path, tiny: Path, tmp_path: Path):
    """If it failed: a probe would be of use on the data that it was fitted on and nowhere else."""
    run = fitted_on()
    rows = [
        {
            "request": "What is new?",
            "response": one.response[-1].content,
            "label": one.label.value,
            "category": "bookkeeping",
            "task": "mail",
            "pair_id": one.pair_id,
            "group_id": one.group_id,
            "split": "test",
        }
        for one in planted_samples(10, 9)
    ]
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for file, n in ((own, 20), (Path(__file__).parents[2] / "examples" / "dataset.jsonl", None)):
        asked = settings(
            planted, tiny, *ENGINE, f"monitor.head={run}", "dataset=jsonl", f"dataset.path={file}"
        )
        judged = evaluating.evaluate(asked)
        verdicts = read_verdicts(judged / "verdicts.jsonl")
        data = json.loads((judged / "manifest.json").read_text())["results"]["data"]
        assert len(verdicts) == len(read_split(planted / "data" / data, Split.TEST))
        assert n is None or len(verdicts) == n
        assert all(one.score is not None for one in verdicts)
        score_run(asked.model_copy(update={"run": judged}))
        cells = next(iter(json.loads((judged / "metrics.json").read_text())["monitors"].values()))["direct"]
        if n:
            assert set(cells) == {OVERALL, "bookkeeping", "bookkeeping/mail"}
            assert cells["bookkeeping/mail"]["auroc"] > 0.9
