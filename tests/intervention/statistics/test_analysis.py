import csv
import json
from pathlib import Path

import numpy as np
import pytest
from fake_outcomes import counted, joined, outcomes, run
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

from monitorbench.config.base import UserError
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import read_decision, remarks, write_decision
from monitorbench.intervention.statistics.decision_rule import Decision

DEFAULT = PilotStatistics()
QUICK = PilotStatistics(draws=2000)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (counted(A=146, B=1, C=10, D=7), Decision.INTERVENE),  # Reflexion on HumanEval: 10 and 1 of 164
        (counted(A=100, B=28, C=14, D=255), Decision.DO_NOT_INTERVENE),  # MBPP: 14 and 28 of 397
        (counted(A=100, B=29, C=17, D=251), Decision.INCONCLUSIVE),  # its other baseline: 17 and 29
    ],
)
def test_counts_of_recorded_runs(cells: list[str], expected: Decision) -> None:
    """The three answers, on the counts of real runs."""
    found = analyse(outcomes(cells), DEFAULT)
    assert found.decision is expected
    assert (found.further_tasks is not None) == (expected is Decision.INCONCLUSIVE)


@pytest.mark.parametrize(
    "cells",
    [
        counted(A=50),
        counted(D=500),
        counted(A=30, D=20),
        counted(A=3000, D=2000),
        ["CCCCCCCC"],
        counted(C=1),
        counted(C=5),
        counted(B=5),
        counted(A=47, C=3),
        counted(B=2, D=48),
        ["CCC", "CCC", "CCC", "AAA"],
    ],
)
@pytest.mark.parametrize("margin", [0.0, 5.0])
@pytest.mark.parametrize("prior_tasks", [0, 1])
def test_too_little_decides_nothing(cells: list[str], margin: float, prior_tasks: int) -> None:
    """No change, one task or a few lucky ones must never switch an intervention on, or forbid it."""
    settings = PilotStatistics(margin=margin, prior_tasks=prior_tasks, draws=2000)
    found = analyse(outcomes(cells), settings)
    if margin and found.counts.C and not found.counts.B:
        assert found.decision is not Decision.INTERVENE
    elif not margin or not found.counts.B:
        assert found.decision is Decision.INCONCLUSIVE


def test_no_change_leaves_an_interval() -> None:
    """50 tasks without a change can't rule out an effect of two points: no interval of width 0."""
    found = analyse(outcomes(counted(A=30, D=20)), DEFAULT)
    assert found.delta_success == 0
    assert found.delta_success_ci[0] < -0.02 < 0.02 < found.delta_success_ci[1]
    assert found.p_star is None
    assert found.r_ci[0] == 0 < 0.05 < found.r_ci[1]
    assert found.swap_p == 1
    assert "p* is undefined: no run changed its outcome" in found.notes
    assert found.decision is Decision.INCONCLUSIVE


def test_undefined_rates_are_null_and_said() -> None:
    """A baseline that always fails tells nothing of disruptions; the decision stands on ΔSuccess."""
    found = analyse(outcomes(counted(A=30, C=20)), QUICK)
    assert (found.d, found.d_ci, found.p_star, found.p_minus_p_star_ci) == (None, None, None, None)
    assert found.r == pytest.approx(0.4)
    assert found.notes == ("d is undefined: the baseline never succeeded",)
    assert found.decision is Decision.INTERVENE


def test_a_gain_without_an_intervention_is_said() -> None:
    """If it failed: "intervene" would rest on runs in which nothing intervened, without a word."""
    found = outcomes(counted(A=10, C=40, D=10))
    assert not any("no intervention" in note for note in analyse(found, QUICK).notes)
    idle = [run._replace(interventions=0) for run in found]
    assert any("no intervention is recorded" in note for note in analyse(idle, QUICK).notes)
    unknown = [run._replace(interventions=0, steps=0) for run in found]
    assert not any("no intervention" in note for note in analyse(unknown, QUICK).notes)


