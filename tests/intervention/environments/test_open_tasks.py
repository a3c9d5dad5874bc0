"""What a user would lose here: splits that share no task, and the same tasks on every machine."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ToolQuestions
from monitorbench.config.sources import Source, SourceFile
from monitorbench.intervention.environments.tasks import SPLITS, game_seeds, open_tasks


@pytest.fixture
def problems(tmp_path):
    """A question-answering environment over 40 train and 10 test questions of our own."""
    files = []
    for part, count in (("train", 40), ("test", 10)):
        rows = [
            {"question": f"{part} {n}: what is {n} + 1?", "answer": f"<<{n}+1={n + 1}>>{n + 1}\n#### {n + 1}"}
            for n in range(count)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{part}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        files.append(SourceFile(path=f"{part}.jsonl", mirror=f"{part}.jsonl.gz", sha256=""))
    source = Source(origin="github", repo="o/n", revision="0" * 40, licence="MIT", files=tuple(files))
    return ToolQuestions(
        kind="questions", name="gsm8k", tools="calculator", source=source, mirror=tmp_path, cache=tmp_path
    )


def ids(settings, n_tasks, seed, split):
    return [opened().task for opened in open_tasks(settings, n_tasks, seed, split)]


def test_no_task_is_in_two_splits_whatever_the_seeds(problems):
    """The critic would be piloted on what it was trained on."""
    drawn = {
        "train": {id_ for seed in range(5) for id_ in ids(problems, 12, seed, "train")},
        "validation": {id_ for seed in range(5) for id_ in ids(problems, 8, seed, "validation")},
        "pilot": {id_ for seed in range(5) for id_ in ids(problems, 10, seed, "pilot")},
    }
    assert {split: len(found) for split, found in drawn.items()} == {
        "train": 12,
        "validation": 8,
        "pilot": 10,
    }
    assert len(set().union(*drawn.values())) == 30


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_generated_games_of_two_splits_never_meet(seed, other):
    """The critic would be piloted on what it was trained on."""
    seeds = {split: game_seeds(20, each, split) for each in (seed, other) for split in SPLITS}
    for place, split in enumerate(SPLITS):
        assert {game % 3 for game in seeds[split]} == {place}
        assert len(set(seeds[split])) == 20
        assert max(seeds[split]) < 2**31
        assert game_seeds(7, other, split) == seeds[split][:7]


def test_the_tasks_of_a_seed_are_pinned():
    """Another order on another machine, or in another release, would unmatch runs."""
    assert game_seeds(3, 0, "pilot") == PINNED


def test_more_tasks_are_the_same_ones_and_then_some(problems):
    """A pilot that is gone on with would begin anew, with other tasks."""
    whole = ids(problems, 10, 1, "pilot")
    assert ids(problems, 4, 1, "pilot") == whole[:4]
    assert ids(problems, 10, 2, "pilot") != whole
    assert sorted(ids(problems, 10, 2, "pilot")) == sorted(whole)


def test_asking_for_too_many_says_how_many_there_are(problems):
    """A pilot of fewer tasks than was asked for would be reported as the larger one."""
    with pytest.raises(UserError, match=r"11 pilot tasks were asked for, there are 10"):
        open_tasks(problems, 11, 0, "pilot")
    with pytest.raises(ValueError, match="split='test'"):
        open_tasks(problems, 1, 0, "test")


def test_a_missing_source_says_what_to_do(problems, tmp_path):
    """A person offline would see a traceback."""
    nowhere = problems.model_copy(
        update={"mirror": None, "source": problems.source.model_copy(update={"origin": "none"})}
    )
    with pytest.raises(UserError, match="MONITORBENCH_SOURCES=DIR"):
        open_tasks(nowhere, 1, 0, "pilot")


def test_places_on_this_machine_do_not_decide_the_tasks(problems, generated):
    """A run moved to another disk would not find its own results again."""
    assert problems.identity() == problems.model_copy(update={"mirror": None}).identity()
    assert generated.identity() != generated.model_copy(update={"rooms": 4}).identity()
    assert "games" not in generated.identity()


PINNED = [172558148, 1291668533, 620603813]
