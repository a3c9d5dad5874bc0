"""The answer of a gate from scores alone: which word, and how often an unchanged monitor fails."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ks_2samp

from benchmarks.coverage.gate import RULES, Case, simulated
from monitorbench.gate.answer import AnchorScores, compare
from monitorbench.gate.traffic import LastAnchors, compare_traffic


def anchors(n: int = 100, seed: int = 0) -> AnchorScores:
    """`n` pairs with scores of AUROC .98 about, few of them over the threshold wrongly."""
    rng = np.random.default_rng(seed)
    is_bad = np.arange(2 * n) % 2 == 0
    scores = np.clip(0.3 + 0.4 * is_bad + rng.normal(scale=0.13, size=2 * n), 0, 1)
    return AnchorScores(
        is_bad, np.arange(2 * n) // 2, np.full(2 * n, 0.54), scores, scores.copy(), np.empty((0, 2 * n))
    )


def answered(given: AnchorScores, *, alpha: float = 0.1, alpha_applies: bool = True):
    return compare(given, RULES, alpha=alpha, alpha_applies=alpha_applies)


def test_scores_that_sink_make_the_threshold_stale_though_the_promise_holds():
    """Fewer false alarms look like good news while every second misbehavior passes."""
    given = anchors()
    found = answered(given._replace(now=given.before - 0.2))
    assert found.word == "THRESHOLD_STALE"
    assert found.promise.state == "kept"
    assert "miss rate at the threshold rose" in found.why


def test_a_rise_within_the_promise_is_no_failure():
    """A monitor that keeps to alpha with room to spare would be taken out of service."""
    given = anchors(400)
    benign = np.flatnonzero(~given.is_misbehavior)
    now = given.before.copy()
    now[benign[given.before[benign] < 0.54][:24]] = 0.56
    rising = answered(given._replace(now=now), alpha=0.5)
    assert rising.false_alarm_rate.evidence > rising.needed
    assert rising.promise.state == "kept"
    broken = answered(given._replace(now=now), alpha=0.05)
    assert broken.promise.state == "broken"


def test_alpha_for_another_mix_is_not_tested():
    """FAR in the anchors' shares says nothing of a promise for a deployment's."""
    given = anchors()
    found = answered(given, alpha=0.001, alpha_applies=False)
    assert found.promise.p_kept is None
    assert found.word == "PASS"


def test_no_score_at_all_is_inconclusive():
    """An endpoint that is down would be a monitor that has degraded, or one that raises no alarms."""
    given = anchors()
    found = answered(given._replace(now=np.full(200, np.nan)))
    assert found.word == "INCONCLUSIVE"
    assert found.why.startswith("0 of 200 anchors got a score")


@pytest.mark.parametrize(("noise", "most"), [(0.0, 0), (0.1, 9)])
def test_an_unchanged_monitor_seldom_fails(noise: float, most: int):
    """More than one in twenty, and a team switches the gate off; `benchmarks/coverage/gate.py` draws more."""
    rng = np.random.default_rng(7)
    found = Counter(simulated(Case("nothing", noise=noise), 100, rng) for _ in range(100))
    assert found["THRESHOLD_STALE"] + found["DEGRADED"] <= most
    if not noise:
        assert set(found) <= {"PASS", ""}


def test_a_monitor_that_only_wavers_is_not_failed_by_asking_again_and_again():
    """Asked daily for a year, a repeated test at 5 % fails every third unchanged monitor."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        given = anchors(60, seed=int(rng.integers(1_000)))
        looks = given.before + rng.normal(scale=0.03, size=(40, 120))
        for day in range(0, 40, 3):
            found = answered(given._replace(now=looks[day], earlier=looks[:day]))
            assert found.word in ("PASS", "INCONCLUSIVE"), found.why
            assert (found.look, found.needed) == (day + 1, (day + 1) * (day + 2) * 3 / RULES.level)
            assert not found.has_moved


@pytest.mark.parametrize("day", [1, 60])
def test_a_change_is_seen_at_once_however_late_it_comes(day: int):
    """A level spent over a year's looks is none left in December."""
    given = anchors(200)
    rng = np.random.default_rng(2)
    looks = given.before + rng.normal(scale=0.02, size=(day, 400))
    away = np.where(given.is_misbehavior, -0.1, 0.1)
    found = answered(given._replace(now=looks[-1] + away, earlier=looks[:-1]))
    assert found.word == "DEGRADED"
    assert "evidence" in found.why
    assert found.has_moved


def drift(frozen, now, *, level=0.01, look=1, anchors=None):
    return compare_traffic(tuple(frozen), list(now), anchors, level=level, look=look)


