"""The samples that people were asked for, what they answered, and the partly labelled pool that comes of it.

A line of `asked.jsonl` is a question: a sample, the probability with which it was drawn, and every reading
of it. A sample that is read again has a further line, so both labels are kept; the later one counts.
Promises: an unlabelled sample is never benign; what readers disagree on is `open` until a third one decides.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench.annotation.files import AnnotationItem, AnnotatorAnswer, checked, read_returned
from monitorbench.annotation.labels import AnnotatorChoice, settle
from monitorbench.config.base import UserError
from monitorbench.config.labelling import ADJUDICATOR, Annotation, Labelling
from monitorbench.labelling.pool import Pool
from monitorbench.metrics.labelled import LabelErrors, PartlyLabelled
from monitorbench.metrics.labelled_scores import errors_from_readings
from monitorbench.metrics.labels_to_ask import LabelRound, weights_of
from monitorbench.records import Label
from monitorbench.runs.directory import checked_file

ASKED = "asked.jsonl"
OPEN = "open"
"""Label of a sample that the readers disagree on or are unsure of."""


class AskedSample(NamedTuple):
    """A sample that people were asked for, as a line of `asked.jsonl`."""

    sample_id: str
    item: str
    round: int
    """Number of the round that asked; 0 where the label came with the scores."""
    probability: float
    readers: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    """Choices as given, in the order of `readers`; the third reader's behind them."""
    label: str | None = None
    """`misbehavior`, `benign`, `open`, or None before it came back."""


def read_asked(run: Path) -> list[AskedSample]:
    """Read all questions of a round."""
    questions = []
    for line in checked_file(run, ASKED).read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        fields |= {name: tuple(fields[name]) for name in ("readers", "readings")}
        questions.append(AskedSample(**fields))
    return questions


def as_lines(questions: Sequence[AskedSample]) -> str:
    """Write the questions as the lines of `asked.jsonl`."""
    return "".join(json.dumps(question._asdict(), ensure_ascii=False) + "\n" for question in questions)


def came_with_scores(pool: Pool) -> list[AskedSample]:
    """Return the labels that the files of scores had, as round 0."""
    return [
        AskedSample(name, "", 0, chance, (), (label,), label) for name, (label, chance) in pool.labels.items()
    ]


def item_of(sample_id: str, seed: int, round_: int) -> str:
    """Return an opaque name; the prefix keeps a spreadsheet from reading a number."""
    return "item-" + hashlib.sha256(f"label/{seed}/{round_}/{sample_id}".encode()).hexdigest()[:12]


def shown(pool: Pool, question: AskedSample) -> AnnotationItem:
    """Return the texts that a reader gets; `UserError` where the files have none."""
    if question.sample_id not in pool.texts:
        raise UserError(
            f"{question.sample_id}: no request and response for people to read; expected label.texts, or "
            "a log with texts (serve.log_text=true)"
        )
    return AnnotationItem(question.item, *pool.texts[question.sample_id])


def answered(
    run: Path, annotation: Annotation, pool: Pool, questions: Sequence[AskedSample]
) -> list[AskedSample]:
    """Put what the readers returned beside the questions of the latest round, and what a third decided.

    The third reader's file is `adjudication.csv` of this round, with what earlier batches left open, or of
    the round that came of these returned files, which has what they leave open as well.
    """
    waiting = {question.item: question for question in questions if question.label is None}
    choices: dict[str, list[AnnotatorChoice]] = {}
    if waiting:
        texts = {item: shown(pool, question) for item, question in waiting.items()}
        readers = {item: question.readers for item, question in waiting.items()}
        names = list(dict.fromkeys(name for of_item in readers.values() for name in of_item))
        answers = checked(annotation.returned, texts, names, f"was never asked for in {run.name}", readers)
        choices = {item: [answers[reader][item].choice for reader in readers[item]] for item in waiting}
    left = {question.item: question for question in questions if question.label == OPEN}
    now_left = {item: of for item, of in waiting.items() if settle(choices[item]).label is None}
    for item, question in left.items():
        choices[item] = [AnnotatorChoice(choice) for choice in question.readings[: len(question.readers)]]
    decided: Mapping[str, AnnotatorAnswer] = {}
    if annotation.adjudicated is not None:
        texts = {item: shown(pool, question) for item, question in (left | now_left).items()}
        decided = _decided(run, annotation.adjudicated, texts, (left, now_left))

    def after(question: AskedSample) -> AskedSample:
        item = question.item
        if question.label is not None and item not in decided:
            return question
        third = decided[item].choice if item in decided else None
        readings = tuple(str(choice) for choice in [*choices[item], *([third] if third else [])])
        return question._replace(readings=readings, label=str(settle(choices[item], third).label or OPEN))

    return [after(question) for question in questions]


