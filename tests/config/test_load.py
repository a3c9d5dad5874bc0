"""`load`, the one validation boundary: whatever is wrong with a tree is one line that says so."""

import copy
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from monitorbench.config.base import ConfigError
from monitorbench.config.imports import Import
from monitorbench.config.load import load
from monitorbench.config.study import Study

CONF = Path(__file__).resolve().parents[2] / "conf"


def _tree(*overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        tree = OmegaConf.to_container(compose("evaluate", overrides=list(overrides)))
    assert isinstance(tree, dict)
    # Every source is read by one model: the first two of them stand for the other half of the tree.
    tree["source"] = dict(itertools.islice(tree["source"].items(), 2))
    return tree  # type: ignore[return-value]


TREES = {"transformers": _tree("engine=transformers"), "vllm": _tree("engine=vllm")}


def _below(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _below(value, (*path, key))


NODES = [(engine, path, node) for engine, tree in TREES.items() for path, node in _below(tree)]
MAPPINGS = [
    (engine, path) for engine, path, node in NODES if isinstance(node, dict) and path[-1:] != ("where",)
]
"""Settings whose keys are fixed: those of `import.where` are a file's columns."""
NUMBERS = [(engine, path) for engine, path, node in NODES if type(node) in (int, float)]
SETTINGS = {key for _, path, _ in NODES for key in path}


def _with(engine: str, path: tuple[str, ...], value: Any) -> Any:
    tree = copy.deepcopy(TREES[engine])
    node: Any = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return tree


def _refused(tree: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(OmegaConf.create(tree))
    message = str(caught.value)
    assert len(message.splitlines()) == 1, message
    return message


names = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="."), min_size=1, max_size=20)


@given(st.sampled_from(MAPPINGS), names, st.one_of(st.none(), st.integers(), st.text(max_size=80)))
@example(("transformers", ("training",)), "lrr", 1)
@example(("transformers", ("training",)), "learning_rat", "a\nb")
@example(("transformers", ()), "trainig", None)
def test_an_unknown_key_is_refused_wherever_it_stands(
    where: tuple[str, tuple[str, ...]], name: str, value: Any
):
    """A misspelt setting that is let through runs the default under the name of the ablation."""
    engine, path = where
    if name in SETTINGS or (isinstance(value, str) and ("${" in value or value == "???")):
        return
    message = _refused(_with(engine, (*path, name), value))
    assert ".".join((*path, name)) in message
    assert message.rpartition(": unknown key")[2].strip(), "no expectation"


not_numbers = st.one_of(
    st.booleans(),
    st.text(max_size=12).filter(lambda text: "${" not in text and text != "???"),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2),
    st.just(float("nan")),
)


@given(st.sampled_from(NUMBERS), not_numbers)
@example(("transformers", ("training", "learning_rate")), "1e-4")
@example(("transformers", ("seed",)), True)
@example(("transformers", ("training", "learning_rate")), True)
@example(("transformers", ("training", "weight_decay")), float("nan"))
@example(("transformers", ("training", "max_grad_norm")), "ten\nlines")
def test_what_is_no_number_is_refused_where_a_number_belongs(where: tuple[str, tuple[str, ...]], value: Any):
    """A quoted or boolean learning rate that is silently converted trains something else."""
    engine, path = where
    key = ".".join(path)
    message = _refused(_with(engine, path, value))
    assert key in message or ".".join(path[:-1]) in message


@pytest.mark.parametrize("where", NUMBERS, ids=lambda where: f"{where[0]}:{'.'.join(where[1])}")
def test_infinity_is_refused_where_a_number_belongs(where: tuple[str, tuple[str, ...]]):
    """An infinite setting can't be frozen in config.json: the run would die after it had begun."""
    engine, path = where
    assert path[-1] in _refused(_with(engine, path, float("inf")))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("training.learning_rate", -1.0),
        ("training.learning_rate", 0.0),
        ("training.batch_size", 0),
        ("training.lora_dropout", 1.0),
        ("training.warmup_share", 1.5),
        ("training.max_steps", 1.5),
        ("seed", -1),
        ("engine.batch_size", 0),
        ("engine.kind", "vlm"),
        ("engine.dtype", "float16"),
        ("prompt.kind", "indirect"),
        ("monitor.name", "a/b"),
        ("monitor.context_tokens", 0),
        ("dataset.train.subset", "safety_permision"),
        ("dataset.splits", ["tset"]),
        ("paths.data", None),
        ("from", ""),
    ],
)
def test_a_bad_value_is_named_with_its_key(path: str, value: Any):
    """Told only that something is wrong somewhere, a person searches a tree of eighty settings."""
    message = _refused(_with("transformers", tuple(path.split(".")), value))
    shown = "null" if value is None else value[0] if isinstance(value, list) else str(value)
    assert re.match(rf"{re.escape(path)}(\.0)?={re.escape(shown)}", message), message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("training.micro_batch_size", 3, "training.micro_batch_size=3 has to divide batch_size="),
        ("recommend.alerts_per_day", 10, "recommend.alerts_per_day: of how many samples?"),
        ("dataset.train.subset", [], "dataset.train.subset=[]: expected at least 1 entry"),
        ("experiment", {"seed": 1}, "experiment: the first line of its file is not `# @package _global_`"),
    ],
)
def test_a_refusal_begins_with_the_setting_and_not_with_a_tree(path: str, value: Any, said: str):
    """Half a page of JSON stands before the one setting that is to be changed."""
    assert _refused(_with("transformers", tuple(path.split(".")), value)).startswith(said)


def test_a_suggestion_is_never_the_key_that_was_refused():
    """`did you mean engine.block_size?` in answer to just that leaves a person with nothing to try."""
    tree = _with("transformers", ("engine", "block_size"), 1)
    message = _refused(tree)
    assert "did you mean engine.block_size?" not in message


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("training.learning_rate", "${nope}", ("nope",)),
        ("training.learning_rate", "${training.lrr}", ("training.lrr",)),
        ("paths.runs", "${oc.env:MONITORBENCH_NOT_SET}", ("MONITORBENCH_NOT_SET",)),
        ("seed", "${seed}", ("seed",)),
        ("training.learning_rate", "???", ("???", "expected")),
    ],
)
def test_what_has_no_value_is_named_with_its_key(path: str, value: str, words: tuple[str, ...]):
    """An interpolation into nothing must say which setting it stands in, and what it looked for."""
    message = _refused(_with("transformers", tuple(path.split(".")), value))
    assert message.startswith(path), message
    assert all(word in message for word in words)


def test_a_study_does_not_change_under_a_stage(compose_study: Callable[..., Study]):
    """A setting that a stage could overwrite would make config.json a lie."""
    study = compose_study("evaluate")
    with pytest.raises(ValueError, match="frozen"):
        study.seed = 1
    with pytest.raises(ValueError, match="frozen"):
        study.training.learning_rate = 1.0


def test_words_that_yaml_takes_for_numbers_or_nothing_are_words():
    """`NA,nan,None,null,-999`, typed as the page says, would be refused as no texts."""
    words = ["NA", float("nan"), None, -999, 1.0, True]
    columns = {"score": 2024, "label": None}
    read = Import.model_validate(
        {"missing_values": words, "levels": {1: 0.0}, "where": {"seed": 1}, "columns": columns}
    )
    assert read.missing_values == ("NA", "nan", "null", "-999", "1.0", "true")
    assert (read.levels, read.where) == ({"1": 0.0}, {"seed": ("1",)})
    assert (read.columns.score, read.columns.label) == ("2024", None)
