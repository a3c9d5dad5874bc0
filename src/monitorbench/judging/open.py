"""From a configured monitor and engine to a model with a prompt on it; only what is chosen is imported."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine, in_process
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.judging.prompted import PromptedModel
from monitorbench.judging.route import Route

if TYPE_CHECKING:
    from monitorbench.engines.shared import SharedEngine


def open_prompted(
    monitor: Monitor,
    engine: Engine,
    prompt: Prompt,
    models: Path,
    where: str,
    *,
    identity: Mapping[str, Any] | None = None,
    words: Sequence[str] = (),
    spent: float = 0.0,
    run: Path | None = None,
    shared: "SharedEngine | None" = None,
    route: Route | None = None,
) -> PromptedModel:
    """The monitor on its engine, with a prompt.

    `models` is the folder that models are kept in; `where` names the setting in an error. `identity` is what
    `judging.identity` says of the model, for the keys of verdicts. With `words` their log-probabilities are
    wanted, and no verdict. `spent` is what earlier processes paid of an endpoint's `max_cost`, `run` the
    directory of a run whose batches are resumed. A model of this process is asked on `shared` where that is
    given; `route` says where a router's samples go.

    Raises what `engines.open.open_model` raises, and `ConfigError` where prompt, words or reasoning don't fit
    the tokenizer.
    """
    if monitor.verdicts is not None:
        from monitorbench.judging.recorded import RecordedVerdicts

        return RecordedVerdicts(monitor.verdicts, prompt, identity)
    if monitor.head_beside is not None:
        raise ConfigError(
            f"monitor.head_beside={monitor.head_beside}: only evaluate.py and serve.py read a pass twice; "
            "expected null, or monitor.head for the probe alone"
        )
    if monitor.head is not None:
        from monitorbench.judging.probed import ProbedModel

        try:
            return ProbedModel(monitor, engine, prompt, models, identity)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if route is not None:
        from monitorbench.judging.routed import RoutedPrompt

        try:
            return RoutedPrompt(monitor, in_process(engine, "monitor.router"), prompt, models, route)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if engine.batch is not None and prompt.judge_user is not None:
        raise ConfigError(f"{where}: it asks twice, a batch once; expected engine.batch=null")
    from monitorbench.engines.open import open_model

    model = open_model(monitor, engine, models, spent=spent, run=run, shared=shared)
    if model.tokenizer is None:
        from monitorbench.judging.endpoint import EndpointPrompt

        return EndpointPrompt(model, prompt, monitor.reasoning, identity, words)
    from monitorbench.judging.local import LocalPrompt

    try:
        return LocalPrompt(model, prompt, monitor, identity, words)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
