"""The real scripts: what a person meets who mistypes something.

Each runs as a process once, forked from one that has imported what all of them import: its output, its exit
code, and whether it paid for torch before it found the mistake. The rest is asked in this process.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from command import script
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException
from studies import composed

from monitorbench.cli.stages import STAGES

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    script for folder in ("data_build", "train", "eval") for script in (ROOT / folder).glob("*.py")
)
HEAVY = {"torch", "transformers", "vllm", "trl", "datasets", "pyarrow", "peft", "accelerate", "scipy"}
FILLED = ("run=x", "transfer.runs=[x]")
"""So that a script which needs them fails for the reason under test."""

EXPERIMENTS = {
    "typo": "# @package _global_\ntraining:\n  lerning_rate: 1e-4\n",
    "typo_group": "# @package _global_\ntrainin:\n  learning_rate: 1e-4\n",
    "typo_option": "# @package _global_\ndefaults:\n  - override /monitor: smollm3\n",
    "typo_defaults": "# @package _global_\ndefaults:\n  - override /monitr: qwen3_4b\n",
    "wrong_type": "# @package _global_\ntraining:\n  learning_rate: fast\n",
    "bad_interpolation": "# @package _global_\ntraining:\n  learning_rate: ${trainin.rate}\n",
    "open_interpolation": '# @package _global_\ntraining:\n  learning_rate: "${"\n',
    "no_yaml": "# @package _global_\ntraining:\n  learning_rate: 1e-4\n bad: [\n",
    "said_twice": "# @package _global_\nseed: 1\nseed: 2\n",
}

CASES: dict[str, tuple[list[str], list[str]]] = {
    # what is typed, and what the line has to name: key, value, expectation
    "unknown key": (["training.lrr=1"], ["training.lrr=1", "unknown key", "learning_rate"]),
    "unknown key added": (["+training.lrr=1"], ["training.lrr=1", "unknown key", "learning_rate"]),
    "unknown key, near": (["seeed=1"], ["seeed=1", "unknown key", "did you mean seed?"]),
    "unknown group": (["trainnig.learning_rate=1"], ["trainnig", "=1", "unknown key 'trainnig'", "training"]),
    "unknown key of hydra": (["hydra.jobb=1"], ["hydra.jobb=1", "unknown key 'jobb'"]),
    "of the other engine": (
        ["engine=vllm", "+engine.max_retries=1"],
        ["engine.max_retries=1", "unknown key", "dtype"],
    ),
    "wrong type": (["training.learning_rate=fast"], ["training.learning_rate=fast", "expected", "number"]),
    "wrong type, integer": (["training.max_steps=1.5"], ["training.max_steps=1.5", "expected", "integer"]),
    "wrong type, list": (["seed=[1,2]"], ["seed=[1, 2]", "expected", "integer"]),
    "negative rate": (
        ["training.learning_rate=-1"],
        ["training.learning_rate=-1", "expected", "greater than 0"],
    ),
    "two settings at odds": (
        ["training.batch_size=8", "training.micro_batch_size=3"],
        ["micro_batch_size=3", "batch_size=8", "divide"],
    ),
    "unknown option": (["monitor=smollm3"], ["monitor=smollm3", "expected", "monitor"]),
    "option, near": (["prompt=dirrect"], ["prompt=dirrect", "expected", "did you mean prompt=direct?"]),
    "value, near": (["evaluate.split=tset"], ["evaluate.split=tset", "did you mean evaluate.split=test?"]),
    "kind, near": (
        ["engine.kind=vlm"],
        ["engine.kind=vlm", "expected", "'transformers'", "did you mean engine.kind=vllm?"],
    ),
    "cell, near": (
        ["dataset.train.subset=safty"],
        ["dataset.train.subset=safty", "expected", "did you mean dataset.train.subset=safety_permission?"],
    ),
    "unknown experiment": (["experiment=dmo"], ["experiment=dmo", "expected", "experiment"]),
    "unknown experiment in a folder": (
        ["experiment=transfer/gpu"],
        ["experiment=transfer/gpu", "expected one of the options of 'experiment'"],
    ),
    "removed": (["~training.learning_rate"], ["training.learning_rate", "expected"]),
    "broken override": (["seed"], ["seed", "expected key=value"]),
    "broken list": (["dataset.splits=[test"], ["dataset.splits=[test", "expected"]),
    "sweep without -m": (["seed=1,2"], ["seed=1,2", "multirun"]),
    "bad interpolation": (["training.learning_rate=${nope}"], ["training.learning_rate", "nope"]),
    "unset variable": (["paths.runs=${oc.env:NOT_SET_ANYWHERE}"], ["paths.runs", "NOT_SET_ANYWHERE"]),
    "file: typo": (
        ["experiment=typo"],
        ["training.lerning_rate=0.0001", "did you mean training.learning_rate?"],
    ),
    "file: typo in a group": (
        ["experiment=typo_group"],
        ["trainin", "unknown key", "did you mean training?"],
    ),
    "file: unknown option": (["experiment=typo_option"], ["monitor=smollm3", "expected", "monitor"]),
    "file: unknown default": (["experiment=typo_defaults"], ["monitr", "did you mean monitor?"]),
    "file: wrong type": (["experiment=wrong_type"], ["training.learning_rate=fast", "expected", "number"]),
    "file: bad interpolation": (["experiment=bad_interpolation"], ["training.learning_rate", "trainin.rate"]),
    "file: open interpolation": (["experiment=open_interpolation"], ["open_interpolation", "${"]),
    "file: no YAML": (["experiment=no_yaml"], ["no_yaml", "line 4"]),
    "file: key said twice": (["experiment=said_twice"], ["said_twice", "seed", "line 3"]),
    "in a sweep": (["seed=-1,0", "-m"], ["seed=-1", "expected", "greater than or equal to 0"]),
    "in a sweep, -m in between": (["prompt=direct", "-m", "seed=-1,0"], ["seed=-1", "expected"]),
    "a flag whose value looks like an override": (["--config-dir", "no=folder", "seed=-1"], ["no=folder"]),
}


FORKS = """
import contextlib, io, json, os, runpy, sys, traceback
import hydra, monitorbench.cli.main, monitorbench.config.load

