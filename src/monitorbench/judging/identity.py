"""A judge's name in content hashes: all that decides its verdicts, never a path or a threshold."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import Engine, in_process
from monitorbench.config.monitor import LabelWords, Monitor, Prompt, PromptKind
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.stored.adapter import adapter_folder, adapter_sha256, stated_base
from monitorbench.engines.stored.head import head_file
from monitorbench.engines.weights import weights_identity
from monitorbench.prompts.few_shot import Shots
from monitorbench.records import Sample
from monitorbench.runs.files import content_hash, file_sha256
from monitorbench.untrusted import where_looked


def model_identity(monitor: Monitor, engine: Engine) -> dict[str, Any]:
    """The model that answers: its weights and adapter here, or the endpoint that has them.

    Raises `UserError` for a missing adapter, `ConfigError` for one that is to go behind an endpoint,
    and for an opening that an endpoint can't be sent.
    """
    if monitor.verdicts is not None:
        file = monitor.verdicts
        if not file.is_file():
            raise UserError(
                f"monitor.verdicts={file}: no such file{where_looked(file)}; expected a verdict a line or row"
            )
        read_as = monitor.read_as.model_dump(mode="json", exclude_defaults=True)
        read_otherwise = [content_hash(read_as)] if read_as else []
        return {
            "weights": ":".join(["recorded", file_sha256(monitor.verdicts), *read_otherwise]),
            "adapter": "",
            "opening": "",
            "engine": "recorded",
            "dtype": "",
        }
    thinks = {"reasoning": monitor.reasoning.model_dump()} if monitor.reasoning else {}
    own = engine.with_opening(monitor).own_identity()
    if own is not None:
        opening = {"opening": monitor.opening, **_date(monitor)} if engine.by_token_ids else {}
        if monitor.adapter is not None:
            raise ConfigError(
                f"monitor.adapter={monitor.adapter}: an endpoint has its own; expected null, and "
                "engine.model as the endpoint names it"
            )
        if monitor.head is not None:
            raise ConfigError(
                f"monitor.head={monitor.head}: an endpoint shows no hidden states; expected null"
            )
        return own | opening | thinks
    return {
        "weights": weights_identity(monitor),
        "adapter": _on_top(monitor),
        "opening": monitor.opening,
        **_date(monitor),
        "engine": engine.kind,
        "dtype": engine.precision,
        **thinks,
        **({"readout": "probe"} if monitor.head else {}),
    }


def _date(monitor: Monitor) -> dict[str, str]:
    return {"template_date": monitor.template_date.isoformat()} if monitor.template_date else {}


def _on_top(monitor: Monitor) -> str:
    """Hash of what was trained on the weights, an adapter or a head; empty for the base."""
    if monitor.head is not None:
        return f"head:{file_sha256(head_file(monitor.head))}"
    adapter = adapter_folder(monitor.adapter)
    return adapter_sha256(adapter) if adapter else ""


RECORDED_PROMPT = Prompt(
    name="recorded",
    kind=PromptKind.DIRECT,
    system="",
    user="",
    prefill="",
    label_words=LabelWords(misbehavior="misbehavior", benign="benign"),
    max_new_tokens=1,
)
"""Stands in a run of recorded verdicts where the prompt stands in others: what was asked is not known."""


def adapter_base(monitor: Monitor) -> str | None:
    """The weights that the monitor's adapter says it was trained on; None without an adapter.

    Not part of an identity: an adapter from elsewhere says nothing, and is taken.
    """
    adapter = adapter_folder(monitor.adapter)
    if adapter is None:
        return None
    base = stated_base(adapter)
    return base.weights if base else "not stated"


def judge_identity(
    monitor: Monitor, engine: Engine, prompt: Prompt, shot_ids: Sequence[str] = ()
) -> dict[str, Any]:
    """The model, its context and its prompt; `shot_ids` are the examples of a few-shot prompt.

    Raises what `model_identity` raises.
    """
    return {
        **model_identity(monitor, engine),
        "context_tokens": monitor.context_tokens,
        "prompt": prompt.model_dump(mode="json"),
        **({"shots": list(shot_ids)} if prompt.shots else {}),
    }


IN_KEYS = ("weights", "adapter", "dtype", "engine")
"""Parts of a model's identity that are in a verdict's key; the rest shows in the token ids."""


def verdict_key(
    sample_id: str,
    token_ids: Sequence[int],
    *,
    weights: str,
    adapter: str,
    decoding: Decoding,
    dtype: str,
    engine: str,
    reasoning: Sequence[int] = (),
) -> str:
    """Hash what decides a verdict: 24 hex digits. `reasoning`: what decides how a monitor thinks first."""
    inputs: list[object] = [sample_id, list(token_ids), weights, adapter, dtype, engine]
    if reasoning:
        inputs.append(list(reasoning))
    how = [decoding.max_new_tokens, decoding.stop_token_ids, decoding.scored_token_ids]
    return hashlib.sha256(json.dumps([inputs, how]).encode()).hexdigest()[:24]


NO_SHOTS = Shots(0, ())


class Route(NamedTuple):
    """Which category a sample is taken for."""

    category: Callable[[Sample], str]
    fitted_on: str
    """Name of the samples that it was learnt from; empty where it is the sample's own category."""

    def counts(self, samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
        """Counts of samples by their own category and the one that they were taken for."""
        counts: dict[str, dict[str, int]] = {}
        taken_for = Counter((sample.category, self.category(sample)) for sample in samples)
        for (own, routed), n in taken_for.items():
            counts.setdefault(own, {})[routed] = n
        return counts


class JudgeSpec(NamedTuple):
    """Which judge: monitor × engine × prompt; made by `judge_spec`, opened by `judging.open.open_judge`."""

    monitor: Monitor
    engine: Engine
    prompt: Prompt
    shots: Shots
    """The examples of a few-shot prompt."""
    identity: Mapping[str, Any]
    """Everything that decides a verdict."""
    route: Route | None = None
    """Route of a monitor with a router; None without one."""


def judge_spec(
    monitor: Monitor, engine: Engine, prompt: Prompt, shots: Shots = NO_SHOTS, route: Route | None = None
) -> JudgeSpec:
    """The judge with its identity; runs no model. Raises as `judge_identity` and `_router_identity`."""
    identity = judge_identity(monitor, engine, prompt, shots.ids) | _router_identity(monitor, engine, route)
    return JudgeSpec(monitor, engine, prompt, shots, identity, route)


def _router_identity(monitor: Monitor, engine: Engine, route: Route | None) -> dict[str, Any]:
    """Parts of a router that decide verdicts: each category's adapter, and how a category is told.

    Raises `ConfigError` for a stage that routes nothing, and for an engine that has no adapters of ours;
    `UserError` for a missing adapter.
    """
    if monitor.router is None:
        return {}
    in_process(engine, "monitor.router")
    if route is None:
        raise ConfigError("monitor.router: only `monitorbench evaluate` sends samples by it; expected null")
    hashes = {
        category: model_identity(monitor.on(path), engine)["adapter"]
        for category, path in sorted(monitor.router.adapters.items())
    }
    return {"router": {"adapters": hashes, "by": monitor.router.by, "fitted_on": route.fitted_on}}
