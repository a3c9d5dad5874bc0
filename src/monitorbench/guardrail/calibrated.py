"""The judge that an operating point was calibrated for, or a combination's judges: found, and opened.

Promises: a judge that is opened has the hash of the judge that was calibrated, each time, or nothing is
judged; an endpoint's answers are by the model that they were by, as far as they name it, unless
`engine.model_may_change` says otherwise; nothing that it judges is kept. What only a baseline, examples or
routes need is imported with them: a guardrail holds neither pyarrow nor scipy, 80 MB, for a model alone.
"""

import ctypes
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import Engine
from monitorbench.config.evaluation import Baseline
from monitorbench.config.load import read_frozen
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.engines.protocol import Reply
from monitorbench.judging.identity import RECORDED_PROMPT, JudgeSpec, judge_spec
from monitorbench.judging.judge import TRIAL, Judge, KnownModels, Question, Reading
from monitorbench.judging.open import open_judge
from monitorbench.judging.reproducible import refuse_batch_dependent
from monitorbench.judging.serving.served import reach
from monitorbench.prompts.label_tokens import Score
from monitorbench.prompts.parse import Answer
from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.directory import read_finished
from monitorbench.runs.files import content_hash
from monitorbench.scoring.combination.cascade import Cascade
from monitorbench.scoring.combination.ensembles import Ensemble
from monitorbench.scoring.operating_point import (
    OperatingPoint,
    labels_at,
    longest_calibrated,
    read_operating_point,
)

_log = logging.getLogger(__name__)


class ServedJudge(NamedTuple):
    """A judge to open, as the calibrated run had it."""

    spec: JudgeSpec
    study: Study
    """Settings that it is opened with: the monitor, its engine, and paths."""
    served_models: tuple[str, ...] = ()
    """The endpoint's names for the model in the answers of the calibrated run."""


class ServedBaseline(NamedTuple):
    """A baseline of a combination, to be fitted again on the train split."""

    name: Baseline
    data: Path


class Calibrated(NamedTuple):
    """A calibrated monitor that is to be served."""

    directory: Path
    """The run of `calibrate.py`."""
    point: OperatingPoint
    run: Path
    """The evaluation run that it was calibrated on."""
    rule: Ensemble | Cascade | None
    """Rule of a combination; None for a single judge."""
    parts: dict[str, ServedJudge | ServedBaseline]
    """Judges by the name that the rule knows them by; of a cascade the cheap one first."""
    longest_prompt: float | None = None
    """Prompt tokens of the longest text in calibration; None where they were not counted."""

    @property
    def monitor(self) -> str:
        """The point's monitor: the judge's name, prompt and hash."""
        return self.point.thresholds[0].monitor

    @property
    def thresholds(self) -> dict[str, float | None]:
        """Thresholds by category; "" for all."""
        return {row.category: row.threshold for row in self.point.thresholds}

    def threshold(self, category: str | None) -> float | None:
        """The threshold of a category; None where it has none."""
        return self.thresholds.get("", self.thresholds.get(category or ""))

    def label(self, score: float | None, category: str) -> Label | None:
        """The label of a score in a category; None where either has none."""
        (label,) = labels_at(self.point, monitor=self.monitor, scores=[score], categories=[category])
        return label


