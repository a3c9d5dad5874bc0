"""The annotation stage: blind batches out, labels in, and the samples annotators agree on.

`export` writes `data/annotation_batch-<hash>/batches/<annotator>/`, the folder to send, and `key.jsonl`,
which says what each item is and stays here. `import` writes `data/annotation-<hash>/` with the kept
samples, `labels.jsonl` (every item and how it ended) and `adjudication.csv` (what is open, still blind).
Promises: the same settings give the same bytes; returned files are checked whole before anything is
written; a batch that was exported is never written again, so that labels filled in there are safe.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.annotation.files import (
    SPREADSHEET_CELL,
    AnnotationItem,
    AnnotatorAnswer,
    checked,
    csv_batch,
    label_studio_config,
    label_studio_tasks,
    read_candidates,
)
from monitorbench.annotation.labels import (
    KEPT,
    ItemStatus,
    Settled,
    UnlabelledSample,
    agreement,
    blind_order,
    candidate,
    draw,
    item_id,
    settle,
)
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.labelling import ADJUDICATOR, Annotation
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split, write_split
from monitorbench.prompts.transcript import transcript
from monitorbench.records import Label, Split
from monitorbench.runs.directory import RunDirectory, checked_file, read_finished
from monitorbench.runs.files import file_sha256, write_atomically

_log = logging.getLogger(__name__)

_BATCH_STAGE = "annotation_batch"


def annotate(study: Study, settings: Annotation) -> Path:
    """Export or import, as `settings.action` says; returns the directory written."""
    return export_batch(study, settings) if settings.action == "export" else import_labels(study, settings)


def export_batch(study: Study, settings: Annotation) -> Path:
    """Write a blind batch per annotator; `UserError` where there is nothing to label."""
    split = Split(settings.split)
    if settings.candidates is not None:
        candidates = read_candidates(settings.candidates, split)
        source: dict[str, Any] = {"candidates": file_sha256(settings.candidates)}
    else:
        dataset, view = ensure(study, [split]), study.dataset.view(settings.split)
        candidates = [candidate(sample) for sample in read_split(dataset, split, view)]
        source = {"dataset": dataset.name, "view": view.model_dump(mode="json")}
    decides = {"annotators", "seed", "split", "samples_per_cell", "guidelines"}
    identity = {"stage": _BATCH_STAGE, **source, **settings.model_dump(mode="json", include=decides)}
    directory = RunDirectory(study.paths.data, _BATCH_STAGE, identity, is_shared=True)
    if directory.done:
        _log.info("annotation: reusing %s", directory.path)
        return directory.path
    drawn = draw(candidates, settings.samples_per_cell, settings.seed)
    items = {item_id(entry, settings.seed): entry for entry in drawn}
    texts = {item: _shown(item, entry) for item, entry in items.items()}
    with directory.recording(study) as results:
        write_batches(
            directory.path, settings, texts, {item: entry.group_id for item, entry in items.items()}
        )
        key = _jsonl({"item": item, **entry.model_dump(mode="json")} for item, entry in sorted(items.items()))
        write_atomically(directory.path / "key.jsonl", key)
        results.update(
            key_sha256=file_sha256(directory.path / "key.jsonl"),
            n_items=len(items),
            n_longer_than_a_cell=sum(map(_is_too_long, texts.values())),
            cells={cell: len(members) for cell, members in _by_cell(items).items()},
        )
    _log.info(
        "annotation: %d items; send each annotator their folder of %s", len(items), directory.path / "batches"
    )
    return directory.path


def write_batches(
    run: Path,
    settings: Annotation,
    texts: Mapping[str, AnnotationItem],
    groups: Mapping[str, str],
    readers: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the folder that each annotator gets: the items in their own order, guidelines, an interface.

    `readers` names who gets each item; without it everyone gets all.
    """
    for reader in settings.annotators:
        order = blind_order(groups, reader, settings.seed)
        ordered = [texts[item] for item in order if readers is None or reader in readers[item]]
        folder = run / "batches" / reader
        write_atomically(folder / "guidelines.txt", settings.guidelines.strip() + "\n")
        write_atomically(folder / "batch.csv", csv_batch(ordered, reader))
        write_atomically(folder / "tasks.json", label_studio_tasks(ordered, reader))
        write_atomically(folder / "labelling.xml", label_studio_config(settings.guidelines))
    if too_long := sum(map(_is_too_long, texts.values())):
        message = "%d items are longer than a spreadsheet's cell (%d characters): use Label Studio"
        _log.warning(message, too_long, SPREADSHEET_CELL)


def _is_too_long(item: AnnotationItem) -> bool:
    return max(map(len, item)) > SPREADSHEET_CELL


