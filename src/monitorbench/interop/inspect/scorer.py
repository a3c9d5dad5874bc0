"""The scorer itself: imported inside Inspect, so that nothing else here needs the package."""

from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from monitorbench.config.base import UserError
from monitorbench.conversations.read import NoChat
from monitorbench.interop.inspect.as_inspect import FLAGGED, SCORE, verdict_score
from monitorbench.interop.inspect.live import LiveMonitor, live_monitor
from monitorbench.records import Construction, Label, LabelSource, Sample
from monitorbench.sources.files.inspect_log import messages
from monitorbench.sources.read import BadRow

_WAITING = 64
"""Samples that wait for the monitor at once, a thread each; more are left to Inspect's own queue."""
_ANY = "inspect_samples"
"""The category and task of samples of which nothing depends on them."""


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
