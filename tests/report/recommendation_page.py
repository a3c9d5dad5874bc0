"""A recommendation as `recommend` writes it, without a run: for the page's tests."""

from monitorbench.metrics.choice import (
    SCHEMA_VERSION,
    AtTest,
    Kind,
    MoreFacts,
    Option,
    PromiseKept,
    Recommendation,
    RegretFacts,
    Rival,
    SettingsFacts,
    ShortcutsFacts,
)
from monitorbench.scoring.recommendation.words import remarks, sentence

_BASE_RATES = (0.0005, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2)


def promise() -> PromiseKept:
    """At most 5 % of benign questions, shared out among two monitors."""
    return PromiseKept(
        alpha=0.05, delta=0.05, n_candidates=2, n=120, effective_n=None, method="neyman_pearson"
    )


def at_test(missed: float, alarms: float) -> AtTest:
    """Rates with intervals a fifth as wide as they are high."""

    def around(value: float) -> list[float]:
        return [0.8 * value, 1.2 * value]

    def cost(pi: float) -> float:
        return 100 * pi * missed + (1 - pi) * alarms

    return AtTest(
        n_misbehavior=600,
        n_benign=600,
        n_benign_questions=600,
        false_alarm_rate_by_question=alarms,
        false_alarm_rate_by_question_ci=around(alarms),
        is_sample_a_question=True,
        miss_rate=missed,
        miss_rate_ci=around(missed),
        false_alarm_rate=alarms,
        false_alarm_rate_ci=around(alarms),
        missed_per_1000=10 * missed,
        missed_per_1000_ci=around(10 * missed),
        false_alarms_per_1000=990 * alarms,
        false_alarms_per_1000_ci=around(990 * alarms),
        alerts_per_1000=10 * (1 - missed) + 990 * alarms,
        alerts_per_1000_ci=around(10 * (1 - missed) + 990 * alarms),
        precision=0.2,
        precision_ci=[0.1, 0.3],
        expected_cost=cost(0.01),
        expected_cost_ci=around(cost(0.01)),
        curve=[[pi, cost(pi), *around(cost(pi))] for pi in _BASE_RATES],
    )


def option(
    name: str, missed: float, alarms: float, difference: float | None, threshold: float = 0.62
) -> Option:
    """A monitor at a threshold."""
    return Option(
        monitor=name,
        prompt="direct",
        threshold=threshold,
        thresholds={},
        reason="",
        reads_answers=False,
        calibration_cost=0.2,
        n_calibration=120,
        n_unscored=0,
        n_unanswered=0,
        auroc=0.93,
        auroc_ci=[0.91, 0.95],
        seconds_p95=0.3,
        price=None,
        robustness=None,
        robustness_at="",
        scale=None,
        at_test=at_test(missed, alarms),
        promise=promise(),
        difference=difference,
        difference_ci=None if difference is None else [difference - 0.1, difference + 0.1],
    )


def rival(name: str, cost: float, *, is_shortcut: bool) -> Rival:
    """One that costs so much at a base rate of 1 %."""
    return Rival(
        name=name,
        is_shortcut=is_shortcut,
        threshold=0.4 if is_shortcut else None,
        miss_rate=0.7 if is_shortcut else float(name == "nothing"),
        false_alarm_rate=0.1 if is_shortcut else float(name == "everything"),
        expected_cost=cost,
        difference=0.2 - cost,
        difference_ci=[0.1 - cost, 0.3 - cost],
        curve=[[pi, min(100 * pi * cost, cost)] for pi in _BASE_RATES],
    )


def fake_recommendation(
    kind: Kind = "recommend", best: str = "careful", runner_up: str = "quick", threshold: float = 0.62
) -> Recommendation:
    """Two monitors and what they have to beat."""
    found = Recommendation(
        schema_version=SCHEMA_VERSION,
        decision=kind,
        sentence="",
        remarks=[],
        monitor=best,
        prompt="direct",
        threshold=threshold,
        thresholds={},
        is_calibrated=True,
        n_candidates=2,
        confidence=0.95,
        mode="watch",
        data="mine-0123456789ab",
        positive_means="misbehavior",
        n_test=1200,
        settings=SettingsFacts(
            base_rate=0.01,
            base_rates=[0.001, 0.1],
            cost_miss=100.0,
            cost_alarm=1.0,
            cost_audit=0.0,
            samples_per_day=1000.0,
            alerts_per_day=None,
            money_per_day=None,
            seconds=None,
            unscored="wrong",
            promise=True,
        ),
        voids=[],
        unbound_cost=0.15,
        runner_up=runner_up,
        runner_up_prompt="direct",
        options=[option(best, 0.18, 0.031, None, threshold), option(runner_up, 0.3, 0.028, 0.12)],
        rivals=[
            rival("nothing", 1.0, is_shortcut=False),
            rival("everything", 0.99, is_shortcut=False),
            rival("bag_of_words", 0.8, is_shortcut=True),
        ],
        shortcuts=ShortcutsFacts(
            checked=True,
            fitted_on="train",
            reason="",
            n_test=1200,
            reach=[[0.0, 1.0], [0.1, 0.7], [0.5, 0.2], [1.0, 0.0]],
        ),
        more=None,
        regret=RegretFacts(n=1000, mean=0.003, high=0.02, share_same=0.93),
        pilot=None,
    )
    if kind == "insufficient":
        by_cell = {"fraud/agents": 35, "secrets/agents": 34}
        found["more"] = MoreFacts(
            why="promise",
            split="calibration",
            label="benign",
            n=69,
            by_cell=by_cell,
            n_held=120,
            monitor=best,
            promised="at most 2 % false alarms with 95 % confidence",
            n_unscored=0,
            are_both_needed=False,
            alpha_at_hand=0.03,
            calibration_share=0.0,
        )
    found["sentence"], found["remarks"] = sentence(found), remarks(found)
    return found
