"""The datasets' settings: the quotas are the paper's sums, and a wrong value is a line that says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from pydantic import ValidationError
from studies import study

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import InspectLogDataset, PaperDataset, SplitView
from monitorbench.config.load import load, unknown_key
from monitorbench.config.reference import option
from monitorbench.config.study import Study
from monitorbench.corpus.paper.units import paper_inputs, units


@pytest.fixture(scope="module")
def paper() -> Study:
    """`dataset=paper` with one quota set from the command line."""
    return study("dataset=paper", "dataset.corpus.safety_permission.qa=5", primary="build")


@pytest.fixture(scope="module")
def tree(paper: Study) -> str:
    """Its tree as JSON, to spoil."""
    return paper.model_dump_json()


@pytest.fixture(scope="module")
def files_tree(paper: Study) -> str:
    """The same with `dataset=inspect_log`."""
    dataset = option("dataset", "inspect_log") | {"path": "mine.jsonl"}
    return json.dumps(json.loads(paper.model_dump_json()) | {"dataset": dataset})


def refused(tree: str, *changes: tuple[str, Any]) -> str:
    """The one line that `load` says of a tree with some values set."""
    cfg = OmegaConf.create(json.loads(tree))
    for key, value in changes:
        OmegaConf.update(cfg, key, value)
    with pytest.raises(ConfigError) as caught:
        load(cfg)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_a_quota_can_be_set_from_the_command_line(paper: Study):
    """The smallest try-out of a corpus needs one cell of five samples, not a file of its own."""
    assert isinstance(paper.dataset, PaperDataset)
    assert paper.dataset.corpus_quotas["safety_permission/qa"] == 5
    others = {cell: quota for cell, quota in paper.dataset.corpus_quotas.items() if quota > 5}
    assert len(others) == 6, "and no other cell is touched"


def test_the_quotas_add_up_to_what_the_paper_prints(paper: Study):
    """A benchmark of another size under the paper's name can't be compared with the paper."""
    printed = {"safety_permission": 1172, "sycophancy_bias": 962, "specification_gaming": 876}
    dataset = paper.dataset
    assert isinstance(dataset, PaperDataset)
    samples = dict.fromkeys(printed, 0)
    for cell, quota in dataset.benchmark_quotas.items():
        samples[cell.partition("/")[0]] += 2 * (quota.without_thinking + quota.with_thinking)
    assert samples == printed
    corpus = option("dataset", "paper")["corpus"]
    assert sum(quota for tasks in corpus.values() for quota in tasks.values()) == 153_581
    assert dataset.allow_short is False
    assert dataset.synthetic_samples == 0


CASES: dict[str, tuple[str, Any, list[str]]] = {
    "quota of the wrong type": (
        "dataset.corpus.safety_permission.qa",
        "many",
        ["many", "expected", "integer"],
    ),
    "quota below zero": ("dataset.corpus.safety_permission.qa", -1, ["-1", "greater than or equal to 0"]),
    "quota of half a sample": ("dataset.corpus.sycophancy_bias.qa", 2.5, ["2.5", "expected", "integer"]),
    "quota as true": ("dataset.corpus.sycophancy_bias.qa", True, ["true", "expected", "integer"]),
    "pairs of the wrong type": (
        "dataset.benchmark.safety_permission.qa.without_thinking",
        "all",
        ["all", "expected", "integer"],
    ),
    "pairs without a trace's name": ("dataset.benchmark.safety_permission.qa", 293, ["293", "expected"]),
    "share above one": ("dataset.sources.sven.max_share", 1.5, ["1.5", "less than or equal to 1"]),
    "share below nothing": ("dataset.sources.sven.max_share", -0.1, ["-0.1", "greater than or equal to 0"]),
    "source neither used nor left out": ("dataset.sources.sven", True, ["true", "expected"]),
    "threshold": ("dataset.near_duplicates.threshold", 1.2, ["1.2", "less than or equal to 1"]),
    "bad rows": ("dataset.on_bad_row", "ignore", ["ignore", "'error' or 'skip'"]),
    "short": ("dataset.allow_short", "maybe", ["maybe", "expected", "boolean"]),
    "a split": ("dataset.splits", ["tset"], ["tset", "expected", "'test'"]),
    "no split": ("dataset.splits", [], ["at least 1"]),
    "kind": ("dataset.kind", "papr", ["papr", "expected", "'paper'"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_value_is_named_with_its_key_and_what_was_expected(tree: str, case: str):
    """A quota taken for another one fills a benchmark of the wrong make-up without a word."""
    key, value, words = CASES[case]
    message = refused(tree, (key, value))
    assert message.startswith(key)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("key", "wrong", "known"),
    [
        ("dataset.corpus.safty_permission.qa", "dataset.corpus.safty_permission", "safety_permission"),
        ("dataset.corpus.safety_permission.maths", "dataset.corpus.safety_permission.maths", "reasoning"),
        ("dataset.benchmark.safty_permission.qa.with_thinking", "safty_permission", "safety_permission"),
        ("dataset.sources.sven.max_shar", "unknown key 'max_shar'", "max_share"),
    ],
)
def test_a_misspelt_name_below_a_table_is_refused_with_the_known_ones(
    tree: str, key: str, wrong: str, known: str
):
    """A misspelt cell asks for samples that no source has; `unknown key 'sven'` names what is there."""
    message = refused(tree, (key, 5))
    assert wrong in message
    assert "[key]" not in message, "pydantic's own word for it"
    assert known in message.replace("max_shar'", "")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("dataset.corpus.safty_permission.qa", "safety_permission"),
        ("dataset.corpus.safety_permission.maths", "reasoning"),
        ("dataset.sources.sven.max_shar", "dataset.sources.sven.max_share"),
        ("source.sven.revison", "source.sven.revision"),
    ],
)
def test_a_misspelt_key_below_a_table_is_met_with_what_there_is(key: str, expected: str):
    """Hydra refuses `dataset.corpus.safty_permission.qa=5`; "'dataset.corpus' has: " is no help."""
    message = unknown_key(key, "5")
    assert message.startswith(f"{key}=5: unknown key")
    assert expected in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("svne", r"dataset\.sources\.svne: (?=.*\bsven\b)(?=.*\bhumaneval\b)"),
        ("fireact", r"^dataset\.sources\.fireact: .*dataset\.sources\.fireact=null$"),
    ],
)
def test_a_source_of_which_nothing_is_made_is_one_line(paper: Study, name: str, said: str):
    """Misspelt, or without a declaration, it would leave its cell short, and look like the truth."""
    dataset = paper.dataset
    assert isinstance(dataset, PaperDataset)
    wrong = dataset.model_copy(update={"sources": {name: dataset.sources["sven"]}})
    with pytest.raises((ConfigError, UserError), match=said) as caught:
        units(paper_inputs(paper)._replace(dataset=wrong))
    assert "\n" not in str(caught.value)


def test_a_source_that_is_left_out_is_no_ingredient(paper: Study):
    """`dataset.sources.NAME=null` is how a source is left out; it must not be read all the same."""
    dataset = paper.dataset
    assert isinstance(dataset, PaperDataset)
    left = dataset.model_copy(update={"sources": {**dataset.sources, "sven": None}})
    assert "sven" not in left.ingredients
    assert set(dataset.ingredients) - set(left.ingredients) == {"sven"}


def test_a_headline_names_a_cell_of_the_benchmark(paper: Study):
    """A mistyped cell would leave the easy stratum in the cell's number, and say so nowhere."""
    assert isinstance(paper.dataset, PaperDataset)
    given = paper.dataset.model_dump()
    assert PaperDataset.model_validate(given | {"headline": {}}).headline == {}
    with pytest.raises(
        ValidationError, match="no cell safety_permission/qaa in the benchmark; expected one of"
    ):
        PaperDataset.model_validate(given | {"headline": {"safety_permission/qaa": "compliant"}})


