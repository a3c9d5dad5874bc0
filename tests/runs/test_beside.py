"""Work in a copy of this process: the same result, wherever it was done."""

import inspect
import os
import select
import signal
import threading

import pytest

from monitorbench.runs import beside as module
from monitorbench.runs.beside import beside, can_copy


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch):
    """No thread but this one and a second core, whatever runs the tests."""
    monkeypatch.setattr(module.threading, "active_count", lambda: 1)
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {0, 1})


def test_a_copy_gives_what_the_work_comes_to(alone: None):
    """If it failed: half of a page's figures would be missing, or drawn after the others."""
    here, done = os.getpid(), beside(lambda: (os.getpid(), "x" * 2**20))
    pid, text = done()
    assert (pid == here, len(text)) == (False, 2**20)


def test_what_fails_in_a_copy_is_done_here(alone: None):
    """If it failed: an error in a figure would be a page without it, or one that never ends."""
    here = os.getpid()
    assert beside(lambda: os.getpid() if os.getpid() == here else os._exit(9))() == here
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 / 0)()


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process ids of the copies that are made."""
    made: list[int] = []
    fork = os.fork
    monkeypatch.setattr(module.os, "fork", lambda: made.append(fork()) or made[-1])
    return made


def test_a_copy_ends_where_nobody_takes_what_it_came_to(alone: None, copies: list[int]):
    """If it failed: after an error in the first half of a page a process would stay for ever."""
    done = beside(lambda: "x" * 2**20)
    del done
    ended = select.poll()
    ended.register(os.pidfd_open(copies[0]), select.POLLIN)
    is_over = bool(ended.poll(60_000))
    os.kill(copies[0], signal.SIGKILL)
    os.waitpid(copies[0], 0)
    assert is_over


def test_what_a_copy_sent_half_is_done_here(alone: None, copies: list[int]):
    """If it failed: a copy that the system kills for its memory would end the report."""
    done = beside(lambda: (os.getpid(), "x" * 2**20))
    assert inspect.getclosurevars(done).nonlocals["here"].poll(60)
    os.kill(copies[0], signal.SIGKILL)
    pid, text = done()
    assert (pid, len(text)) == (os.getpid(), 2**20)


def test_no_copy_is_made_while_threads_run(alone: None, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a lock that a thread held would stop the copy for ever."""
    assert can_copy()
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not can_copy()
    assert beside(os.getpid)() == os.getpid()
