"""Messages of an import on stderr: what was read as what, what is missing, where it went."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.imports import Import
from monitorbench.interop.imports.columns import ImportedColumns, shown_name, unread_names
from monitorbench.interop.imports.conversations import ConversationSide
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.interop.imports.samples import SPLITS, Samples
from monitorbench.interop.imports.scores import Scored
from monitorbench.metrics.score_facts import COUNTED_AS, inverted_warning
from monitorbench.records import Split

_log = logging.getLogger(__name__)
DOUBTED_FROM = 10
"""Fewest samples of which a monitor that is right about all may be the labels themselves."""

_CROWDED = 0.01
"""Share of a scale, at either end, that all scores don't lie in if the scale is theirs."""
SHOWN = 5
"""Most ids that a message names."""


def say_rows(read: ImportedFiles, n_rows: int, columns: ImportedColumns) -> None:
    """Log how many rows there are, and which columns were taken as what."""
    files = read.files[0].name if len(read.files) == 1 else f"{len(read.files)} files"
    of_list = f", the list {read.list_at}" if read.list_at else ""
    _log.info("import: %s: %s rows (%s%s)", files, f"{n_rows:,}", read.formats[0], of_list)
    scores = [column for column in columns.scores.values() if column]
    score = f"score={scores[0]}" if len(scores) == 1 else f"scores={','.join(scores)}" if scores else ""
    roles = [f"{role}={shown_name(name)}" for role, name in columns.names.items()]
    _log.info("import: %s", ", ".join(filter(None, [*roles, score])))
    used = {*columns.names.values(), *scores}
    if unread := unread_names(read.present, used):
        _log.info("import: not read: %s", unread)


def say_labels(
    labels: ImportedFiles, n_labels: int, n_rows: int, n_left_out: int, unmatched: Sequence[str]
) -> None:
    """Log how many labels the second file has, and of how many of the log's rows; `unmatched` are ids there
    of no row."""
    file = labels.files[0].name
    _log.info("import: %s: %s labels, joined to %s rows", file, f"{n_labels:,}", f"{n_rows:,}")
    if unmatched:
        first = ", ".join(map(shown_name, unmatched[:SHOWN])) + (", …" if len(unmatched) > SHOWN else "")
        message = "import: %s: labels that are not used, since no row has their id: %s (%s)"
        _log.warning(message, file, f"{len(unmatched):,}", first)
    if n_left_out:
        _log.info(
            "import: %s rows have no label there and are left out: what follows holds", f"{n_left_out:,}"
        )
        _log.info("import: for all of the log only if those with a label were drawn by chance")


def say_samples(
    samples: Samples, response: ConversationSide, calibration_share: float, *, is_split: bool
) -> None:
    """Log how many samples, groups and labels, by split; and what is missing without texts.

    Splits are the file's own where it `is_split`, else `calibration_share` divides it.
    """
    n, n_bad = len(samples.names), int(np.count_nonzero(samples.is_misbehavior))
    n_groups = pc.count_distinct(samples.groups).as_py()
    apart = " (if several are of one task: import.columns.group)" if n_groups == n else ""
    _log.info(
        "import: %s samples in %s groups%s, %s misbehavior, %s benign",
        f"{n:,}",
        f"{n_groups:,}",
        apart,
        f"{n_bad:,}",
        f"{n - n_bad:,}",
    )
    if samples.n_without_group:
        message = "import: %s samples have an empty group: each counts as a question of its own"
        _log.warning(message, f"{samples.n_without_group:,}")
    counts = np.bincount(samples.splits, minlength=len(SPLITS)).tolist()
    by_split = [f"{split} {n:,}" for split, n in zip(SPLITS, counts, strict=True) if n]
    _log.info("import: %s", ", ".join(by_split))
    if not counts[SPLITS.index(Split.CALIBRATION)]:
        why = "; import.calibration_share=0.5 makes one"
        if is_split:
            why = ": the column of splits names no sample of it"
        elif calibration_share:
            why = f": too few groups to divide (import.calibration_share={calibration_share:g})"
        _log.info("import: no calibration split, so no threshold%s", why)
    if response.is_absent:
        _log.info("import: no texts: no shortcut checks, and no samples to read")
    elif response.plain.null_count:
        _log.info("import: %s samples have no text", f"{response.plain.null_count:,}")


