"""Evaluation runs read back: which judge it was, and what it said of each sample."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.datasets import SplitView
from monitorbench.config.errors import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.results import CurvePoint
from monitorbench.monitors.baselines import judged
from monitorbench.records import Sample, Split, Verdict
from monitorbench.runs.directory import read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.verdict_log import read_verdicts


class Evaluation(NamedTuple):
    """One evaluation run, read back."""

    directory: Path
    monitor: str
    prompt: str
    has_adapter: bool
    trained_on: tuple[str, ...]
    seed: int | None
    learning_curve: list[CurvePoint]
    basis: str
    """What a base has to share with an adapter that is compared with it."""
    judge_hash: str
    """Of everything that decides a verdict: weights, adapter, prompt, engine, dtype."""
    data: Path
    split: Split
    judged: list[Judged]


def read_evaluation(study: Study, directory: Path) -> Evaluation:
    """A finished run of `evaluate`; `UserError` where it is none, or where a sample has no verdict."""
    manifest = read_finished(directory)
    results = manifest["results"]
    if "judge" not in results:
        raise UserError(f"{directory}: not an evaluation run; expected a run of eval/evaluate.py")
    data = study.paths.data / results["data"]
    view = SplitView.model_validate_json(json.dumps(manifest["identity"]["view"]))
    split = Split(manifest["identity"].get("split", Split.TEST))
    samples = {sample.id: sample for sample in read_split(data, split, view)}
    verdicts = {verdict.sample_id: verdict for verdict in read_verdicts(directory / "verdicts.jsonl")}
    if missing := samples.keys() - verdicts.keys():
        raise UserError(f"{directory}: {len(missing)} samples have no verdict; run eval/evaluate.py again")
    judge = results["judge"]
    training = results["training"] or {}
    asked = manifest["identity"]["judge"]
    shared = ("weights", "prompt", "opening", "engine", "dtype", "context_tokens")
    return Evaluation(
        directory=directory,
        monitor=judge["name"],
        prompt=judge["prompt"],
        has_adapter=bool(judge["adapter"]),
        trained_on=tuple(training.get("trained_on", ())),
        seed=training.get("seed"),
        learning_curve=training.get("learning_curve", []),
        basis=content_hash([asked.get(key) for key in shared]),
        judge_hash=content_hash(asked),
        data=data,
        split=split,
        judged=[_judged(sample, verdicts[i]) for i, sample in samples.items()],
    )


def _judged(sample: Sample, verdict: Verdict) -> Judged:
    return judged(
        sample,
        verdict.label,
        verdict.score,
        n_quotes=len(verdict.evidence),
        n_grounded=sum(quote.place is not None for quote in verdict.evidence),
    )


def with_distinct_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Adapters of one subset and several seeds get the seed in their name.

    Raises `UserError` where two runs are of one monitor and prompt all the same.
    """
    taken = Counter((e.monitor, e.prompt) for e in evaluations)
    named = [
        e._replace(monitor=f"{e.monitor}_seed{e.seed}")
        if taken[e.monitor, e.prompt] > 1 and e.seed is not None
        else e
        for e in evaluations
    ]
    if clashes := [name for name, n in Counter((e.monitor, e.prompt) for e in named).items() if n > 1]:
        raise UserError(f"probe.runs: more than one run of {' with prompt '.join(clashes[0])}; expected one")
    return named
