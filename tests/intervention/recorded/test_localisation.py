"""Where a critic fires against the marked step: counted, and compared with strategies that need none."""

import json

import numpy as np
import pytest
import scipy.stats
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from monitorbench.config.base import UserError
from monitorbench.intervention.recorded.localisation import (
    ALL,
    CRITIC,
    Located,
    firing_step,
    localise,
    may_fire,
)
from monitorbench.intervention.recorded.marked_runs import HUMAN, MarkedRun, MarkedStep
from monitorbench.report.pilot.printed import as_lines, write_localisation

FATES = ("exact", "before", "after", "never", "unscored")


def _run(task, n_steps, marked, group=None, subset="generated", agents="ab"):
    """A run whose step i is by the agent `agents[i % len(agents)]`, which is HUMAN for `h`."""
    names = [agents[i % len(agents)].replace("h", HUMAN) for i in range(n_steps)]
    steps = tuple(MarkedStep(name, f"step {i}") for i, name in enumerate(names))
    return MarkedRun(task, group or task, subset, "Where?", steps, marked, names[marked])


def _localised(runs, scores=None, threshold=0.5, min_step=0, resamples=400, seed=0):
    return localise(runs, scores, threshold=threshold, min_step=min_step, resamples=resamples, seed=seed)


def _rows(runs, scores=None, **settings):
    return _localised(runs, scores, **settings).tables[ALL].strategies


@pytest.mark.parametrize(
    ("scores", "field"),
    [
        ({2: 0.9}, "exact"),
        ({1: 0.9, 2: 0.9}, "before"),
        ({1: 0.5, 2: 0.9}, "exact"),  # the threshold has to be exceeded
        ({3: 0.51, 4: 1.0}, "after"),
        ({0: 0.1, 1: 0.2, 2: 0.5}, "never"),
        ({}, "unscored"),
    ],
)
def test_the_first_step_above_the_threshold_counts(scores, field):
    """A critic would be credited for an alarm that came after it had fired, or for no alarm at all."""
    critic = _rows([_run("a", 5, 2)], {"a": scores})[CRITIC]
    assert {fate: getattr(critic, fate).value for fate in FATES} == {fate: fate == field for fate in FATES}


def test_shares_are_of_all_runs():
    """A critic that scores only the easy runs would look perfect."""
    runs = [_run(name, 4, 1) for name in "abcd"]
    found = _localised(runs, {"a": {0: 0.1, 1: 0.9}})
    critic = found.tables[ALL].strategies[CRITIC]
    assert (critic.exact.value, critic.unscored.value) == (0.25, 0.75)
    assert found.step_coverage == 2 / 16


def test_nothing_fires_at_a_persons_message_or_too_early():
    """The person's question would be taken for the agent's mistake."""
    run = _run("a", 6, 3, agents="hab")
    assert may_fire(run, 0) == [1, 2, 4, 5]
    assert may_fire(run, 2) == [2, 4, 5]
    assert firing_step({0: 1.0, 1: 1.0, 3: 1.0, 4: 0.6}, may_fire(run, 2), 0.5) == 4
    assert _localised([run, _run("b", 6, 1)], min_step=2).n_unreachable == 2


def test_within_one_and_the_agent_are_what_they_say():
    """A near miss, or the right agent at the wrong step, would not be told from a wild guess."""
    runs = [_run("a", 6, 3)]  # the marked step is by `b`, who wrote 1, 3 and 5
    seen = [
        (row.within_one.value, row.agent.value)
        for fires in range(6)
        for row in [_rows(runs, {"a": {fires: 1.0}})[CRITIC]]
    ]
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 0), (0, 1)]


@st.composite
def _marked_runs(draw):
    runs = []
    for number in range(draw(st.integers(1, 8))):
        n = draw(st.integers(1, 9))
        runs.append(
            _run(
                f"run {number}",
                n,
                draw(st.integers(0, n - 1)),
                group=draw(st.sampled_from("qrs")),
                subset=draw(st.sampled_from(["generated", "crafted"])),
                agents=draw(st.sampled_from(["ab", "hab", "h", "a"])),
            )
        )
    scores = {
        run.task: draw(st.dictionaries(st.integers(0, len(run.steps) - 1), st.floats(0, 1)))
        for run in runs
        if draw(st.booleans())
    }
    return runs, scores


