"""A forecast of runs before any is started: samples, tokens, hours, cost, and which runs are finished.

Time is that of optimizer steps, validations and answers; loading a model and saving are not in it. No model
is started and nothing is written. The table has a line for each kind of run and fits 80 columns; how its
numbers were counted stands below it.
"""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Literal, NamedTuple

from rich import box
from rich.table import Table

from monitorbench.config.base import UserError
from monitorbench.config.engine import fitting_engine, gpus_of_model, in_process
from monitorbench.config.hardware import Scores
from monitorbench.config.study import Cluster, Study
from monitorbench.config.terminal import Console
from monitorbench.engines.endpoint import limits as endpoint_limits
from monitorbench.engines.weights import parameters_of, refuse_without_weights
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.judging.expected import expected_seconds, measured_pace
from monitorbench.judging.identity import judge_identity
from monitorbench.judging.serving.served import reach
from monitorbench.prompts.wording import published_prompt
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, is_finished
from monitorbench.runs.run_folders import fit_run, training_run
from monitorbench.studies.prompt_lengths import PromptCounter, prompt_counter, weights_here
from monitorbench.training import pace as training_pace
from monitorbench.training.pace import TrainingPace
from monitorbench.training.stage import refuse_none_fits, refuse_untrainable

_SUPERVISED = 2
"""Tokens that are trained on in a sample: the label and the end of the turn."""


class PlannedRun(NamedTuple):
    """One run before it is started, by its study; an evaluation's adapter need not exist yet."""

    stage: Literal["train", "fit", "evaluate"]
    study: Study
    name: str = ""
    """Name of the run within its study, for files and log lines."""

    @property
    def kind(self) -> str:
        """Name that runs are summed up by, beside the monitor: `train sft`, `evaluate direct`."""
        study = self.study
        what = {"train": study.training.objective, "fit": study.head.name, "evaluate": study.prompt.title}
        return f"{self.stage} {what[self.stage]}"


class RunCost(NamedTuple):
    """The samples, tokens and time of a run, from its beginning to its end, finished or not."""

    monitor: str
    kind: str
    is_finished: bool
    samples: int
    """Samples, counted once for each time they are trained on or judged."""
    tokens: float
    """Prompt tokens; of a training at most so many in optimizer steps."""
    validation_tokens: float
    seconds: float | None
    """None: nothing of the kind was timed, and nothing is assumed."""
    gpus: int
    cost: float | None
    """The most that an endpoint with prices charges; None without prices."""
    counted: tuple[str, ...]
    """How samples and tokens were counted."""
    paced: str
    """Source of the time: measured or assumed, and of what."""


class ForecastLine(NamedTuple):
    """The sum over all runs of a kind, or over all runs; finished runs take nothing."""

    kind: str
    runs: int
    finished: int
    samples: int
    tokens: float
    """Tokens, those of validations included."""
    hours: float | None
    """Hours of one run after another; None where the time of a run is not known."""
    gpu_hours: float | None
    cost: float | None
    """None where no run is paid for."""


def forecast(runs: Iterable[PlannedRun]) -> list[RunCost]:
    """Forecast each run; nothing is started, and nothing is kept of what is read.

    Raises `UserError` or `ConfigError` where the settings or the data don't say.
    """
    by_stage = {"train": _training, "fit": _fit, "evaluate": _evaluation}
    with prompt_counter() as counter:
        return [by_stage[run.stage](run, counter) for run in runs]


def _training(run: PlannedRun, counter: PromptCounter) -> RunCost:
    refuse_untrainable(run.study.prompt, run.study.monitor)
    study, data = run.study, counter.dataset(run.study)
    weights = weights_here(study.monitor)
    planned = None if weights is None else training_run(study, data.path.name if data else "", weights)
    most = study.training.max_tokens - _SUPERVISED
    train = counter.count(study, Split.TRAIN, most)
    validation = counter.count(study, Split.VALIDATION, study.training.max_tokens - 1)
    for split, count in ((Split.TRAIN, train), (Split.VALIDATION, validation)):
        refuse_none_fits(count.n, counter.count(study, split).n, split, study.training.max_tokens)
    training = study.training.for_samples(train.n)
    samples = training.steps * training.batch_size
    tokens = samples * (train.mean + _SUPERVISED)
    validation_tokens = training_pace.n_validations(training) * validation.tokens
    machine = training_pace.planned_machine(study.cluster, training.device)
    measured = planned and training_pace.measured_pace(study.paths.runs, planned.identity, machine)
    pace = measured or _assumed_pace(study.cluster, parameters_of(study.monitor), training.device)
    return RunCost(
        monitor=study.monitor.name,
        kind=run.kind,
        is_finished=planned is not None and planned.done,
        samples=samples,
        tokens=tokens,
        validation_tokens=validation_tokens,
        seconds=pace and pace.seconds(tokens, validation_tokens),
        gpus=study.cluster.gpus,
        cost=None,
        counted=(train.how, validation.how),
        paced=_source_of_pace(study.cluster, pace, "trainings", training.device),
    )


