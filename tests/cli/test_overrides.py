"""Sweeps: the runs that overrides come to, what is said before each, and what is left on disk."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import monitorbench
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException

from monitorbench.cli.overrides import (
    _parsed,
    _unparsed,
    first_run,
    flag_value,
    refuse_repeated_keys,
    run_overrides,
    split_flags,
    with_quoted_paths,
)
from monitorbench.config.base import ConfigError

GRIDS = (
    ["seed=1"],
    ["seed=1,2", "prompt=direct,evidence"],
    ["seed=range(3)", "monitor=a", "+tracking.group=x"],
    ["training.learning_rate=choice(1e-4,1e-3)", "dataset.train.subset=[a],[a,b]"],
    ["name='a,b'", "seed=1,2", "~prompt"],
)


@pytest.mark.parametrize("grid", GRIDS)
def test_the_runs_are_those_of_hydras_own_sweeper(grid: list[str]):
    """Otherwise: a sweep that is frozen or planned differs from what `-m` would run."""
    parsed = OverridesParser.create().parse_overrides(grid)
    (expected,) = BasicSweeper.split_arguments(parsed, None)
    assert run_overrides(grid) == expected
    assert first_run(grid) == expected[0]


def test_a_grid_refuses_an_interval_and_a_first_run_leaves_it_out():
    """Otherwise: a search's settings are never looked at before its first trial."""
    with pytest.raises(HydraException):
        run_overrides(["training.learning_rate=interval(0,1)"])
    assert first_run(["training.learning_rate=interval(0,1)", "seed=3,4"]) == ["seed=3"]


def test_flags_are_told_from_settings_wherever_they_stand():
    """Otherwise: `-m` in the middle ends in a usage message of Hydra's."""
    typed = ["a=1", "-m", "--config-dir", "x=y", "b=2", "--cfg", "job", "c=3"]
    assert split_flags(typed) == (["a=1", "b=2", "c=3"], ["-m", "--config-dir", "x=y", "--cfg", "job"])
    assert flag_value(typed, "--config-dir", "-cd") == "x=y"
    assert flag_value(["--config-dir=z"], "--config-dir", "-cd") == "z"


@pytest.mark.parametrize(
    ("typed", "quoted"),
    [
        ("run=7", "run='7'"),
        ("++run= 1e5", "++run= '1e5'"),
        ("recommend.runs=[1, a,'2',runs/3,4_0]", "recommend.runs=['1', a,'2',runs/3,'4_0']"),
        ("run=choice(1,2)", "run=choice('1','2')"),
        ("transfer.operating_points=[-1.5e-3]", "transfer.operating_points=['-1.5e-3']"),
        *(
            (same, same)
            for same in ("run=null", "run=1 2", "run=a:1", "run=1a", "run='[1,2]'", "run=range(3)")
        ),
        *(
            (same, same)
            for same in ("seed=1", "seed=1,2", "dataset.test.pairs_per_cell=3", "hydra.x=1", "~run")
        ),
    ],
)
def test_only_a_number_in_the_place_of_a_path_gets_quotes(typed: str, quoted: str):
    """A number as a run's name would be refused; quotes elsewhere would make text of numbers."""
    assert with_quoted_paths([typed]) == [quoted]


ECHO = """
from pathlib import Path
from monitorbench.cli.stage import Stage

def echo(study, compose):
    more = compose(["prompt=evidence"])
    print(study.seed, study.prompt.name, more.seed, more.prompt.name)
    return Path(".")

Stage("train", echo, "Echo.")()
"""


