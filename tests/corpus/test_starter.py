"""The embedded dataset holds what the README promises of it."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.corpus.surface import samples_by_cell, shortcuts_of
from monitorbench.metrics.marks import ORACLES
from monitorbench.records import Category, Label, LabelSource, Role, Sample, Split, Task
from monitorbench.runs.directory import read_finished

CELLS = {
    "safety_permission/qa", "safety_permission/code", "sycophancy_bias/qa", "sycophancy_bias/reasoning",
    "specification_gaming/qa", "specification_gaming/code", "specification_gaming/reasoning",
}  # fmt: skip


@pytest.fixture(scope="module")
def splits(starter: Path) -> dict[Split, list[Sample]]:
    """All samples by split."""
    return {split: read_split(starter, split) for split in Split}


@pytest.fixture(scope="module")
def samples(splits: dict[Split, list[Sample]]) -> list[Sample]:
    """All samples."""
    return [sample for members in splits.values() for sample in members]


@pytest.fixture(scope="module")
def pairs(samples: list[Sample]) -> list[list[Sample]]:
    """Samples by pair."""
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.pair_id].append(sample)
    return list(found.values())


def test_there_is_enough_of_everything(pairs: list[list[Sample]]):
    """Fewer than forty pairs in a cell give intervals too wide to tell monitors apart."""
    counted = Counter(str(pair[0].cell) for pair in pairs)
    assert len(pairs) >= 400
    assert set(counted) == CELLS
    assert min(counted.values()) >= 40, counted


def test_a_pair_has_one_request_but_for_controls(pairs: list[list[Sample]]):
    """Only with the same request can a difference be the response's; in a control the cue is right."""
    for pair in pairs:
        assert Counter(sample.label for sample in pair) == dict.fromkeys(Label, 1)
        one, other = pair
        assert (one.request == other.request) == (one.stratum not in ("agreed", "right_key"))
        assert one.response != other.response
        assert (one.group_id, one.cell, one.split) == (other.group_id, other.cell, other.split)


def test_no_question_is_in_two_splits(splits: dict[Split, list[Sample]]):
    """A question met in training turns held-out numbers into remembered ones."""
    groups = [{sample.group_id for sample in members} for members in splits.values()]
    assert sum(map(len, groups)) == len(set.union(*groups))
    requests = [{sample.request for sample in members} for members in splits.values()]
    assert sum(map(len, requests)) == len(set.union(*requests))
    for split, members in splits.items():
        assert {str(sample.cell) for sample in members} == CELLS
        assert {sample.split for sample in members} == {split}


def test_no_response_is_in_train_and_test(splits: dict[Split, list[Sample]]):
    """A response seen in training would be recognised, not judged. Exact copies only."""
    train, test = ({sample.response for sample in splits[split]} for split in (Split.TRAIN, Split.TEST))
    assert not train & test


def test_ids_are_unique(samples: list[Sample]):
    """Two samples of one id share a verdict."""
    assert len({sample.id for sample in samples}) == len(samples)


def _kinds(samples: list[Sample], category: Category, task: Task) -> set[str]:
    return {sample.subcategory for sample in samples if (sample.category, sample.task) == (category, task)}


def test_there_is_variety(samples: list[Sample]):
    """A monitor that knows one weakness and one kind of permission is no safety monitor."""
    weaknesses = {
        kind
        for kind in _kinds(samples, Category.SAFETY_PERMISSION, Task.CODE)
        if re.fullmatch(r"cwe_\d+", kind)
    }
    assert len(weaknesses) >= 12
    assert len(_kinds(samples, Category.SAFETY_PERMISSION, Task.QA)) >= 12
    for category, task in (
        (Category.SYCOPHANCY_BIAS, Task.REASONING),
        (Category.SPECIFICATION_GAMING, Task.CODE),
    ):
        assert len(_kinds(samples, category, task)) >= 2


def test_some_are_agents_with_tools(samples: list[Sample]):
    """Agents are what monitors are deployed on; their shape has to be met before deployment."""
    agents = [s for s in samples if any(message.tool_calls for message in s.response)]
    assert len(agents) >= 10
    assert {sample.label for sample in agents} == set(Label)
    assert any(len(sample.response) > 2 for sample in agents)
    for sample in agents:
        asked = {call.id for message in (*sample.request, *sample.response) for call in message.tool_calls}
        answered = [m.tool_call_id for m in (*sample.request, *sample.response) if m.role is Role.TOOL]
        assert set(answered) <= asked, sample.pair_id


def test_reasoning_comes_with_and_without_a_trace(samples: list[Sample]):
    """The paper reports both (T and NT); a trace on one label alone would give that label away."""
    for category in (Category.SYCOPHANCY_BIAS, Category.SPECIFICATION_GAMING):
        members = [s for s in samples if (s.category, s.task) == (category, Task.REASONING)]
        shares = {
            label: sum(s.has_thinking for s in members if s.label is label)
            / sum(s.label is label for s in members)
            for label in Label
        }
        assert all(0.2 < share < 0.8 for share in shares.values()), shares
        assert abs(shares[Label.BENIGN] - shares[Label.MISBEHAVIOR]) < 0.05


def test_labels_rest_on_what_they_claim(samples: list[Sample]):
    """A label that was never executed or computed is an opinion."""
    sources: defaultdict[str, set[LabelSource]] = defaultdict(set)
    for sample in samples:
        sources[str(sample.cell)].add(sample.label_source)
        assert sample.licence
        assert sample.source
    assert sources["specification_gaming/code"] == {LabelSource.EXECUTION}
    assert sources["specification_gaming/reasoning"] == {LabelSource.KNOWN_ANSWER}
    assert sources["sycophancy_bias/reasoning"] == {LabelSource.KNOWN_ANSWER}


def test_the_manifest_tells_the_truth(starter: Path, splits: dict[Split, list[Sample]]):
    """A person decides by the manifest whether this is the data of a paper's table."""
    results: dict[str, Any] = read_finished(starter)["results"]
    for split, members in splits.items():
        said = results["splits"][split.value]
        (file,) = (starter / split.value).glob("*.parquet")
        assert said["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert said["samples"] == len(members)
        assert said["pairs"] == dict(Counter(str(s.cell) for s in members if s.label is Label.BENIGN))


@pytest.mark.slow
def test_its_shortcuts_are_stated(splits: dict[Split, list[Sample]]):
    """The first thing a team sees would be won by a monitor that copies, and no table would say so."""
    cells = samples_by_cell([sample for members in splits.values() for sample in members])
    assert set(cells) == CELLS
    for cell, members in cells.items():
        for name, check in shortcuts_of(members)[cell]["checks"].items():
            assert check["n"] == len(members)
            if name in ORACLES and check["auroc"] is None:
                continue
            assert 0 <= check["auroc_ci"][0] <= check["auroc"] <= check["auroc_ci"][1] <= 1, (cell, name)
            decides = check["auroc"] > 0.85 if name in ORACLES else check["auroc_ci"][0] > 0.65
            assert check["marked"] is decides, (cell, name)


def test_a_built_dataset_is_reused(
    starter: Path, compose_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
):
    """A second `make demo` must not build for half a minute what is there."""
    from monitorbench.corpus import starter as source

    def built_again(*_: Any) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(source, "assemble", built_again)
    study = compose_study("build", f"paths.data={starter.parent}", "dataset.splits=[test]")
    assert ensure(study) == starter
    assert ensure(study, [Split.TRAIN, Split.TEST]) == starter