def read_calibrated(study: Study, *, as_typed: bool = True) -> Calibrated:
    """Read which judges `study.operating_point` was calibrated for; no model is run.

    A judge's monitor and engine are the study's where these have the calibrated hash, which leaves its batch
    size, key and limits to be set, and else, or without `as_typed`, those of the calibrated run. Raises
    `ConfigError` where no point is given or it names no threshold, `UserError` where a run is not there, or
    where nothing here has its judge's hash.
    """
    if study.operating_point is None:
        raise ConfigError(
            "operating_point=null: no value given; expected a run of `calibrate`, whose monitor is served"
        )
    directory = study.operating_point
    point = read_operating_point(directory)
    if point.rule != "threshold":
        raise ConfigError(f"operating_point={directory}: no threshold; expected a calibrated one")
    run = _found(Path(read_finished(directory)["results"]["judged"]), study.paths.runs)
    manifest = read_finished(run)
    results, name = manifest["results"], point.thresholds[0].monitor
    if "judge" not in manifest["identity"] or "imported" in results:
        raise UserError(
            f"{directory}: a threshold for {name}, whose scores in {run} no monitor of this project gave, so "
            "that none can be served; calibrate a run of `evaluate`, or, with labels of a served monitor's "
            "log, set operating_point to the one that it serves"
        )
    if content_hash(manifest["identity"]["judge"]) != _hash(name):
        raise UserError(f"{directory}: calibrated for {name}, which {run} is not by; calibrate again")
    if "combined" not in results:
        parts: dict[str, ServedJudge | ServedBaseline] = {name: _judge(study, run, name, as_typed=as_typed)}
        return Calibrated(directory, point, run, None, parts, longest_calibrated(directory))
    dumped = results["combined"]["rule"]
    kind = Cascade if "cheap" in dumped else Ensemble
    rule: Ensemble | Cascade = kind.model_validate_json(json.dumps(dumped))
    names = rule.members if isinstance(rule, Ensemble) else (rule.cheap, rule.strong)
    parts = {}
    for member, source in zip(names, results["combined"]["runs"], strict=True):
        if source in get_args(Baseline):
            parts[member] = _baseline(member, source, study.paths.data / results["data"])
        else:
            parts[member] = _judge(study, study.paths.runs / "evaluate" / source, member, as_typed=as_typed)
    return Calibrated(directory, point, run, rule, parts, longest_calibrated(directory))


def _found(run: Path, runs: Path) -> Path:
    """An evaluation run where it was, or among this project's runs."""
    here = runs / "evaluate" / run.name
    return here if not run.is_dir() and here.is_dir() else run


def _baseline(name: str, source: Baseline, data: Path) -> ServedBaseline:
    from monitorbench.scoring.combination.members import baseline_hash

    if _hash(name) != baseline_hash(source, data):
        raise UserError(
            f"{source}: fitted on another train split than that of {data}, or by other versions of numpy, "
            "scipy or scikit-learn; combine and calibrate again"
        )
    return ServedBaseline(source, data)


def _hash(name: str) -> str:
    return name.rpartition("/")[2]


def _judge(study: Study, run: Path, name: str, *, as_typed: bool) -> ServedJudge:
    manifest = read_finished(run)
    refuse_batch_dependent(run, manifest)
    identity = manifest["identity"]["judge"]
    refused: list[str] = []
    for candidate, typed in _candidates(study, run, as_typed):
        try:
            spec = _spec(candidate, identity, study.paths.data / manifest["results"]["data"])
        except (ConfigError, UserError) as error:
            refused.append(str(error))
            continue
        if content_hash(spec.identity) == _hash(name):
            if not typed:
                _log.info("serve: monitor, prompt and engine are those of %s", run)
            return ServedJudge(spec, candidate, tuple(manifest["results"].get("served_models") or ()))
    why = refused[-1] if refused else "its model, prompt, engine or dtype are others here"
    raise UserError(f"{run}: the judge that was calibrated can't be had: {why}")


def _candidates(study: Study, run: Path, as_typed: bool) -> Iterator[tuple[Study, bool]]:
    """Studies that may have the run's judge, and whether each is as it was typed."""
    settings = [(study, True)] if as_typed else []
    if (run / "config.json").is_file():
        frozen = read_frozen(run / "config.json")
        monitor = _placed(frozen.monitor, study.paths.runs.parent)
        settings.append((frozen.model_copy(update={"paths": study.paths, "monitor": monitor}), False))
    for candidate, typed in settings:
        monitor = candidate.monitor
        if monitor.verdicts is not None:
            if not typed:
                raise UserError(f"{run}: recorded verdicts; they judge nothing new, and can't be served")
            continue
        monitors: list[Monitor] = [monitor]
        if monitor.head_beside is not None:
            monitors = [monitor.without_probe(), monitor.probe_alone()]
        for each in monitors:
            yield candidate.model_copy(update={"monitor": each}), typed


