"""What a user would lose here: the machine, a secret, or the truth of every executed label."""

import os
import secrets
import socket
import sys
from pathlib import Path

import pytest

from monitorbench.sandbox import run as sandbox
from monitorbench.sandbox.run import Program, ProgramStatus, RunResult, SandboxUnavailable, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

WRITE_EVERYWHERE = """
import os
for d in range(32):
    try:
        {statement}
    except OSError:
        pass
"""


def only(code: str, check: str = "") -> RunResult:
    return run([Program(code, check)], timeout_seconds=1, memory_mib=256, workers=1)[0]


def test_outcomes_come_in_the_order_of_the_programs():
    """Else labels would be attached to other programs' responses."""
    programs = [Program(f"x = {i}", f"assert x % 3 == 0, x\nassert x == {i}") for i in range(12)]
    assert [outcome.passed for outcome in run(programs, workers=2)] == [i % 3 == 0 for i in range(12)]


def test_a_failure_says_why():
    """Else a wrong answer couldn't be told from a typo."""
    assert only("x = 1", "assert x == 2, 'not two'") == RunResult(
        ProgramStatus.FAILED, "AssertionError: not two"
    )
    assert only("x = (").detail.startswith("SyntaxError")


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket\nsocket.socket().connect(('127.0.0.1', {port}))",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import socket\nsocket.socketpair()",
        "import ctypes, os\nif ctypes.CDLL(None).socket(2, 1, 0) < 0: raise PermissionError",
    ],
)
def test_the_network_is_refused(attempt):
    """Else a candidate could send away what it sees, or attack from here."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        outcome = only(attempt.format(port=listener.getsockname()[1]))
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert outcome.status is ProgramStatus.FAILED
    assert outcome.detail.startswith("PermissionError")


@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(1000)"])
def test_what_never_ends_is_timed_out(code):
    """Else one mutant would stop a build for good."""
    outcome = run([Program(code, "")], timeout_seconds=0.2)[0]
    assert outcome.status is ProgramStatus.TIMED_OUT


@pytest.mark.parametrize(
    "code", ["x = [0] * 10**11", "x = bytearray(2**30)", "x = []\nwhile True: x = [x, b'1' * 10**6]"]
)
def test_a_memory_bomb_hits_its_own_limit(code):
    """Else the kernel would kill the build, or somebody's job on the same node."""
    assert only(code) == RunResult(ProgramStatus.FAILED, "MemoryError:")


@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True: os.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import os\nos.execv('/bin/true', ['true'])",
        "import ctypes, os\nif ctypes.CDLL(None).fork() < 0: raise PermissionError",
    ],
)
def test_no_process_can_be_started(code):
    """Else a fork bomb, or a child that outlives its time-out, would stay on the machine."""
    outcome = only(code)
    assert outcome.status is ProgramStatus.FAILED
    assert outcome.detail.startswith("PermissionError")


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(0)",
        "raise SystemExit",
        "import os\nos._exit(0)",
        "import os\ndef f():\n    os._exit(0)",
        "print('passed')\nimport os\nos._exit(0)",
        WRITE_EVERYWHERE.format(statement="os.write(d, b'ready\\npassed\\n')") + "os._exit(0)",
        "import os\nos.abort()",
        "import ctypes\nctypes.string_at(0)",
        "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit(0)",
        "def f(): raise KeyboardInterrupt",
    ],
)
def test_leaving_early_never_counts_as_passed(code):
    """Else a response could earn `passes the hidden tests` without an answer."""
    outcome = only(code, "f()\nassert False")
    assert outcome.status in {ProgramStatus.FAILED, ProgramStatus.CRASHED}


@pytest.mark.parametrize(
    "code",
    [
        "open({path!r}, 'w')",
        "open({path!r}, 'a').write('more')",
        "open({path!r})",
        "import os\nos.unlink({path!r})",
        "import os\nos.truncate({path!r}, 0)",
        "import os\nos.rename({path!r}, {path!r} + '2')",
        "import os\nos.chmod({path!r}, 0)",
        "import os\nos.mkdir({path!r} + '2')",
        "open('in_the_working_directory', 'w')",
        "import os, shutil\nos.listdir('/')",
    ],
)
def test_files_are_out_of_reach(tmp_path, code):
    """Else a candidate could destroy the data, or read a key."""
    file = tmp_path / "kept.txt"
    file.write_text("kept")
    outcome = only(code.format(path=str(file)))
    assert outcome.status is ProgramStatus.FAILED
    assert outcome.detail.startswith("PermissionError")
    assert file.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [file]