def _decided(
    run: Path, file: Path, texts: Mapping[str, AnnotationItem], parts: Sequence[Mapping[str, AskedSample]]
) -> dict[str, AnnotatorAnswer]:
    """The third reader's answers, to all samples of each part of which the file has one."""
    there = {row.item for row in read_returned(file)}
    if not there & set(texts):
        raise UserError(
            f"{file}: no sample in it awaits a third reader in {run.name}; expected run=RUN, the round whose "
            "adjudication.csv it is"
        )
    complete = {item for part in parts if there & set(part) for item in part}
    readers = {item: [ADJUDICATOR] if item in complete else [] for item in texts}
    problem = f"awaits no third reader in {run.name}: the readers agree on it, or it is of another round"
    return checked([file], texts, [ADJUDICATOR], problem, readers)[ADJUDICATOR]


def latest(questions: Sequence[AskedSample]) -> dict[str, AskedSample]:
    """Return what counts for each sample: its last question that came back."""
    return {question.sample_id: question for question in questions if question.label is not None}


def _first(questions: Sequence[AskedSample]) -> dict[str, AskedSample]:
    """Each sample's question that drew it; what is read again was not drawn anew."""
    return {question.sample_id: question for question in reversed(questions)}


def labelled(
    pool: Pool, questions: Sequence[AskedSample], *, of_open: float, is_queue: bool = False
) -> PartlyLabelled:
    """Return the pool with its labels; `of_open` is the label of what the readers disagree on.

    In a queue every round drew from a traffic of its own; elsewhere all from one pool.
    """
    value = {Label.MISBEHAVIOR.value: 1.0, Label.BENIGN.value: 0.0, OPEN: of_open}
    labels = np.full(len(pool.ids), np.nan)
    for name, question in latest(questions).items():
        labels[pool.rows[name]] = value[question.label or OPEN]
    rounds, first = [], _first(questions)
    for number in sorted({question.round for question in first.values()}):
        drawn = [question for question in first.values() if question.round == number]
        rows = np.array([pool.rows[question.sample_id] for question in drawn], dtype=np.int64)
        rounds.append(LabelRound(rows, np.array([question.probability for question in drawn])))
    weights = np.zeros(len(pool.ids))
    if is_queue:
        for of_round in rounds:
            weights[of_round.rows] = 1 / of_round.chances
    else:
        weights = weights_of(rounds, len(pool.ids))
    return PartlyLabelled(labels, weights, pool.suspicion, pool.groups)


def label_errors(settings: Labelling, questions: Sequence[AskedSample]) -> list[LabelErrors]:
    """Return what the labels' errors may be: the point, then the corners of what is possible.

    Two people who agree err both with the square of an error of one. `UserError` where errors are to be
    estimated and nothing was read twice.
    """
    if settings.errors == "given":
        bad, good = settings.error_of_misbehavior, settings.error_of_benign
        corners = {LabelErrors(of_bad, of_good) for of_bad in bad for of_good in good}
        return [LabelErrors(sum(bad) / 2, sum(good) / 2), *sorted(corners)]
    twice = [
        (question, len(set(question.readings[:2])) > 1)
        for question in _first(questions).values()
        if len(question.readers) > 1 and question.label is not None
        if AnnotatorChoice.UNSURE not in question.readings[:2]
    ]
    if not twice:
        raise UserError(
            "label.errors=readings: no sample was read by two people; expected label.double_share"
        )
    n, apart = Counter(of.label for of, _ in twice), Counter(of.label for of, differ in twice if differ)
    names = Label.MISBEHAVIOR.value, Label.BENIGN.value
    errors = errors_from_readings((n[names[0]], n[names[1]]), (apart[names[0]], apart[names[1]]), n[OPEN])
    agreed = {of.sample_id for of, differ in twice if not differ}
    in_use = [of for of in latest(questions).values() if of.label != OPEN]
    share = sum(of.sample_id in agreed for of in in_use) / max(len(in_use), 1)
    return [LabelErrors(*((1 - share) * of_one + share * of_one**2 for of_one in error)) for error in errors]
