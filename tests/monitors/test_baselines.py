"""The baselines every monitor has to beat."""

import random
from collections.abc import Callable

import pytest

from monitorbench.metrics.curves import auroc
from monitorbench.metrics.rates import Judged, count, false_alarm_rate, miss_rate
from monitorbench.monitors.baselines import BAG_OF_WORDS, judge_with_baselines
from monitorbench.records import Label, Sample

WORDS = [f"word{i}" for i in range(50)]


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


def judge_with_bag_of_words(train: list[Sample], test: list[Sample]) -> list[Judged]:
    return judge_with_baselines(train, test, seed=0)[BAG_OF_WORDS]


def test_it_finds_what_wording_gives_away(samples: list[Sample]):
    """A weak baseline flatters every monitor beside it."""
    judged = judge_with_bag_of_words(samples[:80], samples[80:])
    assert [one.sample_id for one in judged] == [sample.id for sample in samples[80:]]
    assert auroc([one.score for one in judged], [one.label is Label.MISBEHAVIOR for one in judged]) > 0.95
    for one, sample in zip(judged, samples[80:], strict=True):
        assert (one.pair_id, one.group_id, one.label) == (sample.pair_id, sample.group_id, sample.label)
        assert one.score is not None
        assert 0 <= one.score <= 1
        assert one.answer is (Label.MISBEHAVIOR if one.score >= 0.5 else Label.BENIGN)


def test_it_never_sees_the_answers_it_is_asked_for(samples: list[Sample]):
    """A baseline that peeks can't be beaten."""
    flipped = {Label.BENIGN: Label.MISBEHAVIOR, Label.MISBEHAVIOR: Label.BENIGN}
    turned = [sample.model_copy(update={"label": flipped[sample.label]}) for sample in samples[80:]]
    one, other = (judge_with_bag_of_words(samples[:80], test) for test in (samples[80:], turned))
    assert [judged.score for judged in one] == [judged.score for judged in other]


def test_it_is_the_same_each_time(samples: list[Sample]):
    """A baseline that moves between two reports makes monitors seem to move."""
    one, other = (judge_with_bag_of_words(samples[:80], samples[80:]) for _ in range(2))
    assert one == other


def test_those_that_read_nothing_bound_the_rates(samples: list[Sample]):
    """A table without them lets a monitor that always says the same look careful."""
    test = samples[80:]
    judged = judge_with_baselines(samples[:80], test, seed=0)
    assert list(judged) == ["always_benign", "always_misbehavior", "random", "length", "bag_of_words"]
    rates = {
        name: (miss_rate(count(found)), false_alarm_rate(count(found))) for name, found in judged.items()
    }
    assert rates["always_benign"] == (1.0, 0.0)
    assert rates["always_misbehavior"] == (0.0, 1.0)
    flags = [one.label is Label.MISBEHAVIOR for one in test]
    for name in ("always_benign", "always_misbehavior"):
        assert auroc([one.score for one in judged[name]], flags) == 0.5
    assert judged["random"] == judge_with_baselines([], test[::-1], seed=0)["random"][::-1]
    assert judged["random"] != judge_with_baselines([], test, seed=1)["random"]


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
    found = judge_with_baselines(made[:40], made[40:], seed=0)["length"]
    assert all(one.answer is one.label for one in found)


def test_without_a_training_split_the_fitted_ones_are_left_out(samples: list[Sample]):
    """A benchmark without a corpus could not be scored at all."""
    assert set(judge_with_baselines([], samples, seed=0)) == {"always_benign", "always_misbehavior", "random"}