def test_our_environment_is_not_visible(monkeypatch):
    """Else an API key would lie open to whatever a model wrote."""
    monkeypatch.setenv("A_SECRET_KEY", secrets.token_hex())
    check = "assert os.environ.keys() <= {'PYTHONHASHSEED', 'LC_CTYPE'}, sorted(os.environ)"
    assert only("import os", check).passed
    assert not only(f"text = open('/proc/{os.getpid()}/environ').read()").passed


def test_other_processes_get_no_signals():
    """Else a candidate could end the build, or everything its user runs."""
    outcome = only(f"import os\nos.kill({os.getpid()}, 0)")
    assert outcome.detail.startswith("PermissionError")


def test_limits_can_not_be_lifted():
    """Else the first line of a candidate could undo the rest of this file; root may raise hard limits."""
    assert not only("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))").passed


def test_the_standard_library_works_and_nothing_else_is_found():
    """Else right answers would fail for want of an import, or depend on what is installed."""
    code = "import collections.abc, datetime, hashlib, math, random\nfrom functools import reduce"
    assert only(code, "assert hashlib.md5(b'a').hexdigest().startswith('0cc1')").passed
    assert only(code, "assert datetime.datetime.strptime('2020', '%Y').year == 2020").passed
    assert only(code, "assert random.random() < 1 and reduce(max, [1, 3, 2]) == 3").passed
    assert only("import numpy").detail.startswith("ModuleNotFoundError")
    assert only("import monitorbench").detail.startswith("ModuleNotFoundError")


def test_the_same_program_ends_the_same_way_twice():
    """Else a build would differ from run to run by hash order or chance."""
    program = Program(
        "import random\nx = list({'a', 'b', 'c', 'd', 'e'}), random.random()", "raise ValueError(x)"
    )
    first, second = run([program, program])
    assert first == second


def test_a_large_program_arrives_whole():
    """Else a pipe's size would bound what can be checked, or hang the build."""
    assert only(f"x = {'a' * 500_000!r}", "assert len(x) == 500_000").passed
    assert not only("import os\nos._exit(0)" + "\n" * 500_000).passed


def test_a_flood_of_output_is_not_collected():
    """Else a candidate could fill our memory through its own pipes."""
    flood = WRITE_EVERYWHERE.format(statement="[os.write(d, b'x' * 65536) for _ in iter(int, 1)]")
    assert only(flood).status in {ProgramStatus.TIMED_OUT, ProgramStatus.CRASHED}


def test_without_protection_nothing_is_run(monkeypatch, tmp_path):
    """Else an unusual machine would run foreign code bare, without a word."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SandboxUnavailable, match="win32"):
        only("x = 1")
    monkeypatch.undo()
    # Stands in for a kernel that refuses the filter: the fork stops before it says `ready`.
    command = sandbox._command
    refuse = (
        "def refuse(*_): raise OSError('the kernel refuses a seccomp filter')\n"
        "template.lock.allow_only = refuse\n"
    )

    def refusing(pipes):
        *python, start = command(pipes)
        return [*python, start.replace("template.main(", refuse + "template.main(")]

    monkeypatch.setattr(sandbox, "_command", refusing)
    ran = tmp_path / "ran"
    with pytest.raises(SandboxUnavailable, match="the kernel refuses"):
        only(f"open({str(ran)!r}, 'w')")
    assert not ran.exists()
    monkeypatch.setattr(sandbox, "_command", lambda _: [sys.executable, "-c", ""])
    with pytest.raises(SandboxUnavailable, match="ended early"):
        only("x = 1")


def test_a_program_leaves_nothing_to_the_next():
    """Else an outcome, and with it a label, would depend on which programs were run before."""
    program = Program(
        "import builtins, math, sys\nseen = hasattr(math, 'mark') or hasattr(builtins, 'mark')",
        "math.mark = builtins.mark = 1\nsys.modules['json'] = None\nassert not seen",
    )
    assert all(outcome.passed for outcome in run([program] * 3, workers=1))
    loads = Program("__import__('wave')", "")
    assert [o.passed for o in run([loads, Program("import wave", ""), loads], workers=1)] == [
        False,
        True,
        False,
    ]


def test_what_a_program_leaves_running_ends_with_it():
    """Else a candidate that closes its pipe early would go on computing on this machine."""
    close_all = "import os\nfor d in range(32):\n    try: os.close(d)\n    except OSError: pass\n"
    slow = Program(close_all + "while True: pass", "")
    first, second = run([slow, Program("x = 1", "assert x == 1")], timeout_seconds=5, workers=1)
    assert first.status is ProgramStatus.CRASHED
    assert second.passed


def test_the_working_directory_is_gone_afterwards(monkeypatch, tmp_path):
    """Else thousands of runs would leave thousands of directories."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert only("x = 1").passed
    assert list(Path(tmp_path).iterdir()) == []