def test_seeds_are_no_further_tasks() -> None:
    """Three seeds that always agree are one: copied runs must not turn noise into a decision."""
    cells = counted(A=20, B=5, C=12, D=13)
    once = analyse(outcomes(cells), DEFAULT)
    thrice = analyse(outcomes([3 * cell for cell in cells]), DEFAULT)
    assert (once.n_runs, thrice.n_runs, thrice.n_tasks) == (50, 150, 50)
    assert once.delta_success_ci == pytest.approx(thrice.delta_success_ci)
    assert once.swap_p == pytest.approx(thrice.swap_p)
    assert once.decision is thrice.decision is Decision.INCONCLUSIVE
    assert thrice.mcnemar_p < 0.01 < 0.05 < thrice.swap_p
    assert once.further_tasks == pytest.approx(thrice.further_tasks, abs=2)


def test_the_best_of_many_has_to_be_better_than_the_best_of_chance() -> None:
    """A gain that stands by itself need not be one when it is the highest of six tried."""
    cells = counted(A=70, B=3, C=13, D=14)
    alone = analyse(outcomes(cells, "c0"), DEFAULT)
    assert alone.decision is Decision.INTERVENE
    rng = np.random.default_rng(0)
    baseline_failed = [cell in "AC" for cell in cells]
    others = [
        outcomes([("AC" if failed else "DB")[rng.random() < 0.1] for failed in baseline_failed], f"c{i}")
        for i in range(1, 6)
    ]
    found = analyse(joined(outcomes(cells, "c0"), *others), DEFAULT)
    assert (found.condition, found.decision) == ("c0", Decision.INCONCLUSIVE)
    assert found.delta_success == alone.delta_success
    assert found.delta_success_ci[0] < alone.delta_success_ci[0]
    assert found.selection.n_tried == 6
    assert 0 < found.selection.delta_success_corrected < found.delta_success
    assert sum(found.selection.chosen.values()) == pytest.approx(1)
    corrected = multipletests([one.swap_p for one in found.conditions], method="holm")[1]
    assert [one.swap_p_holm for one in found.conditions] == pytest.approx(list(corrected))


def test_a_control_is_shown_and_never_chosen() -> None:
    """An oracle critic helps everyone; "intervene" because of it would deploy what does not exist."""
    weak, oracle = counted(A=40, B=2, C=4, D=4), counted(A=20, C=24, D=6)
    found = analyse(joined(outcomes(weak, "append"), outcomes(oracle, "oracle")), QUICK)
    assert (found.condition, found.decision, found.selection.n_tried) == ("append", Decision.INCONCLUSIVE, 1)
    shown = {one.condition: one for one in found.conditions}
    assert shown["oracle"].control
    assert shown["oracle"].decision is Decision.INTERVENE
    assert shown["oracle"].swap_p_holm is None
    alone = analyse(outcomes(weak, "append"), QUICK)
    assert shown["append"].delta_success_ci == pytest.approx(alone.delta_success_ci, abs=0.025)
    assert shown["append"].swap_p_holm == alone.swap_p
    with pytest.raises(UserError, match=r"no matched run but of controls \(random, oracle, best_of_2\)"):
        analyse(outcomes(oracle, "oracle"), QUICK)


def test_a_clear_gain_goes_before_a_larger_guess() -> None:
    """Three lucky tasks of one condition must not hide a gain that is there in another."""
    clear = outcomes(counted(A=150, B=2, C=30, D=18), "clear")
    lucky = outcomes(counted(C=2, A=3), "lucky")
    found = analyse(joined(clear, lucky), DEFAULT)
    assert (found.condition, found.decision) == ("clear", Decision.INTERVENE)
    assert found.selection.highest == "agent/lucky"


def test_agents_are_kept_apart_and_decided_together() -> None:
    """An agent that an intervention hurts must not vanish in another's gain."""
    helped = outcomes(counted(A=150, B=2, C=30, D=18), agent="weak")
    hurt = outcomes(counted(A=10, B=40, C=1, D=149), agent="strong")
    found = analyse(helped + hurt, QUICK)
    assert (found.agent, found.decision) == ("weak", Decision.INTERVENE)
    decisions = {one.agent: one.decision for one in found.conditions}
    assert decisions == {"weak": Decision.INTERVENE, "strong": Decision.DO_NOT_INTERVENE}


