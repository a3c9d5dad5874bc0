"""Weights & Biases: the only place that imports it, and late.

Promises: whatever W&B does, the stage continues. It is started, fed and ended in a thread of its own, so
`log` neither waits nor fails; what goes wrong is one warning line. It prints nothing. Offline, nothing
connects anywhere; no key is written.
"""

import importlib.util
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitorbench.config.study import Study

_INIT_SECONDS = 30.0
_FINISH_SECONDS = 30.0
"""How long the last numbers may take to be uploaded; what is not is still in the run directory."""

_log = logging.getLogger(__name__)


class Track:
    """Takes a run's numbers while it runs. Without `begin` it drops them."""

    def __init__(self, begin: Callable[[], Any] | None = None, after_seconds: float = 0.0) -> None:
        """`begin` starts a W&B run; it is called in the thread, `after_seconds` after the first numbers."""
        self._begin, self._after_seconds = begin, after_seconds
        self._queue: queue.SimpleQueue[tuple[int, dict[str, float]] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._exit_code = 0
        self._thread: threading.Thread | None = None

    def log(self, numbers: Mapping[str, float | None], step: int) -> None:
        """Hand numbers over; those that are None are left out. Steps may repeat but never decrease."""
        if self._begin is None:
            return
        self._queue.put((step, {name: value for name, value in numbers.items() if value is not None}))
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
                step, numbers = entry
                run.log(numbers, step=step)
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
        _log.warning("W&B: wandb is not installed; continuing without it (tracking=none turns it off)")
        track = Track()
    else:
        track = Track(lambda: _begin(study, run_path, job), settings.after_seconds)
    exit_code = 1
    try:
        yield track
        exit_code = 0
    finally:
        track.close(exit_code)


def tracked_step(loss: float, learning_rate: float | None, tokens: int, seconds: float) -> dict[str, float]:
    """What training logs of an optimizer step: `track.log(tracked_step(…), step)`.

    `tokens` are the step's, of all processes together, and went through the model in `seconds`.
    """
    found = {"train/loss": loss}
    if learning_rate is not None:
        found["train/learning_rate"] = learning_rate
    if seconds > 0:
        found["train/tokens_per_second"] = tokens / seconds
    return found


def tracked_validation(point: Mapping[str, Any]) -> dict[str, float | None]:
    """What training logs of a point of its learning curve (`metrics.results.CurvePoint`)."""
    low, high = point.get("auroc_ci") or (None, None)
    named = {name: point.get(name) for name in ("auroc", "miss_rate", "false_alarm_rate")}
    named |= {"auroc_low": low, "auroc_high": high}
    return {f"validation/{name}": value for name, value in named.items()}


def _begin(study: Study, run_path: Path, job: str) -> Any:
    # Read when wandb is imported: its crash reports would go out even offline, and its banner to stderr.
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    os.environ["WANDB_SILENT"] = "true"
    import wandb

    chosen = study.tracking
    # It would ask for a key in the terminal, in the middle of the progress display.
    if chosen.mode == "online" and not wandb.login(prompt=False):
        raise ValueError("no key: expected WANDB_API_KEY in the environment, or `wandb login` once")
    return wandb.init(
        mode=chosen.mode,
        project=chosen.project,
        entity=chosen.entity,
        group=chosen.group or study.dataset.name,
        job_type=job,
        name=run_path.name,
        dir=run_path,
        config=study.model_dump(mode="json"),
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
