"""What `choose plan=true` prints: what would be judged, what of it is there, and how long the rest takes.

Durations come from what was measured: the seconds a sample in earlier runs of the same monitor and prompt.
"""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import Planned, planned_evaluation
from monitorbench.judging.expected import expected_seconds, measured_pace
from monitorbench.judging.served import described
from monitorbench.records import Split
from monitorbench.runs.progress import clock_time


def print_plan(several: Sequence[Study], splits: Sequence[Split]) -> None:
    """Print a line for each monitor and split; nothing is built, judged or written."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("monitor", "prompt", "split", "samples", "state", "takes about"):
        table.add_column(name, justify="right" if name == "samples" else "left")
    data = directory_of(several[0])
    for one in several:
        for split in splits:
            on = one.model_copy(update={"evaluate": one.evaluate.model_copy(update={"split": split.value})})
            table.add_row(*_row(on, split, data.path if data.done else None))
    console = Console(width=80)
    console.print(f"data: {data.path} ({'there' if data.done else 'to be built'})", soft_wrap=True)
    console.print(table)
    console.print("then: a threshold for each, all side by side, the page")


def _row(study: Study, split: Split, data: Path | None) -> tuple[str, ...]:
    prompt = "recorded" if study.monitor.verdicts else study.prompt.name
    if data is None:
        return study.monitor.name, prompt, split.value, "?", "to be judged", "not measured"
    planned = planned_evaluation(described(study), data)
    n = len(read_split(data, split, study.dataset.view(split.value)))
    state, takes = ("done", "") if planned.done else ("to be judged", _duration(study, planned, n))
    return planned.name, planned.judge.prompt.name, split.value, f"{n}", state, takes


def _duration(study: Study, planned: Planned, n: int) -> str:
    """How long judging n samples takes by earlier runs of the same judge, and what it costs."""
    if study.monitor.verdicts is not None:
        return "a moment"
    pace = measured_pace(study.paths.runs, planned.judge.identity)
    if pace is None:
        return "not measured"
    paid = f", ${n * pace.cost:.2f}" if pace.cost else ""
    return f"{clock_time(expected_seconds(pace, n, study.engine))}{paid}"