def test_a_margin_asks_for_more() -> None:
    """A gain of a point is not worth an intervention that costs five."""
    cells = outcomes(counted(A=300, B=3, C=20, D=177))
    assert analyse(cells, QUICK).decision is Decision.INTERVENE
    assert analyse(cells, PilotStatistics(margin=3.0)).decision is Decision.INCONCLUSIVE
    assert analyse(cells, PilotStatistics(margin=10.0)).decision is Decision.DO_NOT_INTERVENE


def test_transport_to_another_failure_rate() -> None:
    """An agent that fails at 20 % where the pilot's failed at 89 % is hurt by the same intervention."""
    cells = outcomes(counted(A=1180, B=90, C=160, D=70))
    assert analyse(cells, DEFAULT).decision is Decision.INTERVENE
    moved = analyse(cells, PilotStatistics(p_target=0.2)).transport
    assert moved is not None
    assert moved.effect == pytest.approx(0.2 * 160 / 1340 - 0.8 * 90 / 160)
    assert moved.effect_ci[0] < moved.effect < moved.effect_ci[1] < 0
    assert moved.decision is Decision.DO_NOT_INTERVENE
    same = analyse(cells, PilotStatistics(p_target=1340 / 1500)).transport
    assert same.effect == pytest.approx(70 / 1500)
    blind = analyse(outcomes(counted(A=30, C=20)), PilotStatistics(p_target=0.2)).transport
    assert (blind.effect, blind.decision) == (None, Decision.INCONCLUSIVE)
    certain = analyse(outcomes(counted(A=30, C=20)), PilotStatistics(p_target=1.0)).transport
    assert certain.effect == pytest.approx(0.4)


def test_the_papers_printed_pilot_stays_inconclusive() -> None:
    """F = 134, S = 16, C = 16, B = 9 over 50 tasks × 3 seeds (2602.03338), however runs lie in tasks."""
    runs = counted(A=118, B=9, C=16, D=7)
    for order in (np.arange(150), *(np.random.default_rng(seed).permutation(150) for seed in range(3))):
        cells = ["".join(runs[i] for i in three) for three in order.reshape(50, 3)]
        found = analyse(outcomes(cells), DEFAULT)
        assert (found.n_tasks, found.n_runs, found.counts.C) == (50, 150, 16)
        assert found.decision is Decision.INCONCLUSIVE


def test_further_tasks_shrink_with_the_effect_one_cares_for() -> None:
    """The k of "run k more tasks" is a budget: it must follow the settings that it is asked with."""
    cells = outcomes(counted(A=118, B=9, C=16, D=7))
    observed = analyse(cells, DEFAULT)
    large = analyse(cells, PilotStatistics(effect=10.0))
    sure = analyse(cells, PilotStatistics(power=0.95))
    assert observed.further_tasks < sure.further_tasks
    # (z + z.8)² · σ² / (7/150)² tasks, less the 150 there are, by the normal approximation; z is that of a
    # second decision.
    planned = (norm.isf(0.025 * 0.1 * 0.9) + 0.8416) ** 2 * (25 / 150 - (7 / 150) ** 2) / (7 / 150) ** 2 - 150
    assert observed.further_tasks == pytest.approx(planned, rel=0.05)
    assert large.further_tasks is None
    assert "an effect of 10 points would have been found with these tasks" in large.notes


def test_the_same_file_in_another_order_gives_the_same_decision() -> None:
    """A rerun that merely finishes in another order must not move a published figure."""
    cells = np.random.default_rng(0).choice(list("ABCD"), size=(40, 3))
    found = joined(
        outcomes(["".join(row) for row in cells], "a"), outcomes(["".join(row) for row in cells[::-1]], "b")
    )
    turned = [found[i] for i in np.random.default_rng(1).permutation(len(found))]
    first, second = analyse(found, QUICK), analyse(turned, QUICK)
    assert first.model_dump() == second.model_dump()


