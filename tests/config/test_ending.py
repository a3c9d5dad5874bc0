"""What a terminal is sent: no orders out of somebody's file, and no character that it has not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import HOSTILE

from monitorbench.config.ending import printable


def test_names_of_files_give_a_terminal_no_orders():
    """If it failed: a column's name would colour the terminal, or hide what follows."""
    shown = printable(HOSTILE + "\x9b2J\r\x00 ü \n")
    assert shown.endswith("\\x9b2J\\r\\x00 ü \n")
    assert "\\x1b[31mred\\x1b[0m \\u202eolleh" in shown
    assert all(one.isprintable() or one == "\n" for one in shown)


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
