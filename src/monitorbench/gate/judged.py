"""The anchors judged anew: always asked, since an endpoint's model may have changed behind its name.

What another run answered to the same question is not taken over, however much it has in common. A model that
changes while it is asked is what a check is there to find: every answer counts, and the names are reported.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import monitorbench
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import Engine, of_any_version, refuse_fast_scores
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Prompt
from monitorbench.judging.display import judging
from monitorbench.judging.evaluate import judge_name
from monitorbench.judging.identity import RECORDED_PROMPT, JudgeSpec, judge_spec
from monitorbench.judging.logged import open_logged, served_models
from monitorbench.judging.recorded import check_verdicts
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.records import Sample, Verdict
from monitorbench.runs.directory import read_finished
from monitorbench.runs.tracking import Track
from monitorbench.runs.verdict_log import FAILURES, VERDICTS, open_failure_log, open_verdict_log
from monitorbench.scoring.evaluations import read_evaluation


class JudgedAnchors(NamedTuple):
    """The anchors' scores as the judge gives them now."""

    scores: FloatArray
    """[samples], NaN where unscored."""
    unscored: dict[str, int]
    """How many anchors have no score for which reason; `no_score`: a label alone, which is not read."""
    served_models: tuple[str, ...]
    monitorbench: str
    """The version whose parser read the answers."""
    cost: float


def gate_judge(engine: Engine, monitor: Monitor, prompt: Prompt) -> JudgeSpec:
    """The configured judge; runs no model.

    Raises `ConfigError` for one that reads other samples first, and for one whose scores depend on the batch.
    """
    refuse_fast_scores(engine, "a gate applies")
    if prompt.shots:
        raise ConfigError(
            f"prompt={prompt.name}: its examples are of a training split, which a gate does not have; "
            "expected a prompt without (prompt.shots=0)"
        )
    if monitor.router is not None:
        raise ConfigError(
            "monitor.router: learns from a training split, which a gate does not have; expected null"
        )
    return judge_spec(monitor, engine, RECORDED_PROMPT if monitor.verdicts else prompt)


def judge_anew(
    engine: Engine, monitor: Monitor, models: Path, spec: JudgeSpec, samples: list[Sample], run: Path
) -> JudgedAnchors:
    """Ask about every anchor; the verdicts are in `run`'s logs.

    Raises what `judging.logged.open_logged` and `LoggedJudge.ask` raise. A request that fails is unscored.
    """
    engine.api_key()  # what is missing is an error before anything is asked
    if monitor.verdicts is not None:
        check_verdicts(monitor.verdicts, monitor.read_as, samples)
    title, priced = f"{judge_name(monitor, engine)}, {spec.prompt.title}", engine.prices is not None
    with (
        open_verdict_log(run / VERDICTS) as log,
        open_failure_log(run / FAILURES) as failures,
        open_logged(_following(spec), models, log, failures, run=run) as judge,
    ):
        keys, questions = judge.pending(samples)
        judge.ask(questions, lambda: judging(title, samples, keys, log, Track(), priced=priced))
        verdicts = [log.entries.get(key) or judge.failed.get(key) for key in keys]
        scores = [None if verdict is None else verdict.score for verdict in verdicts]
        lost = [verdict for verdict in verdicts if verdict is None or verdict.score is None]
        reasons = dict(Counter(_reason(verdict) for verdict in lost))
        return JudgedAnchors(
            scores=np.array(scores, dtype=np.float64),
            unscored=reasons,
            served_models=tuple(served_models(log)),
            monitorbench=monitorbench.__version__,
            cost=judge.spent,
        )


def _following(spec: JudgeSpec) -> JudgeSpec:
    """Let the judge's endpoint answer by another version of its model at any time."""
    return spec._replace(engine=of_any_version(spec.engine))


def _reason(one: Verdict | None) -> str:
    """Why there is no score; an answer that is no label may have one."""
    return "not_asked" if one is None else str(one.unscored or "no_score")


def from_run(datasets: Path, directory: Path, samples: list[Sample]) -> tuple[JudgedAnchors, dict[str, Any]]:
    """The scores of a finished evaluation, and its judge, in place of asking: a combination has no other.

    Raises `UserError` where the run judged another split than the anchors'.
    """
    evaluation = read_evaluation(datasets, directory)
    judged = evaluation.judged
    ids = judged.sample_ids.to_pylist()
    score_of = dict(zip(ids, judged.scores.tolist(), strict=True))
    if missing := [sample.id for sample in samples if sample.id not in score_of]:
        raise UserError(
            f"{directory}: judged {len(samples) - len(missing)} of {len(samples)} anchors; expected a run "
            "over the split that they are from"
        )
    scores = np.array([score_of[sample.id] for sample in samples], dtype=np.float64)
    reason_of = dict(zip(ids, evaluation.reasons.to_pylist(), strict=True))
    lost = [sample.id for sample, score in zip(samples, scores, strict=True) if np.isnan(score)]
    manifest = read_finished(directory)
    served = tuple(manifest["results"].get("served_models") or ())
    reasons = Counter(str(reason_of[name] or "no_score") for name in lost)
    version = str(manifest["versions"]["monitorbench"])
    return JudgedAnchors(scores, dict(reasons), served, version, 0.0), dict(manifest["identity"]["judge"])


def changed(frozen: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Differences of a judge's identity: by dotted key the frozen value and the present one."""
    changes: dict[str, tuple[Any, Any]] = {}
    for key in sorted({*frozen, *now}):
        before, after = frozen.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            changes |= {f"{key}.{inner}": pair for inner, pair in changed(before, after).items()}
        elif before != after:
            changes[key] = (before, after)
    return changes