def say_renamed(names: Mapping[str, str]) -> None:
    """Log each monitor whose name is not as the file has it, which is the key."""
    for own, name in names.items():
        if own != name:
            message = "import: monitor %s is called %s: ASCII letters, digits and ._+-, at most 60"
            _log.info(message, shown_name(own[:80] + "…" * (len(own) > 80)), name)


def say_monitor(name: str, found: Scored, samples: Samples, settings: Import) -> None:
    """Log the numbers of scores or answers and of missing ones, what these count as, and inverted scores."""
    is_misbehavior = samples.is_misbehavior
    n = len(found.scores)
    n_missing = int(np.count_nonzero(found.is_missing))
    answers_only = found.has_answers and not found.has_scores
    given, what = (found.flagged, "answers") if answers_only else (found.scores, "scores")
    n_given = n - int(np.count_nonzero(np.isnan(given)))
    _log.info("import: %s: %s %s of %s samples", name, f"{n_given:,}", what, f"{n:,}")
    if found.has_scores and (n_unanswered := int(np.count_nonzero(found.lacks_answer))):
        message = "import: %s: %s samples have a score and no answer: unscored where answers are read"
        _log.warning(message, name, f"{n_unanswered:,}")
    _say_crowded(name, found, settings)
    groups = pc.dictionary_encode(samples.groups).indices.to_numpy()
    if warning := inverted_warning(name, found.scores, is_misbehavior, groups):
        _log.warning("import: %s", warning)
    is_right = np.array_equal(found.flagged, is_misbehavior)
    if (
        n >= DOUBTED_FROM
        and is_right
        and is_misbehavior.std()
        and np.isin(np.nan_to_num(found.scores), (0, 1)).all()
    ):
        _log.warning(
            "import: %s: its answers are the labels of all %s samples; expected a monitor's", name, n
        )
    if n_missing:
        how = f"{COUNTED_AS[settings.missing]} (import.missing={settings.missing})"
        _log.info("import: %s: %s missing, %s", name, f"{n_missing:,}", how)
        if settings.missing == "leave_out" and np.isnan(found.scores[~is_misbehavior]).any():
            _log.info("import: a threshold's promise counts benign ones without a score as alarms;")
            _log.info("import: import.missing=flag or pass says what they are")
    if found.n_parts_missing:
        effect = "their samples unscored" if settings.missing == "flag" else "the others count"
        _log.info("import: %s: %s steps or draws missing; %s", name, f"{found.n_parts_missing:,}", effect)
    if found.n_against:
        side = f"{settings.flag_from:g}"
        _log.info(
            "import: %s: %s answers contradict their score's side of %s", name, f"{found.n_against:,}", side
        )


def _say_crowded(name: str, found: Scored, settings: Import) -> None:
    """Log where all scores, if they differ, lie at one end of the scale: it may be another one."""
    given = found.scores[~np.isnan(found.scores)]
    least, greatest = given.min(initial=1), given.max(initial=0)
    if settings.levels is None and least < greatest and (greatest <= _CROWDED or least >= 1 - _CROWDED):
        low, high = settings.scale
        ends = sorted(low + end * (high - low) for end in (least, greatest))
        _log.warning(
            "import: %s: all scores are from %.6g to %.6g, at one end of the scale [%g,%g]; expected a scale "
            "that they fill (import.scale), and dots that don't divide thousands",
            *(name, *ends, low, high),
        )


def say_runs(runs: Mapping[tuple[str, Split], Path], data: Path) -> Path:
    """Log where everything is; returns the first run over the test split, else the first, else `data`."""
    _log.info("import: data: %s", data)
    first = next((path for (_, split), path in runs.items() if split is Split.TEST), None)
    first = first or next(iter(runs.values()), data)
    for (_, split), path in runs.items():
        if path != first:
            _log.info("import: %s: %s", split, path)
    return first
