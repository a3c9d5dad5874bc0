"""`eval/label.py`: ask people for labels of unlabelled traffic, read what they answer, and say what follows.

A run is a round. The first draws samples by `label.design` and writes a blind batch for each reader; the
next, with `run` and the returned files, estimates each monitor's rates from all labels so far and says which
to deploy, or writes the next batch. Promises: each sample that was asked for has its probability in
`asked.jsonl`; an unlabelled sample is never benign; one that the readers disagree on is bounded both ways.
"""

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from itertools import product
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monitorbench.annotation.files import AnnotationItem, csv_batch
from monitorbench.annotation.labels import settle
from monitorbench.annotation.reading import AnnotatorAnswer, checked
from monitorbench.annotation.stage import write_batches
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import ADJUDICATOR, Annotation, Labelling
from monitorbench.config.ending import printable
from monitorbench.config.study import Study
from monitorbench.labelling.pool import Pool, read_pool
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.cost import Costs
from monitorbench.metrics.labelled import (
    LabelErrors,
    PartlyLabelled,
    RateEstimate,
    RateOf,
    differences_of,
    estimated,
    rates_of,
)
from monitorbench.metrics.labels_to_ask import LabelRound, draw, probabilities, risk, weights_of
from monitorbench.metrics.table import Number, Place, Row, Table
from monitorbench.records import Label
from monitorbench.runs.directory import RunDirectory, checked_file, read_checked, read_finished
from monitorbench.runs.files import file_sha256, write_atomically, write_json
from monitorbench.runs.run_folders import run_name

ASKED, POOL, ESTIMATES = "asked.jsonl", "pool.json", "estimates.csv"
OPEN = "open"
"""Label of a sample that the readers disagree on or are unsure of."""
_LEAST = 10
"""Fewest samples of a further round."""


class AskedSample(NamedTuple):
    """A sample that people were asked for, as a line of `asked.jsonl`."""

    sample_id: str
    item: str
    round: int
    probability: float
    label: str | None = None
    """`misbehavior`, `benign`, `open` where the readers disagree, or None before it came back."""


def print_plan(study: Study) -> None:
    """Print how the labels of the next round would be spread over the scores; writes nothing."""
    pool = read_pool(study.label)
    mean, none = pool.suspicion, np.full(len(pool.ids), np.nan)
    chances = probabilities(
        study.label.budget, mean, risk(mean, none, none), pool.flagged, np.isnan(none), study.label.design
    )
    flags = (np.nan_to_num(pool.flagged, nan=1.0) > 0).any(axis=0)
    print(
        f"{chances.sum():.0f} of {len(pool.ids)} samples would be asked for ({study.label.design}): "
        f"{chances[flags].sum():.0f} of the {flags.sum()} that a monitor flags or did not score, "
        f"{chances[~flags].sum():.0f} of the {(~flags).sum()} that all pass"
    )


def label(study: Study) -> Path:
    """Begin with `label.scores`, or go on from `run`; returns the run directory."""
    annotation = study.annotation
    if study.run is None:
        if annotation.returned:
            raise ConfigError("annotation.returned: of which round? expected run=RUN, the round they are of")
        pool = read_pool(study.label)
        files = {"scores": [file_sha256(file) for file in study.label.scores]}
        return _record(study, study.label, pool, [], files)
    settings, questions = _earlier(study.label, study.run)
    if not annotation.returned:
        raise ConfigError("annotation.returned=[]: no file given; expected what each reader returned")
    pool = read_pool(settings)
    answered = _answered(study.run, annotation, pool, questions)
    returned = [*annotation.returned, *([annotation.adjudicated] if annotation.adjudicated else [])]
    came_back = {"round": study.run.name, "returned": sorted(file_sha256(file) for file in returned)}
    return _record(study, settings, pool, answered, came_back)


def _earlier(settings: Labelling, run: Path) -> tuple[Labelling, list[AskedSample]]:
    """Take the files of scores from an earlier round; `UserError` where one has changed since."""
    if run.parent.name != "label":
        raise UserError(f"run={run}: no round of labels; expected run=runs/label/NAME-HASH")
    read_finished(run)
    kept = read_checked(run, POOL)
    for file, sha256 in kept["files"].items():
        if not Path(file).is_file() or file_sha256(Path(file)) != sha256:
            raise UserError(f"{file}: not as it was in {run.name}; restore it, or begin anew")
    files = {
        "scores": tuple(map(Path, kept["scores"])),
        "texts": Path(kept["texts"]) if kept["texts"] else None,
        "thresholds": tuple(kept["thresholds"]),
    }
    lines = checked_file(run, ASKED).read_text(encoding="utf-8").split("\n")
    return settings.model_copy(update=files), [AskedSample(**json.loads(line)) for line in lines if line]


