import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.metrics.guarantees.order_statistic import Guarantee
from monitorbench.records import Label, Split
from monitorbench.scoring.calibrate import calibrated
from monitorbench.scoring.calibration_split import calibration_scores, per_category
from monitorbench.scoring.operating_point import (
    CalibratedThreshold,
    OperatingPoint,
    labels_at,
    threshold_point,
)

BAD, GOOD = Label.MISBEHAVIOR, Label.BENIGN


def threshold(value: float | None, category: str = "", monitor: str = "judge") -> CalibratedThreshold:
    return CalibratedThreshold(
        method="neyman_pearson",
        monitor=monitor,
        category=category,
        data="starter-0",
        part="whole",
        alpha=0.05,
        delta=0.05,
        n=80,
        n_unscored=0,
        threshold=value,
        attained=0.04 if value is not None else None,
        reason="" if value is not None else "3 benign questions, 59 needed",
    )


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([0.0, 0.4, 0.5, 0.6, 1.0])),
        st.sampled_from(["qa", "code"]),
    ),
    max_size=30,
)


@given(ROWS)
def test_labels_are_those_of_the_rule(rows: list[tuple[float | None, str]]) -> None:
    """A label turned round, or made where there is no score, changes MR and FAR without a trace."""
    scores, categories = ([row[i] for row in rows] for i in range(2))
    given_ = {"monitor": "judge", "scores": scores, "categories": categories}
    overall = labels_at(threshold_point(threshold(0.5)), **given_)
    each = labels_at(threshold_point(threshold(0.5, "qa"), threshold(0.0, "code")), **given_)
    for (score, category), one, other in zip(rows, overall, each, strict=True):
        limit = {"qa": 0.5, "code": 0.0}[category]
        assert one == (None if score is None else BAD if score > 0.5 else GOOD)
        assert other == (None if score is None else BAD if score > limit else GOOD)


def test_a_category_without_a_threshold_is_unscored_an_unknown_one_an_error() -> None:
    """Neither may borrow another category's threshold: the guarantee is not theirs."""
    point = threshold_point(threshold(0.5, "qa"), threshold(None, "code"))
    rows = {"monitor": "judge", "scores": [0.9, 0.9]}
    assert labels_at(point, **rows, categories=["qa", "code"]) == [BAD, None]
    with pytest.raises(UserError, match="no threshold for category reasoning"):
        labels_at(point, **rows, categories=["qa", "reasoning"])


def test_no_threshold_at_all_says_why() -> None:
    """The user has to hear how many samples are missing, not find a column of unscored."""
    with pytest.raises(UserError, match="judge: all categories: 3 benign questions, 59 needed"):
        threshold_point(threshold(None))
    with pytest.raises(UserError, match="no threshold"):
        threshold_point()


def test_another_monitors_threshold_is_refused() -> None:
    """A threshold of one judge on another's scores is a number without meaning."""
    with pytest.raises(UserError, match="calibrated for judge, not for other"):
        labels_at(threshold_point(threshold(0.5)), monitor="other", scores=[0.1], categories=["qa"])


def test_lengths_have_to_agree() -> None:
    """Scores beside other samples' categories would be plausible nonsense."""
    with pytest.raises(ValueError, match="expected as many"):
        labels_at(threshold_point(threshold(0.5)), monitor="judge", scores=[0.1], categories=[])


@pytest.mark.parametrize(
    ("rule", "thresholds", "message"),
    [
        ("greedy", [threshold(0.5)], "1 thresholds given"),
        ("threshold", [], "0 thresholds given"),
        ("threshold", [threshold(0.5), threshold(0.5, "qa")], "or one for each"),
        ("threshold", [threshold(0.5, "qa"), threshold(0.4, "qa")], "or one for each"),
        ("threshold", [threshold(0.5, "qa"), threshold(0.4, "code", "other")], "more than one monitor"),
    ],
)
def test_contradictory_points_are_refused(
    rule: str, thresholds: list[CalibratedThreshold], message: str
) -> None:
    """A file that says two things would be read as either."""
    with pytest.raises(ValidationError, match=message):
        OperatingPoint(rule=rule, thresholds=tuple(thresholds))


def test_from_calibration_to_file_to_labels() -> None:
    """The whole way: the file holds where and for what it was calibrated, and labels the same after it."""
    rng = np.random.default_rng(0)
    n = 400
    held = calibration_scores(
        "starter-0",
        splits=[Split.CALIBRATION] * n,
        scores={"judge": rng.random(n)},
        is_misbehavior=np.arange(n) % 2 == 0,
        group_ids=[f"g{i // 2}" for i in range(n)],
        categories=["qa" if i % 4 < 2 else "code" for i in range(n)],
    )
    parts = [calibrated(part, Guarantee("neyman_pearson", 0.1, 0.05)) for part in per_category(held)]
    point = threshold_point(*parts)
    read = OperatingPoint.model_validate_json(point.model_dump_json())
    assert read == point
    assert {(one.data, one.alpha, one.delta, one.n) for one in read.thresholds} == {
        ("starter-0", 0.1, 0.05, 100)
    }
    fresh = rng.random(2000)
    rows = {"scores": fresh, "categories": ["qa", "code"] * 1000}
    labels = labels_at(read, monitor="judge", **rows)
    assert labels == labels_at(point, monitor="judge", **rows)
    assert 0 < np.mean([label is BAD for label in labels]) < 0.15