def test_each_run_is_announced_and_each_start_has_a_folder_of_its_own(tmp_path: Path):
    """Otherwise: nobody knows which line is of which run, and a second sweep writes over the first one."""
    command = [sys.executable, "-c", ECHO, "seed=3,4", "report.worst=5", "-m"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines() == ["run 1 of 2, seed=3", "run 2 of 2, seed=4"]
    assert ran.stdout.splitlines() == ["3 direct 3 evidence", ".", "4 direct 4 evidence", "."]
    (start,) = (tmp_path / "runs" / "multirun" / "train").iterdir()
    assert {path.name for path in start.iterdir()} == {"multirun.yaml", "0", "1"}


def test_a_refused_sweep_and_a_plan_leave_nothing(tmp_path: Path):
    """Otherwise: a key that was typed as a setting is refused, and lies in Hydra's files all the same."""
    refused = monitorbench("score", "seed=-1,2", "run=x", "-m", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "seed=-1" in refused.stderr
    key = "engine.model=sk-PLANTED-0123456789abcdef"
    secret = monitorbench("score", "engine=openai_api", key, "-m", folder=tmp_path)
    assert secret.returncode == 2
    planned = monitorbench("build", "dataset=starter", "dataset.seed=1,2", "plan=true", "-m", folder=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.count("to be built") == 8
    assert not list(tmp_path.iterdir())


def test_a_plan_is_refused_with_a_reason_where_there_is_none(tmp_path: Path):
    """Otherwise: `plan=true` is taken for a setting, and the stage runs."""
    refused = monitorbench("calibrate", "run=x", "plan=true", folder=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: plan=true: calibrate has no plan: ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["monitors=[a,", "b]"], "quote a word with spaces as a whole, as 'monitors=[a, b]'"),
        (["dataset.splits=[test"], "a bracket is not closed"),
        (["import.columns=a:1", "import.columns=b:2"], "as a shell expands {a,b}: quote the whole word"),
        (["seed=1", "hydra/launcher=local"], "expected -m beside it"),
        (["from=a.csv", "seed=1", "from=b.csv"], "from=b.csv: given 2 times; expected from=[a.csv,b.csv]"),
        (["-m", "seed=1,2", "hydra/launcher=slurm", "hydra.launcher.dryrun=true"], "hydra.launcher.dry_run?"),
    ],
)
def test_words_that_a_shell_took_apart_are_recognised(tmp_path: Path, words: list[str], hint: str):
    """Otherwise: a person reads that `b]` is no override, who typed a list, or one file of two is read."""
    refused = monitorbench("evaluate", *words, folder=tmp_path)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert hint in refused.stderr


def test_a_dry_run_of_a_sweep_leaves_nothing(tmp_path: Path):
    """Otherwise: a folder of Hydra's stands for runs that never were."""
    typed = ("train", "seed=0,1", "-m", "hydra/launcher=slurm", "hydra.launcher.dry_run=true")
    shown = monitorbench(*typed, folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("#!")
    assert "--array=0-1" in shown.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("monitor.reasoning.end=</think>", "'monitor.reasoning.end=\"</think>\"'"),
        ("prompt.prefill=(a)", "'prompt.prefill=\"(a)\"'"),
        ("import.benign_values=[fein,Verstoß, a (b)]", '\'import.benign_values=[fein,"Verstoß","a (b)"]\''),
    ],
)
def test_a_value_that_needs_quotes_is_shown_with_them(word: str, quoted: str):
    """If it failed: a person would be told that `key=value` is expected, having typed just that."""
    with pytest.raises(OverrideParseException):
        _parsed([word])
    said = _unparsed(word, [word])
    assert quoted in said
    (override,) = _parsed([quoted.strip("'")])
    meant = override.value()
    parts = meant if isinstance(meant, list) else [meant]
    assert [str(part) for part in parts] == [
        part.strip() for part in word.partition("=")[2].strip("[]").split("," if parts is meant else "\0")
    ]


@pytest.mark.parametrize("levels", ["{true:1,false:0,1:0.5}", "{a:1, b:0, a:0.5}"])
def test_a_key_that_is_there_twice_is_refused(levels: str):
    """If it failed: `true` would be read as .5, the last that was said of `1`."""
    with pytest.raises(ConfigError, match=r"a key is there twice, .*; expected 3 that differ"):
        refuse_repeated_keys([f"import.levels={levels}"])
    refuse_repeated_keys(["import.levels={true:1,yes:1}", "x={a:{b:1},c:{b:1}}", "x={a:'b,a:1'}", "y={", "z"])


def test_a_key_that_a_file_has_twice_is_refused(tmp_path: Path):
    """If it failed: the levels of an experiment would be read as others than those that stand there."""
    (tmp_path / "experiment").mkdir()
    file = tmp_path / "experiment" / "own.yaml"
    file.write_text("seed: 0\nimport:\n  levels: {true: 0.9,\n    1: 0.1}\n")
    with pytest.raises(
        ConfigError, match=r"own\.yaml, line 4: 1 is the key true again; expected .*'true', '1'$"
    ):
        refuse_repeated_keys(["experiment=own"], [tmp_path])
    file.write_text("a: {true: 1, '1': 2}\nb: [{x: 1}, {x: 1}]\nc: {x: {x: 1}}\n")
    refuse_repeated_keys(["experiment=own", "experiment=none", "seed=1"], [tmp_path])


@pytest.mark.parametrize("typed", ["import.levels={null:0.1,a:1}", "experiment=own"])
def test_null_is_no_key(typed: str, tmp_path: Path):
    """If it failed: a person would read of an override that can't be merged, and not why."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "own.yaml").write_text("# @package _global_\nimport:\n  levels: {null: 0.1}\n")
    shown = monitorbench("import", typed, "from=a.csv", f"--config-dir={tmp_path}", folder=tmp_path)
    assert "import.levels: null is no key; expected a word" in shown.stderr


def test_a_quoted_key_is_shown_with_backslashes():
    """lm-eval's `[invalid]` is a word that a person wants to say is no score."""
    said = _unparsed(word := 'import.levels={"[invalid]":null}', [word])
    (override,) = _parsed([said.rpartition("expected ")[2].strip("'")])
    assert override.value() == {"[invalid]": None}


@pytest.mark.parametrize("word", ["import.levels={böse:1,gut:0}", "import.levels={'sehr böse':1}"])
def test_a_key_of_other_letters_is_sent_to_a_file(word: str):
    """Hydra's grammar has keys of ASCII letters alone: no quote or backslash helps."""
    assert "expected it in a file, conf/experiment/NAME.yaml with import.levels" in _unparsed(word, [word])


@pytest.mark.parametrize("word", ["seed", "monitors=[a,b", "x={a"])
def test_what_quotes_do_not_help_is_no_override(word: str):
    """If it failed: quotes would be asked for where a bracket is missing."""
    assert "not an override" in _unparsed(word, [word])