def _placed(monitor: Monitor, root: Path) -> Monitor:
    """The monitor with its relative paths below the folder that they were relative to."""
    paths = {name: getattr(monitor, name) for name in ("path", "adapter", "head", "gguf")}
    return monitor.model_copy(
        update={
            name: root / path
            for name, path in paths.items()
            if path is not None and not path.exists() and (root / path).exists()
        }
    )


def _spec(study: Study, identity: Any, data: Path) -> JudgeSpec:
    """The judge of a study under the prompt that the run had; examples and routes come from its dataset."""
    study = reach(study, waits=False)
    prompt = Prompt.model_validate_json(json.dumps(identity["prompt"]))
    if prompt.shots or study.monitor.router is not None:
        from monitorbench.judging.evaluate import planned_evaluation

        return planned_evaluation(study, data).judge
    return judge_spec(study.monitor, study.engine, prompt)


_MOST_RETRIES = 1
"""Retries of a request to an endpoint: whoever waits for a guardrail has no time for more."""


def open_part(part: ServedJudge | ServedBaseline, seconds: float | None) -> Judge:
    """Open a judge; one of this process is loaded and tried, an endpoint is not asked anything yet.

    `seconds` is what an answer may take at most; None: what its engine's settings allow. Raises what
    `judging.open.open_judge` raises, and `UserError` for a server that is not reached, or where the judge is
    not the one that was calibrated.
    """
    if isinstance(part, ServedBaseline):
        return _open_baseline(part)
    study, spec = reach(part.study), part.spec
    _refuse_another(spec, study.engine)
    spec = spec._replace(engine=study.engine if seconds is None else _in_time(study.engine, seconds))
    judge = open_judge(spec, study.paths.models, keeps_states=False)
    if not (study.engine.model_may_change or study.engine.server):
        judge.known_models = KnownModels(part.served_models)
    if not judge.is_remote:
        try:
            judge.verdicts([TRIAL])
        except BaseException:
            judge.close()
            raise
        _give_memory_back()
    return judge


def _open_baseline(part: ServedBaseline) -> Judge:
    from monitorbench.scoring.baselines import THRESHOLD, fitted_baseline, train_samples

    return BaselineJudge(fitted_baseline(train_samples(part.data), part.name), THRESHOLD)


def _give_memory_back() -> None:
    """Return what loading took and freed, tens of megabytes, to the system; only glibc can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class BaselineJudge(Judge):
    """A fitted baseline, which reads no prompt."""

    def __init__(self, score: Callable[[Sample], float], threshold: float) -> None:
        """`score` is in [0, 1], the higher the likelier is misbehavior, which it is from `threshold` on."""
        super().__init__(RECORDED_PROMPT)
        self._score, self._threshold = score, threshold

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`."""
        return Question("", sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`."""
        for index, question in enumerate(questions):
            score = self._score(question.sample)
            label = Label.MISBEHAVIOR if score >= self._threshold else Label.BENIGN
            reply = Reply("", "baseline")
            yield index, self.verdict(question, reply, Reading("", Answer(label, None), Score(score, None)))


def _refuse_another(spec: JudgeSpec, engine: Engine) -> None:
    """A server of ours may have come back with another adapter, and weights on a disk be replaced."""
    now = judge_spec(spec.monitor, engine, spec.prompt, spec.shots, spec.route).identity
    if content_hash(now) == content_hash(spec.identity):
        return
    changed = sorted(name for name in {*now, *spec.identity} if now.get(name) != spec.identity.get(name))
    server = engine.server
    where = f"engine.server={server}" if server else f"monitor={spec.monitor.name}"
    raise UserError(
        f"{where}: no longer the judge that was calibrated (other {', '.join(changed)}); expected that one, "
        "or an operating_point that was calibrated for this one"
    )


def _in_time(engine: Engine, seconds: float) -> Engine:
    """An endpoint that is given up in time; neither decides an answer."""
    if engine.takes_token_ids:
        return engine
    limits: dict[str, float] = engine.model_dump(include={"timeout_seconds", "max_retries"})
    return engine.model_copy(
        update={
            "timeout_seconds": min(seconds, limits["timeout_seconds"]),
            "max_retries": min(_MOST_RETRIES, int(limits["max_retries"])),
        }
    )
