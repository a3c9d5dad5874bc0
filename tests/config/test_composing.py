"""The tests' own composing gives what Hydra's gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import composing
import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, MissingConfigException
from omegaconf import OmegaConf
from studies import CONF, composed, study

from monitorbench.config.base import ConfigError


@pytest.fixture
def remembering() -> Iterator[None]:
    """Nothing remembered at first; afterwards as before."""
    composing.remember()
    yield
    composing.remember()


def _composed(folder: Path, primary: str, *overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(folder), version_base="1.3"):
        cfg = compose(primary, list(overrides), return_hydra_config=True)
    # Its own lists of what was overridden among it; unresolved, so that interpolations are compared too.
    whole = OmegaConf.to_container(cfg, resolve=False)
    assert isinstance(whole, dict)
    return {str(key): value for key, value in whole.items()}


@pytest.mark.parametrize(
    ("primary", "overrides"),
    [
        ("evaluate", ()),
        ("evaluate", ("seed=3", "monitor.context_tokens=99")),
        ("evaluate", ("engine=vllm", "monitor=llama_3_1_70b", "experiment=transfer/cpu", "~pilot")),
        ("train", ("dataset=jsonl", "dataset.path=x", "training=lora_h100")),
        ("build", ("dataset=paper_local",)),
    ],
)
def test_what_is_remembered_is_what_hydra_composes(
    remembering: None, primary: str, overrides: tuple[str, ...]
):
    """If it failed: every test would try settings that no script ever has."""
    first = _composed(CONF, primary, *overrides)
    again = _composed(CONF, primary, *overrides)
    composing.forget()
    plain = _composed(CONF, primary, *overrides)
    assert first == again == plain
    assert list(first) == list(plain)


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("seed=3", "paths.data=/a/b", "monitors=[a,'b c']", "pilot.warning='x, y=${seed}'"),
        (
            "engine=vllm",
            "engine.enforce_eager=true",
            "experiment=transfer/cpu",
            "~pilot",
            "score.min_coverage=.5",
        ),
        ("+tracking.extra=1", "tracking.extra=2", "+transfer.also={a:{subsets:[all]}}", "monitor.path=null"),
    ],
)
def test_a_study_of_a_test_is_what_hydra_composes(overrides: tuple[str, ...]):
    """If it failed: every test would try settings that no script ever has."""
    composing.forget()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        plain = OmegaConf.to_container(compose("evaluate", list(overrides)))
    composing.remember()
    assert OmegaConf.to_container(composed("evaluate", *overrides)) == plain


@pytest.mark.parametrize("override", ["sed=3", "monitor.paht=x", "monitor=qwen_of_ours", "seed="])
def test_what_no_person_can_set_no_test_can(override: str):
    """If it failed: a test would pass under a setting that every script refuses."""
    with pytest.raises((HydraException, ConfigError)):
        study(override)


def test_overrides_of_one_composition_are_not_in_the_next(remembering: None):
    """If it failed: a test would run under what the test before it had set."""
    plain = _composed(CONF, "evaluate")
    changed = _composed(CONF, "evaluate", "seed=3", "engine.batch_size=7", "+tracking.extra=1")
    assert (changed["seed"], changed["engine"]["batch_size"]) == (3, 7)
    assert _composed(CONF, "evaluate") == plain


def test_a_changed_file_is_read_again(remembering: None, tmp_path: Path):
    """If it failed: a test that writes a file of settings would be given the one before."""
    (tmp_path / "top.yaml").write_text("defaults:\n  - part: one\n  - _self_\nown: 1\n")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "one.yaml").write_text("value: 1\n")
    assert _composed(tmp_path, "top")["part"] == {"value": 1}
    (tmp_path / "part" / "one.yaml").write_text("value: 22\n")
    assert _composed(tmp_path, "top")["part"] == {"value": 22}
    (tmp_path / "part" / "one.yaml").unlink()
    with pytest.raises(MissingConfigException):
        _composed(tmp_path, "top")
