"""An evaluation's scores as an Inspect log: what `export.format=inspect` writes.

The log has each sample's conversation, its label as the scorer `label` and the monitor's verdict as the
scorer `monitor` (`verdict_score`), so that Inspect View, Scout and control tools show them. It is written in
Inspect's format (log version 2) without the package. Promises: the same run gives the same bytes; what is
unscored here is unscored there.
"""

import json
import logging
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import monitorbench
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.interop.inspect.as_inspect import FLAGGED, SCORE, chat, opening, verdict_score
from monitorbench.metrics.auroc import auroc
from monitorbench.metrics.rates import count, false_alarm_rate, miss_rate
from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import content_hash, make_folder, part_of, unwritable
from monitorbench.runs.keyed_log import read_run
from monitorbench.scoring.calibrate import judge_id
from monitorbench.scoring.evaluations import Evaluation, read_evaluation
from monitorbench.scoring.operating_point import GREEDY, OperatingPoint
from monitorbench.scoring.points import points_at

FOLDER = "inspect"
"""Folder of the log in the evaluation's run."""
LABEL, MONITOR = "label", "monitor"
"""Names of the scorers."""

_VERSION = 2
_SHOWN_CHARACTERS = 1000
"""Most characters shown of a request in the list of samples."""
_NO_MODEL = "none/none"
"""Model name in Inspect's form where no one model, or none that is known, was judged."""
_ABOUT = (
    "own_id",
    "pair_id",
    "group_id",
    "category",
    "task",
    "subcategory",
    "stratum",
    "source",
    "label_source",
)
_log = logging.getLogger(__name__)


class _Read(NamedTuple):
    """An evaluation read at an operating point."""

    evaluation: Evaluation
    point: OperatingPoint
    name: str
    """Name of the point; "" for the judge's own answers."""


def write_log(study: Study) -> Path:
    """`<run>/inspect/<run>.eval`, of `study.run` at `study.operating_point` or at its own answers.

    Returns the folder. Raises `UserError` for what is no finished evaluation, a point of another judge, and
    a file that can't be written.
    """
    directory = study.required_run()
    source = _read(study.operating_point, study.paths.data, study.score.other_dataset, directory)
    verdicts = read_run(directory)
    samples = read_split(source.evaluation.data, source.evaluation.split, source.evaluation.view)
    name = f"{directory.resolve().name}{f'-at-{source.name}' if source.name else ''}.eval"
    target = directory / FOLDER / name
    with _written(target) as log:
        _write(log, source, samples, verdicts, read_finished(directory)["started"])
    record_files(directory, f"{FOLDER}/{name}")
    unscored = int(np.isnan(source.evaluation.judged.flagged).sum())
    _log.info(
        "export: %d samples, %d of them unscored; inspect view --log-dir %s",
        len(samples),
        unscored,
        target.parent,
    )
    return target.parent


def _read(operating_point: Path | None, datasets: Path, other_dataset: bool, directory: Path) -> _Read:
    evaluation = read_evaluation(datasets, directory)
    if operating_point is None:
        return _Read(evaluation, GREEDY, "")
    (point_at,) = points_at([operating_point], [evaluation], other_dataset=other_dataset)
    return _Read(point_at.evaluation, point_at.point, point_at.name)


