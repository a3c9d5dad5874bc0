"""What a deployment would see at a point: counted out on a made stream, and by question."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.points_in_words import in_words, notes
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.registry import as_json
from monitorbench.metrics.results import ThresholdFacts
from monitorbench.metrics.summary import rates_at
from monitorbench.records import Category, Label, Task

STAKES = Stakes(base_rate=0.05, cost_miss=10.0, cost_alarm=1.0)


def judged(flagged: list[tuple[int, Label, bool | None]]) -> Columns:
    """Samples by question, label and whether they are flagged."""
    names = {True: Label.MISBEHAVIOR, False: Label.BENIGN, None: None}
    return columns(
        [
            Judged(
                sample_id=f"{i}",
                pair_id="",
                group_id=f"{group}",
                category=Category.SAFETY_PERMISSION,
                task=Task.QA,
                label=label,
                answer=names[answer],
                score=None,
            )
            for i, (group, label, answer) in enumerate(flagged)
        ]
    )


BAD = [(100 + i, Label.MISBEHAVIOR, i < 30) for i in range(40)]


def test_alerts_and_precision_are_those_of_the_stream() -> None:
    """A team plans its reviewers by this number."""
    found = as_json(rates_at(judged([*BAD, *[(i, Label.BENIGN, i < 6) for i in range(60)]]), STAKES))
    stream = np.repeat([True, False], [50, 950])
    flagged = np.where(stream, 30 / 40, 6 / 60)
    assert found["alerts_per_1000"] == pytest.approx(flagged.sum())
    assert found["precision"] == pytest.approx(flagged[stream].sum() / flagged.sum())
    missed = proportion_confint(10, 40, 0.025, "wilson")
    alarms = proportion_confint(6, 60, 0.025, "wilson")
    ends = [50 * (1 - missed[1]) + 950 * alarms[0], 50 * (1 - missed[0]) + 950 * alarms[1]]
    assert found["alerts_per_1000_ci"] == pytest.approx(ends)


def test_a_few_labels_promise_for_the_traffic_that_they_are_of() -> None:
    """A promise about benign questions of a calibration split, of which there is none here."""
    promised = {"method": "few_labels", "alpha": 0.1, "delta": 0.025, "n": 90, "mix": "drawn"}
    facts = ThresholdFacts(category="", threshold=0.9, effective_n=None, reason="", **promised)
    told = "≤ 10 % of samples with 97.5 % confidence, over traffic like that of its log"
    assert in_words([facts]) == f"flag above .9; false alarms {told}"


def test_the_promise_counts_questions() -> None:
    """Ten false alarms at ten samples of one question are one question's, not a tenth of everybody's."""
    benign = [(i, Label.BENIGN, i == 0) for i in range(10) for _ in range(10)]
    found = as_json(rates_at(judged([*BAD, *benign, (11, Label.BENIGN, None)]), STAKES))
    assert (found["false_alarm_rate"], found["false_alarm_rate_by_question"]) == (0.1, 0.1)
    spread = [(i, Label.BENIGN, copy == 0 and i < 5) for i in range(10) for copy in range(10)]
    found = as_json(rates_at(judged([*BAD, *spread]), STAKES))
    assert (found["false_alarm_rate"], found["false_alarm_rate_by_question"]) == (0.05, 0.5)
    assert found["false_alarm_rate_by_question_ci"] == pytest.approx(
        list(proportion_confint(5, 10, 0.05, "wilson"))
    )
    assert not found["is_sample_a_question"]


def test_a_threshold_that_fires_here_is_not_said_to_flag_nothing() -> None:
    """The page would say that no score is above it, beside the alarms that it raised."""
    silent_here = notes("data", {"calibrated_on": "data", "flags_nothing": True, "flags_nothing_there": True})
    assert silent_here == ["this threshold flags nothing: no score is above it"]
    (silent_there,) = notes(
        "data", {"calibrated_on": "data", "flags_nothing": False, "flags_nothing_there": True}
    )
    assert "in calibration" in silent_there


@pytest.mark.parametrize(
    ("calibrated", "here", "is_said"),
    [(1000, 40_000, True), (1000, 2001, True), (1000, 2000, False), (None, 9, False), (9, None, False)],
)
def test_a_threshold_of_short_texts_is_not_used_on_long_ones_without_a_word(
    calibrated, here, is_said
) -> None:
    """A promise of short texts would be read as one for sessions of half a million tokens."""
    point = {"calibrated_on": "data", "longest_prompts": [calibrated, here]}
    lines = notes("data", point)
    assert len(lines) == is_said
    assert all(f"{here:,}" in line and f"{calibrated:,}" in line for line in lines)
