"""The scorer itself, and the monitor behind it, which judges samples as they come, from several threads.

Imported inside Inspect, so that nothing else here needs the package. Promises: what judges is the judge whose
scores the threshold was set on, or nothing judges; samples that wait while it judges are judged together; the
model is loaded once a process for each calibration.
"""

import atexit
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from anyio import CapacityLimiter, to_thread
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from monitorbench.config.base import UserError
from monitorbench.config.load import read_frozen
from monitorbench.conversations.read import NoChat
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, open_part, read_calibrated
from monitorbench.interop.inspect.as_inspect import FLAGGED, SCORE, verdict_score
from monitorbench.judging.judge import Judge
from monitorbench.records import Construction, Label, LabelSource, Sample, Verdict
from monitorbench.runs.directory import checked_file
from monitorbench.sources.files.inspect_log import messages
from monitorbench.sources.read import BadRow

_WAITING = 64
"""Samples that wait for the monitor at once, a thread each; more are left to Inspect's own queue."""
_ANY = "inspect_samples"
"""The category and task of samples of which nothing depends on them."""


class JudgedAtThreshold(NamedTuple):
    """A verdict, and how it reads at the threshold; None where it is unscored."""

    verdict: Verdict
    label: Label | None
    threshold: float | None


class LiveMonitor:
    """The judge of a calibration at its threshold; see `live_monitor`."""

    def __init__(self, calibrated: Calibrated, part: ServedJudge) -> None:
        """Load nothing before the first sample."""
        self._calibrated, self._part = calibrated, part
        self._judge: Judge | None = None
        self._judging, self._guard = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[Sample, Future[Verdict]]] = []

    @property
    def categories(self) -> tuple[str, ...]:
        """Return the categories that have a threshold of their own; none where one threshold is for all."""
        return tuple(filter(None, self._calibrated.thresholds))

    @property
    def needs_category(self) -> bool:
        """Whether what is asked, or the threshold, depends on the sample's category."""
        return bool(self.categories or self._part.spec.shots.k or self._part.spec.route)

    def judge(self, sample: Sample) -> JudgedAtThreshold:
        """The verdict on a sample, from any thread; blocks until it is there.

        Raises what `open_part` and `Judge.verdicts` raise.
        """
        mine: Future[Verdict] = Future()
        with self._guard:
            self._waiting.append((sample, mine))
        with self._judging:
            with self._guard:
                batch, self._waiting = self._waiting, []
            if batch:  # else another thread has judged mine with its own
                self._answer(batch)
        verdict, category = mine.result(), str(sample.category)
        label = self._calibrated.label(verdict.score, category)
        return JudgedAtThreshold(verdict, label, self._calibrated.threshold(category))

    def _answer(self, taken: Sequence[tuple[Sample, "Future[Verdict]"]]) -> None:
        try:
            if self._judge is None:
                self._judge = open_part(self._part, None)
                atexit.register(self._judge.close)
            verdicts = self._judge.verdicts([sample for sample, _ in taken])
        except BaseException as error:
            for _, waiting in taken:
                waiting.set_exception(error)
            return
        for (_, waiting), verdict in zip(taken, verdicts, strict=True):
            waiting.set_result(verdict)


@cache
def live_monitor(run: Path) -> LiveMonitor:
    """The monitor that the calibration in `run` (an absolute path) is of, opened as it was judged.

    The evaluation that was calibrated is looked for where it was, and beside the calibration; relative paths
    are those of its working directory, or of the folder that holds `runs/`. Raises `UserError` for a
    directory that is no calibration, for one of a combination or of recorded verdicts, and where the judge
    is not the same any more.
    """
    study = read_frozen(checked_file(run, "config.json"))
    runs, paths = run.parents[1], study.paths
    here = {name: _there(getattr(paths, name), runs.parent) for name in ("data", "models")}
    placed = {"operating_point": run, "paths": paths.model_copy(update={**here, "runs": runs})}
    calibrated = read_calibrated(study.model_copy(update=placed), as_typed=False)
    part = calibrated.parts.get(calibrated.monitor)
    if calibrated.rule is not None or not isinstance(part, ServedJudge):
        raise UserError(f"{run}: of a combination of judges; expected a calibration of one judge")
    return LiveMonitor(calibrated, part)


def _there(path: Path, root: Path) -> Path:
    return root / path if not path.exists() and (root / path).exists() else path


@scorer(metrics={FLAGGED: [mean(), stderr()], SCORE: [mean(), stderr()]}, name="monitor")
def monitor(run: str, category: str = "", task: str = "") -> Scorer:
    """See `monitorbench.interop.inspect.monitor_scorer`."""
    live = live_monitor(Path(run).resolve())
    _refuse_category(run, live, category)
    limiter = CapacityLimiter(_WAITING)

    async def score(state: TaskState, target: Target) -> Score:
        sample = _sample(state, category or _ANY, task or _ANY)
        if isinstance(sample, str):
            return Score.unscored(
                reason="no_response", explanation=f"unscored, which is not benign: {sample}"
            )
        judged = await to_thread.run_sync(live.judge, sample, limiter=limiter)
        return Score.model_validate(verdict_score(judged.verdict, judged.label, judged.threshold))

    return score


def _refuse_category(run: str, live: LiveMonitor, category: str) -> None:
    if live.categories and category not in live.categories:
        raise UserError(
            f"monitor_scorer: category={category!r}: {run} has a threshold for each of "
            f"{', '.join(live.categories)}; expected one of them"
        )
    if live.needs_category and not category:
        raise UserError(f"monitor_scorer: category='': the prompt of {run} depends on it; expected one")


def _sample(state: TaskState, category: str, task: str) -> Sample | str:
    """The sample's conversation so far, or why there is nothing to judge."""
    rows: list[dict[str, Any]] = [message.model_dump(mode="json") for message in state.messages]
    try:
        request, response = messages({"messages": rows}, model=str(state.model))
    except (BadRow, NoChat) as error:
        return str(error)
    if not request or not response:
        return "the model took no turn" if request else "no message before the model's first turn"
    name = f"{state.sample_id}-{state.epoch}"
    return Sample(
        pair_id=name,
        group_id=str(state.sample_id),
        category=category,
        task=task,
        subcategory="",
        request=request,
        response=response,
        label=Label.BENIGN,  # every sample has one; no judge is shown it
        label_source=LabelSource.UPSTREAM,
        construction=Construction.LABELLED,
        source="inspect",
        licence="not stated",
    )