def _fit(run: PlannedRun, counter: PromptCounter) -> RunCost:
    """Forecast the fit of a head: one forward pass over each prompt of both splits, none being on disk."""
    study, data, head = run.study, counter.dataset(run.study), run.study.head
    engine = fitting_engine(study.monitor, study.engine, study.prompt)
    weights = weights_here(study.monitor)
    splits = [counter.count(study, split, head.max_tokens) for split in (Split.TRAIN, Split.VALIDATION)]
    n, tokens = sum(split.n for split in splits), sum(split.tokens for split in splits)
    seconds, paced = _judging_time(study, data, n, tokens)
    grid = len(head.layers), len(head.positions), len(head.regularisation)
    return RunCost(
        monitor=study.monitor.name,
        kind=run.kind,
        is_finished=data is not None
        and weights is not None
        and fit_run(study, data.path.name, weights, engine.resolved_dtype).done,
        samples=n,
        tokens=tokens,
        validation_tokens=0.0,
        seconds=seconds,
        gpus=study.cluster.gpus,
        cost=None,
        counted=(
            *(split.how for split in splits),
            f"fit: {grid[0]} layers × {grid[1]} positions × {grid[2]} strengths of regularisation are tried; "
            "hours are those of one forward pass over each prompt, less where its states are on disk",
        ),
        paced=paced,
    )


def _evaluation(run: PlannedRun, counter: PromptCounter) -> RunCost:
    study, split = reach(run.study, waits=False), Split(run.study.evaluate.split)
    prompts, data = counter.count(study, split), counter.dataset(study)
    tokens = 0.0 if study.monitor.verdicts else prompts.tokens
    if study.engine.takes_token_ids and study.monitor.verdicts is None:
        refuse_without_weights(study.monitor)
    completion = prompts.n * _generated(study)
    prices = study.engine.paid_prices
    seconds, paced = _judging_time(study, data, prompts.n, tokens)
    return RunCost(
        monitor=study.monitor.name,
        kind=run.kind,
        is_finished=_is_judged(study, data),
        samples=prompts.n,
        tokens=tokens,
        validation_tokens=0.0,
        seconds=seconds,
        gpus=study.cluster.gpus if study.engine.takes_token_ids else 0,
        cost=None if prices is None else endpoint_limits.cost(prices, ceil(tokens), 0, completion),
        counted=(prompts.how,),
        paced=paced,
    )


def _judging_time(study: Study, data: RunDirectory | None, n: int, tokens: float) -> tuple[float | None, str]:
    """Seconds that so many prompts take, and where that is from."""
    if study.monitor.verdicts is not None:
        return 0.0, "recorded verdicts take a moment"
    prompt = published_prompt(data.path, study.prompt) if data else study.prompt
    base = study.monitor.on(None)  # which has no pace of its own
    try:
        measured = measured_pace(study.paths.runs, judge_identity(base, study.engine, prompt))
    except UserError:
        measured = None
    if measured is not None:
        seconds = expected_seconds(measured, n, study.engine)
        return seconds, f"evaluations: by the pace measured in {measured.n:,} verdicts of before (paths.runs)"
    if not study.engine.takes_token_ids:
        return None, "evaluations: no hours: no verdicts of this endpoint were timed before"
    if (most := _generated(study)) > 1:
        return None, (
            f"evaluations: no hours: an answer generates up to {most:,} tokens, and the assumed pace is of "
            "prompts alone; a first evaluation of a few samples measures it (dataset.test.pairs_per_cell)"
        )
    engine = in_process(study.engine, "forecast")
    n_gpus = min(gpus_of_model(engine, study.monitor.tensor_parallel_size), max(study.cluster.gpus, 1))
    cluster = study.cluster
    pace = _assumed_pace(cluster, parameters_of(study.monitor), engine.device, engine.scores, n_gpus)
    paced = _source_of_pace(cluster, pace, "evaluations", engine.device)
    return (pace and pace.seconds(0, tokens)), paced


