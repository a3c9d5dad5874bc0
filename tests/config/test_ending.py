"""What a terminal is sent: no orders out of somebody's file, and no character that it has not."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import HOSTILE
from rich.table import Table
from rich.text import Text

import monitorbench
from monitorbench.config.ending import printable
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