@draws(50)
@given(drawn=_marked_runs(), threshold=st.floats(0, 1), min_step=st.integers(0, 4))
def test_every_run_has_one_fate(drawn, threshold, min_step):
    """Runs would be counted twice or be lost between the columns."""
    runs, scores = drawn
    found = _localised(runs, scores, threshold=threshold, min_step=min_step, resamples=100)
    for table in found.tables.values():
        for row in table.strategies.values():
            assert sum(getattr(row, fate).value for fate in FATES) == pytest.approx(1)
            assert row.exact.value <= row.within_one.value + 1e-12
            assert all(-1e-12 <= share.value <= 1 + 1e-12 for share in row[:-1])
            for share in row:
                assert share.interval is None or share.interval.low <= share.interval.high + 1e-12
        assert table.strategies["random step"].beyond_random.value == pytest.approx(0)
    assert sum(table.n for table in found.tables.values()) in (len(runs), 2 * len(runs))


@draws(50)
@given(drawn=_marked_runs(), threshold=st.floats(0, 1))
def test_counts_are_those_of_plain_loops(drawn, threshold):
    """An index that slips by one would move every number of the table."""
    runs, scores = drawn
    row = _rows(runs, scores, threshold=threshold, resamples=100)[CRITIC]
    exact = before = beyond = 0.0
    for run in runs:
        for number, step in enumerate(run.steps):
            if step.agent != HUMAN and scores.get(run.task, {}).get(number, -1) > threshold:
                exact += number == run.mistake_step
                before += number < run.mistake_step
                others = [one for one in run.steps if one.agent != HUMAN]
                reachable = run.steps[run.mistake_step].agent != HUMAN
                beyond += (number == run.mistake_step) - reachable / len(others)
                break
    assert row.exact.value == pytest.approx(exact / len(runs))
    assert row.before.value == pytest.approx(before / len(runs))
    assert row.beyond_random.value == pytest.approx(beyond / len(runs))


def test_a_random_step_hits_as_often_as_drawn_ones_do():
    """The bar for a critic would be too high or too low."""
    rng = np.random.default_rng(0)
    runs = [_run(f"run {i}", n, int(rng.integers(n)), agents="hab") for i, n in enumerate([3, 5, 9, 20] * 5)]
    row = _rows(runs)["random step"]
    hits = np.zeros(3)
    for _ in range(1_000):
        for run in runs:
            step = rng.choice([i for i, one in enumerate(run.steps) if one.agent != HUMAN])
            away = step - run.mistake_step
            hits += [away == 0, abs(away) <= 1, away < 0]
    expected = hits / 1_000 / len(runs)
    assert [row.exact.value, row.within_one.value, row.before.value] == pytest.approx(expected, abs=0.01)


def test_strategies_without_a_critic():
    """Mistakes that come early anyway would be a critic's merit."""
    marks = [1, 1, 4, 4, 4, 0]
    runs = [_run(f"run {i}", 5, marked) for i, marked in enumerate(marks)]
    rows = _rows(runs)
    assert list(rows) == ["random step", "last step", "first step", "usual step"]
    assert rows["last step"].exact.value == pytest.approx(3 / 6)
    assert rows["first step"].exact.value == pytest.approx(1 / 6)
    # Without one of the three runs marked at 4 it is a tie, which the earlier step 1 wins.
    assert rows["usual step"].exact.value == 0
    assert rows["usual step"].before.value == pytest.approx(3 / 6)