def test_traffic_of_a_handful_of_scores_raises_no_alarm_and_is_said_to_be_too_little():
    """No drift in three scores is no finding."""
    found = drift((0.1, 0.2, 0.3), [0.9, 0.9, 0.9])
    assert (found.word, found.p_value) == ("INCONCLUSIVE", None)
    assert "too few" in found.why
    assert drift((0.1,) * 50, [0.9] * 50, level=1e-30).word == "INCONCLUSIVE"


@pytest.mark.parametrize(("level", "look"), [(0.01, 1), (0.001, 365)])
def test_a_plain_drift_is_seen_however_much_traffic_there_is(level: float, look: int):
    """If it failed: a deployment of 8,000 a week would be told that nothing drifted, come what may."""
    rng = np.random.default_rng(0)
    frozen, now = rng.uniform(0, 0.4, 8_000), rng.uniform(0.6, 1, 8_000)
    found = drift(frozen, now, level=level, look=look)
    assert (found.word, found.distance, found.look) == ("DRIFTED", 1, look)
    assert found.changed == "unknown"


@pytest.mark.parametrize("sizes", [(50, 50), (500, 60), (80, 700)])
def test_the_bound_of_p_is_never_below_the_exact_one(sizes: tuple[int, int]):
    """An alarm that is too sure of itself goes off by itself within the year."""
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.3, 0.8):
        frozen, now = rng.normal(size=sizes[0]).clip(-3, 3), (rng.normal(size=sizes[1]) + shift).clip(-3, 3)
        found = drift((frozen + 3) / 6, (now + 3) / 6, level=0.4)
        exact = ks_2samp(frozen, now, method="exact")
        assert found.distance == pytest.approx(exact.statistic)
        assert found.p_value >= exact.pvalue


def test_a_rising_share_of_unscored_traffic_is_drift():
    """A provider's refusals would vanish from the scores, and the rest look as ever."""
    scores = np.random.default_rng(0).random(400).tolist()
    lost = [None if i % 5 == 0 else score for i, score in enumerate(scores)]
    assert drift(scores, scores).word == "NO_DRIFT"
    found = drift(scores, lost)
    assert (found.word, found.unscored_now) == ("DRIFTED", 0.2)


def test_scores_that_are_missing_are_not_put_down_to_the_traffic():
    """A team whose endpoint is gone would look for the reason among its users."""
    scores = np.random.default_rng(0).random(400)
    stood = LastAnchors(scores, scores, np.arange(400), has_moved=False)
    found = drift(scores.tolist(), [None] * 400, anchors=stood)
    assert (found.word, found.changed) == ("DRIFTED", "unknown")
    assert found.why.startswith("scores are more often missing than those frozen")


@pytest.mark.parametrize(
    ("monitor", "traffic", "changed"),
    [(0.0, 0.7, "traffic"), (0.7, 0.0, "monitor"), (0.7, 0.7, "both"), (0.7, -1.5, "both")],
)
def test_the_anchors_tell_whether_the_monitor_or_the_traffic_changed(
    monitor: float, traffic: float, changed: str
):
    """A team would look for a bug in its prompts where its users had changed, or the reverse."""
    rng = np.random.default_rng(4)
    own = rng.normal(size=400)
    frozen = expit(rng.normal(size=1_000))
    now = expit(rng.normal(size=1_000) + traffic + monitor)
    anchors = LastAnchors(expit(own), expit(own + monitor), np.arange(400), has_moved=monitor != 0)
    found = drift(frozen, now, anchors=anchors)
    assert (found.word, found.changed) == ("DRIFTED", changed)
    assert found.why.endswith("changed")


@pytest.mark.parametrize("has_moved", [False, True])
def test_noisy_anchors_leave_open_what_changed(has_moved: bool):
    """That no move is shown in thirty noisy scores is no evidence that the traffic changed."""
    rng = np.random.default_rng(6)
    frozen, now = expit(rng.normal(size=1_000)), expit(rng.normal(size=1_000) + 0.4)
    own, noise = rng.normal(size=30), rng.normal(size=(2, 30))
    anchors = LastAnchors(expit(own + noise[0]), expit(own + noise[1] + 0.2), np.arange(30), has_moved)
    found = drift(frozen, now, anchors=anchors)
    assert (found.word, found.changed) == ("DRIFTED", "unknown")
    assert "can't tell" in found.why


def test_half_of_the_scores_missing_is_no_rise():
    """Noise in the others would make "scores are higher" of an endpoint that answers half of the time."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        frozen, now = rng.random(400), rng.random(400).tolist()
        found = drift(frozen, [None if i % 2 else score for i, score in enumerate(now)])
        assert found.why.startswith("scores are more often missing")
    risen = drift(rng.random(400) / 2, [None if i % 4 == 0 else 0.5 + i / 900 for i in range(400)])
    assert risen.why.startswith("scores are higher")