def test_broken_and_unmatched_runs_are_counted() -> None:
    """A critic that crashes fails its run: kept out, a broken mechanism would look harmless."""
    found = [
        *outcomes(counted(A=20, B=2, C=6, D=20)),
        run("x", 0, "none", True),
        run("x", 0, "rollback", False, reason="critic: timed out"),
        run("y", 0, "none", True),
    ]
    decision = analyse(found, QUICK)
    assert decision.counts.B == 3
    assert (decision.broken_baseline, decision.broken_treated) == (0, 1)
    assert (decision.unmatched_baseline, decision.unmatched_treated) == (1, 0)
    assert "runs that broke down, counted as failures: 1" in decision.notes
    assert "runs without a counterpart, left out: 1" in decision.notes


def crashed(cells: list[str], condition: str, n: int) -> list[Outcome]:
    """So many tasks with these cells, in which the run of that condition broke down."""
    return [
        one._replace(task=f"broken{one.task}", reason="it broke" if one.condition == condition else "")
        for one in outcomes(n * cells)
    ]


@pytest.mark.parametrize(
    ("rest", "cells", "condition"),
    [
        (counted(A=21, D=21), ["B"], "rollback"),  # eight crashed critics and nothing else
        (
            counted(A=21, D=21),
            ["C"],
            "none",
        ),  # as many crashed baselines, which the intervention seems to save
        (counted(A=20, B=2, C=12, D=9), ["B"], "rollback"),  # crashes that hide a gain
    ],
)
def test_a_decision_that_hangs_on_crashes_is_none(rest: list[str], cells: list[str], condition: str) -> None:
    """An endpoint that was down tells what it was worth, not what the mechanism is."""
    found = analyse(
        [*outcomes(rest), *crashed(cells, condition, 8)], PilotStatistics(draws=2000, p_target=0.5)
    )
    alone = analyse(outcomes(rest), QUICK)
    left_out = found.broken_left_out
    assert left_out is not None
    assert not left_out.agrees
    assert left_out.decision is alone.decision
    assert (left_out.n_runs, left_out.delta_success_ci) == (alone.n_runs, alone.delta_success_ci)
    assert (found.decision, found.transport.decision) == (Decision.INCONCLUSIVE, Decision.INCONCLUSIVE)
    why = f"{left_out.decision_as_failures} with them as failures, {left_out.decision} with their pairs"
    assert f"the decision hangs on the runs that broke down: {why} left out".replace("_", " ") in found.notes
    assert found.sentence.endswith("repair what broke, and run those again.")
    assert any("without the pairs in which a run broke down" in one for one in remarks(found))


def test_crashes_that_change_nothing_leave_the_decision() -> None:
    """One crash must not keep a clear gain, or a clear loss, from being one."""
    gain, loss = counted(A=20, B=1, C=15, D=14), counted(A=10, B=15, C=1, D=24)
    for rest, expected in ((gain, Decision.INTERVENE), (loss, Decision.DO_NOT_INTERVENE)):
        for cells, condition in ((["B"], "rollback"), (["C"], "none"), (["A"], "none")):
            found = analyse([*outcomes(rest), *crashed(cells, condition, 1)], QUICK)
            assert found.decision is found.broken_left_out.decision is expected
    every = analyse(crashed(["B"], "rollback", 30), QUICK)
    assert (every.broken_left_out.n_runs, every.decision) == (0, Decision.INCONCLUSIVE)


