"""Weights & Biases: the only place that imports it, and late.

Promises: whatever W&B does, the stage continues. It is started, fed and ended in a thread of its own, so
`log`, `table` and `artifact` neither wait nor fail; what goes wrong is one warning line. It prints nothing.
Offline, nothing connects anywhere; no key is written.
"""

import importlib.util
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from monitorbench.config.study import Study, Tracking

_INIT_SECONDS = 30.0
_FINISH_SECONDS = 30.0
"""How long the last numbers may take to be uploaded; what is not is still in the run directory."""

_OURS = "MONITORBENCH_WANDB_DATA_DIR"
"""The environment variable that says which `WANDB_DATA_DIR` was set here."""
_log = logging.getLogger(__name__)


class Track:
    """Takes a run's numbers while it runs, and its results. Without `begin` it drops them."""

    def __init__(self, begin: Callable[[], Any] | None = None, after_seconds: float = 0.0) -> None:
        """`begin` starts a W&B run; it is called in the thread, `after_seconds` after the first numbers."""
        self._begin, self._after_seconds = begin, after_seconds
        self._queue: queue.SimpleQueue[Callable[[Any], None] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._exit_code = 0
        self._thread: threading.Thread | None = None

    def log(self, numbers: Mapping[str, float | None], step: int) -> None:
        """Hand numbers over; those that are None are left out. Steps may repeat but never decrease."""
        numbers_there = {name: value for name, value in numbers.items() if value is not None}
        self._put(lambda run: run.log(numbers_there, step=step))

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Hand a table over; its columns are the keys of all rows, in their order."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        data = [[row.get(column) for column in columns] for row in rows]

        def put(run: Any) -> None:
            import wandb

            run.log({name: wandb.Table(columns=columns, data=data, allow_mixed_types=True)})

        self._put(put)

    def artifact(self, name: str, kind: str, *paths: Path) -> None:
        """Hand files, and all files of folders, over as the artifact `name` of type `kind`.

        They are not copied: offline, `wandb sync` reads them where they are.
        """
        plain = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[:128]

        def put(run: Any) -> None:
            import wandb

            artifact = wandb.Artifact(plain, type=kind)
            for path in paths:
                for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                    if file.is_file():
                        inside = file.relative_to(path if path.is_dir() else path.parent)
                        artifact.add_file(str(file), name=inside.as_posix(), policy="immutable")
            run.log_artifact(artifact)

        self._put(put)

    def _put(self, entry: Callable[[Any], None]) -> None:
        if self._begin is None:
            return
        self._queue.put(entry)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, args=(self._begin,), daemon=True)
            self._thread.start()

    def close(self, exit_code: int = 0) -> None:
        """Write what was handed over and end the W&B run, if there is one; a failed one says so there."""
        self._exit_code = exit_code
        self._closed.set()
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(_INIT_SECONDS + _FINISH_SECONDS + 10)
            if self._thread.is_alive():
                _log.warning("W&B does not end; the last numbers may be missing there")

    def _work(self, begin: Callable[[], Any]) -> None:
        if self._after_seconds and self._closed.wait(self._after_seconds):
            return
        try:
            run = begin()
            while (entry := self._queue.get()) is not None:
                entry(run)
            run.finish(exit_code=self._exit_code)
        except Exception as error:  # it may be anything: a full disk, no network, a bug of theirs
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            _log.warning("W&B: %s; continuing without it (tracking=none turns it off)", reason)


@contextmanager
def tracking(study: Study, run_path: Path, job: str, *, is_first: bool = True) -> Iterator[Track]:
    """Track one stage of one process: `with tracking(study, run.path, "evaluate") as track`.

    One W&B run, in `run_path/wandb/`, named after the run directory, grouped by `tracking.group`, with the
    study as its config. There is none where nothing is logged, or for less than `tracking.after_seconds`,
    nor in the processes of a distributed training that are not its first.
    """
    settings = study.tracking
    if settings.mode == "disabled" or not is_first:
        track = Track()
    elif importlib.util.find_spec("wandb") is None:
        if job == "train" or not settings.after_seconds:  # elsewhere nobody asked for it
            _say_not_installed()
        track = Track()
    else:
        config = study.model_dump(mode="json")
        group = settings.group or study.dataset.name
        track = Track(lambda: _begin(settings, config, group, run_path, job), settings.after_seconds)
    exit_code = 1
    try:
        yield track
        exit_code = 0
    finally:
        track.close(exit_code)


def track_results(
    study: Study,
    run_path: Path,
    job: str,
    *,
    tables: Callable[[], Mapping[str, Sequence[Mapping[str, Any]]]] = dict,
    files: Sequence[Path] = (),
) -> None:
    """Track what a short stage ends with: `tables` by name, and `files` as one artifact of type `job`.

    Only where runs of any length are tracked (`tracking.after_seconds=0`).
    """
    if study.tracking.mode == "disabled" or study.tracking.after_seconds:
        return
    with tracking(study, run_path, job) as track:
        for name, rows in tables().items():
            track.table(name, rows)
        if files:
            track.artifact(f"{job}-{run_path.name}", job, *files)


@cache
def _say_not_installed() -> None:
    """Warn once a process that W&B is not installed: a command may have many stages."""
    _log.warning("W&B: wandb is not installed; continuing without it (tracking=none turns it off)")


def _begin(settings: Tracking, config: dict[str, Any], group: str, run_path: Path, job: str) -> Any:
    # Read when wandb is imported: its crash reports would go out even offline, and its banner to stderr.
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    os.environ["WANDB_SILENT"] = "true"
    # Where it keeps tables until they are uploaded, else in the home folder; a person's own choice stays.
    if os.environ.get("WANDB_DATA_DIR", "") == os.environ.get(_OURS, ""):
        os.environ["WANDB_DATA_DIR"] = os.environ[_OURS] = str((run_path / "wandb").resolve())
    import wandb

    # It would ask for a key in the terminal, in the middle of the progress display.
    if settings.mode == "online" and not wandb.login(prompt=False):
        raise ValueError("no key: expected WANDB_API_KEY in the environment, or `wandb login` once")
    return wandb.init(
        mode=settings.mode,
        project=settings.project,
        entity=settings.entity,
        group=group,
        job_type=job,
        name=run_path.name,
        dir=run_path,
        config=config,
        settings=wandb.Settings(
            silent=True,
            console="off",
            symlink=False,
            host="",
            init_timeout=_INIT_SECONDS,
            finish_timeout=_FINISH_SECONDS,
            # The manifest has the commit, the versions and the machine; hosts and users concern no one.
            disable_git=True,
            disable_code=True,
            save_code=False,
            x_disable_meta=True,
            x_disable_stats=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
            # Its 15 s would be lost to a SIGKILL.
            x_transaction_log_flush_interval=2.0,
        ),
    )
