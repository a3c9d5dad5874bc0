"""`eval/label.py`: ask people for labels of unlabelled traffic, read what they answer, and say what follows.

A run is a round. The first draws samples by `label.design` and writes a blind batch for each reader; the
next, with `run` and the returned files, estimates each monitor's rates from all labels so far and says which
to deploy, or writes the next batch. A queue is the same over a guardrail's log that grows: each round fills
the budget of a day from what came since. Promises: each sample that was asked for has its probability in
`asked.jsonl`; a log that was read is as it was then, but for what a queue finds behind it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monitorbench.annotation.files import csv_batch
from monitorbench.annotation.stage import write_batches
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.ending import printable
from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.config.labelling import ADJUDICATOR, Annotation, Labelling
from monitorbench.config.study import Study
from monitorbench.labelling.answer import ADJUDICATION, LabelledAnswer, LabelledPool, answer
from monitorbench.labelling.asked import (
    ASKED,
    OPEN,
    AskedSample,
    answered,
    as_lines,
    came_with_scores,
    item_of,
    labelled,
    latest,
    read_asked,
    shown,
)
from monitorbench.labelling.pool import Pool, read_pool
from monitorbench.metrics.labels_to_ask import draw, probabilities, risk
from monitorbench.runs.directory import RunDirectory, read_checked, read_finished
from monitorbench.runs.files import file_sha256, read_json, write_atomically, write_json
from monitorbench.runs.run_folders import run_name

POOL = "pool.json"


class _Round(NamedTuple):
    """A round as it begins: the traffic, the questions so far, and the samples that earlier rounds had."""

    settings: Labelling
    pool: Pool
    questions: list[AskedSample]
    earlier: frozenset[str]
    is_queue: bool


def print_plan(study: Study) -> None:
    """Print how the labels of the next round would be spread over the scores; writes nothing."""
    _print_spread(study.label, read_pool(study.label))


def print_queue_plan(study: Study) -> None:
    """Print how many alerts of the log a queue would take, and how many samples blindly."""
    settings = study.label.model_copy(update={"design": "alerts"})
    _print_spread(settings, read_pool(settings, is_queue=True))


def _print_spread(settings: Labelling, pool: Pool) -> None:
    chances = _chances(_Round(settings, pool, came_with_scores(pool), frozenset(), False), settings.budget)
    flags = (np.nan_to_num(pool.flagged, nan=1.0) > 0).any(axis=0)
    print(
        f"{chances.sum():.0f} of {len(pool.ids)} samples would be asked for ({settings.design}): "
        f"{chances[flags].sum():.0f} of the {flags.sum()} that a monitor flags or did not score, "
        f"{chances[~flags].sum():.0f} of the {(~flags).sum()} that all pass"
    )


def label(study: Study) -> Path:
    """Begin with `label.scores`, or go on from `run`; returns the run directory."""
    return _round(study, is_queue=False)


def queue(study: Study) -> Path:
    """Fill a day's budget from a guardrail's log, or from what came since; returns the run directory."""
    return _round(study, is_queue=True)


def _round(study: Study, *, is_queue: bool) -> Path:
    annotation, settings = study.annotation, study.label
    if is_queue:
        settings = settings.model_copy(update={"design": "alerts"})
    if (run := study.run) is None:
        for name in ("returned", "adjudicated"):
            if getattr(annotation, name):
                raise ConfigError(f"annotation.{name}: of which round? expected run=RUN, the round it is of")
        pool = read_pool(settings, is_queue=is_queue)
        return _record(study, _Round(settings, pool, came_with_scores(pool), frozenset(), is_queue), {})
    before = _earlier(settings, run, goes_on=is_queue)
    annotation = _kept(annotation, run)
    study = study.model_copy(update={"annotation": annotation})
    waits = sum(question.label is None for question in before.questions)
    if waits and annotation.adjudicated and not annotation.returned:
        raise ConfigError(
            f"annotation.adjudicated={annotation.adjudicated}: {waits} samples of {run.name} wait for "
            f"their readers; expected annotation.returned of these as well{_as_before(run)}"
        )
    if waits and not annotation.returned:
        raise ConfigError("annotation.returned=[]: no file given; expected what each reader returned")
    if annotation.returned and not waits:
        raise ConfigError(f"annotation.returned: {run.name} asked for nothing; expected none")
    questions = before.questions
    if waits or annotation.adjudicated:
        questions = answered(run, annotation, before.pool, questions)
    returned = [*annotation.returned, *([annotation.adjudicated] if annotation.adjudicated else [])]
    came_back = {"round": run.name, "returned": sorted(file_sha256(file) for file in returned)}
    return _record(study, before._replace(questions=questions), came_back)


def _kept(annotation: Annotation, run: Path) -> Annotation:
    """Keep an earlier round's readers and guidelines, unless others than the defaults are given."""
    given = annotation.model_dump(exclude_defaults=True)
    kept = read_finished(run)["identity"]["annotation"]
    before = {"annotators": tuple(kept["annotators"]), "guidelines": kept["guidelines"]}
    return annotation.model_copy(update={name: of for name, of in before.items() if name not in given})