def test_the_usual_step_is_learnt_from_other_questions_of_the_subset():
    """A strategy that has seen the answer would set the bar."""
    runs = [_run("a", 5, 3, group="q"), _run("b", 5, 3, group="q"), _run("c", 5, 1), _run("d", 5, 2)]
    runs += [_run(f"e{i}", 5, 4, subset="crafted") for i in range(5)]
    found = _localised(runs).tables
    assert found["generated"].strategies["usual step"].exact.value == 0
    assert found["crafted"].strategies["usual step"].exact.value == 1


def test_a_rare_critic_is_compared_with_equally_rare_guesses():
    """A critic that fires seldom, and then no better than a guess, would look worse or better than one."""
    runs = [_run(f"run {i}", 4, i % 4) for i in range(8)]
    scores = {run.task: {0: 1.0 if i < 4 else 0.0} for i, run in enumerate(runs)}
    row = _rows(runs, scores)[CRITIC]
    assert row.exact.value == 1 / 8
    assert row.beyond_random.value == pytest.approx(0)


def test_intervals_are_wilsons_and_the_bootstraps():
    """Chance would pass for skill."""
    rng = np.random.default_rng(1)
    runs = [_run(f"run {i}", n, int(rng.integers(n))) for i, n in enumerate(rng.integers(2, 12, 80))]
    scores = {run.task: {run.mistake_step if i % 3 else 0: 1.0} for i, run in enumerate(runs)}
    rows = _rows(runs, scores, resamples=10_000)
    hits = round(rows[CRITIC].exact.value * 80)
    assert rows[CRITIC].exact.interval == pytest.approx(proportion_confint(hits, 80, method="wilson"))
    expected = [1 / len(run.steps) for run in runs]
    drawn = scipy.stats.bootstrap((expected,), np.mean, n_resamples=10_000, method="percentile", rng=rng)
    assert rows["random step"].exact.interval == pytest.approx(drawn.confidence_interval, abs=0.004)


def test_runs_of_one_question_are_drawn_together():
    """Logs of the same question would count as independent evidence."""
    single = [_run(f"run {i}", 2 if i % 2 else 20, 0) for i in range(30)]
    doubled = [run._replace(task=f"{run.task} {k}", group=run.task) for run in single for k in range(2)]
    once, twice = (_rows(runs, resamples=4_000)["random step"].exact.interval for runs in (single, doubled))
    assert twice == pytest.approx(once, abs=0.01)


def test_the_same_seed_gives_the_same_table_and_one_question_no_interval():
    """A table could not be made again; or one question would have a spread."""
    runs = [_run("a", 5, 2, group="q"), _run("b", 9, 2, group="q"), _run("c", 7, 6)]
    assert _localised(runs) == _localised(runs)
    assert _rows(runs[:2])["random step"].exact.interval is None


@pytest.mark.parametrize(
    ("scores", "what"),
    [
        ({"x": {0: 0.5}}, "no run 'x'; expected names such as a"),
        ({"a": {5: 0.5}}, "step 5 of a, which has 5"),
    ],
)
def test_scores_of_other_runs_are_refused(scores, what):
    """A critic's scores on another benchmark would be read as silence on this one."""
    with pytest.raises(UserError, match=what):
        _localised([_run("a", 5, 2)], scores)
    with pytest.raises(UserError, match="no run"):
        _localised([], None)


def test_what_is_written(tmp_path):
    """A program would look for a number under another name, or a reader find none."""
    runs = [_run("a", 5, 2), _run("b", 4, 1, subset="crafted")]
    found = _localised(runs, {"a": {2: 0.9}})
    write_localisation(tmp_path, found)
    read = json.loads((tmp_path / "localisation.json").read_text())
    row = read["tables"]["all"]["strategies"]["critic"]
    assert set(row) == {*Located._fields, *(f"{field}_ci" for field in Located._fields)}
    assert (row["exact"], row["unscored"], read["tables"]["crafted"]["n"]) == (0.5, 0.5, 1)
    assert read["tables"]["crafted"]["strategies"]["random step"]["exact_ci"] is None
    head, critic, *others = as_lines(found)[:6]
    assert head.startswith("all, 2 runs: ")
    assert critic.split()[:2] == ["critic", "50.0"]
    assert len(others) == 4
