"""What a candidate can ask of the kernel: nothing that reaches beyond its own process."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from monitorbench.sandbox.run import Program, run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the numbers are those of x86-64 Linux"
)

CALLS: dict[str, int] = {
    f"{name}, {what}": number
    for what, calls in yaml.safe_load(
        (Path(__file__).parent / "escapes.yaml").read_text(encoding="utf-8")
    ).items()
    for name, number in calls.items()
}
ASK = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def f():
    ctypes.set_errno(0)
    answer = libc.syscall({number}, 0, 0, 0, 0, 0, 0)
    return [answer, ctypes.get_errno()]
"""
REFUSED = "assert f() == [-1, 1]"
"""EPERM, by the filter: without it root gets another error of these empty arguments, or none."""
MACHINE_CODE = """
import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(bytes.fromhex({code!r}))
f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
"""


def ends(*programs: Program) -> list[bool]:
    return [one.passed for one in run(list(programs), timeout_seconds=2, memory_mib=256, workers=1)]


@pytest.fixture(scope="module")
def refused() -> dict[str, list[bool]]:
    """Whether each call is refused, and the same by the kernel's other table; all in one batch."""
    numbers = [number for asked in CALLS.values() for number in (asked, asked | 0x40000000)]
    ended = ends(*(Program(ASK.format(number=number), REFUSED) for number in numbers))
    return {name: ended[2 * place :][:2] for place, name in enumerate(CALLS)}


@pytest.mark.parametrize("name", CALLS)
def test_the_kernel_refuses(refused, name):
    """If it failed: a response that a model wrote would act on the machine that labels it."""
    assert refused[name] == [True, True]


def test_memory_takes_an_allocators_advice_alone():
    """If it failed: a candidate could poison or merge pages, which other processes see."""
    advise = (
        "import ctypes, mmap\nlibc = ctypes.CDLL(None, use_errno=True)\npage = mmap.mmap(-1, 4096)\n"
        "place = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        "def f(advice): return libc.madvise(place, ctypes.c_size_t(4096), advice), ctypes.get_errno()\n"
    )
    allowed = "assert f(4) == (0, 0)"
    refused = "\n".join(f"assert f({advice}) == (-1, 1)" for advice in (0, 10, 12, 15, 21, 22, 100, 101))
    assert ends(Program(advise, allowed), Program(advise, refused)) == [True, True]


def test_what_is_allowed_is_answered():
    """If it failed: all of the above would pass where nothing can be asked at all."""
    assert ends(Program(ASK.format(number=39), "answer, error = f()\nassert answer > 0 and error == 0")) == [
        True
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("fork by the 32-bit table", "b802000000cd80c3"),
        ("open by the 32-bit table", "b805000000cd80c3"),
        ("socketcall by the 32-bit table", "b866000000cd80c3"),
        ("execve by the 32-bit table", "b80b000000cd80c3"),
    ],
)
def test_machine_code_gets_no_further(name, code):
    """If it failed: numbers of the 32-bit table mean other calls, which a list of numbers alone lets pass."""
    # int 0x80: its answer is -1 (EPERM), or the process ends; a passed check would be an escape.
    check = "assert f() & 0xffffffff != 0xffffffff"
    assert ends(Program(MACHINE_CODE.format(code=code), check)) == [False]


def test_machine_code_runs():
    """If it failed: the cases above would show nothing."""
    assert ends(Program(MACHINE_CODE.format(code="b82a000000c3"), "assert f() == 42")) == [True]
