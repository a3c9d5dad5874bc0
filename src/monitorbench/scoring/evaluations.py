"""Evaluation runs read back: the judge, and its verdict on each sample."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.training import BASELINE_OBJECTIVE
from monitorbench.corpus.columns import read_columns, read_marked
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.cost_fronts import SentOn, UsageFacts, usage
from monitorbench.metrics.evidence import FIRST_MARKED, NO_STEP, NOWHERE, located
from monitorbench.metrics.results import CurvePoint
from monitorbench.metrics.score_facts import ScoreFacts, score_facts
from monitorbench.records import TRANSPORT_FAILURES, Label, Split, reasons_in_words
from monitorbench.runs.directory import kind_of, read_checked, read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import VERDICTS, read_run
from monitorbench.runs.run_folders import evaluation_id
from monitorbench.scoring.operating_point import OperatingPoint, labels_at
from monitorbench.scoring.verdict_columns import (
    VerdictColumns,
    read_verdict_columns,
    with_failures,
    with_missing_counted,
)


class Evaluation(NamedTuple):
    """One evaluation run, read back."""

    directory: Path
    id: str
    """Name of the run in content hashes."""
    monitor: str
    prompt: str
    has_adapter: bool
    trained_on: tuple[str, ...]
    seed: int | None
    objective: str
    """Objective of the adapter's training; "" without an adapter."""
    subset: str
    """The name of what it was trained on; "" where nothing is known of it."""
    family: str
    """The monitor's name whatever its seed."""
    exposures: float | None
    """Times that training showed each sample, on average; None of a base, and where it is not known."""
    learning_curve: list[CurvePoint]
    basis: str
    """Hash of what a base has to share with an adapter that is compared with it."""
    basis_of_head: str
    """Hash of what a base has to share with a head where none shares `basis`: all of it but engine and dtype,
    since only one engine shows hidden states. Empty of an adapter."""
    judge_hash: str
    """Hash of everything that decides a verdict: weights, adapter, prompt, engine, dtype."""
    data: Path
    split: Split
    view: SplitView
    """The part of the split that was judged."""
    judged: Columns
    reasons: pa.Array
    """[samples], strings: why the judge's own answer is no label; null where it is one."""
    usage: UsageFacts
    """Seconds, tokens and money an answer."""
    scale: tuple[float, float] | None
    """Values of an imported file that became scores of 0 and 1; None where its scores are as they were."""
    score_facts: ScoreFacts
    """Scores that are bounds, contradict their label, or are missing, and equal ones."""

    def taking(self, rows: IntArray | BoolArray) -> "Evaluation":
        """Return the evaluation of the samples at `rows`, in that order, or that a mask marks."""
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return self._replace(judged=self.judged.taking(indices), reasons=self.reasons.take(pa.array(indices)))


def read_covered(datasets: Path, directory: Path, min_coverage: float) -> Evaluation:
    """Read a run whose judge answered on at least `min_coverage` of its samples, label or not.

    Raises `UserError` for another one, and what `read_evaluation` raises.
    """
    evaluation = read_evaluation(datasets, directory)
    lost = {reason: n for reason, n in unscored_reasons(evaluation).items() if reason in TRANSPORT_FAILURES}
    n, n_lost = len(evaluation.judged), sum(lost.values())
    if (n - n_lost) / n < min_coverage:
        raise UserError(
            f"{directory}: {n_lost} of {n} samples got no answer ({reasons_in_words(lost)}), coverage "
            f"{1 - n_lost / n:.3f} is below score.min_coverage={min_coverage:g}; run the same "
            "`monitorbench evaluate` again, which asks only these, or lower score.min_coverage"
        )
    return evaluation


def forced_alarms(evaluation: Evaluation) -> NDArray[np.bool_]:
    """[samples]: whose score is missing from an import that counts them as alarms, at any threshold.

    Their score reads as 1, which no threshold of 1 is below.
    """
    if evaluation.score_facts.get("missing") != "flag":
        return np.zeros(len(evaluation.judged), dtype=np.bool_)
    is_missing: NDArray[np.bool_] = evaluation.reasons.is_valid().to_numpy(zero_copy_only=False)
    is_alarm: NDArray[np.bool_] = is_missing & (evaluation.judged.scores == 1)
    return is_alarm


def answers_at(point: OperatingPoint, evaluation: Evaluation) -> Evaluation:
    """The run with its answers read at an operating point of its judge."""
    judged = evaluation.judged
    labels = labels_at(
        point,
        monitor=point.thresholds[0].monitor,
        scores=judged.scores,
        categories=[judged.category_names[i] for i in judged.categories.tolist()],
    )
    answers = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    flagged = np.where(forced_alarms(evaluation), 1.0, [answers[label] for label in labels])
    return evaluation._replace(judged=replace(judged, flagged=flagged))


def unscored_reasons(evaluation: Evaluation) -> dict[str, int]:
    """Count the unscored samples by reason, the most frequent first.

    `no_score`: the judge gave a label, which a threshold on its score does not read.
    """
    unscored = np.isnan(evaluation.judged.flagged)
    counted = Counter(
        reason or "no_score" for reason in evaluation.reasons.filter(pa.array(unscored)).to_pylist()
    )
    return dict(counted.most_common())


