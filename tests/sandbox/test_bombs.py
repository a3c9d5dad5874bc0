"""Candidates that want to take the machine, or the batch, down with them: each is one verdict of its own."""

import sys

import pytest

from monitorbench.sandbox.run import Program, Status, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="promises differ outside Linux")

AT_ONCE = {
    "a loop": "while True: pass",
    "sleep": "import time\ntime.sleep(1000)",
    "a list of 10^11": "x = [0] * 10**11",
    "bytes": "x = bytearray(2**34)",
    "a growing list": "x = []\nwhile True: x = [x, b'1' * 10**6]",
    "a growing string": "x = 'a'\nwhile True: x += x",
    "a growing dict": "x = {}\nwhile True: x[len(x)] = b'1' * 10**5",
    "a power": "x = 9 ** 9 ** 9",
    "a shift": "x = 1 << 2**40",
    "a factorial": "import math\nmath.factorial(10**8)",
    "a regular expression": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "recursion": "def f(): return f()\nf()",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
    "a nested expression": "x = " + "(" * 5000 + ")" * 5000,
    "a nested list": "x = eval('[' * 10**5 + ']' * 10**5)",
    "forks": "import os\nwhile True: os.fork()",
    "threads": "import threading\nwhile True: threading.Thread(target=print).start()",
    "subprocesses": "import subprocess\nwhile True: subprocess.Popen(['/bin/sleep', '100'])",
    "a null pointer": "import ctypes\nctypes.string_at(0)",
    "abort": "import os\nos.abort()",
    "kill itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "stop itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "faulthandler": "import faulthandler\nfaulthandler._sigsegv()",
    "code of its own": "import types\nexec((lambda: 0).__code__.replace(co_code=b'd\\x00' * 99 + b'S\\x00'))",
    "no end of output": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "every pipe full": "import os\nfor d in range(64):\n    try:\n        while True: os.write(d, b'x' * 65536)\n"
    "    except OSError: pass",
    "every pipe closed": "import os\nfor d in range(64):\n    try: os.close(d)\n    except OSError: pass\n"
    "while True: pass",
    "unittest.__main__": "import unittest.__main__",
    "venv.__main__": "import venv.__main__",
    "idlelib.idle": "import idlelib.idle",
    "antigravity": "import antigravity",
    "test.regrtest": "import test.__main__",
    "a module that waits": "import code\ncode.interact()",
    "input": "input()",
    "an exit in a finaliser": "import os\nclass X:\n    def __del__(self): os._exit(3)\nX()",
    "collection that never ends": "import gc\ngc.set_threshold(1)\nx = [[] for _ in range(10**9)]",
}
WHEN_CALLED = {
    "an endless answer": "def f():\n    while True: yield 0",
    "a large answer": "def f(): return 'a' * 10**8",
    "a deep answer": "def f():\n    x = []\n    for _ in range(10**5): x = [x]\n    return x",
    "an answer in a circle": "def f():\n    x = []\n    x.append(x)\n    return x",
    "a huge number": "def f(): return 10 ** 10**7",
    "a message of 4 GiB": "import os\ndef f():\n    for d in range(64):\n"
    "        try: os.write(d, b'\\xff' * 4)\n        except OSError: pass",
    "a message in pieces": "import os, time\ndef f():\n    for d in range(64):\n"
    "        try: os.write(d, b'\\x10')\n        except OSError: pass\n    time.sleep(1000)",
    "no text": "def f():\n    class E(Exception):\n        def __str__(self): raise self\n    raise E",
    "sleep": "import time\ndef f(): time.sleep(1000)",
}
BOMBS = {f"{name}, at once": Program(code, "") for name, code in AT_ONCE.items()} | {
    f"{name}, when called": Program(code, "assert f() == 0") for name, code in WHEN_CALLED.items()
}
# A module that only leaves when it is imported did no harm, and there is nothing to check.
HARMLESS = {f"{name}, at once" for name in ("antigravity", "venv.__main__", "kill itself", "stop itself")}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_its_own_verdict(name):
    """If it failed: one response would end a build, or decide what others are labelled."""
    fine = Program("def f(): return 0", "assert f() == 0")
    before, bomb, after = run([fine, BOMBS[name], fine], timeout_seconds=0.5, memory_mib=256, workers=1)
    assert before.passed
    assert after.passed
    assert name in HARMLESS or bomb.status is not Status.PASSED
