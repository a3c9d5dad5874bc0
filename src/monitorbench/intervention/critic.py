"""A monitor as a critic: P(fail) of a run, judged on what happened so far, and what such a one is trained on.

Training data are runs with outcomes: one sample a step, labelled with how the run ended, as 2602.03338,
section 3, labels steps. They are written in the format of `dataset=jsonl` (docs/data-formats.md), split by
task: `train/sft.py dataset=jsonl dataset.path=critic_data.jsonl dataset.splits=[train,validation]
prompt=failure` trains a critic on them. Promises: a critic that gives no probability says why, and nothing is
made of it; the label of a sample never reaches a critic that judges it; no task is on both sides of the
split; a run that broke down, and a step after which there is nothing left to do, is no example; what is
written is read back equal.
"""

import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monitorbench.config.base import Incomplete, UserError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.corpus.classifiers import classifier
from monitorbench.intervention.transcripts import Episode
from monitorbench.records import Label, Sample, Split, Verdict
from monitorbench.runs.directory import compared_file
from monitorbench.runs.files import write_atomically
from monitorbench.sources import fetch
from monitorbench.sources.files import team_jsonl

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


class _JudgeCritic:
    """A judge as a critic: its score of a run is P(fail).

    Verdicts are kept in the judge's log and found again there: equal runs in two conditions are judged once.
    """

    def __init__(self, judge: "LoggedJudge") -> None:
        self._judge = judge

    def judge(self, samples: Sequence[Sample]) -> list[CriticJudgement]:
        """See `Critic.judge`; raises what `LoggedJudge.verdicts` raises, and `Incomplete` in an outage."""
        return [_judgement(verdict) for verdict in self._judge.verdicts(samples)]


def critic_identity(monitor: Monitor, engine: Engine, prompt: Prompt) -> dict[str, Any]:
    """Identity of the study's critic before it is loaded; a bag of words is named by what it is fitted to."""
    match monitor.kind:
        case "bag_of_words":
            return {"kind": monitor.kind, "scikit-learn": importlib.metadata.version("scikit-learn")}
        case _:
            from monitorbench.judging.identity import judge_identity

            return judge_identity(monitor, engine, prompt)


@contextmanager
def open_critic(
    monitor: Monitor,
    engine: Engine,
    prompt: Prompt,
    models: Path,
    training: Sequence[Sample],
    directory: Path,
) -> Iterator[Critic]:
    """A pilot's critic: fitted to `training`, or a judge whose verdicts are kept in `directory`.

    Raises `UserError` and `ConfigError` as the critics do.
    """
    match monitor.kind:
        case "bag_of_words":
            yield BagOfWords(training, f"monitor={monitor.name}")
        case _:
            from monitorbench.judging.identity import judge_spec
            from monitorbench.judging.logged import open_logged
            from monitorbench.judging.open import open_judge
            from monitorbench.runs.keyed_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log

            spec = judge_spec(monitor, engine, prompt)
            opens = partial(open_judge, where="pilot.prompt")
            with (
                open_verdict_log(directory / VERDICTS) as log,
                open_failure_log(directory / FAILURES) as failures,
                open_logged(spec, models, log, failures, opens=opens) as judge,
            ):
                yield _JudgeCritic(judge)


def _judgement(verdict: Verdict) -> CriticJudgement:
    from monitorbench.judging.logged import is_outage

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


def samples_of(episodes: Iterable[Episode], min_step: int = 0) -> list[Sample]:
    """Each run up to each of its steps from `min_step` (counted from 0) on, in order."""
    return [
        episode.sample(upto=step.step + 1)
        for episode in episodes
        if not episode.reason
        for step in episode.steps[:-1]  # the last one ended the run, or spent its budget
        if step.step >= min_step
    ]


def failed(samples: Sequence[Sample]) -> list[bool]:
    """Whether the run of each sample failed in the end."""
    return [sample.label is Label.MISBEHAVIOR for sample in samples]


def write_critic_data(path: Path, parts: Mapping[Split, Sequence[Sample]]) -> None:
    """Write samples as JSON lines; raises `ValueError` where a task is in two splits."""
    tasks = {split: {sample.group_id for sample in samples} for split, samples in parts.items()}
    if shared := set.intersection(*tasks.values()) if len(tasks) > 1 else set():
        raise ValueError(f"task {min(shared)!r} is in two splits")
    lines = [_row(sample, split) for split, samples in parts.items() for sample in samples]
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def read_critic_data(path: Path) -> list[Sample]:
    """The training samples in a file that a pilot has written.

    Raises `UserError` where it can't be read or is not as the pilot wrote it, a line is no sample, or there
    is none of the train split.
    """
    files = fetch.local("pilot.critic_data", compared_file(path), team_jsonl.SUFFIXES, "error")
    samples = [sample for sample in team_jsonl.load(files) if sample.split is Split.TRAIN]
    if not samples:
        raise UserError(f"pilot.critic_data={path}: no sample of the train split; expected critic_data.jsonl")
    return samples


def _row(sample: Sample, split: Split) -> dict[str, object]:
    row = sample.model_dump(
        mode="json",
        include={"pair_id", "group_id", "category", "task", "subcategory", "label", "label_source"}
        | {"subject_model", "source", "licence"},
    )
    for field in ("request", "response"):
        row[field] = [
            message.model_dump(mode="json", exclude_defaults=True) | {"content": message.content}
            for message in getattr(sample, field)
        ]
    return row | {"split": split.value}