for script, *arguments in json.loads(sys.argv[1]):
    if os.fork():
        os.wait()
        continue
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.argv = [script, *arguments]
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 70
    imported = sorted({name.partition(".")[0] for name in sys.modules})
    print(json.dumps([code, out.getvalue(), err.getvalue(), imported]), flush=True)
    os._exit(0)
"""
"""Scripts as processes that are forked from one: what that has imported counts as theirs."""


class Ran(NamedTuple):
    """What a process left."""

    code: int
    out: str
    err: list[str]
    imported: set[str]


def run_all(commands: Sequence[Sequence[str]], folder: Path) -> list[Ran]:
    """Run scripts as processes in `folder`."""
    command = [sys.executable, "-c", FORKS, json.dumps(commands)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    left = map(json.loads, done.stdout.splitlines())
    return [Ran(code, out, err.splitlines(), set(imported)) for code, out, err, imported in left]


def call_all(commands: Sequence[Sequence[str]], folder: Path) -> list[Ran]:
    """Run scripts in this process, one after the other; what they import is not known."""
    called = [script(path, *arguments, folder=folder) for path, *arguments in commands]
    return [Ran(done.returncode, done.stdout, done.stderr.splitlines(), set()) for done in called]


def faults(ran: Ran, lines: int, words: Sequence[str]) -> list[str]:
    """What is wrong with how a bad setting was reported."""
    text = "\n".join(ran.err)
    found = []
    if ran.code != 2:
        found.append(f"exit code {ran.code}")
    if "Traceback" in text + ran.out:
        found.append("a traceback")
    if not 1 <= len(ran.err) <= lines:
        found.append(f"{len(ran.err)} lines on stderr")
    if ran.out:
        found.append(f"on stdout: {ran.out[:80]!r}")
    found += [f"{word!r} is not named" for word in words if word not in (ran.err[0] if ran.err else "")]
    found += [f"imports {name}" for name in sorted(HEAVY & ran.imported)]
    return [*found, text[-300:]] if found else []


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Every bad input, given to a script: `test_the_issues_own_example_on_every_script` holds for all."""
    folder = tmp_path_factory.mktemp("conf")
    (folder / "experiment").mkdir()
    for name, text in EXPERIMENTS.items():
        (folder / "experiment" / f"{name}.yaml").write_text(text)
    cwd = tmp_path_factory.mktemp("cwd")
    commands = [
        [str(ROOT / "train" / "sft.py"), "--config-dir", str(folder), *FILLED, *typed]
        for typed, _ in CASES.values()
    ]
    return dict(zip(CASES, call_all(commands, cwd), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_bad_setting_is_one_line_and_exit_code_2(reported: dict[str, Ran], case: str):
    """A traceback of Hydra's insides, or a minute of importing torch, before one learns of a typo."""
    typed, words = CASES[case]
    lines = 2 if "option" in case or "experiment" in case else 1
    assert not faults(reported[case], lines, words), typed


def test_the_options_of_a_group_are_all_listed(reported: dict[str, Ran]):
    """Told of `demo` alone, whoever mistyped `transfer/gpu` never finds `transfer/cpu`."""
    for case in ("unknown experiment in a folder", "unknown experiment"):
        assert {"demo", "transfer/cpu", "transfer/paper"} <= set(reported[case].err[1].strip().split(", "))


def test_the_issues_own_example_on_every_script(tmp_path: Path):
    """`training.learning_rate=-1` has to stop every stage alike, since one experiment serves them all."""
    results = run_all([[str(s), *FILLED, "training.learning_rate=-1"] for s in SCRIPTS], tmp_path)
    expected = ["training.learning_rate=-1", "expected", "greater than 0"]
    assert {
        s.name: f for s, ran in zip(SCRIPTS, results, strict=True) if (f := faults(ran, 1, expected))
    } == {}


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("eval/score.py", 2, ["run=null", "expected", "run="]),
        ("eval/report.py", 2, ["run=null", "expected", "run="]),
        ("eval/transfer.py", 2, ["transfer.runs=[]", "expected", "transfer.runs="]),
        ("eval/score.py run=null", 2, ["run=null"]),
        ("eval/report.py run=null", 2, ["run=null"]),
        ("eval/score.py run=runs/none", 1, ["runs/none"]),
        ("eval/report.py run=runs/none", 1, ["runs/none"]),
        ("eval/transfer.py transfer.runs=[runs/none]", 1, ["runs/none"]),
    ],
)
def test_a_run_that_is_not_there_is_named_in_one_line(
    tmp_path: Path, typed: str, code: int, words: list[str]
):
    """A script without its one required setting, or of a path that is not there, must not fail on None later.

    `run=null` is what a shell variable left empty gives; what is foreseen has another exit code than a typo.
    """
    (ran,) = call_all([typed.split()], tmp_path)
    assert (ran.code, ran.out, len(ran.err)) == (code, "", 1), ran.err[-3:]
    assert all(word in ran.err[0] for word in words), ran.err


