"""What a training measures of itself is what forecasts the next one."""

import platform

import pytest
from small_runs import results, settings

from monitorbench.runs.directory import read_manifest
from monitorbench.training import sft
from monitorbench.training.pace import Machine, measured_pace

SHORT = ("training.max_steps=3", "training.validate_every=2", "training.dtype=float32", "training.device=cpu")


def test_a_second_training_is_forecast_by_the_first(planted, tiny):
    """If it failed: a study's hours would be guessed, though this machine has trained the model before."""
    first = sft.train(settings(planted, tiny, *SHORT))
    measured = results(first)["measured"]
    assert results(first)["forecast"] is None, "nothing was known before it"
    assert measured["machine"] == {"kind": "cpu", "name": platform.platform(), "n": 1}
    assert measured["tokens_per_second"] == pytest.approx(measured["tokens"] / measured["seconds"], abs=0.01)
    assert 0 < measured["seconds"] + measured["validation_seconds"] < read_manifest(first)["seconds"]

    second = results(sft.train(settings(planted, tiny, *SHORT, "seed=1")))
    forecast = second["forecast"]
    expected = (
        forecast["tokens"] / measured["tokens"] * measured["seconds"]
        + forecast["validation_tokens"] / measured["validation_tokens"] * measured["validation_seconds"]
    )
    assert forecast["by_runs"] == 1
    assert forecast["seconds"] == pytest.approx(expected, abs=0.02)
    assert forecast["tokens"] == second["measured"]["tokens"], "every planned step was taken"
    assert forecast["validation_tokens"] == second["measured"]["validation_tokens"]

    machine = Machine(**measured["machine"])
    identity = read_manifest(first)["identity"]
    both = measured_pace(planted / "runs", identity, machine)
    assert both is not None
    assert both.n_runs == 2
    assert measured_pace(planted / "runs", identity, machine._replace(kind="cuda", name="")) is None
    assert measured_pace(planted / "runs", {**identity, "weights": "others"}, machine) is None