def _as_before(run: Path) -> str:
    """The command that a round came of, to be given again with a third reader's file, if there is one."""
    frozen = read_json(run / "config.json")
    if not (files := frozen["annotation"]["returned"]) or frozen["annotation"]["adjudicated"]:
        return ""
    return f", or run={Path(frozen['run']).name} annotation.returned=[{','.join(files)}]"


def labelled_pool(run: Path, label: Labelling, stakes: Stakes, calibrate: Calibrate) -> LabelledPool:
    """Read a round with its labels, to be estimated at these stakes and with this promise."""
    earlier = _earlier(label, run, goes_on=False)
    # A batch that waits has no part in it yet: what it drew would stand for others, without a label.
    questions = [question for question in earlier.questions if question.label is not None]
    if not questions:
        raise UserError(
            f"{run}: no label came back yet; expected `label run={run.name} annotation.returned=…`"
        )
    return LabelledPool(earlier.pool, questions, earlier.settings, stakes, calibrate, earlier.is_queue, run)


def is_round(run: Path) -> bool:
    """Whether a run is a round of labels."""
    return (run / POOL).is_file()


def _earlier(settings: Labelling, run: Path, *, goes_on: bool) -> _Round:
    """Take the files of scores from an earlier round; `UserError` where one has changed since.

    `goes_on` reads the log of a queue as it is now, and the files of `settings` behind it.
    """
    if not is_round(run):
        raise UserError(f"run={run}: no round of labels; expected run=runs/label/NAME-HASH")
    read_finished(run)
    kept = read_checked(run, POOL)
    if goes_on and not kept["is_queue"]:
        raise UserError(f"run={run}: labels of one pool, not of a queue; expected `label run={run.name}`")
    for file, (size, sha256) in kept["files"].items():
        if _beginning(Path(file), size) != sha256 or (
            not kept["is_queue"] and Path(file).stat().st_size != size
        ):
            raise UserError(f"{file}: not as it was in {run.name}; restore it, or begin anew")
    scores = tuple(map(Path, kept["scores"]))
    new = [file for file in settings.scores if file not in scores] if goes_on else []
    files = {
        "scores": (*scores, *new),
        "texts": Path(kept["texts"]) if kept["texts"] else None,
        "thresholds": tuple(kept["thresholds"]),
        "design": kept["design"] if kept["is_queue"] else settings.design,
    }
    settings, is_queue = settings.model_copy(update=files), kept["is_queue"]
    before = settings.model_copy(update={"scores": scores})
    pool = read_pool(before, is_queue=is_queue, upto=kept["n_rows"])
    earlier = frozenset(pool.ids)
    if goes_on:
        pool = read_pool(settings, is_queue=is_queue)
    return _Round(settings, pool, read_asked(run), earlier, is_queue)