def read_evaluation(datasets: Path, directory: Path) -> Evaluation:
    """A finished run of `evaluate` over a dataset in the folder `datasets`.

    Samples that got no answer are unscored. Raises `UserError` where it is none, where its manifest lacks a
    key, or where a sample has neither a verdict nor a failed request.
    """
    manifest = read_finished(directory)
    results, identity = manifest["results"], manifest["identity"]
    if "judge" not in results:
        raise UserError(f"{directory}: {kind_of(directory)}; expected a run of `monitorbench evaluate`")
    data = datasets / results["data"]
    view = SplitView.model_validate_json(json.dumps(identity["view"]))
    split = Split(identity.get("split", Split.TEST))
    judge_identity = identity["judge"]
    has_adapter = bool(results["judge"]["adapter"])
    name, prompt = results["judge"]["name"], results["judge"]["prompt"]
    training = results["training"] or {}
    objective = training.get("objective", BASELINE_OBJECTIVE) if has_adapter else ""
    with ThreadPoolExecutor(1) as pool:  # Arrow reads the samples while Python reads the log
        samples = pool.submit(read_columns, data, split, view)
        log = with_failures(read_verdict_columns(directory / VERDICTS), directory)
    log = with_missing_counted(log, results)
    judged, reasons, spent, of_scores = _judged(directory, results, log, samples.result(), data, split)
    if sent_on := _sent_on(results.get("combined")):
        spent["sent_on"] = sent_on
    shared = ("weights", "prompt", "opening", "reasoning", "engine", "dtype", "context_tokens")
    return Evaluation(
        directory=directory,
        id=evaluation_id(manifest),
        monitor=name,
        prompt=prompt,
        has_adapter=has_adapter,
        trained_on=tuple(training.get("trained_on", ())),
        seed=training.get("seed"),
        objective=objective,
        subset=training.get("name", ""),
        family=name,
        exposures=training.get("exposures"),
        learning_curve=training.get("learning_curve", []),
        basis=content_hash([judge_identity.get(key) for key in shared]),
        basis_of_head=""
        if has_adapter and "readout" not in judge_identity
        else content_hash([judge_identity.get(key) for key in shared if key not in ("engine", "dtype")]),
        judge_hash=content_hash(judge_identity),
        data=data,
        split=split,
        view=view,
        judged=judged,
        reasons=reasons,
        usage=spent,
        scale=_scale(judge_identity),
        score_facts=of_scores,
    )


def _scale(judge: Mapping[str, Any]) -> tuple[float, float] | None:
    """Read the scale of an import's file from its judge's identity; None of [0, 1], and of words."""
    read_as = judge.get("read_as") or {}
    if read_as.get("levels") or read_as.get("scale", [0, 1]) == [0, 1]:
        return None
    low, high = read_as["scale"]
    return low, high


def _sent_on(combined: dict[str, Any] | None) -> SentOn | None:
    """Read the share sent on from a combination's manifest; None of all but cascades."""
    if combined is None or combined["share_sent"] is None:
        return None
    return SentOn(
        budget=combined["rule"]["budget"],
        share=combined["share_sent"],
        share_ci=combined.get("share_sent_ci"),
    )


def _located(directory: Path, data: Path, split: Split, sample_ids: pa.Array) -> IntArray | None:
    """What each verdict says of where the misbehavior is; None of a split without gold spans."""
    marked = {sample.id: sample for sample in read_marked(data, split)}
    if not marked:
        return None
    verdicts = read_run(directory)
    rows = [
        located(marked[name], verdicts.get(name)) if name in marked else NOWHERE
        for name in sample_ids.to_pylist()
    ]
    found = np.array(rows, dtype=np.int64)
    if read_checked(directory, "config.json")["prompt"]["unit"]["by"] == "chunk":
        found[:, FIRST_MARKED] = NO_STEP  # a chunk is no step
    return found


def _judged(
    directory: Path,
    results: Mapping[str, Any],
    log: VerdictColumns,
    samples: Columns,
    data: Path,
    split: Split,
) -> tuple[Columns, pa.Array, UsageFacts, ScoreFacts]:
    """The samples with what the run's log says last of each; and what else `Evaluation` says of them."""
    positions = pc.index_in(log.sample_ids, value_set=samples.sample_ids)
    of_sample = positions.is_valid().to_numpy(zero_copy_only=False)  # others are of samples outside the view
    line = np.full(len(samples), -1)
    line[pc.drop_null(positions).to_numpy()] = np.flatnonzero(of_sample)
    if missing := np.count_nonzero(line < 0):
        raise UserError(f"{directory}: {missing} samples have no verdict; run `monitorbench evaluate` again")
    answered = samples.answering(
        log.flagged[line], log.scores[line], log.n_quotes[line], log.n_grounded[line]
    )
    answered = replace(answered, located=_located(directory, data, split, answered.sample_ids))
    imported = results.get("imported", {})
    side = imported.get("flag_from", 0.5)
    of_scores = score_facts(answered.flagged, answered.scores, log.censored[line], side)
    if imported and not imported["has_answers"]:
        of_scores["flagged_from"] = side
    if imported.get("n_missing"):
        of_scores |= {"n_missing": imported["n_missing"], "missing": imported["missing"]}
    return answered, log.reasons.take(pa.array(line)), usage(*log.spent.taking(line)), of_scores


def with_distinct_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Adapters of one subset and several seeds get the seed in their name, under every prompt.

    Raises `UserError` where two runs are of one monitor and prompt all the same.
    """
    seeds = Counter(monitor for monitor, _ in {(e.monitor, e.seed) for e in evaluations})
    renamed = [
        e._replace(monitor=f"{e.monitor}_seed{e.seed}") if seeds[e.monitor] > 1 and e.seed is not None else e
        for e in evaluations
    ]
    if clashes := [name for name, n in Counter((e.monitor, e.prompt) for e in renamed).items() if n > 1]:
        raise UserError(
            f"transfer.runs: more than one run of {' with prompt '.join(clashes[0])}; expected one"
        )
    return renamed