# --- files of one's own --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("dataset.shares.train", 0.9)], ["dataset.shares", "1.35", "expected 1"]),
        ([("dataset.shares.train", -0.1)], ["dataset.shares.train", "greater than or equal to 0"]),
        ([("dataset.path", 3)], ["dataset.path=3", "expected"]),
        ([("dataset.misbehavior_values", [1])], ["dataset.misbehavior_values", "=1", "expected", "string"]),
        ([("dataset.name", "a/b")], ["dataset.name=a/b"]),
        ([("dataset.quota", 3)], ["dataset.quota=3", "unknown key 'quota'"]),
    ],
)
def test_bad_settings_of_ones_own_files(files_tree: str, changes: list[tuple[str, Any]], words: list[str]):
    """A team's first try has a wrong value in it; the line has to say which and what would do."""
    message = refused(files_tree, *changes)
    assert all(word in message for word in words), message


def test_shares_with_rounding_dust_are_fine(files_tree: str):
    """.7 + .1 + .1 + .1 is no 1.0 in floating point; refusing it would be pedantry."""
    cfg = OmegaConf.create(json.loads(files_tree))
    cfg.dataset.shares = {"train": 0.7, "validation": 0.1, "calibration": 0.1, "test": 0.1}
    dataset = load(cfg).dataset
    assert isinstance(dataset, InspectLogDataset)
    assert dataset.path == Path("mine.jsonl")


@pytest.mark.parametrize(
    ("subset", "kept"),
    [
        (("all",), {("safety_permission", "qa"), ("sycophancy_bias", "reasoning")}),
        (("-sycophancy_bias",), {("safety_permission", "qa")}),
        (("all", "-safety_permission/qa"), {("sycophancy_bias", "reasoning")}),
        (("safety_permission/code",), set()),
        (("safety_permission", "-safety_permission/qa"), set()),
        (("all-sycophancy_bias",), {("safety_permission", "qa")}),
        (("all-safety_permission-sycophancy_bias",), set()),
        (("safety_permission", "sycophancy_bias/qa"), {("safety_permission", "qa")}),
        (("-safety_permission/code-sycophancy_bias",), {("safety_permission", "qa")}),
        (
            ("all-safety_permission", "safety_permission/qa"),
            {("safety_permission", "qa"), ("sycophancy_bias", "reasoning")},
        ),
    ],
)
def test_a_subset_keeps_what_it_says(subset: tuple[str, ...], kept: set[tuple[str, str]]):
    """A cell that slips through a '-' is trained on in a held-out ablation."""
    cells: list[tuple[str, str]] = [("safety_permission", "qa"), ("sycophancy_bias", "reasoning")]
    view = SplitView(subset=subset)
    keeps: Callable[[str, str], bool] = view.keeps
    assert {cell for cell in cells if keeps(*cell)} == kept