def test_every_mechanism_harms() -> None:
    """With four conditions that each harm by themselves nothing is left to try, and that has to be said."""
    cells = [counted(A=15, B=b, C=2, D=33 - b) for b in (9, 9, 10, 10)]
    harmful = [outcomes(one, f"c{i}") for i, one in enumerate(cells)]
    found = analyse(joined(*harmful), DEFAULT)
    assert [one.decision for one in found.conditions] == 4 * [Decision.DO_NOT_INTERVENE]
    assert found.conditions[0].swap_p < 0.05 < found.conditions[0].swap_p_holm
    assert found.decision is Decision.DO_NOT_INTERVENE
    unsure = analyse(joined(*harmful, outcomes(counted(A=15, B=4, C=2, D=29), "c9")), DEFAULT)
    assert (unsure.condition, unsure.decision) == ("c9", Decision.INCONCLUSIVE)


def test_without_disruptions_p_star_may_be_nought() -> None:
    """What is added before drawing must not rule out that nothing is ever disrupted."""
    never = analyse(outcomes(counted(A=20, C=10, D=20)), DEFAULT)
    assert never.p_minus_p_star == never.p
    assert never.p_minus_p_star_ci[1] == pytest.approx(never.p_ci[1])
    lost = analyse(outcomes(counted(A=20, B=10, D=20)), DEFAULT)
    assert lost.p_minus_p_star_ci[0] == pytest.approx(lost.p_ci[0] - 1)


@pytest.mark.parametrize(
    "cells",
    [
        counted(A=26, C=4),
        counted(A=20, B=2, C=8, D=20),
        counted(A=20, B=1, C=9, D=20),
        counted(A=10, B=12, C=3, D=25),
        ["CCC", "BBA", "ACA", "DDD", "AAB"] * 6,
    ],
)
def test_transport_to_the_pilots_own_rate_is_the_pilot(cells: list[str]) -> None:
    """Two answers about the same deployment would be one too many."""
    runs = outcomes(cells)
    pilot = analyse(runs, DEFAULT)
    here = analyse(runs, PilotStatistics(p_target=pilot.p)).transport
    assert here.decision is pilot.decision
    assert here.effect == pytest.approx(pilot.delta_success)
    assert here.effect_ci == pytest.approx(
        (max(pilot.delta_success_ci[0], pilot.p - 1), min(pilot.delta_success_ci[1], pilot.p))
    )


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    """decision.json is what other tools read: the promised keys, and A to D of every task and seed."""
    found = analyse(
        outcomes(["AB", "CD", "CC", "DD"]), PilotStatistics(draws=1000, p_target=0.5, sequential=True)
    )
    write_decision(tmp_path / "new", found)
    raw = json.loads((tmp_path / "new" / "decision.json").read_text())
    assert raw["decision"] == "inconclusive"
    for key in ("p", "r", "d", "p_star", "delta_success"):
        assert isinstance(raw[key], float)
        low, high = raw[f"{key}_ci"]
        assert low <= raw[key] <= high
    assert raw["counts"] == {"A": 1, "B": 1, "C": 3, "D": 3}
    assert "pairs" not in raw
    read = read_decision(tmp_path / "new")
    assert read == found.model_copy(update={"pairs": ()})
    with (tmp_path / "new" / "pairs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["cell"] for row in rows] == list("ABCDCCDD")
    assert rows[1] == {"agent": "agent", "condition": "rollback", "task": "t0000", "seed": "1", "cell": "B"}


def test_no_decision_to_read(tmp_path: Path) -> None:
    """A folder of another stage must be named, in one line."""
    with pytest.raises(UserError, match=r"decision\.json: no such file"):
        read_decision(tmp_path)
    (tmp_path / "decision.json").write_text('{"decision": "intervene"}')
    with pytest.raises(UserError, match="no decision of this version"):
        read_decision(tmp_path)


def test_a_condition_that_never_met_its_baseline_is_shown() -> None:
    """A mechanism whose tasks were named otherwise must not silently drop out of the table."""
    found = analyse([*outcomes(counted(A=20, C=5)), run("other", 0, "append", True)], QUICK)
    lost = found.conditions[0]
    assert (lost.condition, lost.n_runs, lost.delta_success) == ("append", 0, None)
    assert (lost.unmatched_baseline, lost.unmatched_treated) == (25, 1)
    assert lost.notes == ("no run has a baseline run of the same task and seed",)
    assert found.selection.n_tried == 1