@pytest.mark.slow
def test_help_and_cfg_are_quick_everywhere(tmp_path: Path):
    """Asking what can be set must work on a machine where torch is not installed yet."""
    asked = [(s, flags) for s in SCRIPTS for flags in (["--help"], ["--cfg", "job", *FILLED])]
    results = run_all([[str(stage), *flags] for stage, flags in asked], tmp_path)
    for (stage, flags), ran in zip(asked, results, strict=True):
        assert ran.code == 0, (stage, flags, ran.err)
        shown = "Settings that" if flags == ["--help"] else "learning_rate: 0.0004"
        assert shown in ran.out, (stage, flags)
        if flags == ["--help"]:
            assert re.search(r"^    monitorbench [a-z]+ \S", ran.out, re.M), stage
            assert max(map(len, ran.out.splitlines())) <= 110
        assert not HEAVY & ran.imported, (stage, flags, HEAVY & ran.imported)
        assert not ran.err, (stage, flags)
    assert not list(tmp_path.iterdir()), "asking left files behind"


def test_importing_the_package_is_quick(tmp_path: Path):
    """`import monitorbench` in a notebook must not load torch, and scoring must not need it."""
    code = "import sys, monitorbench; print(monitorbench.__version__, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    version, *imported = done.stdout.split()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version)
    assert not HEAVY & set(imported)
    scoring = "import sys, monitorbench.scoring.score, monitorbench.scoring.baselines; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", scoring], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "vllm", "trl", "datasets"} & set(done.stdout.split())
    asking = "import sys, monitorbench.judging.evaluate, monitorbench.corpus.starter; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True)
    assert not {"torch", "scipy", "pandas", "doctest"} & set(done.stdout.split()), "two samples wait for it"


def test_every_command_that_a_stages_help_shows_works(tmp_path: Path):
    """A person copies the command from the help; its settings have to exist."""
    pytest.importorskip("optuna")
    shown = [
        (name, shlex.split(arguments, comments=True))
        for name, stage in STAGES.items()
        for arguments in re.findall(rf"^    monitorbench {name}(.*)$", stage.text, re.M)
    ]
    assert {name for name, _ in shown} == set(STAGES)
    refused = {}
    for name, arguments in shown:
        asked = [a for a in arguments if a != "-m" and "," not in a.partition("=")[2].strip("[]")]
        try:
            # What `--cfg job` prints, which has a process of every script above.
            composed(name, *asked)
        except (HydraException, OmegaConfBaseException) as error:
            refused[f"{name} {' '.join(asked)}"] = str(error)
    assert refused == {}
