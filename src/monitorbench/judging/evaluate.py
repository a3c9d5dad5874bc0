"""Run a judge (prompt × model × adapter × engine) over a dataset's test split, once.

Writes an evaluation run: `verdicts.jsonl` and a manifest that says which judge it was. Interrupted,
it goes on with what is owed; finished, it is reused.
"""

import logging
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import OpenAiEngine
from monitorbench.config.study import Prompt, Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.weights import adapter_folder, adapter_sha256, weights_identity
from monitorbench.judging.endpoint import endpoint_identity, judge_through_endpoint
from monitorbench.judging.local import Asked, judge_locally
from monitorbench.judging.served import described, reach
from monitorbench.prompts.few_shot import Shots, draw_shots
from monitorbench.prompts.published import published_prompt
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.files import read_json
from monitorbench.runs.tracking import tracking
from monitorbench.runs.verdict_log import open_verdict_log

_log = logging.getLogger(__name__)


def evaluate(study: Study) -> Path:
    """Judge the configured view of `evaluate.split`; returns the run directory.

    Raises `UserError` for missing weights, an adapter that changes nothing, a log in use, an endpoint
    that can't be used or whose `max_cost` is spent, or a training split without the examples of a
    few-shot prompt.
    """
    data = ensure(study, needed_splits(study))
    planned = planned_evaluation(described(study), data)
    if not planned.run.done and (reached := reach(study)) is not study:
        study, planned = reached, planned_evaluation(reached, data)
    run, name, prompt, judge, shots = planned
    if run.done:
        _log.info("evaluate: reusing %s", run.path)
        return run.path
    samples = _samples(study, data)
    with (
        tracking(study, run.path, "evaluate") as track,
        run.recording(study) as results,
        open_verdict_log(run.path / "verdicts.jsonl") as log,
    ):
        what = f"{name}, {prompt.name}"
        if isinstance(study.engine, OpenAiEngine):
            keys = judge_through_endpoint(
                study.engine, study.monitor.reasoning, prompt, samples, shots, log, what, track
            )
            results["cost"] = sum(log.entries[key].cost for key in keys)
        else:
            asked = Asked(study.monitor, study.engine, study.paths.models, prompt, judge)
            keys, adapter_gate = judge_locally(asked, samples, shots, log, what, track)
            if adapter_gate is not None:
                results["adapter_gate"] = adapter_gate
        results |= {
            "judge": {**judge, "name": name, "prompt": prompt.name},
            "data": data.name,
            "training": training_facts(study),
            "n": len(samples),
            "n_unscored": sum(log.entries[key].label is None for key in keys),
            "n_truncated": sum(log.entries[key].truncated_tokens > 0 for key in keys),
        }
    return run.path


class Planned(NamedTuple):
    """An evaluation before it is run."""

    run: RunDirectory
    """Where it is, or will be."""
    name: str
    prompt: Prompt
    judge: dict[str, Any]
    """Everything that decides a verdict."""
    shots: Shots


def planned_evaluation(study: Study, data: Path) -> Planned:
    """What `evaluate` does of this study, over the dataset directory `data`; runs no model.

    Raises `UserError` for a missing adapter, `ConfigError` for one behind an endpoint.
    """
    prompt = published_prompt(data, study.prompt)
    shots = _shots(study, prompt, data)
    judge = {
        **_judge_identity(study),
        "context_tokens": study.monitor.context_tokens,
        "prompt": prompt.model_dump(mode="json"),
    }
    if prompt.shots:
        judge["shots"] = list(shots.ids)
    name = judge_name(study)
    identity = {
        "data": data.name,
        "split": study.evaluate.split,
        "view": study.dataset.view(study.evaluate.split).model_dump(mode="json"),
        "judge": judge,
    }
    run = RunDirectory(study.paths.runs / "evaluate", f"{name}-{prompt.name}", identity)
    return Planned(run, name, prompt, judge, shots)


def needed_splits(study: Study) -> list[Split]:
    """What an evaluation reads: few-shot examples come from the train split."""
    judged = Split(study.evaluate.split)
    return [Split.TRAIN, judged] if study.prompt.shots else [judged]


def _samples(study: Study, data: Path) -> list[Sample]:
    split = Split(study.evaluate.split)
    return read_split(data, split, study.dataset.view(split.value))


def _judge_identity(study: Study) -> dict[str, Any]:
    """The model that judges: its weights and adapter here, or the endpoint that has it."""
    reasoning = study.monitor.reasoning
    thinks = {"reasoning": reasoning.model_dump()} if reasoning else {}
    if isinstance(study.engine, OpenAiEngine):
        if study.monitor.adapter is not None:
            raise ConfigError(
                f"monitor.adapter={study.monitor.adapter}: an endpoint has its own; expected null, and "
                "engine.model as the endpoint names it"
            )
        return endpoint_identity(study.engine) | thinks
    adapter = adapter_folder(study.monitor.adapter)
    return {
        "weights": weights_identity(study.monitor),
        "adapter": adapter_sha256(adapter) if adapter else "",
        "opening": study.monitor.opening,
        "engine": study.engine.kind,
        "dtype": study.engine.resolved_dtype,
        **thinks,
    }


def _shots(study: Study, prompt: Prompt, data: Path) -> Shots:
    """The examples of a few-shot prompt, from the configured view of the train split."""
    if not prompt.shots:
        return Shots(0, ())
    train = read_split(data, Split.TRAIN, study.dataset.view("train"))
    judged = {sample.category for sample in _samples(study, data)}
    return draw_shots(train, prompt.shots, prompt.shots_seed, prompt.shot_characters, judged)


def judge_name(study: Study) -> str:
    """The monitor's name, with what its adapter was trained on; of `engine=served`, what the server says."""
    if isinstance(study.engine, OpenAiEngine) and study.engine.serves:
        return study.engine.model
    if study.monitor.adapter is None:
        return study.monitor.name
    facts = training_facts(study)
    return f"{study.monitor.name}+{facts['name'] if facts else study.monitor.adapter.name}"


def training_facts(study: Study) -> dict[str, Any] | None:
    """What a training run says of the adapter: name, trained_on, seed, objective and learning curve."""
    if isinstance(study.engine, OpenAiEngine):
        return study.engine.serves.training if study.engine.serves else None
    adapter = study.monitor.adapter
    for folder in (adapter, adapter.parent) if adapter else ():
        if (folder / "manifest.json").is_file() and (folder / "learning_curve.json").is_file():
            manifest = read_manifest(folder)
            return {
                "name": manifest["results"]["name"],
                "trained_on": manifest["results"]["trained_on"],
                "seed": manifest["identity"]["seed"],
                "objective": manifest["identity"].get("training", {}).get("objective", "sft"),
                "learning_curve": read_json(folder / "learning_curve.json"),
            }
    return None
