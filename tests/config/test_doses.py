"""Steps or epochs: one of both, and the same run where nothing changed."""

import pytest
from studies import study

from monitorbench.config.base import ConfigError

EPOCHS = ("training.max_steps=null",)


@pytest.mark.parametrize(
    ("epochs", "n", "objective", "steps"),
    [
        (1, 1000, "sft", 125),
        (1, 1001, "sft", 126),
        (0.5, 1000, "sft", 63),
        (2, 3, "sft", 1),
        (1, 1000, "mixed", 167),
    ],
)
def test_epochs_become_steps(epochs: float, n: int, objective: str, steps: int):
    """A subset's dose is what was asked for, rounded up to a whole step of 8 samples (6 of them judged)."""
    found = study(f"training.epochs={epochs}", f"training.objective={objective}", *EPOCHS).training
    assert found.for_samples(n).steps == steps
    with pytest.raises(ValueError, match="for_samples"):
        _ = found.steps
    plain = study("training.max_steps=7").training
    assert plain.for_samples(n) == plain


@pytest.mark.parametrize("both", [("training.epochs=1",), EPOCHS])
def test_exactly_one_is_given(both: tuple[str, ...]):
    """With both, one of them would be a lie in the manifest."""
    with pytest.raises(ConfigError, match=r"max_steps and epochs: .*expected exactly one"):
        study(*both)


def test_the_gpus_default_is_one_epoch():
    """At 1,000 steps of 64 a small cell gets 14 times the dose of all."""
    found = study("training=lora_h100").training
    assert (found.epochs, found.max_steps) == (1, None)
    assert found.for_samples(153_581).steps == 2400