def _answered(
    run: Path, annotation: Annotation, pool: Pool, questions: list[AskedSample]
) -> list[AskedSample]:
    """Put what the readers returned beside the questions of the latest round."""
    asked = {question.item: _shown(pool, question) for question in questions if question.label is None}
    answers = checked(annotation.returned, asked, annotation.annotators, f"was never asked for in {run.name}")
    choices = {item: [answers[reader][item].choice for reader in annotation.annotators] for item in asked}
    decided: Mapping[str, AnnotatorAnswer] = {}
    if annotation.adjudicated is not None:
        left = {item: text for item, text in asked.items() if settle(choices[item]).label is None}
        problem = "is not open: the readers agree on it, or it is of another batch"
        decided = checked([annotation.adjudicated], left, [ADJUDICATOR], problem)[ADJUDICATOR]
    ends = {
        item: settle(choices[item], decided[item].choice if item in decided else None).label for item in asked
    }
    return [
        question._replace(label=str(ends[question.item] or OPEN)) if question.label is None else question
        for question in questions
    ]


def _record(
    study: Study, settings: Labelling, pool: Pool, questions: list[AskedSample], came_from: Mapping[str, Any]
) -> Path:
    annotation = study.annotation
    identity = {
        **came_from,
        "thresholds": pool.thresholds,
        "label": settings.model_dump(mode="json", exclude={"scores", "texts", "thresholds"}),
        "annotation": annotation.model_dump(mode="json", include={"annotators", "seed", "guidelines"}),
        "stakes": study.stakes.model_dump(mode="json"),
    }
    run = RunDirectory(study.paths.runs / "label", run_name(*pool.monitors), identity)
    with run.recording(study) as results:
        says, n_next = "no labels yet", settings.budget
        if questions:
            table, says, n_next = _answer(study.stakes, settings, pool, questions)
            write_atomically(run.path / ESTIMATES, _as_csv(table))
            left = [_shown(pool, question) for question in questions if question.label == OPEN]
            if left:
                write_atomically(run.path / "adjudication.csv", csv_batch(left, ADJUDICATOR))
        if n_next:
            drawn = _next_round(settings, annotation.seed, pool, questions, n_next)
            groups = {question.item: str(pool.groups[pool.rows[question.sample_id]]) for question in drawn}
            texts = {question.item: _shown(pool, question) for question in drawn}
            write_batches(run.path, annotation, texts, groups)
            questions = [*questions, *drawn]
            says += f": label these {len(drawn)} next, in {run.path / 'batches'}"
        lines = [json.dumps(question._asdict(), ensure_ascii=False) + "\n" for question in questions]
        write_atomically(run.path / ASKED, "".join(lines))
        given = [*settings.scores, *([settings.texts] if settings.texts else [])]
        kept = settings.model_dump(mode="json", include={"scores", "texts"})
        files = {str(file): file_sha256(file) for file in given}
        write_json(run.path / POOL, {"files": files, **kept, "thresholds": pool.thresholds})
        n_labels = sum(question.label in tuple(Label) for question in questions)
        results |= {"monitors": pool.monitors, "n_labels": n_labels, "n_asked": n_next, "answer": says}
    print(printable(says), flush=True)
    return run.path


def _next_round(
    settings: Labelling, seed: int, pool: Pool, questions: list[AskedSample], n: int
) -> list[AskedSample]:
    """Draw samples that were not asked for before."""
    of = _labelled(pool, questions, of_open=np.nan)
    free, number = (
        np.ones(len(pool.ids), dtype=np.bool_),
        max((question.round for question in questions), default=0) + 1,
    )
    free[[pool.rows[question.sample_id] for question in questions]] = False
    risks = risk(of.predictions, of.labels, of.weights)
    chances = probabilities(n, of.predictions, risks, pool.flagged, free, settings.design)
    drawn = draw(chances, of.predictions, np.random.default_rng([seed, number]))
    return [
        AskedSample(name, _item(name, seed), number, chance)
        for name, chance in zip([pool.ids[row] for row in drawn], chances[drawn].tolist(), strict=True)
    ]


def _item(sample_id: str, seed: int) -> str:
    """An opaque name; the prefix keeps a spreadsheet from reading a number."""
    return "item-" + hashlib.sha256(f"label/{seed}/{sample_id}".encode()).hexdigest()[:12]


def _shown(pool: Pool, question: AskedSample) -> AnnotationItem:
    if question.sample_id not in pool.texts:
        raise UserError(
            f"{question.sample_id}: no request and response for people to read; expected label.texts, or "
            "a log with texts (serve.log_text=true)"
        )
    return AnnotationItem(question.item, *pool.texts[question.sample_id])


