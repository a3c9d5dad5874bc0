"""A calibrated monitor that judges samples as they come, from several threads: what stands behind the scorer.

Promises: what judges is the judge whose scores the threshold was set on, or nothing judges; samples that wait
while it judges are judged together; the model is loaded once a process for each calibration.
"""

import atexit
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.judging.judge import JudgeSpec, judge_spec
from monitorbench.judging.logged import open_logged
from monitorbench.judging.serving.served import described, reach
from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.directory import checked_file, read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.verdict_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log
from monitorbench.scoring.calibrate import read_operating_point
from monitorbench.scoring.operating_point import OperatingPoint, labels_at

if TYPE_CHECKING:
    from monitorbench.judging.logged import LoggedJudge


class JudgedAtThreshold(NamedTuple):
    """A verdict, and how it reads at the threshold; None where it is unscored."""

    verdict: Verdict
    label: Label | None
    threshold: float | None


class LiveMonitor:
    """The judge of a calibration at its threshold; see `live_monitor`."""

    def __init__(self, study: Study, spec: JudgeSpec, point: OperatingPoint) -> None:
        """Load nothing before the first sample."""
        self._study, self._spec, self._point = study, spec, point
        self._judge: LoggedJudge | None = None
        self._judging, self._guard = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[Sample, Future[Verdict]]] = []

    @property
    def categories(self) -> tuple[str, ...]:
        """Return the categories that have a threshold of their own; none where one threshold is for all."""
        return tuple(threshold.category for threshold in self._point.thresholds if threshold.category)

    @property
    def needs_category(self) -> bool:
        """Whether what is asked, or the threshold, depends on the sample's category."""
        return bool(self.categories or self._spec.shots.k or self._spec.route)

    def judge(self, sample: Sample) -> JudgedAtThreshold:
        """The verdict on a sample, from any thread; blocks until it is there.

        Raises what `LoggedJudge.verdicts` raises.
        """
        mine: Future[Verdict] = Future()
        with self._guard:
            self._waiting.append((sample, mine))
        with self._judging:
            with self._guard:
                batch, self._waiting = self._waiting, []
            if batch:  # else another thread has judged mine with its own
                self._answer(batch)
        verdict = mine.result()
        (label,) = labels_at(
            self._point,
            monitor=self._point.thresholds[0].monitor,
            scores=[verdict.score],
            answers=[verdict.label],
            categories=[sample.category],
        )
        limits = {threshold.category: threshold.threshold for threshold in self._point.thresholds}
        return JudgedAtThreshold(verdict, label, limits.get("", limits.get(sample.category)))

    def _answer(self, taken: Sequence[tuple[Sample, "Future[Verdict]"]]) -> None:
        try:
            if self._judge is None:
                self._judge = self._opened()
            verdicts = self._judge.verdicts([sample for sample, _ in taken])
        except BaseException as error:
            for _, waiting in taken:
                waiting.set_exception(error)
            return
        for (_, waiting), verdict in zip(taken, verdicts, strict=True):
            waiting.set_result(verdict)

    def _opened(self) -> "LoggedJudge":
        """The judge with its model loading; both end with the process."""
        stack = ExitStack()
        atexit.register(stack.close)
        logs = Path(stack.enter_context(TemporaryDirectory(prefix="monitorbench-")))
        log = stack.enter_context(open_verdict_log(logs / VERDICTS))
        failures = stack.enter_context(open_failure_log(logs / FAILURES))
        spec = self._spec._replace(engine=reach(self._study).engine)
        return stack.enter_context(open_logged(spec, self._study.paths.models, log, failures))


@cache
def live_monitor(run: Path) -> LiveMonitor:
    """The monitor that the calibration in `run` (an absolute path) is of.

    It is opened as the judged evaluation was run; the paths of that run are those of its working directory,
    or of the folder that holds `runs/`. Raises `UserError` for a directory that is no calibration, for one of
    a combination or of recorded verdicts, and where the judge is not the same any more.
    """
    point = read_operating_point(run)
    directory = _evaluation(run, Path(read_finished(run)["results"]["judged"]))
    results = read_finished(directory)["results"]
    if "combined" in results:
        raise UserError(f"{run}: of a combination of judges; expected a calibration of one judge")
    study = _placed(read_frozen(checked_file(directory, "config.json")), run)
    if study.monitor.verdicts is not None:
        raise UserError(f"{run}: of recorded verdicts, which say nothing of new samples; expected a judge's")
    data = study.paths.data / results["data"]
    study = described(study)
    if data.is_dir():
        spec = planned_evaluation(study, data).judge
    else:  # a dataset's own prompt and examples are with the dataset; without them the identity differs
        spec = judge_spec(study.monitor, study.engine, study.prompt)
    calibrated = point.thresholds[0].monitor.rpartition("/")[2]
    if content_hash(dict(spec.identity)) != calibrated:
        raise UserError(
            f"{run}: calibrated for {point.thresholds[0].monitor}, which is not what {directory} would ask "
            "now (weights, adapter, prompt, engine or dtype differ); calibrate again, on this machine"
        )
    return LiveMonitor(study, spec, point)


def _evaluation(run: Path, named: Path) -> Path:
    """The evaluation that was calibrated: where it was, or beside the calibration."""
    places = (named, run.parents[1] / "evaluate" / named.name)
    if (folder := next((place for place in places if place.is_dir()), None)) is None:
        raise UserError(
            f"{run}: the evaluation {named} that it was set on is not there; expected it at {places[1]}"
        )
    return folder


def _placed(study: Study, run: Path) -> Study:
    """The study with its relative paths below the folder that they were relative to."""
    root = run.parents[2] if len(run.parents) > 2 else run.parent
    monitor = study.monitor
    paths = study.paths.model_copy(
        update={name: _there(getattr(study.paths, name), root) for name in ("data", "models", "runs")}
    )
    names = ("path", "adapter", "head", "gguf")
    locations = {name: getattr(monitor, name) for name in names}
    placed = {name: _there(path, root) for name, path in locations.items() if path is not None}
    return study.model_copy(update={"paths": paths, "monitor": monitor.model_copy(update=placed)})


def _there(path: Path, root: Path) -> Path:
    return root / path if not path.exists() and (root / path).exists() else path