@contextmanager
def _written(target: Path) -> Iterator[zipfile.ZipFile]:
    """An archive to fill, which is at `target` when the body ends well; `UserError` where it can't be."""
    make_folder(target.parent)
    temporary = part_of(target)
    try:
        with temporary.open("wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                yield archive
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write(
    log: zipfile.ZipFile,
    found: _Read,
    samples: Sequence[Sample],
    verdicts: Mapping[str, Verdict],
    created: str,
) -> None:
    spec, plan = _spec(found, samples, created), {"name": "plan", "steps": [], "config": {}}
    _entry(log, "_journal/start.json", {"version": _VERSION, "eval": spec, "plan": plan})
    flagged = dict(
        zip(found.evaluation.judged.sample_ids.to_pylist(), found.evaluation.judged.flagged, strict=True)
    )
    limits = {threshold.category: threshold.threshold for threshold in found.point.thresholds}
    summaries = []
    for sample in samples:
        limit = limits.get("", limits.get(sample.category))
        scores = {
            LABEL: {"value": sample.label.value, "explanation": f"label from {sample.label_source}"},
            MONITOR: _without_no_score(verdict_score(verdicts[sample.id], _label(flagged[sample.id]), limit)),
        }
        row = _row(sample, scores)
        _entry(log, f"samples/{sample.id}_epoch_1.json", row)
        summaries.append(_summary(sample, row))
    _entry(log, "summaries.json", summaries)
    header = {
        "version": _VERSION,
        "status": "success",
        "eval": spec,
        "plan": plan,
        "results": _results(found.evaluation),
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
    }
    _entry(log, "header.json", header)


def _without_no_score(score: dict[str, Any]) -> dict[str, Any]:
    """The fields of a score, without a NaN beside the flag: Inspect asks for both only in live scoring."""
    value = score["value"]
    if isinstance(value, Mapping) and math.isnan(value[SCORE]):
        score["value"] = {FLAGGED: value[FLAGGED]}
    return score


def _label(flagged: float) -> Label | None:
    if math.isnan(flagged):
        return None
    return Label.MISBEHAVIOR if flagged else Label.BENIGN


def _entry(log: zipfile.ZipFile, name: str, value: Any) -> None:
    """One JSON entry; its date is always the same, so that equal logs have equal bytes."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    log.writestr(info, json.dumps(value, ensure_ascii=False))


def _row(sample: Sample, scores: Mapping[str, Any]) -> dict[str, Any]:
    messages = chat(sample)
    n = len(sample.request)
    last = messages[-1]
    choices = [{"message": last, "stop_reason": "stop"}] if last["role"] == "assistant" else []
    return {
        "id": sample.id,
        "epoch": 1,
        "input": messages[:n],
        "target": sample.label.value,
        "messages": messages,
        "output": {"model": sample.subject_model, "choices": choices},
        "scores": scores,
        "metadata": {field: str(getattr(sample, field)) for field in _ABOUT},
    }


def _summary(sample: Sample, row: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("id", "epoch", "target", "scores", "metadata")
    return {
        **{field: row[field] for field in fields},
        "input": opening(sample, _SHOWN_CHARACTERS),
        "completed": True,
        "message_count": len(row["messages"]),
    }


def _spec(found: _Read, samples: Sequence[Sample], created: str) -> dict[str, Any]:
    """Return Inspect's description of the evaluation: the judged data and who judged it."""
    evaluation = found.evaluation
    subjects = {sample.subject_model for sample in samples}
    (model,) = subjects if len(subjects) == 1 else ("",)
    judge = {
        "monitor": evaluation.monitor,
        "prompt": evaluation.prompt,
        "judge": judge_id(evaluation),
        "operating_point": found.point.model_dump(mode="json"),
    }
    id_ = content_hash([evaluation.id, judge])
    return {
        "eval_id": id_,
        "run_id": id_,
        "created": created,
        "task": f"{evaluation.data.name}-{evaluation.split.value}",
        "task_id": id_,
        "dataset": {"name": evaluation.data.name, "samples": len(samples)},
        "model": model or _NO_MODEL,
        "model_roles": {MONITOR: {"model": f"{evaluation.monitor}/{evaluation.prompt}", "config": {}}},
        "config": {"epochs": 1},
        "packages": {"monitorbench": monitorbench.__version__},
        "metadata": judge,
        "scorers": [{"name": LABEL}, {"name": MONITOR, "options": {}, "metadata": judge}],
    }


def _results(evaluation: Evaluation) -> dict[str, Any]:
    """The rates over scored samples, with how many are not."""
    judged = evaluation.judged
    counts = count(judged.is_misbehavior, judged.flagged)
    rates = {"miss_rate": miss_rate(counts), "false_alarm_rate": false_alarm_rate(counts)}
    ranked = {"auroc": auroc(judged.scores, judged.is_misbehavior)}
    return {
        "total_samples": len(judged),
        "completed_samples": len(judged),
        "scores": [
            _eval_score(FLAGGED, rates, int(np.isnan(judged.flagged).sum()), len(judged)),
            _eval_score(SCORE, ranked, int(np.isnan(judged.scores).sum()), len(judged)),
        ],
    }


def _eval_score(name: str, values: Mapping[str, float | None], n_unscored: int, n: int) -> dict[str, Any]:
    metrics = {
        metric: {"name": metric, "value": value} for metric, value in values.items() if value is not None
    }
    return {
        "name": name,
        "scorer": MONITOR,
        "scored_samples": n - n_unscored,
        "unscored_samples": n_unscored,
        "metrics": metrics,
    }
