"""What a user would lose here: the same game on every machine, and a rollback that is exact."""

import hashlib
import os
import subprocess
import sys

import pytest
from drawing import draws
from environment_checks import STRANGE, act, check_restoring, check_solution
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.intervention.environments.tasks import Environment

pytest.importorskip("textworld")

from monitorbench.intervention.environments import textworld_games
from monitorbench.intervention.environments.textworld_games import (
    TextWorldGame,
    ensure_game,
    ensure_games,
    game_task,
)

SEED = 3
choices = st.lists(st.integers(0, 1000), max_size=4)


@pytest.fixture(scope="module")
def game(generated):
    environment = TextWorldGame(game_task(generated, SEED), ensure_game(generated, SEED))
    yield environment
    environment.close()


def files_hash(folder):
    content = [(folder / name).read_bytes() for name in ("game.json", "game.z8")]
    return hashlib.sha256(b"".join(content)).hexdigest()


def test_only_the_games_own_text_is_seen(game):
    """Facts, the policy or the interpreter's marks in the text would do the agent's work for it."""
    texts = [game.reset().text]
    texts += [act(game, game._current(), choice).text for choice in range(40)]
    for text in texts:
        assert text
        assert text == text.strip()
        assert not text.endswith(">")
        assert not any(mark in text for mark in ("$$", "tw-", "[", "succeeded", "-=-", "_\n", "Welcome"))
    assert "-= " in texts[0]
    assert len(game.goal.split()) > 5


@draws(12)
@given(choices, choices, choices)
def test_restoring_is_exact(game, before, after, other):
    """A rollback to another state than was left would make the whole comparison worthless."""
    check_restoring(game, before, after, other)


@pytest.mark.slow
def test_equal_actions_lead_to_equal_states_in_another_interpreter(game, generated):
    """An episode that is gone on with in another process would continue in another game."""
    other = TextWorldGame(game.task, ensure_game(generated, SEED))
    assert other.reset() == game.reset()
    for choice in (3, 1, 4, 1, 5, 9):
        assert act(game, game._current(), choice) == act(other, other._current(), choice)
        assert game.state() == other.state()
    snapshot, seen = game.snapshot(), game._current()
    other.reset()
    assert other.restore(snapshot) == seen
    assert other.state() == game.state()
    other.close()
    other.close()


def test_states_differ_where_the_world_does(game):
    """A fingerprint that misses something would call an inexact rollback exact."""
    game.reset()
    states = [game.state()]
    for action in game.solution():
        game.step(action)
        states.append(game.state())
    assert len(set(states)) == len(states) > 2


@draws(10)
@given(st.lists(st.integers(0, 1000), max_size=6))
def test_the_solution_is_the_way_from_here(game, before):
    """A scripted agent that strayed would never come back: its success rate would be another."""
    observation = game.reset()
    for choice in before:
        observation = act(game, observation, choice)
    if observation.done:
        assert game.solution() == ()
    elif game.solution():
        check_solution(game, observation)


def test_the_solution_from_the_start_is_as_long_as_was_asked_for(game, generated):
    """Else `quest_length` would say nothing about how hard a game is."""
    assert check_solution(game, game.reset()) == generated.quest_length


@pytest.mark.parametrize("action", STRANGE)
def test_a_strange_action_changes_nothing_that_matters(game, action):
    """`save` would write to disk, `quit` end the interpreter, and two commands in one would be two steps."""
    start = game.reset()
    after = game.step(action)
    assert not after.done
    assert after.admissible == start.admissible
    assert check_solution(game, after)


def test_after_the_end_nothing_happens(game):
    """The interpreter asks whether to restart: an answer to that would be a new game."""
    game.reset()
    for action in game.solution():
        game.step(action)
    end, state = game._current(), game.state()
    assert game.step("restart") == end
    assert game.state() == state


def test_a_step_before_reset_is_a_mistake_in_the_program(generated):
    """It would otherwise be a state that nothing leads to."""
    environment = TextWorldGame("t", ensure_game(generated, SEED))
    with pytest.raises(RuntimeError, match="reset"):
        environment.step("look")
    assert isinstance(environment, Environment)
    environment.close()


def test_a_game_does_not_hold_the_day_it_was_made(generated):
    """The same seed would give other bytes tomorrow: Inform writes the date as the serial number."""
    story = (ensure_game(generated, SEED) / "game.z8").read_bytes()
    assert story[0x12:0x18] == b"000000"


@pytest.mark.slow
def test_the_same_seed_is_the_same_game_whatever_pythons_hash_seed(generated, tmp_path):
    """A task's id would name another game on another machine, and runs would not be matched."""
    program = (
        "import sys; from pathlib import Path; from monitorbench.config.pilot import TextWorldGames; "
        "from monitorbench.intervention.environments.textworld_games import ensure_game; "
        "ensure_game(TextWorldGames.model_validate_json(sys.argv[1]), int(sys.argv[2]))"
    )
    elsewhere = generated.model_copy(update={"games": tmp_path})
    subprocess.run(
        [sys.executable, "-c", program, elsewhere.model_dump_json(), str(SEED)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert files_hash(elsewhere.games / game_task(elsewhere, SEED)) == files_hash(
        ensure_game(generated, SEED)
    )


def test_what_is_there_is_not_made_again_and_what_is_half_there_is_not_there(generated, monkeypatch):
    """A crash half-way would leave a game that does not start."""

    def broken(settings, seed, folder):
        (folder / "game.json").write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(textworld_games, "_make", broken)
    assert ensure_games(generated, [SEED]) == [ensure_game(generated, SEED)]
    with pytest.raises(KeyboardInterrupt):
        ensure_game(generated, 77)
    assert not (generated.games / game_task(generated, 77)).exists()
    assert not [path for path in generated.games.iterdir() if path.name.startswith(".")]


def test_sizes_that_allow_no_quest_are_named(generated, monkeypatch, tmp_path):
    """A person would see TextWorld's traceback."""

    monkeypatch.setattr(textworld_games, "_ATTEMPTS", 0)
    with pytest.raises(UserError, match="quest_length lower"):
        ensure_game(generated.model_copy(update={"games": tmp_path}), SEED)
    assert not list(tmp_path.iterdir())
