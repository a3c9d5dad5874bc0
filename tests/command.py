"""`monitorbench` as a person types it: in this process, which is quick, or in a process of its own.

In this process a command sees its own arguments, environment, folder and streams; what it changes of
logging, signals, warnings and the environment is undone. A process of its own is for what only that
shows: what is imported, environment that is read at import, kills and real terminals.
"""

import gc
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO

from hydra.core.global_hydra import GlobalHydra

ROOT = Path(__file__).resolve().parents[1]
Done = subprocess.CompletedProcess[str]


def monitorbench(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run `monitorbench ARGUMENTS` in `folder`, in this process."""
    from monitorbench.cli.main import main

    return _called(main, ["monitorbench", *arguments], folder, environment)


def script(
    path: str, *arguments: str, folder: Path, environment: Mapping[str, str] | None = None, typed: str = ""
) -> Done:
    """Run a script of the checkout or of `folder`, such as `eval/score.py`, in this process.

    `typed` is its stdin.
    """
    file = path if (folder / path).is_file() else str(ROOT / path)

    def run() -> None:
        runpy.run_path(file, run_name="__main__")

    return _called(run, [file, *arguments], folder, environment, typed)


def process(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run `monitorbench ARGUMENTS` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "monitorbench.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})},
        capture_output=True,
        text=True,
    )


def _called(
    main: Callable[[], None],
    argv: list[str],
    folder: Path,
    environment: Mapping[str, str] | None,
    typed: str = "",
) -> Done:
    """What a process would have left that runs `main`: exit code, stdout and stderr."""
    with _stream() as given, _stream() as out, _stream() as err:
        given.write(typed)
        given.seek(0)
        with redirect_stdout(out), redirect_stderr(err), chdir(folder), _restored():
            sys.argv, sys.stdin = list(argv), given
            os.environ.update(environment or {})
            code = _exit_code(main)
        for stream in (out, err):
            stream.seek(0)
        return Done(argv, code, out.read(), err.read())


def _stream() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


def _exit_code(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _restored() -> Iterator[None]:
    """Undo what a command changes of this process."""
    argv, stdin, environment, path = sys.argv, sys.stdin, dict(os.environ), list(sys.path)
    thresholds = gc.get_threshold()
    handlers = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    }
    root, own = logging.getLogger(), logging.getLogger("monitorbench")
    log_handlers, levels = root.handlers[:], (root.level, own.level)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        GlobalHydra.instance().clear()
        root.handlers[:] = log_handlers
        root.setLevel(levels[0])
        own.setLevel(levels[1])
        for number, handler in handlers.items():
            signal.signal(number, handler)
        gc.set_threshold(*thresholds)
        sys.argv, sys.stdin, sys.path[:] = argv, stdin, path
        os.environ.clear()
        os.environ.update(environment)
