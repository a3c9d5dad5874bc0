"""The judge that an operating point was calibrated for, or a combination's judges and their rule.

Promise: a judge that is served has the hash of the judge that was calibrated, or nothing is served.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.evaluation import Baseline
from monitorbench.config.load import read_frozen
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.judging.judge import JudgeSpec, judge_spec
from monitorbench.judging.reproducible import refuse_batch_dependent
from monitorbench.judging.serving.served import described
from monitorbench.runs.directory import read_finished
from monitorbench.runs.files import content_hash
from monitorbench.scoring.calibrate import read_operating_point
from monitorbench.scoring.combination.cascade import Cascade
from monitorbench.scoring.combination.ensembles import Ensemble
from monitorbench.scoring.combination.members import baseline_hash
from monitorbench.scoring.operating_point import OperatingPoint

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

    @property
    def monitor(self) -> str:
        """The point's monitor: the judge's name, prompt and hash."""
        return self.point.thresholds[0].monitor


def read_calibrated(study: Study) -> Calibrated:
    """Read which judges `study.operating_point` was calibrated for; no model is run.

    A judge's monitor and engine are the study's where these have the calibrated hash, which leaves its batch
    size, key and limits to be set, and else those of the calibrated run. Raises `ConfigError` where no
    point is given or it names no threshold, `UserError` where a run is not there, or where nothing here has
    its judge's hash.
    """
    if study.operating_point is None:
        raise ConfigError(
            "operating_point=null: no value given; expected a run of calibrate.py, whose monitor is served"
        )
    directory = study.operating_point
    point = read_operating_point(directory)
    if point.rule != "threshold":
        raise ConfigError(f"operating_point={directory}: no threshold; expected a calibrated one")
    run = _found(Path(read_finished(directory)["results"]["judged"]), study.paths.runs)
    manifest = read_finished(run)
    results, name = manifest["results"], point.thresholds[0].monitor
    if content_hash(manifest["identity"]["judge"]) != _hash(name):
        raise UserError(f"{directory}: calibrated for {name}, which {run} is not by; calibrate again")
    if "combined" not in results:
        return Calibrated(directory, point, run, None, {name: _judge(study, run, name)})
    rule = _rule(results["combined"]["rule"])
    names = rule.members if isinstance(rule, Ensemble) else (rule.cheap, rule.strong)
    parts: dict[str, ServedJudge | ServedBaseline] = {}
    for member, source in zip(names, results["combined"]["runs"], strict=True):
        if source in get_args(Baseline):
            parts[member] = _baseline(member, source, study.paths.data / results["data"])
        else:
            parts[member] = _judge(study, study.paths.runs / "evaluate" / source, member)
    return Calibrated(directory, point, run, rule, parts)


def _rule(dumped: Any) -> Ensemble | Cascade:
    kind = Cascade if "cheap" in dumped else Ensemble
    return kind.model_validate_json(json.dumps(dumped))


def _found(run: Path, runs: Path) -> Path:
    """An evaluation run where it was, or among this project's runs."""
    here = runs / "evaluate" / run.name
    return here if not run.is_dir() and here.is_dir() else run


def _baseline(name: str, source: Baseline, data: Path) -> ServedBaseline:
    if _hash(name) != baseline_hash(source, data):
        raise UserError(
            f"{source}: fitted on another train split than that of {data}, or by other versions of numpy, "
            "scipy or scikit-learn; combine and calibrate again"
        )
    return ServedBaseline(source, data)


def _hash(name: str) -> str:
    return name.rpartition("/")[2]


def _judge(study: Study, run: Path, name: str) -> ServedJudge:
    manifest = read_finished(run)
    refuse_batch_dependent(run, manifest)
    identity = manifest["identity"]["judge"]
    refused: list[str] = []
    for candidate, typed in _candidates(study, run):
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


def _candidates(study: Study, run: Path) -> Iterator[tuple[Study, bool]]:
    """Studies that may have the run's judge, and whether one is as it was typed."""
    settings = [(study, True)]
    if (run / "config.json").is_file():
        frozen = read_frozen(run / "config.json")
        settings.append((frozen.model_copy(update={"paths": study.paths}), False))
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


def _spec(study: Study, identity: Any, data: Path) -> JudgeSpec:
    """The judge of a study under the prompt that the run had; examples and routes come from its dataset."""
    study = described(study)
    prompt = Prompt.model_validate_json(json.dumps(identity["prompt"]))
    if prompt.shots or study.monitor.router is not None:
        return planned_evaluation(study, data).judge
    return judge_spec(study.monitor, study.engine, prompt)
