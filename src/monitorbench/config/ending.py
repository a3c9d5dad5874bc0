"""How a process ends: a foreseen failure is one line on stderr and an exit code of its own.

A bad setting ends with 2, any other foreseen failure with 1, a run stopped to be resumed with 75, Ctrl-C
with 130. A reader that closes our stdout early (`… --help | head -1`) ends the process quietly with 141, as
a shell reports a program that SIGPIPE ended.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.extras import extra_of, installing
from monitorbench.config.secrets import without_secrets

CLOSED_PIPE = 141


@contextmanager
def reporting() -> Iterator[None]:
    """End the process with one line and an exit code of its own where a foreseen failure leaves the body."""
    try:
        yield
        sys.stdout.flush()
    except ConfigError as error:
        stop(str(error), 2)
    except UserError as error:
        stop(str(error), 1)
    except Preempted as error:
        stop(str(error), os.EX_TEMPFAIL)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except BrokenPipeError:
        _end_unread()
        raise  # some other pipe broke
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if (extra := extra_of(module)) is None:
            raise
        stop(f"{module}: not installed, and this stage needs it; expected {installing(extra)}", 1)


def _end_unread() -> None:
    """End the process where its stdout has no reader any more; return where it still has one."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left can't be flushed when the interpreter ends either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(CLOSED_PIPE) from None


def stop(message: str, code: int) -> NoReturn:
    """End the process with one line on stderr, in which no key is shown."""
    sys.stdout.flush()
    print(f"error: {without_secrets(message)}", file=sys.stderr, flush=True)
    raise SystemExit(code)
