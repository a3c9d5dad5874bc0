"""`choose`: build, judge calibration and test, calibrate, lay side by side, recommend, write the page.

Each step is the stage of that name, so finished runs are reused, and the same command resumes. A model judges
in a process of its own, so that none stays in memory.
"""

import difflib
import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import Engine, refuse_fast_scores
from monitorbench.config.load import freeze, read_frozen
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import Planned, evaluate, judge_name, planned_evaluation
from monitorbench.judging.expected import expected_seconds, measured_pace
from monitorbench.judging.served import described
from monitorbench.metrics.choice.facts import FILE
from monitorbench.records import Split
from monitorbench.report.write import report
from monitorbench.runs.directory import read_checked, record_files
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.progress import clock_time
from monitorbench.scoring.calibrate import calibrate_run
from monitorbench.scoring.recommendation.deployment import deployment_of
from monitorbench.scoring.recommendation.stage import recommend
from monitorbench.scoring.score import transfer
from monitorbench.sweeps.worker import run_stage

Compose = Callable[[Sequence[str]], Study]
"""Composes the study of what was typed, with more overrides behind it."""

SPLITS = (Split.CALIBRATION, Split.TEST)
_EXPECTED = "expected a monitor's name, NAME:PROMPT, a .jsonl file of verdicts, or a training run"
_log = logging.getLogger(__name__)


def choose(study: Study, compose: Compose, configured: Sequence[str]) -> Path:
    """Answer which of `study.monitors` to deploy; returns the run directory of the comparison.

    The sentence of `recommend` stands on top of its page. `compose` gives the study of what was typed with
    more overrides, `configured` are the names of monitors in `conf/`. Raises `ConfigError` for entries that
    are no monitor, and what the stages raise.
    """
    candidates = candidate_studies(study.monitors, compose, configured)
    deployment_of(study.stakes, study.recommend, study.calibrate)  # refused before hours of judging
    for candidate in candidates:
        refuse_fast_scores(candidate.engine, "`choose` calibrates")
    data = ensure(study, SPLITS)
    tested: list[Path] = []
    evaluations: list[Path] = []
    operating_points: list[Path] = []
    for candidate in candidates:
        runs = {split: _evaluated(on_split(candidate, split), data) for split in SPLITS}
        tested.append(runs[Split.TEST])
        evaluations += runs.values()
        if (point := _calibrated(candidate, runs[Split.CALIBRATION])) is not None:
            operating_points.append(point)
    compared = study.transfer.model_copy(
        update={"runs": tuple(tested), "operating_points": tuple(operating_points)}
    )
    directory = transfer(study.model_copy(update={"transfer": compared}), decides=False)
    candidates_runs = study.recommend.model_copy(update={"runs": tuple(evaluations)})
    recommendation = recommend(study.model_copy(update={"recommend": candidates_runs}))
    write_json(directory / FILE, read_checked(recommendation, FILE))
    record_files(directory, FILE)
    return report(study.model_copy(update={"run": directory}))


def candidate_studies(monitors: Sequence[str], compose: Compose, configured: Sequence[str]) -> list[Study]:
    """The study of each entry of `monitors=[…]`, in their order.

    Raises `ConfigError` for an entry that is no monitor, and for two of one name.
    """
    if not monitors:
        raise ConfigError(f"monitors=[]: nothing to choose from; {_EXPECTED}, as 'monitors=[a,b]'")
    studies = [_candidate(entry, compose, configured) for entry in monitors]
    names = Counter(
        (judge_name(study.monitor, study.engine), _prompt_name(study.monitor.verdicts, study.prompt.name))
        for study in studies
    )
    for (judge, prompt), n in names.items():
        if n > 1:
            raise ConfigError(f"monitors: two of them are {judge} with prompt {prompt}; expected each once")
    return studies


def _prompt_name(verdicts: Path | None, prompt_name: str) -> str:
    return "recorded" if verdicts else prompt_name


