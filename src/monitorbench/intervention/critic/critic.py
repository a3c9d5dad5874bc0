"""A monitor as a critic: P(fail) of a run, judged on what happened so far.

Promises: a critic that gives no probability says why, and nothing is made of it; the label of a sample never
reaches a critic that judges it.
"""

import importlib.metadata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import OpenAiEngine
from monitorbench.config.study import LocalEngine, Monitor, Prompt, Study
from monitorbench.corpus.surface import classifier
from monitorbench.records import Label, Sample, Verdict

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from monitorbench.runs.verdict_log import VerdictLog


class Judgement(NamedTuple):
    """P(fail) in [0, 1], not calibrated; None with a reason."""

    p_fail: float | None
    reason: str = ""
    tokens: int = 0


class Critic(Protocol):
    """A monitor that is ready to judge."""

    def judge(self, samples: Sequence[Sample]) -> list[Judgement]:
        """One judgement a sample, in their order. What it raises ends the run that asked."""
        ...


class BagOfWords:
    """Which words occur in a run, and a logistic regression on them (`corpus.surface`)."""

    def __init__(self, samples: Sequence[Sample], where: str) -> None:
        """Fit to labelled runs; `UserError` where they all ended alike."""
        failed = [sample.label is Label.MISBEHAVIOR for sample in samples]
        if len(set(failed)) < 2:
            how = "failed" if any(failed) else "succeeded"
            raise UserError(
                f"{where}: {f'all runs {how}' if failed else 'no run'}; a critic is fitted to runs of both "
                "kinds: change the agent or the tasks, raise pilot.training_tasks, or set pilot.critic_data"
            )
        self._fitted: Pipeline = classifier("bag_of_words").fit(samples, failed)

    def judge(self, samples: Sequence[Sample]) -> list[Judgement]:
        """See `Critic.judge`."""
        if not samples:
            return []
        return [Judgement(p) for p in self._fitted.predict_proba(samples)[:, 1].tolist()]


class LocalCritic:
    """A language model in this process: prompt, rendering, truncation and score are the judge's own.

    Verdicts are kept in a log and found again there: equal runs in two conditions are judged once.
    """

    def __init__(
        self, monitor: Monitor, engine: LocalEngine, prompt: Prompt, models: Path, log: "VerdictLog"
    ) -> None:
        """Load the model; raises what `judging.local.judge_locally` raises."""
        from transformers import AutoTokenizer

        from monitorbench.engines.open import open_engine
        from monitorbench.engines.protocol import Decoding
        from monitorbench.engines.weights import adapter_folder, weights_folder
        from monitorbench.prompts.render import Renderer

        weights, adapter = weights_folder(monitor, models), adapter_folder(monitor.adapter)
        try:
            tokenizer = AutoTokenizer.from_pretrained(weights)
            self._renderer = Renderer(prompt, tokenizer, monitor.opening, monitor.reasoning)
        except ValueError as error:
            raise ConfigError(f"monitor={monitor.name} pilot.prompt={prompt.name}: {error}") from error
        end, labels = self._renderer.end_of_turn, self._renderer.label_tokens.all
        self._decoding = Decoding(prompt.max_new_tokens, (end,), labels)
        self._log = log
        self._identity = local_identity(monitor, engine, prompt)
        self._engine = open_engine(engine, weights, adapter, monitor.context_tokens)
        self._has_to_be_checked = adapter is not None

    def judge(self, samples: Sequence[Sample]) -> list[Judgement]:
        """See `Critic.judge`; `UserError` for an adapter that changes nothing."""
        from monitorbench.judging.local import judge_owed, owed_prompts, refuse_idle_adapter
        from monitorbench.prompts.few_shot import Shots

        keys, owed = owed_prompts(
            samples, Shots(0, ()), self._renderer, self._decoding, self._identity, self._log
        )
        if owed:
            if self._has_to_be_checked:
                refuse_idle_adapter(self._engine, owed[0].token_ids, self._decoding)
                self._has_to_be_checked = False
            judge_owed(self._engine, owed, self._renderer, self._decoding, self._log, None)
        return [_judgement(self._log.entries[key]) for key in keys]

    def close(self) -> None:
        """Give back the model's memory."""
        self._engine.close()


