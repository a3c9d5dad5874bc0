"""A forecast beside the runs that it was about: a real training and a real evaluation of a tiny model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_models import tiny_model

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate
from monitorbench.studies.forecast import PlannedRun, forecast, forecast_lines
from monitorbench.training.fit_head import fit_head
from monitorbench.training.sft import train


def results(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())["results"]
    return found


@pytest.fixture(scope="module")
def asked(
    compose_study: Callable[..., Study], starter: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Study]:
    """A study over the starter with a model that trains in no time."""
    root = tmp_path_factory.mktemp("forecast")
    weights = tiny_model(tmp_path_factory.mktemp("tiny_of_forecast"))

    def made(*overrides: str) -> Study:
        return compose_study(
            "train",
            f"paths.data={starter.parent}",
            f"paths.runs={root / 'runs'}",
            f"monitor.path={weights}",
            "tracking=none",
            "training.max_steps=4",
            "training.validate_every=3",
            "training.device=cpu",
            "engine.device=cpu",
            "dataset.train.pairs_per_cell=6",
            "dataset.validation.pairs_per_cell=1",
            "dataset.test.pairs_per_cell=2",
            *overrides,
        )

    return made


def test_a_run_is_forecast_from_the_one_before(asked: Callable[..., Study]):
    """If it failed: hours of a study would be wrong though all of it had been measured."""
    first, second = asked("seed=0"), asked("seed=1")
    (before,) = forecast([PlannedRun("train", first)])
    assert not before.is_finished
    assert "assumed" in before.paced
    assert not first.paths.runs.exists(), "a forecast writes nothing"

    run = train(first)
    measured = results(run)["measured"]
    assert before.samples == 4 * first.training.batch_size
    assert before.validation_tokens == measured["validation_tokens"], "by the same tokenizer, each sample"
    assert before.tokens == pytest.approx(measured["tokens"], rel=0.2), (
        "steps draw the samples that they have"
    )

    there, coming = forecast([PlannedRun("train", first), PlannedRun("train", second)])
    assert there.is_finished
    assert not coming.is_finished
    assert coming.seconds == pytest.approx(
        coming.tokens / measured["tokens"] * measured["seconds"] + measured["validation_seconds"], rel=1e-3
    )
    assert "measured in 1 trainings" in coming.paced
    (line,) = forecast_lines([there, coming])
    assert (line.runs, line.finished, line.samples) == (2, 1, coming.samples)

    base, tuned = asked(), asked(f"monitor.adapter={run}")
    not_trained = asked(f"monitor.adapter={run.parent / 'none-0123456789ab'}")
    judged = evaluate(base)
    took = results(judged)["measured"]
    assert results(judged)["forecast"] is None
    three = forecast([PlannedRun("evaluate", one) for one in (base, tuned, not_trained)])
    assert [one.is_finished for one in three] == [True, False, False]
    assert {one.tokens for one in three} == {took["tokens"]}, "each prompt by the model's own tokenizer"
    assert three[1].seconds == pytest.approx(took["seconds"], abs=0.02)

    again = results(evaluate(tuned))
    assert again["forecast"]["tokens"] == again["measured"]["tokens"] == took["tokens"]
    assert again["forecast"]["seconds"] == pytest.approx(three[1].seconds, abs=0.02)


def test_characters_stand_in_for_a_tokenizer_that_is_not_here(asked: Callable[..., Study]):
    """Without it nothing could be planned on a login node; unsaid, an estimate would pass for a count."""
    exact = asked()
    absent = exact.monitor.model_copy(update={"path": None, "package": None, "hub_id": "nobody/no-model"})
    without = exact.model_copy(update={"monitor": absent})
    (counted,), (estimated,) = (forecast([PlannedRun("evaluate", one)]) for one in (exact, without))
    assert "by its tokenizer" in counted.counted[0]
    assert "by characters" in estimated.counted[0]
    assert estimated.samples == counted.samples
    assert 0.5 < estimated.tokens / counted.tokens < 2


def test_a_fit_is_forecast_by_the_prompts_that_it_reads(asked: Callable[..., Study]):
    """If it failed: whoever plans a probe would be told of other samples than are read."""
    study = asked("head=linear", "head.regularisation=[0.1,1]")
    (before,) = forecast([PlannedRun("fit", study)])
    assert not before.is_finished
    assert "× 2 strengths" in before.counted[-1]
    read = results(fit_head(study))
    assert before.samples == read["n_samples"] + read["n_validation"]
    assert before.tokens > read["tokens"], "those of the validation split, too"
    (after,) = forecast([PlannedRun("fit", study)])
    assert after.is_finished
    with pytest.raises(ConfigError, match="fitted on a base"):
        forecast([PlannedRun("fit", asked("monitor.head=runs/fit/x"))])
