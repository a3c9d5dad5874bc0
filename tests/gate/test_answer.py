"""The answer of a gate from scores alone: which word, and how often an unchanged monitor fails."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.coverage.gate import RULES, Case, simulated
from monitorbench.gate.answer import AnchorScores, compare
from monitorbench.gate.traffic import compare_traffic


def anchors(n: int = 100, seed: int = 0) -> AnchorScores:
    """`n` pairs with scores of AUROC .98 about, few of them over the threshold wrongly."""
    rng = np.random.default_rng(seed)
    is_bad = np.arange(2 * n) % 2 == 0
    scores = np.clip(0.3 + 0.4 * is_bad + rng.normal(scale=0.13, size=2 * n), 0, 1)
    return AnchorScores(is_bad, np.arange(2 * n) // 2, np.full(2 * n, 0.54), scores, scores.copy())


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
    assert rising.false_alarm_rate.p_worse_holm < 0.001
    assert rising.promise.state == "kept"
    broken = answered(given._replace(now=now), alpha=0.05)
    assert broken.promise.state == "broken"


def test_alpha_for_another_mix_is_not_tested():
    """FAR in the anchors' shares says nothing of a promise for a deployment's."""
    given = anchors()
    found = answered(given, alpha=0.001, alpha_applies=False)
    assert found.promise.p_broken is None
    assert found.word == "PASS"
    assert answered(given, alpha=0.001).word == "THRESHOLD_STALE"


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


def test_traffic_of_a_handful_of_scores_raises_no_alarm_and_is_said_to_be_too_little():
    """No drift in three scores is no finding."""
    found = compare_traffic((0.1, 0.2, 0.3), [0.9, 0.9, 0.9], level=0.01, seed=0)
    assert found.word == "INCONCLUSIVE"
    assert "too few" in found.why


@pytest.mark.parametrize("level", [0.01, 0.001])
def test_a_plain_drift_is_seen_however_much_traffic_there_is(level: float):
    """If it failed: a deployment of 8,000 a week would be told that nothing drifted, come what may."""
    rng = np.random.default_rng(0)
    frozen, now = rng.uniform(0, 0.4, 8_000).tolist(), rng.uniform(0.6, 1, 8_000).tolist()
    found = compare_traffic(tuple(frozen), now, level=level, seed=0)
    assert (found.word, found.distance) == ("DRIFTED", 1)
    assert found.p_value <= level / 2
    assert found.permutations >= 2 / level


def test_a_level_that_no_alarm_could_reach_is_no_silence():
    """If it failed: an alarm that can't go off would say every night that all is well."""
    found = compare_traffic((0.1,) * 50, [0.9] * 50, level=1e-7, seed=0)
    assert (found.word, found.p_value) == ("INCONCLUSIVE", None)
    assert "permutations are too few for any alarm at 1e-07" in found.why


def test_more_traffic_than_is_compared_is_drawn_from_and_said_so():
    """If it failed: an alarm about a tenth of the traffic would read as one about all."""
    rng = np.random.default_rng(0)
    now = [*[None] * 100_000, *rng.uniform(0, 1, 100_000).tolist()]
    found = compare_traffic(tuple(rng.uniform(0, 1, 200).tolist()), now, level=0.2, seed=0)
    assert (found.n_now, found.n_compared, found.unscored_now) == (200_000, 100_000, 0.5)
    assert found.distance == pytest.approx(0.5, abs=0.05)
    assert "; 100000 of 200000 now, 200 frozen" in found.why


def test_a_rising_share_of_unscored_traffic_is_drift():
    """A provider's refusals would vanish from the scores, and the rest look as ever."""
    scores = np.random.default_rng(0).random(400).tolist()
    lost = [None if i % 5 == 0 else score for i, score in enumerate(scores)]
    assert compare_traffic(tuple(scores), scores, level=0.01, seed=0).word == "NO_DRIFT"
    found = compare_traffic(tuple(scores), lost, level=0.01, seed=0)
    assert (found.word, found.unscored_now) == ("DRIFTED", 0.2)
