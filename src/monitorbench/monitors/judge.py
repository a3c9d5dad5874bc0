"""Run a judge (prompt × model × adapter × engine) over a dataset's test split, once.

Writes an evaluation run: `verdicts.jsonl` and a manifest that says which judge it was. Interrupted,
it goes on with what is owed; finished, it is reused.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.errors import ConfigError, UserError
from monitorbench.config.study import LocalEngine, Prompt, Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.open import open_engine
from monitorbench.engines.protocol import ADAPTER_GATE, Completion, Decoding, Engine
from monitorbench.engines.weights import adapter_folder, adapter_sha256, weights_folder, weights_identity
from monitorbench.monitors.endpoint_judge import endpoint_identity, judge_through_endpoint
from monitorbench.prompts.few_shot import Shots, draw_shots
from monitorbench.prompts.grounding import ground
from monitorbench.prompts.parse import Score, parse, score
from monitorbench.prompts.published import published_prompt
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.truncate import middle_truncate
from monitorbench.records import Sample, Split, UnscoredReason, Verdict
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.files import read_json
from monitorbench.runs.progress import progress
from monitorbench.runs.verdict_log import VerdictLog, open_verdict_log, verdict_key

_log = logging.getLogger(__name__)


class _Owed(NamedTuple):
    key: str
    sample: Sample
    token_ids: tuple[int, ...]
    truncated_tokens: int = 0
    detail: str = ""


def evaluate(study: Study) -> Path:
    """Judge the configured view of `evaluate.split`; returns the run directory.

    Raises `UserError` for missing weights, an adapter that changes nothing, a log in use, an endpoint
    that can't be used or whose `max_cost` is spent, or a training split without the examples of a
    few-shot prompt.
    """
    split = Split(study.evaluate.split)
    data = ensure(study, [Split.TRAIN, split] if study.prompt.shots else [split])
    view = study.dataset.view(split.value)
    samples = read_split(data, split, view)
    prompt = published_prompt(data, study.prompt)
    shots = _shots(study, prompt, data, samples)
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
        "split": split.value,
        "view": view.model_dump(mode="json"),
        "judge": judge,
    }
    run = RunDirectory(study.paths.runs / "evaluate", f"{name}-{prompt.name}", identity)
    if run.done:
        _log.info("evaluate: reusing %s", run.path)
        return run.path
    with run.recording(study) as results, open_verdict_log(run.path / "verdicts.jsonl") as log:
        if isinstance(study.engine, OpenAiEngine):
            what = f"{name}, {prompt.name}"
            keys = judge_through_endpoint(study.engine, prompt, samples, shots, log, what)
            results["cost"] = sum(log.held[key].cost for key in keys)
        else:
            keys = _judge_here(study, study.engine, prompt, samples, shots, judge, log, results)
        results |= {
            "judge": {**judge, "name": name, "prompt": prompt.name},
            "data": data.name,
            "training": _training_facts(study.monitor.adapter),
            "n": len(samples),
            "n_unscored": sum(log.held[key].label is None for key in keys),
        }
    return run.path


def _judge_identity(study: Study) -> dict[str, Any]:
    """The model that judges: its weights and adapter here, or the endpoint that has it."""
    if isinstance(study.engine, OpenAiEngine):
        if study.monitor.adapter is not None:
            raise ConfigError(
                f"monitor.adapter={study.monitor.adapter}: an endpoint has its own; expected null, and "
                "engine.model as the endpoint names it"
            )
        return endpoint_identity(study.engine)
    adapter = adapter_folder(study.monitor.adapter)
    return {
        "weights": weights_identity(study.monitor),
        "adapter": adapter_sha256(adapter) if adapter else "",
        "opening": study.monitor.opening,
        "engine": study.engine.kind,
        "dtype": study.engine.dtype,
    }


def _judge_here(
    study: Study,
    engine_config: LocalEngine,
    prompt: Prompt,
    samples: Sequence[Sample],
    shots: Shots,
    judge: Mapping[str, Any],
    log: VerdictLog,
    results: dict[str, Any],
) -> list[str]:
    """Run what the log lacks on an engine in this process; returns the key of every sample."""
    from transformers import AutoTokenizer

    weights = weights_folder(study.monitor, study.paths.models)
    adapter = adapter_folder(study.monitor.adapter)
    renderer = Renderer(prompt, AutoTokenizer.from_pretrained(weights), study.monitor.opening)
    decoding = Decoding(prompt.max_new_tokens, (renderer.end_of_turn,), renderer.label_tokens.all)
    keys, owed = _owed(samples, shots, renderer, decoding, judge, log)
    if owed:
        engine = open_engine(engine_config, weights, adapter, study.monitor.context_tokens)
        try:
            if adapter:
                results["adapter_gate"] = refuse_idle_adapter(engine, owed[0].token_ids, decoding)
            _judge_owed(engine, owed, renderer, decoding, log, f"{judge_name(study)}, {prompt.name}")
        finally:
            engine.close()
    return keys


def _shots(study: Study, prompt: Prompt, data: Path, samples: Sequence[Sample]) -> Shots:
    """The examples of a few-shot prompt, from the configured view of the train split."""
    if not prompt.shots:
        return Shots(0, ())
    train = read_split(data, Split.TRAIN, study.dataset.view("train"))
    judged = {sample.category for sample in samples}
    return draw_shots(train, prompt.shots, prompt.shots_seed, prompt.shot_characters, judged)


def judge_name(study: Study) -> str:
    """The monitor's name, with what its adapter was trained on."""
    if study.monitor.adapter is None:
        return study.monitor.name
    facts = _training_facts(study.monitor.adapter)
    return f"{study.monitor.name}+{facts['name'] if facts else study.monitor.adapter.name}"