def _labelled(pool: Pool, questions: list[AskedSample], *, of_open: float) -> PartlyLabelled:
    """The pool with its labels; `of_open` is the label of what the readers disagree on."""
    value = {Label.MISBEHAVIOR.value: 1.0, Label.BENIGN.value: 0.0, OPEN: of_open}
    labels = np.full(len(pool.ids), np.nan)
    rounds: list[LabelRound] = []
    for number in sorted({question.round for question in questions}):
        of_round = [question for question in questions if question.round == number]
        rows = np.array([pool.rows[question.sample_id] for question in of_round], dtype=np.int64)
        labels[rows] = [value[question.label or OPEN] for question in of_round]
        rounds.append(LabelRound(rows, np.array([question.probability for question in of_round])))
    return PartlyLabelled(labels, weights_of(rounds, len(pool.ids)), pool.suspicion, pool.groups)


def _answer(
    stakes: Costs, settings: Labelling, pool: Pool, questions: list[AskedSample]
) -> tuple[Table, str, int]:
    """Each monitor's rates and its differences to the cheapest; the sentence, and how many labels lack."""
    ways = [_labelled(pool, questions, of_open=label) for label in (0.0, 1.0)]
    costs = stakes.cost_miss, stakes.cost_alarm
    table, part = Table(), f"estimated:{settings.estimator}"
    corners = list(product(settings.error_of_misbehavior, settings.error_of_benign))
    errors = [
        LabelErrors(*np.mean(corners, axis=0).tolist()),
        *(LabelErrors(*corner) for corner in set(corners)),
    ]

    def measured(
        name: str, point: str, flagged: FloatArray, rates: Mapping[str, RateOf]
    ) -> dict[str, Number]:
        benign, bad = (estimated(of, flagged, rates, settings.estimator, errors=errors) for of in ways)
        numbers = {
            rate: _number(rate, benign[rate], bad[rate], ways[0].n_labels, len(np.unique(pool.groups)))
            for rate in rates
        }
        table.add(Place(name, "none", part, point, "traffic"), numbers)
        return numbers

    alone = rates_of(np.array([0.0, 1.0]), *costs)
    rates = [
        measured(name, f"{limit:g}", pool.flagged[i : i + 1], alone)
        for i, (name, limit) in enumerate(zip(pool.monitors, pool.thresholds, strict=True))
    ]
    best = min(
        range(len(rates)), key=lambda i: inf if (cost := rates[i]["expected_cost"].value) is None else cost
    )
    name, missed = pool.monitors[best], rates[best]["miss_rate"]
    lacks: list[str] = []
    for i, other in enumerate(pool.monitors):
        if i != best:
            apart = measured(f"{other} - {name}", "", pool.flagged[[best, i]], differences_of(*costs))[
                "expected_cost"
            ]
            if apart.low is None or apart.low < -settings.regret:
                lacks.append(f"{other} may cost {-(apart.low or 0):.3g} a sample less")
    half = ((missed.high or 0) - (missed.low or 0)) / 2
    if half > settings.margin:
        lacks.append(f"its miss rate is known to ±{half:.2f} only")
    says = f"{name}: {_in_words(missed)}, {_in_words(rates[best]['false_alarm_rate'])}"
    n_labels, n_free = ways[0].n_labels, len(pool.ids) - len(questions)
    if not lacks:
        return table, f"deploy {says}, from {n_labels} labels", 0
    wanted = ceil(n_labels * ((half / settings.margin) ** 2 - 1))
    n_next = min(max(wanted, _LEAST), settings.budget, n_free)
    return table, f"insufficient, {'; '.join(lacks)} ({says}, from {n_labels} labels)", n_next


def _in_words(of: Number) -> str:
    value = "unknown" if of.value is None else f"{of.value:.4f}"
    return f"{of.metric.replace('_', ' ')} {value} [{of.low:.4f}, {of.high:.4f}]"


def _number(name: str, benign: RateEstimate, bad: RateEstimate, n_labels: int, n_groups: int) -> Number:
    """A rate with what is open counted as benign and as misbehavior: its interval holds both."""
    values = [of.value for of in (benign, bad) if of.value is not None]
    value = sum(values) / 2 if len(values) == 2 else None
    low, high = min(benign.interval.low, bad.interval.low), max(benign.interval.high, bad.interval.high)
    missing = "" if value is not None else "no label where it is needed"
    return Number(name, value, low, high, n_labels, n_groups, missing)


def _as_csv(table: Table) -> str:
    """The rows of the results table, unrounded."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(Row._fields)
    writer.writerows(table.rows())
    return stream.getvalue()
