"""What a user would lose here: ALFWorld as published, and a rollback that is exact. Real games."""

import pytest
from drawing import draws
from environment_checks import act, check_restoring, check_solution
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fast_downward")

from monitorbench.config.base import UserError
from monitorbench.intervention.environments.alfworld import AlfworldGame, read_games
from monitorbench.intervention.environments.household_engine import household_names
from monitorbench.intervention.environments.tasks import open_tasks

choices = st.lists(st.integers(0, 1000), max_size=4)


@pytest.fixture(scope="module")
def games(mirrored):
    return read_games(mirrored("alfworld"), "pilot")


@pytest.fixture(scope="module")
def game(games):
    task = sorted(games)[0]
    environment = AlfworldGame(task, games[task], 120)
    yield environment
    environment.close()


def test_things_are_named_as_in_the_walkthroughs():
    """A walkthrough's `desk 1` would be another desk, or none."""
    ids = [f"{kind}_bar_{place}" for kind in ("desk", "drawer") for place in ("plus_01", "plus_02")]
    names = household_names([*ids, "sink_bar_plus_01_bar_sinkbasin", "sink_bar_plus_01", "curtains"])
    assert [names[id_] for id_ in ids] == ["desk 2", "desk 1", "drawer 2", "drawer 1"]
    assert names["sink_bar_plus_01_bar_sinkbasin"] == "sinkbasin 1"
    assert (names["sink_bar_plus_01"], names["curtains"]) == ("sink 1", "curtains")


@pytest.mark.sources
def test_the_published_games_and_their_splits(mirrored, games):
    """Rooms that a critic was trained on would be in the pilot."""
    splits = {split: read_games(mirrored("alfworld"), split) for split in ("train", "validation", "pilot")}
    assert {split: len(of) for split, of in splits.items()} == {"train": 200, "validation": 140, "pilot": 134}
    assert len(set().union(*splits.values())) == 474
    assert all(task.startswith("alfworld/valid_unseen/") for task in games)


@pytest.mark.sources
def test_a_game_is_played_as_published(mirrored):
    """A published walkthrough that does not win means that the game is another one."""
    for opened in open_tasks(mirrored("alfworld"), 2, 0, "pilot"):
        environment = opened()
        start = environment.reset()
        assert start.text.startswith("-= Welcome to TextWorld, ALFRED! =-")
        assert environment.goal
        assert environment.goal in start.text
        assert "_bar_" not in start.text + "".join(start.admissible)
        check_solution(environment, start)
        environment.close()
        environment.close()


@pytest.mark.sources
def test_every_goal_is_found_where_nothing_is_started(games):
    """A critic would judge a run without knowing what it was for."""
    goals = [AlfworldGame(task, text, 120).goal for task, text in games.items()]
    assert all(goal and "#" not in goal and goal.endswith(".") for goal in goals)
    assert len(set(goals)) > 50


@pytest.mark.sources
@draws(4)
@given(choices, choices, choices)
def test_restoring_is_exact(game, before, after, other):
    """A rollback to another state than was left would make the whole comparison worthless."""
    check_restoring(game, before, after, other)


@pytest.mark.sources
def test_the_engines_snapshot_and_a_replay_are_the_same(game):
    """An episode that is gone on with in another process would continue in another state."""
    observation = game.reset()
    for choice in (5, 2, 8):
        observation = act(game, observation, choice)
    snapshot, state = game.snapshot(), game.state()
    for bare in (snapshot, snapshot._replace(inner=None)):
        game.reset()
        assert game.restore(bare) == observation
        assert game.state() == state


@pytest.mark.sources
def test_the_solution_is_the_way_from_here(game):
    """A scripted agent that strayed would never come back."""
    observation = game.reset()
    for command in [one for one in observation.admissible if one.startswith("go to")][:2]:
        observation = game.step(command)
    check_solution(game, observation)


@pytest.mark.sources
def test_states_differ_where_the_world_does(game):
    """A fingerprint that misses something would call an inexact rollback exact."""
    game.reset()
    states = [game.state()]
    for action in game.solution():
        game.step(action)
        states.append(game.state())
    assert len(set(states)) == len(states) > 2


@pytest.mark.sources
def test_an_archive_without_a_checksum_is_refused(mirrored):
    """A game's grammar is evaluated: one from anywhere could run anything."""
    whole = mirrored("alfworld")
    files = tuple(file.model_copy(update={"sha256": ""}) for file in whole.source.files)
    unchecked = whole.model_copy(update={"source": whole.source.model_copy(update={"files": files})})
    with pytest.raises(UserError, match="sha256"):
        read_games(unchecked, "pilot")
