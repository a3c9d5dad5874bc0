"""A default stands on its field, and Hydra knows every key as if a file had it."""

from pathlib import Path

import pytest
from hydra import compose
from omegaconf import OmegaConf
from studies import CONF

from monitorbench.config.base import ConfigError
from monitorbench.config.evaluation import Calibrate, Wording
from monitorbench.config.load import load
from monitorbench.config.project import PROJECT, composing
from monitorbench.config.reference import defaults, names, option, tree
from monitorbench.config.study import Study


def _study(*overrides: str, primary: str = "evaluate") -> Study:
    with composing(CONF):
        return load(compose(primary, list(overrides)))


def test_what_no_file_sets_is_the_fields_default():
    """If it failed: a default would have a second home that wins, or a study would lack it."""
    study = _study()
    assert study.calibrate == Calibrate()
    assert study.wording == Wording()
    assert len(study.wording.prompts) == 4


@pytest.mark.parametrize(
    ("overrides", "key", "value"),
    [
        (["engine=openai_batch", "engine.batch.price_share=0.4"], "engine.batch.price_share", 0.4),
        (["engine=vllm", "engine.served_as=mine"], "engine.served_as", "mine"),
        (["engine=vllm", "engine.on_cpu.batch_size=3"], "engine.on_cpu.batch_size", 3),
        (["engine=served", "engine.server=mine", "engine.max_retries=1"], "engine.max_retries", 1),
        (["import.columns.score=suspicion"], "import_.columns.score", "suspicion"),
        (["monitor.reasoning={end: a, then: b, max_tokens: 9}"], "monitor.reasoning.max_tokens", 9),
        (["agent=language_model", "agent.engine.batch_size=3"], "agent.engine.batch_size", 3),
        (
            ["dataset=jsonl", "dataset.path=x.jsonl", "dataset.shares.train=0.55"],
            "dataset.shares.train",
            0.55,
        ),
    ],
)
def test_any_key_is_overridden_without_a_plus(overrides: list[str], key: str, value: object):
    """If it failed: a key would have to be added with `+` because it stands on the field alone."""
    found: object = _study(*overrides)
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("engine.dtyp=float32", "engine.dtyp=float32: unknown key 'dtyp'; did you mean engine.dtype?"),
        ("calibrate.alfa=0.1", "calibrate.alfa=0.1: unknown key 'alfa'; did you mean calibrate.alpha?"),
        ("pilot.statistics.marginn=1", "unknown key 'marginn'; did you mean pilot.statistics.margin?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(override: str, message: str):
    """Hydra lets it pass, so that a key that is not in the tree needs no `+`."""
    with pytest.raises(ConfigError) as caught:
        _study(override)
    assert message in str(caught.value)


def test_each_kind_has_a_tree_of_its_own():
    """If it failed: a key of one kind of engine would be offered for another."""
    assert {"_settings", "source/_all", "engine/_vllm", "dataset/_paper", "recorded/_fireact"} <= names()
    assert "block_size" in tree("engine/_vllm")
    assert "block_size" not in tree("engine/_openai")
    assert tree("engine/_vllm").kind == "vllm"
    assert OmegaConf.is_missing(tree("engine/_openai"), "base_url")
    assert set(defaults(Study)) == {field.alias or name for name, field in Study.model_fields.items()}


def test_an_option_is_told_with_the_defaults_that_it_builds_on():
    """If it failed: a page or a test would take a key that the file leaves out for one that is not there."""
    batch = option("engine", "anthropic_batch")
    assert (batch["kind"], batch["max_retries"], batch["logprobs"]) == ("openai", 6, False)
    assert batch["batch"] == {"format": "anthropic"}


def test_a_projects_own_source_is_among_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a team's source would need a change of the package to be named by a dataset."""
    (tmp_path / PROJECT).touch()
    (tmp_path / "conf" / "source").mkdir(parents=True)
    text = (CONF / "source" / "gsm8k.yaml").read_text()
    (tmp_path / "conf" / "source" / "mine.yaml").write_text(text)
    (tmp_path / "conf" / "source" / "mmlu.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    sources = OmegaConf.to_container(tree("source/_all"))
    assert isinstance(sources, dict)
    assert sources["mine"] == sources["mmlu"] == sources["gsm8k"]
    assert set(sources) == {"mine", *(file.stem for file in (CONF / "source").glob("*.yaml"))}
