"""What one run takes: samples, tokens, time, cost; and whether it is there already. No model is started.

Time is that of optimizer steps, validations and answers; loading a model and saving are not in it.
"""

from math import ceil
from typing import Literal, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.engine import in_process
from monitorbench.config.study import Study
from monitorbench.engines.endpoint_limits import cost
from monitorbench.engines.weights import weights_identity
from monitorbench.forecast import pace as training_pace
from monitorbench.forecast.pace import Pace
from monitorbench.forecast.samples import Counter
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.judging.expected import expected_seconds, measured_pace
from monitorbench.judging.identity import judge_identity
from monitorbench.judging.served import described
from monitorbench.prompts.published import published_prompt
from monitorbench.records import Split
from monitorbench.runs.directory import RunDirectory, is_finished
from monitorbench.runs.run_folders import training_run

_SUPERVISED = 2
"""Tokens that are trained on in a sample: the label and the end of the turn."""


class Run(NamedTuple):
    """One training or evaluation, by its study. An evaluation's adapter need not be there yet."""

    stage: Literal["train", "evaluate"]
    study: Study

    @property
    def kind(self) -> str:
        """What runs are summed up by, beside the monitor: `train sft`, `evaluate direct`."""
        of = self.study.training.objective if self.stage == "train" else self.study.prompt.name
        return f"{self.stage} {of}"


class Work(NamedTuple):
    """What a run takes, from nothing; of one that is there, nothing more will be taken."""

    monitor: str
    kind: str
    is_there: bool
    samples: int
    """As often as they are gone through."""
    tokens: float
    """Of a training: in optimizer steps, at most."""
    validation_tokens: float
    seconds: float | None
    """None: nothing of the kind was timed, and nothing is assumed."""
    gpus: int
    cost: float | None
    """At most, of an endpoint with prices; None without."""
    counted: tuple[str, ...]
    """How samples and tokens were counted."""
    paced: str
    """Where the time is from."""


def work_of(run: Run, counter: Counter) -> Work:
    """What the run takes. Raises `UserError` or `ConfigError` where the settings or the data don't say."""
    return _training(run, counter) if run.stage == "train" else _evaluation(run, counter)


def _training(run: Run, counter: Counter) -> Work:
    study, data = run.study, counter.dataset(run.study)
    named = weights_here(study)
    planned = None if named is None else training_run(study, data.path.name if data else "", named)
    most = study.training.max_tokens - _SUPERVISED
    train = counter.count(study, Split.TRAIN, most)
    validation = counter.count(study, Split.VALIDATION, study.training.max_tokens - 1)
    training = study.training.for_samples(train.n)
    samples = training.steps * training.batch_size
    tokens = samples * (train.mean + _SUPERVISED)
    validation_tokens = training_pace.n_validations(training) * validation.tokens
    machine = training_pace.planned_machine(study.cluster, training.device)
    measured = planned and training_pace.measured_pace(study.paths.runs, planned.identity, machine)
    pace = measured or _assumed(study, training.device)
    return Work(
        monitor=study.monitor.name,
        kind=run.kind,
        is_there=planned is not None and planned.done,
        samples=samples,
        tokens=tokens,
        validation_tokens=validation_tokens,
        seconds=pace and pace.seconds(tokens, validation_tokens),
        gpus=study.cluster.gpus,
        cost=None,
        counted=(train.how, validation.how),
        paced=_paced(study, pace, "trainings", training.device),
    )


def _evaluation(run: Run, counter: Counter) -> Work:
    study, split = described(run.study), Split(run.study.evaluate.split)
    counted, data = counter.count(study, split), counter.dataset(study)
    tokens = 0.0 if study.monitor.verdicts else counted.tokens
    thinks = study.monitor.reasoning
    completion = counted.n * (study.prompt.most_tokens + (thinks.max_tokens if thinks else 0))
    prices = study.engine.paid_prices
    seconds, paced = _judging_time(study, data, counted.n, tokens)
    return Work(
        monitor=study.monitor.name,
        kind=run.kind,
        is_there=_is_judged(study, data),
        samples=counted.n,
        tokens=tokens,
        validation_tokens=0.0,
        seconds=seconds,
        gpus=study.cluster.gpus if study.engine.takes_token_ids else 0,
        cost=None if prices is None else cost(prices, ceil(tokens), 0, completion),
        counted=(counted.how,),
        paced=paced,
    )


def _judging_time(study: Study, data: RunDirectory | None, n: int, tokens: float) -> tuple[float | None, str]:
    """Seconds that so many prompts take, and where that is from."""
    if study.monitor.verdicts is not None:
        return 0.0, "recorded verdicts take a moment"
    prompt = published_prompt(data.path, study.prompt) if data else study.prompt
    base = study.monitor.on(None)  # which has no pace of its own
    try:
        found = measured_pace(study.paths.runs, judge_identity(base, study.engine, prompt))
    except UserError:
        found = None
    if found is not None:
        return expected_seconds(
            found, n, study.engine
        ), f"evaluations: by the pace measured in {found.n:,} verdicts of before (paths.runs)"
    if not study.engine.takes_token_ids:
        return None, "evaluations: no hours: no verdicts of this endpoint were timed before"
    device = in_process(study.engine, "forecast").device
    pace = _assumed(study, device)
    return (pace and pace.seconds(0, tokens)), _paced(study, pace, "evaluations", device)


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


def weights_here(study: Study) -> str | None:
    """What names the weights; None where neither they nor their commit are here."""
    try:
        return weights_identity(study.monitor)
    except UserError:
        return None


def _assumed(study: Study, device: str) -> Pace | None:
    """What the cluster is taken to do; None also for a GPU that it doesn't have."""
    if device == "cuda" and not study.cluster.gpus:
        return None
    return training_pace.assumed_pace(study.cluster, study.monitor)


def _paced(study: Study, pace: Pace | None, what: str, device: str) -> str:
    """Where a pace is from, or why there is none."""
    cluster = study.cluster
    if pace is not None and pace.n_runs:
        return _measured(pace.n_runs, what)
    if pace is not None:
        return f"{what}: assumed, not measured (cluster.assumed of cluster={cluster.name})"
    if device == "cuda" and not cluster.gpus:
        return f"{what}: no hours: they want a GPU and cluster={cluster.name} has none (cluster=h100)"
    return f"{what}: no hours: none was timed before, and cluster.assumed or monitor.parameters is null"


def _measured(n: int, what: str) -> str:
    return f"{what}: by the pace measured in {n:,} {what} of before (paths.runs)"
