"""Fit a dataset's shortcut checks in two more processes, while the first one composes, imports and reads.

They depend on the dataset alone and take longer than everything else where no model judges. Promises: the
numbers are the same, since all processes ask the same functions, which keep what they come to under a lock;
where another one fails or can't be had, the first does the work, and says what is wrong.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import yaml

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Stakes
from monitorbench.config.project import option_file, trees_of
from monitorbench.untrusted import TABLES

_begun: list[Connection] = []
"""The end of a pipe to the process that was begun; empty where there is none, or nothing to wait for."""


def begin(arguments: Sequence[str]) -> None:
    """Begin a second process, which imports scikit-learn, where these arguments of `choose` run no model.

    Begins none where the process can't be copied, or numpy is there, which has threads of its own.
    """
    monitors, imports = _chosen_from(arguments)
    is_quick = "plan=true" not in arguments and (monitors or imports)
    runs_a_model = not is_quick or not all(entry.lower().endswith(TABLES) for entry in monitors)
    if runs_a_model or "numpy" in sys.modules or not _can_be_copied():
        return
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    context.Process(target=_fit, args=(there, here), daemon=True).start()
    there.close()
    _begun[:] = [here]


def _can_be_copied() -> bool:
    """Whether this process can be copied: by Linux's fork, to a second core, and while no thread runs.

    A lock that a thread holds would stay locked in the copy.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


def _chosen_from(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return what `monitors` names, and whether there is a `from`: typed, or in the file of `experiment`."""
    settings = dict(word.split("=", 1) for word in arguments if "=" in word)
    file = option_file("experiment", settings.get("experiment", ""), trees_of())
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8")) if file else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):  # composing says what is wrong with it
        read = None
    tree = read if isinstance(read, dict) else {}
    imports = "from" in settings or "from" in tree
    if "monitors" in settings:
        return [entry.strip("'\" ") for entry in settings["monitors"].strip("[]").split(",")], imports
    entries = tree.get("monitors")
    return [str(entry) for entry in entries] if isinstance(entries, list) else [], imports


def fit(runs: Path, data: Path, stakes: Stakes, seed: int) -> None:
    """Let the process that was begun, if any, fit the shortcut checks of a dataset that is built."""
    for process in _begun:
        process.send((runs, data, stakes, seed))


def wait() -> None:
    """Wait until the process that was told a dataset has begun to fit it, lest the work be done twice."""
    while _begun:
        with suppress(EOFError):
            _begun.pop().recv()


def _fit(there: Connection, here: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the first process says what a signal means, and ends this
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    here.close()  # so that reading ends with the first process
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no thread of numpy's begins, so that this can be copied again
    from monitorbench.corpus.classifiers import small_fits
    from monitorbench.scoring.baselines import baselines_of, shortcuts_over

    with small_fits(), suppress(EOFError, UserError):  # entered first: it imports scikit-learn
        runs, data, stakes, seed = there.recv()
        if baselines := os.fork():
            signal.signal(signal.SIGTERM, lambda *_: _end_both(baselines))
            there.send(None)
            shortcuts_over(runs, data)
            os.waitpid(baselines, 0)
        else:
            try:
                baselines_of(runs, data, stakes, seed)
            finally:
                os._exit(0)


def _end_both(baselines: int) -> None:
    os.kill(baselines, signal.SIGKILL)
    os._exit(1)