def _training_facts(adapter: Path | None) -> dict[str, Any] | None:
    """What a training run says of its adapter: name, trained_on, seed and learning curve."""
    for folder in (adapter, adapter.parent) if adapter else ():
        if (folder / "manifest.json").is_file() and (folder / "learning_curve.json").is_file():
            manifest = read_manifest(folder)
            return {
                "name": manifest["results"]["name"],
                "trained_on": manifest["results"]["trained_on"],
                "seed": manifest["identity"]["seed"],
                "learning_curve": read_json(folder / "learning_curve.json"),
            }
    return None


def refuse_idle_adapter(engine: Engine, prompt: Sequence[int], decoding: Decoding) -> float:
    """The largest change of a label token's log-probability that the adapter makes on a prompt.

    Raises `UserError` below `ADAPTER_GATE`: the base would be judged under the adapter's name.
    """
    asked = Decoding(1, decoding.stop_token_ids, decoding.scored_token_ids)
    # The base first: an engine that holds one model at a time then has the right one loaded.
    ((_, base),) = engine.complete([prompt], asked, with_adapter=False)
    ((_, tuned),) = engine.complete([prompt], asked)
    asked_for = [i for i in decoding.scored_token_ids if math.isfinite(base.logprobs[i])]
    if not all(math.isfinite(tuned.logprobs[i]) for i in asked_for):
        raise UserError("the adapter gives a label a log-probability that is not finite: it is broken")
    change = max((abs(tuned.logprobs[i] - base.logprobs[i]) for i in asked_for), default=0.0)
    if change < ADAPTER_GATE:
        raise UserError(
            f"the adapter changes no log-probability by {ADAPTER_GATE:g} (largest change {change:.2g}): "
            "it is not on the model, or it was not trained"
        )
    return change


def _owed(
    samples: Sequence[Sample],
    shots: Shots,
    renderer: Renderer,
    decoding: Decoding,
    judge: Mapping[str, Any],
    log: VerdictLog,
) -> tuple[list[str], list[_Owed]]:
    """All samples' keys, and what has no verdict yet.

    A prompt too long for the context is shortened where the prompt says so; else its verdict is here.
    """
    fits = judge["context_tokens"] - decoding.max_new_tokens
    names = {name: judge[name] for name in ("weights", "adapter", "dtype", "engine")}
    keys: list[str] = []
    owed: list[_Owed] = []
    for sample in samples:
        examples = shots.beside(sample)
        ids = renderer.render(sample, examples)
        truncated_tokens, detail = 0, f"{len(ids)} tokens, {fits} fit" if len(ids) > fits else ""
        if len(ids) > fits and renderer.prompt.too_long == "middle_truncate":
            shortened = middle_truncate(renderer, sample, fits, examples)
            ids, truncated_tokens, detail = shortened or (ids, 0, detail)
        key = verdict_key(sample.id, ids, decoding=decoding, **names)
        keys.append(key)
        if key in log.held:
            continue
        if len(ids) > fits:
            log.append(_unscored(key, sample, renderer, UnscoredReason.TOO_LONG, detail, len(ids)))
        else:
            owed.append(_Owed(key, sample, ids, truncated_tokens, detail))
    return keys, owed


def _judge_owed(
    engine: Engine, owed: Sequence[_Owed], renderer: Renderer, decoding: Decoding, log: VerdictLog, what: str
) -> None:
    with progress(what, len(owed)) as ticker:
        for index, completion in engine.complete([item.token_ids for item in owed], decoding):
            log.append(_verdict(owed[index], completion, renderer))
            ticker.advance()


def _verdict(item: _Owed, completion: Completion, renderer: Renderer) -> Verdict:
    tokens = renderer.label_tokens
    prompt = renderer.prompt
    answer = parse(prompt, tokens, completion.token_ids, completion.text, completion.finish_reason)
    value: Score = score(completion.logprobs, tokens)
    return Verdict(
        key=item.key,
        sample_id=item.sample.id,
        prompt=prompt.name,
        answer=prompt.prefill + completion.text,
        label=answer.label,
        unscored=answer.unscored,
        score=value.score,
        label_mass=value.label_mass,
        finish_reason=completion.finish_reason,
        category=answer.category,
        severity=answer.severity,
        quotes=answer.quotes,
        evidence=ground(answer.quotes, item.sample.response, prompt.fuzzy_ratio),
        truncated_tokens=item.truncated_tokens,
        detail=item.detail,
        prompt_tokens=len(item.token_ids),
        completion_tokens=len(completion.token_ids),
        seconds=round(completion.seconds, 4),
    )


def _unscored(
    key: str, sample: Sample, renderer: Renderer, reason: UnscoredReason, detail: str, prompt_tokens: int
) -> Verdict:
    return Verdict(
        key=key,
        sample_id=sample.id,
        prompt=renderer.prompt.name,
        answer="",
        label=None,
        unscored=reason,
        detail=detail,
        score=None,
        label_mass=None,
        finish_reason="",
        prompt_tokens=prompt_tokens,
        completion_tokens=0,
        seconds=0.0,
    )