class EndpointCritic:
    """A language model behind an endpoint; verdicts are kept as `LocalCritic` keeps them."""

    def __init__(self, engine: OpenAiEngine, monitor: Monitor, prompt: Prompt, log: "VerdictLog") -> None:
        """Raises `UserError` where the endpoint's key is missing."""
        from monitorbench.engines.openai_engine import Endpoint
        from monitorbench.judging.endpoint import AskedEndpoint

        self._asked = AskedEndpoint(engine, monitor.reasoning, prompt)
        self._log = log
        self._endpoint = Endpoint(engine, spent=sum(verdict.cost for verdict in log.entries.values()))

    def judge(self, samples: Sequence[Sample]) -> list[Judgement]:
        """See `Critic.judge`; `UserError` where the endpoint can't be used or `max_cost` is spent."""
        from monitorbench.judging.endpoint import ask_owed, owed_requests
        from monitorbench.prompts.few_shot import Shots

        keys, owed = owed_requests(self._asked, samples, Shots(0, ()), self._log)
        for _, verdict in ask_owed(self._endpoint, self._asked, owed):
            self._log.append(verdict)
        return [_judgement(self._log.entries[key]) for key in keys]

    def close(self) -> None:
        """Cancel whatever is in flight."""
        self._endpoint.close()


def local_identity(monitor: Monitor, engine: LocalEngine, prompt: Prompt) -> dict[str, Any]:
    """All that decides what a model in this process answers."""
    from monitorbench.engines.weights import adapter_folder, adapter_sha256, weights_identity

    adapter = adapter_folder(monitor.adapter)
    return {
        "weights": weights_identity(monitor),
        "adapter": adapter_sha256(adapter) if adapter else "",
        "opening": monitor.opening,
        "engine": engine.kind,
        "dtype": engine.resolved_dtype,
        "context_tokens": monitor.context_tokens,
        "prompt": prompt.model_dump(mode="json"),
        **({"reasoning": monitor.reasoning.model_dump()} if monitor.reasoning else {}),
    }


def critic_identity(study: Study) -> dict[str, Any]:
    """What names the study's critic before it is loaded; a bag of words is named by what it is fitted to."""
    monitor, prompt = study.monitor, study.pilot.prompt
    if monitor.kind == "bag_of_words":
        return {"kind": monitor.kind, "scikit-learn": importlib.metadata.version("scikit-learn")}
    if isinstance(study.engine, OpenAiEngine):
        from monitorbench.judging.endpoint import endpoint_identity

        reasoning = monitor.reasoning.model_dump() if monitor.reasoning else None
        prompt_identity = prompt.model_dump(mode="json")
        return endpoint_identity(study.engine) | {"reasoning": reasoning, "prompt": prompt_identity}
    return local_identity(monitor, study.engine, prompt)


@contextmanager
def open_critic(study: Study, training: Sequence[Sample], directory: Path) -> Iterator[Critic]:
    """The study's critic: fitted to `training`, or a model whose verdicts are kept in `directory`.

    Raises `UserError` and `ConfigError` as the critics do.
    """
    if study.monitor.kind == "bag_of_words":
        yield BagOfWords(training, f"monitor={study.monitor.name}")
        return
    from monitorbench.runs.verdict_log import open_verdict_log

    with open_verdict_log(directory / "verdicts.jsonl") as log:
        critic: LocalCritic | EndpointCritic
        if isinstance(study.engine, OpenAiEngine):
            critic = EndpointCritic(study.engine, study.monitor, study.pilot.prompt, log)
        else:
            critic = LocalCritic(study.monitor, study.engine, study.pilot.prompt, study.paths.models, log)
        try:
            yield critic
        finally:
            critic.close()


def _judgement(verdict: Verdict) -> Judgement:
    tokens = verdict.prompt_tokens + verdict.completion_tokens
    if verdict.score is not None:
        return Judgement(verdict.score, "", tokens)
    why = ", ".join(filter(None, (verdict.unscored or "no log-probabilities", verdict.detail)))
    return Judgement(None, why, tokens)
