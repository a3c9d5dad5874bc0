"""Names: which are refused before a stage begins, what is suggested for a mistyped one, a cell's own."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import study

from monitorbench.cells import CATEGORIES, TASKS, wrong_name
from monitorbench.config.base import ConfigError
from monitorbench.config.load import did_you_mean
from monitorbench.records import Category, Task

LONG = "n" * 300


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (f"monitor.name={LONG}", "at most 80"),
        (f"prompt.name={LONG}", "at most 80"),
        (f"dataset.name={LONG}", "at most 80"),
        *((f"{key}{LONG}", "at most 255") for key in ("run=", "monitor.path=", "monitor.adapter=x/")),
        (f"paths.runs=/tmp/{LONG}/runs", "at most 255"),
        (f"transfer.runs=[a,{LONG}]", "at most 255"),
        *((f"monitor.name='{name}'", "") for name in ("a/b", "../up", "a b", "a\\nb")),
    ],
)
def test_a_name_that_is_too_long_or_a_path_names_its_setting(override: str, said: str):
    """`File name too long`, after a model was loaded, says nothing; a path writes outside the runs."""
    with pytest.raises(ConfigError) as caught:
        study(override, primary="evaluate")
    assert str(caught.value).startswith(override.partition("=")[0])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_fit_do(tmp_path: Path):
    """The longest of both."""
    assert study(f"monitor.name={'n' * 80}", f"paths.runs={tmp_path}/{'n' * 255}", primary="evaluate")
    with pytest.raises(ConfigError, match=r"paths\.runs.*256 bytes"):
        study(f"paths.runs={tmp_path}/{'n' * 256}", primary="evaluate")


NAMES = ["direct", "direct_few_shot", "evidence", "evidence_few_shot"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("dirrect", "direct"), ("evidnce", "evidence"), ("direct_fewshot", "direct_few_shot"), ("xyz", "")],
)
def test_the_nearest_name_is_suggested(given: str, meant: str):
    """A far-fetched name is worse than none."""
    assert did_you_mean(given, NAMES, "prompt=") == (f"did you mean prompt={meant}?" if meant else "")


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_only_known_names_are_suggested(given: str, known: list[str]):
    """A suggestion that is refused in turn."""
    said = did_you_mean(given, known)
    assert said == "" or said.removeprefix("did you mean ").removesuffix("?") in known


def test_a_number_out_of_range_is_no_name():
    """`did you mean` behind a learning rate would be nonsense."""
    for override in ("seed=-1", "training.learning_rate=-1", "calibrate.alpha=2"):
        with pytest.raises(ConfigError) as caught:
            study(override)
        assert "did you mean" not in str(caught.value)


OWN = ("dataset=jsonl", "dataset.path=x")


def test_the_paper_has_its_names() -> None:
    """Settings and samples would speak of different cells."""
    assert (tuple(Category), tuple(Task)) == (CATEGORIES, TASKS)
    assert not any(map(wrong_name, (*CATEGORIES, *TASKS)))


@pytest.mark.parametrize("name", ["pii", "x", "a" * 40, "cwe_79", "task_2", "sources"])
def test_what_is_a_name(name: str) -> None:
    """Teams have words of their own."""
    assert wrong_name(name) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Personal Data!", "such as personal_data"),
        ("pii/chat", "such as pii_chat"),
        ("all-pii", "such as all_pii"),
        ("a:b", "such as a_b"),
        ("a+b", "such as a_b"),
        ("7", "a letter first"),
        ("", "a letter first"),
        ("ü", "a letter first"),
        ("pii\n", "such as pii"),
        ("a" * 41, "at most 40"),
        ("all", "a meaning of its own"),
        ("overall", "a meaning of its own"),
        ("held_out", "such as held_out_cases"),
        ("none", "a meaning of its own"),
    ],
)
def test_what_is_none(name: str, said: str) -> None:
    """It would be read as another cell in a table, a subset or an adapter's name."""
    assert said in wrong_name(name)
    assert "\n" not in wrong_name(name)


@pytest.mark.parametrize("dataset", ["starter", "paper", "paper_local", "automonitor_bench"])
@pytest.mark.parametrize(
    "override", ["dataset.train.subset=pii", "dataset.test.subset=[all,-safety_permission/chat]"]
)
def test_the_papers_datasets_refuse_other_names_at_once(dataset: str, override: str) -> None:
    """A misspelt category would be found when the corpus is built, hours later."""
    with pytest.raises(ConfigError, match=re.escape(override.partition("=")[0])) as caught:
        study(f"dataset={dataset}", override)
    assert "is no subset: expected 'all', a category (safety_permission, " in str(caught.value)


@pytest.mark.parametrize("key", ["transfer.subsets", "+transfer.also.more.subsets"])
def test_a_transfer_studys_subsets_are_the_datasets(key: str) -> None:
    """A study of many trainings would end at the one that was misspelt."""
    with pytest.raises(ConfigError, match=rf"^{re.escape(key.removeprefix('+'))}=.*'safty' is no subset"):
        study(f"{key}=[safty]")
    assert study(*OWN, "transfer.subsets=[pii,all-pii/chat]").transfer.subsets == ("pii", "all-pii/chat")
    with pytest.raises(ConfigError, match="'PII' is no subset"):
        study(*OWN, "transfer.subsets=[PII]")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("dataset.category=PII", "dataset.category=PII: 'PII' is no name; .*, such as pii$"),
        ("dataset.task=held_out", "dataset.task=held_out: 'held_out' is a word with a meaning"),
        ("dataset.positive_means=''", "dataset.positive_means=: expected a few words on one line"),
        (f"dataset.positive_means={'x' * 81}", "dataset.positive_means=x+.*: expected a few words"),
    ],
)
def test_a_logs_names_and_meaning_are_checked(override: str, said: str) -> None:
    """Every sample of the log would carry it."""
    with pytest.raises(ConfigError, match=said):
        study("dataset=inspect_log", "dataset.path=x", override)


def test_a_log_may_have_own_names() -> None:
    """A team's log need not be of the paper's categories."""
    names = ("dataset.category=pii", "dataset.task=chat", "dataset.positive_means='contains personal data'")
    dataset = study("dataset=inspect_log", "dataset.path=x", *names).dataset
    assert dataset.model_dump()["category"] == "pii"
    assert dataset.model_dump()["positive_means"] == "contains personal data"
    with pytest.raises(ConfigError, match="unknown key 'positive_means'"):
        study("dataset=starter", "+dataset.positive_means=x")
