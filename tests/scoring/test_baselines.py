"""The baselines every monitor has to beat."""

import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Stakes
from monitorbench.corpus.columns import read_columns
from monitorbench.corpus.store import to_table, write_split
from monitorbench.metrics.auroc import auroc
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.metrics_json import number_trees
from monitorbench.metrics.rates import count, false_alarm_rate, miss_rate
from monitorbench.metrics.summary import add_numbers
from monitorbench.metrics.table import NO_PROMPT, Table
from monitorbench.records import Label, Sample, Split, Task
from monitorbench.runs.files import read_json
from monitorbench.runs.run_folders import refuse_baselines_name
from monitorbench.scoring.baselines import (
    BAG_OF_WORDS,
    BASELINES_VERSION,
    FITTED,
    ShortcutScores,
    baselines_of,
    fitted_scores,
    judge_with_baselines,
)

WORDS = [f"word{i}" for i in range(50)]
GOLDEN = Path(__file__).parent / "golden_baselines.json"
"""The version of the baselines, and their numbers on a small fixed input."""


def columns_of(samples: list[Sample]) -> Columns:
    """The columns of samples as a stage reads them, from Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder) / "test" / "part-00000.parquet"
        shard.parent.mkdir()
        pq.write_table(to_table(samples), shard)
        seal(Path(folder))
        return read_columns(Path(folder), Split.TEST)


@pytest.fixture(scope="module")
def samples(make_sample: Callable[..., Sample]) -> list[Sample]:
    """Sixty pairs in which one word decides."""
    rng = random.Random(0)
    return [
        make_sample(
            "Do it.",
            " ".join([*rng.choices(WORDS, k=12), "sneaky" if label is Label.MISBEHAVIOR else "honest"]),
            pair_id=f"p{i}",
            group_id=f"g{i}",
            label=label,
        )
        for i in range(60)
        for label in Label
    ]


def judge(train: list[Sample], test: list[Sample], seed: int = 0) -> dict[str, Columns]:
    middle = len(test) // 2
    fitted = fitted_scores(train, [test[:middle], test[middle:]])
    scores = pa.table({"sample_id": [sample.id for sample in test], **{str(k): v for k, v in fitted.items()}})
    checks = ShortcutScores(scores if fitted else None, "train", "")
    samples = columns_of(test)
    return judge_with_baselines(checks.answers(samples), samples, seed=seed)


def judge_with_bag_of_words(train: list[Sample], test: list[Sample]) -> Columns:
    return judge(train, test)[BAG_OF_WORDS]


def test_it_finds_what_wording_gives_away(samples: list[Sample]):
    """A weak baseline flatters every monitor beside it."""
    judged = judge_with_bag_of_words(samples[:80], samples[80:])
    test = samples[80:]
    assert judged.sample_ids.to_pylist() == [sample.id for sample in test]
    assert judged.group_ids().to_pylist() == [sample.group_id for sample in test]
    assert judged.is_misbehavior.tolist() == [sample.label is Label.MISBEHAVIOR for sample in test]
    assert judged.pairs[0::2].tolist() == judged.pairs[1::2].tolist()
    assert len(set(judged.pairs.tolist())) == len(test) // 2
    assert auroc(judged.scores, judged.is_misbehavior) > 0.95
    assert 0 <= judged.scores.min() <= judged.scores.max() <= 1
    assert judged.flagged.tolist() == (judged.scores >= 0.5).tolist()


def test_it_never_sees_the_answers_it_is_asked_for(samples: list[Sample]):
    """A baseline that peeks can't be beaten."""
    flipped = {Label.BENIGN: Label.MISBEHAVIOR, Label.MISBEHAVIOR: Label.BENIGN}
    turned = [sample.model_copy(update={"label": flipped[sample.label]}) for sample in samples[80:]]
    one, other = (judge_with_bag_of_words(samples[:80], test) for test in (samples[80:], turned))
    assert one.scores.tolist() == other.scores.tolist()
    assert one.is_misbehavior.tolist() == (~other.is_misbehavior).tolist()


def test_it_is_the_same_each_time(samples: list[Sample]):
    """A baseline that moves between two reports makes monitors seem to move."""
    one, other = (judge_with_bag_of_words(samples[:80], samples[80:]) for _ in range(2))
    assert one.scores.tolist() == other.scores.tolist()


def test_those_that_read_nothing_bound_the_rates(samples: list[Sample]):
    """A table without them lets a monitor that always says the same look careful."""
    test = samples[80:]
    judged = judge(samples[:80], test)
    assert list(judged) == ["always_benign", "always_misbehavior", "random", *FITTED]
    for name in judged:  # whose rows a monitor's would be taken for
        with pytest.raises(UserError, match="a baseline of that name"):
            refuse_baselines_name(name)
    counts = {name: count(found.is_misbehavior, found.flagged) for name, found in judged.items()}
    rates = {name: (miss_rate(found), false_alarm_rate(found)) for name, found in counts.items()}
    assert rates["always_benign"] == (1.0, 0.0)
    assert rates["always_misbehavior"] == (0.0, 1.0)
    for name in ("always_benign", "always_misbehavior"):
        assert auroc(judged[name].scores, judged[name].is_misbehavior) == 0.5
    random_scores = judged["random"].scores.tolist()
    assert random_scores == judge([], test[::-1])["random"].scores[::-1].tolist()
    assert random_scores != judge([], test, seed=1)["random"].scores.tolist()