def _candidate(entry: str, compose: Compose, configured: Sequence[str]) -> Study:
    path = Path(entry)
    if path.suffix == ".jsonl":
        return _recorded(path, compose)
    if (path / "config.json").is_file():
        base = read_frozen(path / "config.json").monitor
        return compose([]).model_copy(update={"monitor": base.model_copy(update={"adapter": path})})
    name, _, prompt = entry.partition(":")
    if name not in configured:
        near = difflib.get_close_matches(name, configured, n=1)
        expected = f"did you mean {near[0]}?" if near else f"{_EXPECTED}; configured are "
        names = "" if near else ", ".join(configured)
        raise ConfigError(f"monitors: {entry}: no such monitor; {expected}{names}")
    return compose([f"monitor={name}", *([f"prompt={prompt}"] if prompt else [])])


def _recorded(path: Path, compose: Compose) -> Study:
    """The study of recorded verdicts, whose monitor has the file's name without `verdicts-`."""
    if not path.is_file():
        raise ConfigError(f"monitors: {path}: no such file; {_EXPECTED}")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", path.stem.removeprefix("verdicts-"))[:80] or "recorded"
    quoted = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return compose(["monitor=recorded", f"monitor.verdicts='{quoted}'", f"monitor.name='{name}'"])


def on_split(study: Study, split: Split) -> Study:
    """The study with `evaluate.split` set."""
    return study.model_copy(update={"evaluate": study.evaluate.model_copy(update={"split": split.value})})


def _evaluated(study: Study, data: Path) -> Path:
    """The evaluation run, made in a process of its own where a model has to judge."""
    planned = planned_evaluation(described(study), data)
    if planned.done or study.monitor.verdicts or not study.engine.takes_token_ids:
        return evaluate(study)
    file = study.paths.runs / "studies" / f"choose-{content_hash(planned.run.path.name)}.json"
    write_atomically(file, freeze(study))
    return run_stage("evaluate", file, f"evaluate {planned.name}")


def _calibrated(study: Study, run: Path) -> Path | None:
    """The run's calibration; None, with a line that says why, where no threshold keeps the promise."""
    try:
        return calibrate_run(study.model_copy(update={"run": run}))
    except UserError as error:
        _log.warning("choose: %s", error)
        return None


def print_choice_plan(study: Study, compose: Compose, configured: Sequence[str]) -> None:
    """Print what `choose` would judge, what of it is finished, and how long the rest takes.

    Durations come from the seconds a sample in earlier runs of the same monitor and prompt. Nothing is built,
    judged or written.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("monitor", "prompt", "split", "samples", "state", "takes about"):
        table.add_column(name, justify="right" if name == "samples" else "left")
    data = directory_of(study)
    for candidate in candidate_studies(study.monitors, compose, configured):
        for split in SPLITS:
            table.add_row(*_plan_row(on_split(candidate, split), split, data.path if data.done else None))
    console = Console(width=80)
    console.print(f"data: {data.path} ({'there' if data.done else 'to be built'})", soft_wrap=True)
    console.print(table)
    console.print("then: a threshold for each, all side by side, the page")


def _plan_row(study: Study, split: Split, data: Path | None) -> tuple[str, ...]:
    if data is None:
        return (
            study.monitor.name,
            _prompt_name(study.monitor.verdicts, study.prompt.name),
            split.value,
            "?",
            "to be judged",
            "not measured",
        )
    planned = planned_evaluation(described(study), data)
    n = len(read_split(data, split, study.dataset.view(split.value)))
    state, takes = (
        ("done", "")
        if planned.done
        else ("to be judged", _duration(study.monitor.verdicts, study.paths.runs, study.engine, planned, n))
    )
    return planned.name, planned.judge.prompt.name, split.value, f"{n}", state, takes


def _duration(verdicts: Path | None, runs: Path, engine: Engine, planned: Planned, n: int) -> str:
    """How long judging n samples takes by earlier runs of the same judge, and what it costs."""
    if verdicts is not None:
        return "a moment"
    pace = measured_pace(runs, planned.judge.identity)
    if pace is None:
        return "not measured"
    paid = f", ${n * pace.cost:.2f}" if pace.cost else ""
    return f"{clock_time(expected_seconds(pace, n, engine))}{paid}"
