"""A pilot to which tasks are added is decided on again at the error that is left."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_outcomes import counted, outcomes

from monitorbench.config.base import UserError
from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.analysis import analyse, at_its_error
from monitorbench.intervention.statistics.decision_file import PilotDecision, remarks, write_decision
from monitorbench.intervention.statistics.exact import unconditional_test

QUICK = PilotStatistics(draws=1000)
LOOKS = PilotStatistics(draws=1000, sequential=True)
CELLS = [counted(A=30, C=4, B=2, D=14), counted(A=30, C=3, B=3, D=14), counted(A=9, C=1), counted(D=5)]


def pooled(n_rounds: int) -> list[Outcome]:
    """The runs after so many rounds of further tasks."""
    return outcomes([cell for cells in CELLS[:n_rounds] for cell in cells])


def decided(pilots: Path, found: list[Outcome], settings: PilotStatistics = QUICK) -> PilotDecision:
    """Decide and write, as the stage does."""
    decision = analyse(found, at_its_error(found, settings, pilots))
    write_decision(pilots / f"p-{len(found)}-{decision.settings.decided_before}", decision)
    return decision


def test_all_decisions_on_a_pilot_share_the_stated_error() -> None:
    """However often tasks are added, a wrong decision must stay as rare as was promised for one."""
    errors = [PilotStatistics(decided_before=i).error for i in range(MOST_DECISIONS)]
    assert errors == sorted(errors, reverse=True)
    assert 0.9 * 0.025 <= sum(errors) <= 0.025
    assert PilotStatistics(sequential=True).error == pytest.approx(0.025)
    then_looks = PilotStatistics(decided_before=1, sequential=True).error
    assert errors[0] + then_looks == pytest.approx(0.025)


def test_added_tasks_are_seen_by_themselves(tmp_path: Path) -> None:
    """Who obeys "run k more tasks" and starts the same command again must not spend the error anew."""
    first = decided(tmp_path, pooled(1))
    second = decided(tmp_path, pooled(2))
    assert [one.settings.decided_before for one in (first, second)] == [0, 1]
    assert "with pilot.statistics.decided_before=1." in first.sentence
    assert "(99.55% interval" in second.sentence
    said = (
        "Decided on 1 time before with fewer tasks or more conditions, so that intervals have 99.55% in "
        "place of 95%."
    )
    assert (said in remarks(first), said in remarks(second)) == (False, True)
    width = [
        high - low for low, high in (second.delta_success_ci, analyse(pooled(2), QUICK).delta_success_ci)
    ]
    assert width[0] > 1.3 * width[1]
    assert decided(tmp_path, pooled(2)).settings == second.settings  # the same runs again are no further look
    third = decided(tmp_path, pooled(3))
    assert third.further_tasks is None
    assert any("its error is spent: run a new pilot" in note for note in third.notes)
    with pytest.raises(UserError, match="decided on 3 times with fewer tasks"):
        at_its_error(pooled(4), QUICK, tmp_path)


def test_other_runs_are_another_pilot(tmp_path: Path) -> None:
    """A pilot of other tasks, or one whose runs were made again, owes nothing to an earlier one."""
    decided(tmp_path, pooled(1))
    others = [one._replace(task=f"other{one.task}") for one in pooled(2)]
    changed = outcomes(["B" if cell == "D" else cell for cell in CELLS[0] + CELLS[1]])
    more_conditions = pooled(1) + [
        one._replace(condition="append") for one in pooled(1) if one.condition != "none"
    ]
    for found in (others, changed, more_conditions):
        assert at_its_error(found, QUICK, tmp_path).decided_before == 0


def test_a_condition_that_is_left_out_makes_no_new_pilot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who drops arms until one says intervene would be told so far more often than was promised."""
    caplog.set_level("INFO")
    fewer = pooled(1)
    more = fewer + [one._replace(condition="append") for one in fewer if one.condition != "none"]
    decided(tmp_path, more)
    assert decided(tmp_path, fewer).settings.decided_before == 1
    assert "pilot: decided on with more conditions in" in caplog.text
    assert decided(tmp_path, more).settings.decided_before == 0
    with_a_control = fewer + [one._replace(condition="random") for one in fewer if one.condition != "none"]
    decided(tmp_path / "control", with_a_control)
    assert at_its_error(fewer, QUICK, tmp_path / "control").decided_before == 0
    as_a_control = QUICK.model_copy(update={"controls": ("append",)})
    assert at_its_error(more, as_a_control, tmp_path).decided_before == 1
    decided(tmp_path / "looks", more, LOOKS)
    with pytest.raises(UserError, match="with more conditions, which takes all of the error"):
        at_its_error(fewer, LOOKS, tmp_path / "looks")


def test_looks_are_followed_by_looks(tmp_path: Path) -> None:
    """Looks hold for all that is added; a plain decision after them has no error left."""
    decided(tmp_path, pooled(1), LOOKS)
    assert at_its_error(pooled(2), LOOKS, tmp_path).decided_before == 0
    with pytest.raises(UserError, match=r"expected pilot\.statistics\.sequential=true"):
        at_its_error(pooled(2), QUICK, tmp_path)
    decided(tmp_path / "plain", pooled(1))
    assert at_its_error(pooled(2), LOOKS, tmp_path / "plain").decided_before == 1


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace("seed,", ""), r"pairs\.csv, line 2: 5 values under 4 names"),
        (
            lambda text: text.replace("seed", "draw"),
            r"pairs\.csv: no column 'seed'; expected agent, condition",
        ),
        (lambda text: f"{text}agent,rollback\n", r"pairs\.csv, line \d+: 2 values under 5 names"),
        (lambda text: text.replace("agent,rollback", '"agent"x,rollback', 1), r"pairs\.csv, after line 1: "),
        (lambda text: "", r"pairs\.csv: nothing in it"),
    ],
)
def test_pairs_that_somebody_edited_are_named(edit: Callable[[str], str], said: str, tmp_path: Path) -> None:
    """The next pilot in the folder would end in a traceback over a file that it does not need."""
    decided(tmp_path, pooled(1))
    (file,) = tmp_path.glob("*/pairs.csv")
    file.write_text(edit(file.read_text()))
    with pytest.raises(UserError, match=said) as raised:
        at_its_error(pooled(2), QUICK, tmp_path)
    assert "\n" not in str(raised.value)


def test_obeying_the_advice_keeps_the_error() -> None:
    """A pilot without an effect, doubled until it is decided: thrice at the whole error is far more."""
    rng = np.random.default_rng(0)
    changes = rng.choice([-1, 0, 1], p=[0.15, 0.7, 0.15], size=(1500, 200))

    def wrong(errors: list[float]) -> float:
        erred = 0
        for pilot in changes:
            for n, error in zip((50, 100, 200), errors, strict=True):
                if unconditional_test(pilot[:n]) <= 2 * error:
                    erred += int(pilot[:n].sum() > 0)
                    break
        return erred / len(changes)

    assert wrong([PilotStatistics(decided_before=i).error for i in range(3)]) <= 0.025
    assert wrong([0.025] * 3) > 0.035
