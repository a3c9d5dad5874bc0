"""Opens the judge of a specification: the one list of kinds; only the chosen kind is imported."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine, in_process
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.judging.identity import NO_SHOTS, JudgeSpec
from monitorbench.judging.judge import Judge, PromptJudge
from monitorbench.prompts.few_shot import Shots

if TYPE_CHECKING:
    from monitorbench.engines.open import LocalModel


def open_judge(
    spec: JudgeSpec,
    models: Path,
    *,
    where: str = "prompt",
    spent: float = 0.0,
    run: Path | None = None,
    shared: "LocalModel | None" = None,
    keeps_states: bool = True,
) -> Judge:
    """The judge of a specification; to be closed.

    `models` is the folder that models are kept in; `where` is the setting that holds the prompt, for errors.
    `spent` is what earlier processes paid of an endpoint's `max_cost`, `run` the directory of a run whose
    batches are resumed. A model of this process is asked on `shared` where that is given. Hidden states stay
    on disk for later runs unless `keeps_states` is False.

    Raises `UserError` where weights, an adapter or an endpoint's key are missing, `ConfigError` where prompt
    or reasoning don't fit the tokenizer.
    """
    monitor, engine, prompt = spec.monitor, spec.engine, spec.prompt
    settings = f"monitor={monitor.name} {where}={prompt.name}"
    if monitor.verdicts is not None:
        from monitorbench.judging.recorded import RecordedJudge

        return RecordedJudge(monitor.verdicts, monitor.read_as, prompt, spec.identity)
    if monitor.head_beside is not None:
        raise ConfigError(
            f"monitor.head_beside={monitor.head_beside}: only `evaluate` and `serve` read a pass twice; "
            "expected null, or monitor.head for the probe alone"
        )
    judge: Judge | None = None
    try:
        if monitor.head is not None:
            from monitorbench.judging.probe import open_head

            judge = open_head(monitor, engine, prompt, models, spec.identity, keeps_states=keeps_states)
        elif spec.route is not None:
            from monitorbench.judging.router import RouterJudge

            local = in_process(engine, "monitor.router")
            judge = RouterJudge(monitor, local, prompt, models, spec.route, spec.shots)
    except ValueError as error:
        raise ConfigError(f"{settings}: {error}") from error
    if judge is None:
        of_run: dict[str, Any] = {"spent": spent, "run": run, "shared": shared}
        judge = open_prompt(
            monitor, engine, prompt, models, settings, identity=spec.identity, shots=spec.shots, **of_run
        )
    if prompt.unit.by == "trajectory":
        return judge
    from monitorbench.judging.pieces import LedgerJudge, PiecesJudge

    if prompt.unit.by == "ledger":
        if not isinstance(judge, PromptJudge):
            judge.close()
            raise ConfigError("unit=ledger: a list is a prompt's; expected a language model without a head")
        return LedgerJudge(judge, prompt.unit)
    return PiecesJudge(judge, prompt.unit)


def open_prompt(
    monitor: Monitor,
    engine: Engine,
    prompt: Prompt,
    models: Path,
    where: str,
    *,
    identity: Mapping[str, Any] | None = None,
    shots: Shots = NO_SHOTS,
    words: Sequence[str] = (),
    spent: float = 0.0,
    run: Path | None = None,
    shared: "LocalModel | None" = None,
) -> PromptJudge:
    """A prompt on the monitor's language model; arguments as for `open_judge`, `where` whole.

    `identity` is what `judging.identity` says of the model, for the keys of verdicts. With `words` their
    log-probabilities are wanted, and no verdict. Raises what `engines.open.open_model` raises, and
    `ConfigError` where prompt, words or reasoning don't fit the tokenizer.
    """
    if engine.batch is not None and prompt.judge_user is not None:
        raise ConfigError(f"{where}: it asks twice, a batch once; expected engine.batch=null")
    from monitorbench.engines.open import open_model

    model = open_model(monitor, engine, models, spent=spent, run=run, shared=shared)
    is_remote = not engine.takes_token_ids
    if model.tokenizer is None:
        if (engine.api == "moderations") != (prompt.guard is not None):
            raise ConfigError(
                f"{where}: expected prompt=moderation with a moderation endpoint (engine.api=moderations), "
                "and for a guard model an engine that takes token ids (engine.by_token_ids=true)"
            )
        from monitorbench.judging.endpoint import ChatJudge

        return ChatJudge(model, prompt, monitor.reasoning, identity, shots, words, is_remote=is_remote)
    from monitorbench.judging.local import TokenJudge

    try:
        return TokenJudge(model, prompt, monitor, identity, shots, words, is_remote=is_remote)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