def import_labels(study: Study, settings: Annotation) -> Path:
    """Read what the annotators returned for the batch at `study.run`; keep what they agree on.

    Raises:
        ConfigError: where `run` or `annotation.returned` is not given.
        UserError: for a file that can't be read, or one that lacks, repeats or misnames an item. Each
            problem is a line; all but the first go to the log.

    """
    if not settings.returned:
        raise ConfigError("annotation.returned=[]: no file given; expected annotation.returned=[FILE,FILE]")
    batch = study.required_run()
    exported = read_finished(batch)["identity"]
    items = _read_key(batch)
    readers, seed, split = exported["annotators"], exported["seed"], Split(exported["split"])
    texts = {item: _shown(item, sample) for item, sample in items.items()}

    answers = checked(settings.returned, texts, readers, f"was never exported in {batch.name}")
    choices = {item: [answers[reader][item].choice for reader in readers] for item in items}
    open_before = {item: texts[item] for item in items if settle(choices[item]).outcome not in KEPT}
    decided: Mapping[str, AnnotatorAnswer] = {}
    if settings.adjudicated is not None:
        problem = "is not open: the annotators agree on it, or it is of another batch"
        decided = checked([settings.adjudicated], open_before, [ADJUDICATOR], problem)[ADJUDICATOR]
    ends = {
        item: settle(choices[item], decided[item].choice if item in decided else None)
        for item in sorted(items)
    }

    files = [*settings.returned, *([settings.adjudicated] if settings.adjudicated else [])]
    identity = {
        "stage": "annotation",
        "batch": batch.name,
        "returned": sorted(file_sha256(file) for file in settings.returned),
        "adjudicated": file_sha256(settings.adjudicated) if settings.adjudicated else None,
        "resamples": settings.resamples,
    }
    directory = RunDirectory(study.paths.data, "annotation", identity, is_shared=True)
    if directory.done:
        _log.info("annotation: reusing %s", directory.path)
        return directory.path
    with directory.recording(study) as results:
        labelled = [
            items[item].labelled(end.label, split) for item, end in ends.items() if end.label is not None
        ]
        groups = {item: sample.group_id for item, sample in items.items()}
        still_open = [item for item in blind_order(groups, ADJUDICATOR, seed) if ends[item].label is None]
        open_texts = [texts[item] for item in still_open]
        write_atomically(directory.path / "adjudication.csv", csv_batch(open_texts, ADJUDICATOR))
        write_atomically(directory.path / "adjudication.json", label_studio_tasks(open_texts, ADJUDICATOR))
        write_atomically(
            directory.path / "labels.jsonl",
            _jsonl(
                {
                    "item": item,
                    "sample": items[item].id,
                    "cell": str(items[item].cell),
                    "labels": {reader: answers[reader][item].choice for reader in readers},
                    "notes": {reader: note for reader in readers if (note := answers[reader][item].note)},
                    "adjudicated": decided[item].choice if item in decided else None,
                    "outcome": end.outcome,
                    "label": end.label,
                    "prior": items[item].prior,
                }
                for item, end in ends.items()
            ),
        )
        write_atomically(
            directory.path / f"{split}.jsonl", _jsonl(sample.model_dump(mode="json") for sample in labelled)
        )

        def measured(members: Sequence[str]) -> dict[str, Any]:
            labels = {reader: [answers[reader][item].choice for item in members] for reader in readers}
            groups = [items[item].group_id for item in members]
            return {
                **agreement(labels, groups, resamples=settings.resamples, seed=seed),
                **_kept_counts({item: ends[item] for item in members}, items),
            }

        results.update(
            batch=batch.name,
            annotators=readers,
            files=[file.name for file in files],
            **measured(list(ends)),
            cells={cell: measured(members) for cell, members in _by_cell(items).items()},
            splits={
                split.value: {
                    "samples": len(labelled),
                    "sha256": write_split(directory.path, split, labelled),
                }
            },
        )
    _log.info(
        "annotation: kept %d of %d items, kappa %s; %d to adjudicate in %s",
        len(labelled),
        len(items),
        "undefined" if results["kappa"] is None else f"{results['kappa']:.2f}",
        len(open_texts),
        directory.path / "adjudication.csv",
    )
    return directory.path


def _kept_counts(ends: Mapping[str, Settled], items: Mapping[str, UnlabelledSample]) -> dict[str, Any]:
    labelled = [(items[item], end.label) for item, end in ends.items() if end.label is not None]
    with_prior = [sample.prior is label for sample, label in labelled if sample.prior is not None]
    sides = {(sample.cell, sample.pair_id, label) for sample, label in labelled}
    complete = {
        (cell, pair) for cell, pair, _ in sides if all((cell, pair, label) in sides for label in Label)
    }
    return {
        "n_kept": len(labelled),
        "n_kept_pairs": len(complete),
        "n_adjudicated": sum(end.outcome is ItemStatus.ADJUDICATED for end in ends.values()),
        "n_open": len(ends) - len(labelled),
        "n_prior": len(with_prior),
        "n_same_as_prior": sum(with_prior),
        "agreement_with_prior": sum(with_prior) / len(with_prior) if with_prior else None,
    }


def _read_key(batch: Path) -> dict[str, UnlabelledSample]:
    if read_finished(batch)["identity"].get("stage") != _BATCH_STAGE:
        raise UserError(f"{batch}: not an exported batch; expected run=data/{_BATCH_STAGE}-HASH")
    key = checked_file(batch, "key.jsonl")
    rows = [json.loads(line) for line in key.read_text(encoding="utf-8").split("\n") if line]
    return {row.pop("item"): UnlabelledSample.model_validate(row) for row in rows}


def _shown(item: str, one: UnlabelledSample) -> AnnotationItem:
    return AnnotationItem(item, transcript(one.request), transcript(one.response))


def _by_cell(items: Mapping[str, UnlabelledSample]) -> dict[str, list[str]]:
    cells = sorted({sample.cell for sample in items.values()})
    return {
        str(cell): sorted(item for item, sample in items.items() if sample.cell == cell) for cell in cells
    }


def _jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
