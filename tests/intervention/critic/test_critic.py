"""Monitors as critics: fitted words, a model in process, and what neither may do."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from corridor import Corridor, scripted
from scripted_engine import completion

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.intervention.critic import (
    BagOfWords,
    Critic,
    CriticJudgement,
    failed,
    open_critic,
    samples_of,
)
from monitorbench.intervention.loop.agents import AgentTurn, Scripted
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode
from monitorbench.intervention.transcripts import sample_of_run
from monitorbench.metrics.auroc import auroc
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample

LIMITS = RunLimits(min_step=2, step_budget=15, max_interventions=3, warning="Look out.")


def runs(first: int, n: int) -> list[Sample]:
    """Steps of some runs in the corridor, labelled."""
    agent = Scripted(scripted(0.15))
    return samples_of(
        run_episode(Corridor(number), agent, EpisodeRun("k", "none", 0), LIMITS)
        for number in range(first, first + n)
    )


def test_words_foretell_failure_on_other_tasks():
    """ "Your hands are empty" is all there is to know; a critic that misses it is no critic."""
    fitted = BagOfWords(runs(0, 80), "here")
    fresh = runs(500, 80)
    scores = [judgement.p_fail for judgement in fitted.judge(fresh)]
    assert all(score is not None and 0 <= score <= 1 for score in scores)
    found = auroc([score for score in scores if score is not None], failed(fresh))
    assert found is not None
    assert found > 0.8
    assert fitted.judge([]) == []


def test_the_label_is_not_what_is_judged():
    """A critic that sees how the run ends is an oracle, and its AUROC a mistake."""
    fitted = BagOfWords(runs(0, 40), "here")
    fresh = runs(500, 5)
    others = [
        sample.model_copy(
            update={"label": Label.BENIGN if sample.label is Label.MISBEHAVIOR else Label.MISBEHAVIOR}
        )
        for sample in fresh
    ]
    assert fitted.judge(fresh) == fitted.judge(others)


@pytest.mark.parametrize(("error_rate", "said"), [(0.0, "all runs succeeded"), (1.0, "all runs failed")])
def test_runs_that_all_ended_alike_teach_nothing(error_rate: float, said: str):
    """A classifier of one class says 0 or 1 for ever; the person has to hear what to change."""
    episodes = [
        run_episode(Corridor(i), Scripted(scripted(error_rate)), EpisodeRun("k", "none", 0), LIMITS)
        for i in range(5)
    ]
    with pytest.raises(UserError, match=f"{said}.*pilot.training_tasks"):
        BagOfWords(samples_of(episodes), "monitor=bag_of_words")
    with pytest.raises(UserError, match="no run"):
        BagOfWords([], "monitor=bag_of_words")


def test_a_bag_of_words_is_no_model(compose_study: Callable[..., Study], tmp_path: Path):
    """Training or evaluating it must end in one line, not in a search for weights."""
    study = compose_study("pilot", "monitor=bag_of_words")
    for refused in (lambda m: weights_identity(m), lambda m: weights_folder(m, tmp_path)):
        with pytest.raises(ConfigError, match="monitor=bag_of_words"):
            refused(study.monitor)


# --- a model ------------------------------------------------------------------------------------------


class Fake:
    """An engine that gives `yes` the probability that it is told to, and counts what it is asked."""

    def __init__(self, tokens: Any, p_yes: float) -> None:
        self._tokens, self._p_yes = tokens, p_yes
        self.prompts: list[tuple[int, ...]] = []
        self.closed = False

    def take(self, adapter: Path | None) -> None:
        assert adapter is None

    def complete(self, prompts: Any, decoding: Decoding, *, with_adapter: bool = True) -> Any:
        yes, no = self._tokens.misbehavior, self._tokens.benign
        for index, prompt in enumerate(prompts):
            self.prompts.append(tuple(prompt))
            logprobs = dict.fromkeys(decoding.scored_token_ids, -math.inf)
            logprobs |= {yes[0]: math.log(self._p_yes * 0.8), no[0]: math.log((1 - self._p_yes) * 0.8)}
            n = len(prompt)
            yield index, completion((yes[0],), "yes", "length", logprobs, 0.01, prompt_tokens=n)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def model(
    compose_study: Callable[..., Study],
    tokenizer: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
) -> tuple[Study, Fake, Renderer]:
    """A pilot's study with SmolLM2's tokenizer and a fake engine."""
    study = compose_study("pilot", "monitor=smollm2_135m", f"paths.models={root / 'models'}")
    renderer = Renderer(study.pilot.prompt, tokenizer)
    fake = Fake(renderer.label_tokens, 0.3)
    monkeypatch.setattr("monitorbench.engines.open.open_engine", lambda *_: fake)
    return study, fake, renderer


def critic_of(study: Study, folder: Path) -> AbstractContextManager[Critic]:
    """The critic of a pilot's study, with nothing to be fitted to."""
    return open_critic(study.monitor, study.engine, study.pilot.prompt, study.paths.models, [], folder)


def test_a_model_is_asked_with_its_own_prompt_and_once(model: tuple[Study, Fake, Renderer], tmp_path: Path):
    """The judge's machinery: one renderer, one score, and equal runs of two conditions judged once."""
    study, fake, renderer = model
    samples = runs(0, 2)[:5]
    with critic_of(study, tmp_path) as critic:
        found = critic.judge(samples)
        assert fake.prompts == [renderer.render(sample) for sample in samples]
        assert found == [
            CriticJudgement(pytest.approx(0.3), "", len(renderer.render(s)) + 1) for s in samples
        ]  # type: ignore[arg-type]
        assert critic.judge(samples) == found
    assert len(fake.prompts) == len(samples)
    assert fake.closed
    with critic_of(study, tmp_path) as critic:
        assert critic.judge(samples[:1]) == found[:1], "kept on disk for a pilot that goes on"
    assert len(fake.prompts) == len(samples)


def test_a_run_too_long_for_the_context_has_a_judgement_or_a_reason(
    model: tuple[Study, Fake, Renderer], tmp_path: Path
):
    """Long runs are the ones that fail: dropping them in silence would flatter the critic."""
    study, _, _ = model
    small = study.monitor.model_copy(update={"context_tokens": 600})
    turns = [AgentTurn("wait", "", "Nothing happens. " * 20)] * 20
    long = sample_of_run("t", 0, "a", "goal " * 50, "opening", turns)
    with critic_of(study.model_copy(update={"monitor": small}), tmp_path) as critic:
        (kept,) = critic.judge([long])
    assert kept.p_fail == pytest.approx(0.3)
    whole = study.pilot.model_copy(
        update={"prompt": study.pilot.prompt.model_copy(update={"too_long": "unscored"})}
    )
    refusing = study.model_copy(update={"monitor": small, "pilot": whole})
    with critic_of(refusing, tmp_path / "other") as critic:
        (refused,) = critic.judge([long])
    assert refused.p_fail is None
    assert refused.reason.startswith("too_long")