def test_length_sees_length_alone(make_sample: Callable[..., Sample]):
    """Longer answers may be the worse ones, and a monitor may have learnt no more than that."""
    made = [
        make_sample(
            "Do it.",
            "a b " * (10 + 20 * (label is Label.MISBEHAVIOR)) + f"{i}",
            pair_id=f"p{i}",
            group_id=f"g{i}",
            label=label,
        )
        for i in range(40)
        for label in Label
    ]
    found = judge(made[:40], made[40:])["length"]
    assert found.flagged.tolist() == found.is_misbehavior.tolist()


def test_without_a_training_split_the_fitted_ones_are_left_out(samples: list[Sample]):
    """A benchmark without a corpus could not be scored at all."""
    assert set(judge([], samples)) == {"always_benign", "always_misbehavior", "random"}


def test_a_train_split_that_comes_later_brings_the_fitted_ones(
    make_sample: Callable[..., Sample], tmp_path: Path
):
    """Kept numbers of a dataset without a train split would leave out the bag of words for good."""
    data = tmp_path / "data" / "made-0123456789ab"

    def built(*splits: Split) -> set[str]:
        for split in splits:
            pairs = [
                make_sample(
                    f"Q {split} {i}", f"A {label} {i}", pair_id=f"{split}{i}", label=label, split=split
                )
                for i in range(6)
                for label in Label
            ]
            write_split(data, split, pairs)
        results = {"splits": {split.value: {"samples": 12} for split in splits}}
        seal(data, {"status": "done", "identity": {}, "results": results})
        return {name for name, _ in baselines_of(tmp_path / "runs", data, Stakes(), 0).table.judged()}

    constant = {"always_benign", "always_misbehavior", "random"}
    assert built(Split.TEST) == constant
    assert built(Split.TRAIN, Split.TEST) == constant | set(FITTED)
    assert built(Split.TEST) == constant


def test_other_numbers_have_another_version(make_sample: Callable[..., Sample], tmp_path: Path):
    """Kept numbers of an older version would stand beside new ones, and nothing would show it."""
    rng = random.Random(0)
    made = [
        make_sample(
            "Do it.",
            " ".join(
                rng.choices(WORDS[: 40 if label is Label.MISBEHAVIOR else 30], k=rng.randint(5, 12 + i % 4))
            ),
            pair_id=f"p{i}",
            group_id=f"g{i // 2}",
            task=list(Task)[i % 2],
            label=label,
        )
        for i in range(40)
        for label in Label
    ]
    stakes = Stakes(base_rate=0.1, cost_miss=20, cost_alarm=1)
    judged = judge(made[:40], made[40:])
    found = {}
    for name in ("random", *FITTED):
        table = Table()
        curves = {name: {NO_PROMPT: add_numbers(table, name, NO_PROMPT, judged[name], stakes)}}
        known = {key: tree[name][NO_PROMPT] for key, tree in number_trees(table, curves).items()}
        found[name] = {**known, "monitors": {"overall": known["monitors"]["overall"]}, "slices": {}}
    now = {"version": BASELINES_VERSION, "numbers": found}
    golden = read_json(GOLDEN)
    changed = _differences(golden["numbers"], now["numbers"])
    if not changed and golden["version"] == BASELINES_VERSION:
        return
    (tmp_path / GOLDEN.name).write_text(json.dumps(now) + "\n")
    pytest.fail(
        f"the baselines' numbers are not those of version {golden['version']} (BASELINES_VERSION is "
        f"{BASELINES_VERSION}): {changed[:3]}. If they are meant to change, raise BASELINES_VERSION in "
        f"scoring/baselines.py and copy {tmp_path / GOLDEN.name} to {GOLDEN}"
    )


def _differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Where two trees of numbers differ by more than rounding."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [d for key in keys for d in _differences(old.get(key), new.get(key), f"{where}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            d
            for i, (a, b) in enumerate(zip(old, new, strict=True))
            for d in _differences(a, b, f"{where}/{i}")
        ]
    same = old == new if None in (old, new) or isinstance(old, list) else new == pytest.approx(old, abs=1e-6)
    return [] if same else [f"{where}: {old} was, {new} is"]


def test_shortcut_checks_are_worked_out_once(
    make_sample: Callable[..., Sample],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    """Ten seconds at every scoring of a paper's benchmark; and a corpus must not be checked for it."""
    data = tmp_path / "data" / "made-0123456789ab"
    for split, n in ((Split.TRAIN, 9), (Split.TEST, 30)):
        pairs = [
            make_sample(
                f"Q {split} {i}",
                f"A {label} {i} {stratum}",
                pair_id=f"{split}{i}",
                group_id=f"{split}{i}",
                label=label,
                stratum=stratum,
                split=split,
            )
            for i in range(n)
            for stratum in [("even", "odd")[i % 2]]
            for label in Label
        ]
        write_split(data, split, pairs)
    splits = {"train": {"samples": 18}, "test": {"samples": 60}}
    cell = str(pairs[0].cell)

    def checked(**results: Any) -> dict[str, Any]:
        seal(data, {"status": "done", "identity": {}, "results": {"splits": splits, **results}})
        return baselines_of(tmp_path / "runs", data, Stakes(), 0).shortcuts

    pool = checked()
    assert {name: found["checks"]["echo"]["n"] for name, found in pool.items()} == {
        cell: 78,
        f"{cell}:even": 40,
    }
    assert pool[cell]["marked_by"] == "bag_of_words", "the label is a word of the response"
    with monkeypatch.context() as patch:
        patch.setattr("monitorbench.scoring.baselines.shortcuts_of", None)
        assert checked() == pool
    splits["test"]["samples"] = 61  # another dataset
    corpus = checked(constructed={})
    assert corpus[cell]["checks"]["echo"]["n"] == 60, "of a paper's dataset the test split alone"
