"""Recorded sets by their settings: the printed counts on the real files, and what is said without them."""

from collections import Counter

import pytest

from monitorbench.config.base import UserError
from monitorbench.config.study import Paths
from monitorbench.intervention.outcomes import BASELINE, read_outcomes, write_outcomes
from monitorbench.intervention.recorded.archives import find_recorded, read_recorded
from monitorbench.intervention.recorded.localisation import locate
from monitorbench.intervention.recorded.marked_runs import marked_runs

SETS = ("reflexion_humaneval", "reflexion_mbpp", "reflexion_alfworld", "fireact", "who_and_when")


def _table(outcomes):
    """A fail/fail, B success/fail, C fail/success, D success/success of the baseline and the treated run."""
    baseline = {one.task: one.success for one in outcomes if one.condition == BASELINE}
    treated = {one.task: one.success for one in outcomes if one.condition != BASELINE}
    assert set(baseline) == set(treated)
    assert len(outcomes) == 2 * len(baseline)
    counts = Counter((baseline[task], treated[task]) for task in baseline)
    return tuple(counts[pair] for pair in ((False, False), (True, False), (False, True), (True, True)))


@pytest.mark.sources
@pytest.mark.parametrize(
    ("name", "changes", "table"),
    [
        ("reflexion_humaneval", {}, (13, 1, 10, 140)),
        ("reflexion_mbpp", {}, (63, 28, 14, 292)),
        ("reflexion_mbpp", {"baseline": "simple_mbpp_py"}, (62, 29, 17, 289)),
        ("reflexion_mbpp", {"treated": "simple_mbpp_py"}, (75, 4, 2, 316)),
        ("reflexion_alfworld", {}, (10, 1, 23, 100)),
        ("reflexion_alfworld", {"trial": 1}, (27, 4, 13, 90)),
        ("fireact", {}, (296, 31, 72, 100)),
        ("fireact", {"baseline": "gpt-3.5-turbo"}, (231, 67, 33, 133)),
    ],
)
def test_the_printed_counts(name, changes, table, recorded, mirror, tmp_path):
    """The decision in the docs would not be the one that the files give; counted with other tools too."""
    outcomes = read_recorded(recorded(name, **changes), mirror)
    assert _table(outcomes) == table
    write_outcomes(tmp_path / "outcomes.jsonl", outcomes)
    assert read_outcomes(tmp_path / "outcomes.jsonl") == outcomes


@pytest.mark.sources
def test_no_disruption_of_mbpp_happened_without_an_intervention(recorded, mirror):
    """Disruptions that an unlucky first attempt made would be blamed on the critic."""
    outcomes = read_recorded(recorded("reflexion_mbpp"), mirror)
    solved = {one.task for one in outcomes if one.condition == BASELINE and one.success}
    treated = [one for one in outcomes if one.condition != BASELINE]
    untouched = [one for one in treated if not one.interventions]
    assert len(untouched) == 248
    assert not [one for one in untouched if one.task in solved and not one.success]
    assert len([one for one in untouched if one.task not in solved and one.success]) == 2


@pytest.mark.sources
def test_who_and_whens_gold(recorded, mirror):
    """The marks would be read off by one: their agents would not have written the marked messages."""
    runs = marked_runs(find_recorded("who_and_when", recorded("who_and_when"), mirror))
    assert Counter(run.subset for run in runs) == {"Algorithm-Generated": 126, "Hand-Crafted": 58}

    def agree(shift):
        places = [(run, run.mistake_step + shift) for run in runs]
        return sum(
            0 <= step < len(run.steps) and run.steps[step].agent == run.mistake_agent for run, step in places
        )

    assert agree(0) == 178
    assert max(agree(-1), agree(1)) < 178
    tables = locate(recorded("who_and_when", resamples=200), mirror).tables
    assert [table.n for table in tables.values()] == [184, 126, 58]


def test_every_set_can_be_had_from_a_mirror_alone(recorded):
    """A machine without a network could not read it."""
    for name in SETS:
        settings = recorded(name)
        assert settings.name == name
        assert all(file.mirror and file.sha256 for file in settings.source.files)


def test_a_missing_mirror_says_what_to_set(recorded, tmp_path):
    """Nobody would know where the runs come from."""
    paths = Paths(data=tmp_path, runs=tmp_path, models=tmp_path, sources=None)
    with pytest.raises(UserError, match=r"MONITORBENCH_SOURCES=DIR with DIR/reflexion/runs\.tar\.gz"):
        read_recorded(recorded("reflexion_mbpp"), paths)


def test_another_archive_than_the_pinned_one_is_refused(recorded, tmp_path):
    """Counts in the docs would be compared with those of other files."""
    (tmp_path / "reflexion").mkdir()
    (tmp_path / "reflexion" / "runs.tar.gz").write_bytes(b"another")
    paths = Paths(data=tmp_path, runs=tmp_path, models=tmp_path, sources=tmp_path)
    with pytest.raises(UserError, match="sha256"):
        read_recorded(recorded("reflexion_humaneval"), paths)


def test_failed_runs_alone_are_no_pilot(recorded, tmp_path):
    """A decision would be asked of runs that nobody intervened in."""
    paths = Paths(data=tmp_path, runs=tmp_path, models=tmp_path, sources=tmp_path)
    with pytest.raises(UserError, match="where a critic fires, no pilot"):
        read_recorded(recorded("who_and_when"), paths)
