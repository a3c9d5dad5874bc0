"""A monitor as a critic: P(fail) of a run, judged on what happened so far.

Promises: a critic that gives no probability says why, and nothing is made of it; the label of a sample never
reaches a critic that judges it.
"""

import importlib.metadata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monitorbench.config.base import Incomplete, UserError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.corpus.classifiers import classifier
from monitorbench.records import Label, Sample, Verdict

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from monitorbench.judging.logged import LoggedJudge


class CriticJudgement(NamedTuple):
    """P(fail) in [0, 1], not calibrated; None with a reason."""

    p_fail: float | None
    reason: str = ""
    tokens: int = 0


class Critic(Protocol):
    """A monitor that is ready to judge."""

    def judge(self, samples: Sequence[Sample]) -> list[CriticJudgement]:
        """One judgement a sample, in their order. What it raises ends the run that asked."""
        ...


class BagOfWords:
    """Which words occur in a run, and a logistic regression on them (`corpus.classifiers`)."""

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

    def judge(self, samples: Sequence[Sample]) -> list[CriticJudgement]:
        """See `Critic.judge`."""
        if not samples:
            return []
        return [CriticJudgement(p) for p in self._fitted.predict_proba(samples)[:, 1].tolist()]


class JudgeCritic:
    """A judge as a critic: its score of a run is P(fail).

    Verdicts are kept in the judge's log and found again there: equal runs in two conditions are judged once.
    """

    def __init__(self, judge: "LoggedJudge") -> None:
        self._judge = judge

    def judge(self, samples: Sequence[Sample]) -> list[CriticJudgement]:
        """See `Critic.judge`; raises what `LoggedJudge.verdicts` raises, and `Incomplete` in an outage."""
        return [_judgement(verdict) for verdict in self._judge.verdicts(samples)]


def critic_identity(monitor: Monitor, engine: Engine, prompt: Prompt) -> dict[str, Any]:
    """What names the study's critic before it is loaded; a bag of words is named by what it is fitted to."""
    match monitor.kind:
        case "bag_of_words":
            return {"kind": monitor.kind, "scikit-learn": importlib.metadata.version("scikit-learn")}
        case _:
            from monitorbench.judging.identity import judge_identity

            return judge_identity(monitor, engine, prompt)


@contextmanager
def open_critic(study: Study, training: Sequence[Sample], directory: Path) -> Iterator[Critic]:
    """The study's critic: fitted to `training`, or a judge whose verdicts are kept in `directory`.

    Raises `UserError` and `ConfigError` as the critics do.
    """
    match study.monitor.kind:
        case "bag_of_words":
            yield BagOfWords(training, f"monitor={study.monitor.name}")
        case _:
            from monitorbench.judging.judge import judge_spec
            from monitorbench.judging.logged import open_logged
            from monitorbench.judging.open import open_judge
            from monitorbench.runs.verdict_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log

            spec = judge_spec(study.monitor, study.engine, study.pilot.prompt)
            opens = partial(open_judge, where="pilot.prompt")
            with (
                open_verdict_log(directory / VERDICTS) as log,
                open_failure_log(directory / FAILURES) as failures,
                open_logged(spec, study.paths.models, log, failures, opens=opens) as judge,
            ):
                yield JudgeCritic(judge)


def _judgement(verdict: Verdict) -> CriticJudgement:
    from monitorbench.judging.unanswered import is_outage

    if is_outage(verdict.unscored, verdict.detail):
        raise Incomplete(
            f"the critic got no answer ({verdict.unscored}: {verdict.detail}), which is no silence of its "
            "own: the run is not counted, the same command makes it again"
        )
    tokens = verdict.prompt_tokens + verdict.completion_tokens
    if verdict.score is not None:
        return CriticJudgement(verdict.score, "", tokens)
    why = ", ".join(filter(None, (verdict.unscored or "no log-probabilities", verdict.detail)))
    return CriticJudgement(None, why, tokens)
