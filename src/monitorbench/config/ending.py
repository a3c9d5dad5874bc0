"""How a process ends: a foreseen failure is one line on stderr and an exit code of its own.

A bad setting ends with 2, any other foreseen failure with 1, a run stopped to be resumed with 75, Ctrl-C
with 130. A reader that closes our stdout early (`… --help | head -1`) ends the process quietly with 141, as
a shell reports a program that SIGPIPE ended.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from monitorbench.config.base import ConfigError, Preempted, UserError

_MODELS = ("cpu", "gpu")
EXTRAS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("torch", "transformers", "trl", "peft", "datasets", "accelerate", "gguf"), _MODELS),
    **dict.fromkeys(("vllm", "openai", "httpx", "wandb", "safetensors", "tokenizers"), _MODELS),
    "huggingface_hub": _MODELS,
    "unsloth": ("gpu",),
    "textworld": ("environments",),
    "optuna": ("tune",),
    "hydra_plugins": ("tune",),
    "inspect_ai": ("inspect",),
}
"""Modules that the package does not bring by itself, and the extras that do, the usual one first."""
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
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        stop(missing_extra(missing), 1)


def missing_extra(module: str) -> str:
    """One line on a module of `EXTRAS` that is not installed: the command that installs it."""
    extras = EXTRAS[module]
    checkout = (Path(__file__).resolve().parents[3] / "pyproject.toml").is_file()
    commands = [f"pip install -e '.[{extra}]'" if checkout else _from_index(extra) for extra in extras]
    elsewhere = f", outside a checkout {_from_index(extras[0])}" if checkout else ""
    return f"{module}: not installed; expected {' or '.join(commands)}{elsewhere}"


def _from_index(extra: str) -> str:
    return f"pip install 'monitorbench[{extra}]'"


def _end_unread() -> None:
    """End the process where its stdout has no reader any more; return where it still has one."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left can't be flushed when the interpreter ends either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(CLOSED_PIPE) from None


def stop(message: str, code: int) -> NoReturn:
    """End the process with one line on stderr."""
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)