def _generated(study: Study) -> int:
    """Most tokens that are generated for a sample: one for a label alone, none by a probe."""
    if study.monitor.head is not None:
        return 0
    reasoning = study.monitor.reasoning
    return study.prompt.most_tokens + (reasoning.max_tokens if reasoning else 0)


def _is_judged(study: Study, data: RunDirectory | None) -> bool:
    adapter = study.monitor.adapter
    if data is None:  # its prompts and examples are part of an evaluation's name
        return False
    if adapter is not None and not (is_finished(adapter) or is_finished(adapter.parent)):
        return False
    try:
        return planned_evaluation(study, data.path).done
    except UserError:
        return False


def _assumed_pace(
    cluster: Cluster, parameters: float | None, device: str, scores: Scores = "fast", n_gpus: int = 1
) -> TrainingPace | None:
    """The pace assumed of a cluster; None where it is unknown, or the wanted GPU is missing."""
    if device == "cuda" and not cluster.gpus:
        return None
    return training_pace.assumed_pace(cluster, parameters, scores, n_gpus)


def _source_of_pace(cluster: Cluster, pace: TrainingPace | None, runs: str, device: str) -> str:
    """Say where a pace is from, or why there is none."""
    if pace is not None and pace.n_runs:
        return f"{runs}: by the pace measured in {pace.n_runs:,} {runs} of before (paths.runs)"
    if pace is not None:
        return f"{runs}: assumed, not measured (cluster.assumed of cluster={cluster.name})"
    if device == "cuda" and not cluster.gpus:
        return f"{runs}: no hours: they want a GPU and cluster={cluster.name} has none (cluster=h100)"
    return f"{runs}: no hours: none was timed before, and cluster.assumed or the monitor's size is not known"


def forecast_lines(costs: Sequence[RunCost]) -> list[ForecastLine]:
    """A line for each kind, in the order of their first runs, and one for all where there are several."""
    kinds = list(dict.fromkeys((cost.monitor, cost.kind) for cost in costs))
    several = len({monitor for monitor, _ in kinds}) > 1
    lines = [
        _line(
            f"{monitor}: {kind}" if several else kind,
            [cost for cost in costs if (cost.monitor, cost.kind) == (monitor, kind)],
        )
        for monitor, kind in kinds
    ]
    return [*lines, _line("all", costs)] if len(lines) > 1 else lines


def print_forecast(costs: Sequence[RunCost]) -> None:
    """Print the table and its notes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    monitors = list(dict.fromkeys(cost.monitor for cost in costs))
    table.add_column(monitors[0] if len(monitors) == 1 else "monitor: runs", overflow="fold")
    for name in ("runs", "there", "samples", "tokens", "hours", "GPU-hours", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in forecast_lines(costs):
        table.add_row(
            line.kind,
            f"{line.runs}",
            f"{line.finished}",
            f"{line.samples:,}",
            _large(line.tokens),
            _hours(line.hours),
            _hours(line.gpu_hours),
            "-" if line.cost is None else f"{line.cost:,.2f}",
        )
    console = Console(width=80, highlight=False)
    console.print(table)
    console.print(
        "samples to hours: of what is not there yet, one run after another, without loading models; a "
        "training that stops early takes less, a cost is at most."
    )
    for note in dict.fromkeys(note for cost in costs for note in (*cost.counted, cost.paced)):
        console.print(f"- {note}", soft_wrap=False)


def _line(kind: str, costs: Sequence[RunCost]) -> ForecastLine:
    coming = [cost for cost in costs if not cost.is_finished]
    seconds = [cost.seconds for cost in coming if cost.seconds is not None]
    is_known = len(seconds) == len(coming)
    charges = [cost.cost for cost in coming if cost.cost is not None]
    return ForecastLine(
        kind=kind,
        runs=len(costs),
        finished=len(costs) - len(coming),
        samples=sum(cost.samples for cost in coming),
        tokens=sum(cost.tokens + cost.validation_tokens for cost in coming),
        hours=sum(seconds) / 3600 if is_known else None,
        gpu_hours=sum((cost.seconds or 0) * cost.gpus for cost in coming) / 3600 if is_known else None,
        cost=sum(charges) if charges else None,
    )


def _large(n: float) -> str:
    """Three digits of a number: `12.3M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}" if n < 1000 * size else f"{n / size:,.0f}{unit}"
    return f"{n:.0f}"


def _hours(hours: float | None) -> str:
    if hours is None:
        return "?"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours < 1 else f"{hours:.1f}"
