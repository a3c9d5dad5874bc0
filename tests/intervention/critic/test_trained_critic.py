"""The seed paper's critic: runs, a fine-tuned adapter, its temperature, and a pilot that it judges."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from corridor import open_corridors

from monitorbench.config.study import Study
from monitorbench.intervention.loop import schedule
from monitorbench.intervention.loop.live import run_live
from monitorbench.intervention.temperature import Temperature
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.runs.keyed_log import read_log


@pytest.mark.slow
def test_a_critic_is_trained_on_a_pilots_runs_and_judges_another(
    compose_study: Callable[..., Study], tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Steps with their run's outcome have to train a monitor, though equal beginnings end both ways."""
    from monitorbench.training import sft

    monkeypatch.setattr(schedule, "open_tasks", open_corridors)
    paths = [f"paths.{name}={tmp_path / name}" for name in ("data", "runs", "models")]
    pilot = ("agent.error_rate=0.05", "pilot.tasks=10", "pilot.validation_tasks=20", *paths)
    runs = run_live(
        compose_study("pilot", "monitor=bag_of_words", "pilot.training_tasks=40", "pilot.tau=0.44", *pilot)
    ).directory
    monitor = ("monitor=smollm2_135m", f"monitor.path={tiny}")
    trained = sft.train(
        compose_study(
            "train",
            "dataset=jsonl",
            f"dataset.path={runs / 'critic_data.jsonl'}",
            "dataset.splits=[train,validation]",
            "prompt=failure",
            "training.max_steps=120",
            "training.validate_every=60",
            "training.learning_rate=1e-2",
            "training.dtype=float32",
            "training.device=cpu",
            *monitor,
            *paths,
        )
    )
    curve = json.loads((trained / "learning_curve.json").read_text())
    assert curve[-1]["auroc"] > max(0.7, curve[0]["auroc"])
    counts = json.loads((trained / "manifest.json").read_text())["results"]["n_by_cell"]
    assert min(counts["specification_gaming/reasoning"].values()) > 10

    # What a training ends with differs from one kind of CPU to the next: the second threshold is in the
    # middle of what the first pilot saw.
    tau = 0.44
    for _ in range(2):
        judged = run_live(
            compose_study(
                "pilot",
                *monitor,
                f"monitor.adapter={trained}",
                "engine.dtype=float32",
                f"pilot.tau={tau}",
                *pilot,
            )
        ).directory
        report = json.loads((judged / "critic.json").read_text())
        assert report["temperature"]["n_steps"] > 20
        assert report["n_unscored"] == 0
        assert report["after"]["nll"] <= report["before"]["nll"]
        assert report["before"]["auroc"] > 0.7
        temperature = Temperature(report["temperature"]["value"], report["temperature"]["n_steps"])
        steps = [
            step
            for run in read_log(judged / EPISODES, Episode)
            for step in run.steps
            if step.p_fail is not None
        ]
        assert len(steps) > 10
        for step in steps:
            assert step.calibrated == pytest.approx(temperature.calibrated(step.p_fail))
        fired = [step for step in steps if step.intervention]
        assert all(step.calibrated > tau for step in fired)
        tau = median(step.calibrated for step in steps)
    assert 0 < len(fired) < len(steps)