def _beginning(file: Path, size: int) -> str:
    """The SHA-256 of the first bytes of a file; empty where it has not so many."""
    if not file.is_file() or file.stat().st_size < size:
        return ""
    digest, left = hashlib.sha256(), size
    with file.open("rb") as stream:
        while left and (block := stream.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def _record(study: Study, of: _Round, came_from: Mapping[str, Any]) -> Path:
    annotation, settings, pool = study.annotation, of.settings, of.pool
    given = [*settings.scores, *([settings.texts] if settings.texts else [])]
    files = {str(file): [size := file.stat().st_size, _beginning(file, size)] for file in given}
    identity = {
        **came_from,
        "files": [sha256 for _, sha256 in files.values()],
        "thresholds": pool.thresholds,
        "label": settings.model_dump(mode="json", exclude={"scores", "texts", "thresholds"}),
        "is_queue": of.is_queue,
        "annotation": annotation.model_dump(mode="json", include={"annotators", "seed", "guidelines"}),
        "stakes": study.stakes.model_dump(mode="json"),
        "calibrate": study.calibrate.model_dump(mode="json", include={"alpha", "delta"}),
    }
    run = RunDirectory(study.paths.runs / "label", run_name(*pool.monitors), identity)
    with run.recording(study) as results:
        says, n_next, questions, remarks = "no labels yet", settings.budget, of.questions, list[str]()
        if questions:
            found = answer(
                LabelledPool(pool, questions, settings, study.stakes, study.calibrate, of.is_queue, run.path)
            )
            found.write(run.path)
            says, n_next = found.sentence, settings.budget if of.is_queue else found.n_next
            remarks = found.remarks
            results |= {"decision": found.decision, "monitor": found.monitor}
            drawn = _read_again(annotation, study.label.read_again, found, questions)
            if left := [shown(pool, question) for question in questions if question.label == OPEN]:
                write_atomically(run.path / ADJUDICATION, csv_batch(left, ADJUDICATOR))
        else:
            drawn = []
        if n_next and not drawn:
            drawn = _drawn(annotation, of, n_next)
        if drawn:
            groups = {question.item: str(pool.groups[pool.rows[question.sample_id]]) for question in drawn}
            texts = {question.item: shown(pool, question) for question in drawn}
            readers = {question.item: question.readers for question in drawn}
            write_batches(run.path, annotation, texts, groups, readers)
            questions = [*questions, *drawn]
            says += f": label these {len(drawn)} next, in {run.path / 'batches'}"
        write_atomically(run.path / ASKED, as_lines(questions))
        kept = settings.model_dump(mode="json", include={"scores", "texts", "design"})
        kept |= {"n_rows": pool.n_rows, "is_queue": of.is_queue, "thresholds": pool.thresholds}
        write_json(run.path / POOL, {"files": files, **kept})
        results |= {"monitors": pool.monitors, "n_asked": len(drawn), "answer": says}
        results["n_labels"] = sum(question.label != OPEN for question in latest(questions).values())
    print(*map(printable, (says, *remarks)), sep="\n", flush=True)
    return run.path


def _chances(of: _Round, n: int) -> np.ndarray:
    """The probability that each sample is asked for: of what was not before, in a queue of what is new."""
    pool = of.pool
    free = np.array([not of.is_queue or name not in of.earlier for name in pool.ids])
    free[[pool.rows[question.sample_id] for question in of.questions]] = False
    labels = labelled(pool, of.questions, of_open=np.nan, is_queue=of.is_queue).labels
    risks = risk(pool.scores, labels)
    settings = of.settings
    return probabilities(n, risks, pool.flagged, free, settings.design, blind_share=settings.blind_share)


def _drawn(annotation: Annotation, of: _Round, n: int) -> list[AskedSample]:
    """Draw samples that were not asked for before, and say who reads each."""
    settings, seed, number = of.settings, annotation.seed, _next_number(of.questions)
    chances, rng = _chances(of, n), np.random.default_rng([seed, number])
    rows = draw(chances, of.pool.suspicion, rng) if chances.any() else np.array([], dtype=np.int64)
    names = annotation.annotators
    by_all = rng.random(len(rows)) < settings.double_share
    return [
        AskedSample(
            of.pool.ids[row],
            item_of(of.pool.ids[row], seed, number),
            number,
            chance,
            names if doubly else (names[i % len(names)],),
        )
        for i, (row, chance, doubly) in enumerate(
            zip(rows.tolist(), chances[rows].tolist(), by_all.tolist(), strict=True)
        )
    ]


def _read_again(
    annotation: Annotation, most: int, found: LabelledAnswer, questions: Sequence[AskedSample]
) -> list[AskedSample]:
    """Ask again for what most monitors contradict, unless it was read again already."""
    number, in_use = _next_number(questions), latest(questions)
    n_asked = {name: sum(of.sample_id == name for of in questions) for name in found.contradicted}
    worst = [name for name in found.contradicted if n_asked[name] == 1][:most]
    seed, readers = annotation.seed, annotation.annotators
    return [
        AskedSample(name, item_of(name, seed, number), number, in_use[name].probability, readers)
        for name in worst
    ]


def _next_number(questions: Sequence[AskedSample]) -> int:
    return max((question.round for question in questions), default=0) + 1
