"""Fit a dataset's shortcut checks in a second process, while the first one imports and reads verdicts.

They depend on the dataset alone and take longer than everything else where no model judges. Promises: the
numbers are the same, since both processes ask the same functions, which keep what they come to under a lock;
where the second one fails or can't be had, the first does the work, and says what is wrong.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.study import Study


def shortcuts_ahead(study: Study) -> Callable[[Path], None]:
    """Start the second process, and return what tells it the dataset's directory once that is written.

    Starts none where a second core or Linux's fork is missing, or where threads may run, such as numpy's: a
    lock that a thread holds stays locked in the copy of its process.
    """
    has_threads = threading.active_count() > 1 or "numpy" in sys.modules
    if has_threads or sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return lambda _: None
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    context.Process(target=_fit, args=(study, receiver, sender), daemon=True).start()
    receiver.close()
    return sender.send


def _fit(study: Study, receiver: Connection, sender: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the first process says what a signal means, and ends this
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sender.close()  # so that reading ends with the first process
    from monitorbench.corpus.classifiers import small_fits
    from monitorbench.scoring.baselines import baselines_of
    from monitorbench.scoring.recommendation.shortcuts import shortcuts_over

    with small_fits(), suppress(EOFError, UserError):  # entered first: it imports scikit-learn
        data: Path = receiver.recv()
        shortcuts_over(study, data)
        baselines_of(study, data)
