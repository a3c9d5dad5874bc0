"""Samples made from rows: one for each id, with one label, group, split, cell and text.

Promises: rows of one sample that deny each other are refused with line and field; a group is in one split; a
sample without a label is refused.
"""

import hashlib
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from monitorbench.cells import wrong_name
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.columns import ImportedColumns
from monitorbench.interop.imports.keys import Keys, first_rows
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.interop.imports.values import flags, hashes, refuse, texts
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.records import Split

SPLITS = (Split.TEST, Split.CALIBRATION, Split.VALIDATION, Split.TRAIN)


@dataclass(frozen=True)
class Samples:
    """One entry a sample, all [samples]."""

    names: pa.Array
    is_misbehavior: NDArray[np.bool_]
    groups: pa.Array
    n_without_group: int
    """Samples whose group is empty in the file's column of groups; each is a group of its own."""
    pairs: pa.Array
    """"" where there is none."""
    categories: pa.Array
    tasks: pa.Array
    splits: IntArray
    """Index into `SPLITS`."""
    step_labels: FloatArray | None
    """[rows]: 1, 0, or NaN where nothing is said of the step."""


def samples_of(
    read: ImportedFiles, columns: ImportedColumns, keys: Keys, settings: Import, requests: pa.Array | None
) -> Samples:
    """`requests` [samples] are the requests' texts, which group samples where nothing else does."""
    step_labels = None
    if "step_label" in columns.names:
        step_labels = _flags(read, columns.names["step_label"], settings)
    pairs = _one_each(read, columns, keys, "pair")
    groups, n_without_group = _groups(read, columns, keys, requests, pairs)
    categories = _cells(read, columns, keys, "category", settings.category)
    tasks = _cells(read, columns, keys, "task", settings.task)
    is_misbehavior = _labels(read, columns, keys, settings, step_labels)
    if pairs is not None:
        _refuse_alike(read, columns, keys, pairs, is_misbehavior)
    return Samples(
        names=keys.names,
        is_misbehavior=is_misbehavior,
        groups=groups,
        n_without_group=n_without_group,
        pairs=pa.array([""] * len(keys.names)) if pairs is None else pc.fill_null(pairs, ""),
        categories=categories,
        tasks=tasks,
        splits=_splits(
            read, columns, keys, settings, groups, pc.binary_join_element_wise(categories, tasks, "/")
        ),
        step_labels=step_labels,
    )


def _flags(read: ImportedFiles, name: str, settings: Import) -> FloatArray:
    return flags(read, name, settings.misbehavior_values, settings.benign_values)


def _labels(
    read: ImportedFiles,
    columns: ImportedColumns,
    keys: Keys,
    settings: Import,
    step_labels: FloatArray | None,
) -> NDArray[np.bool_]:
    by_step = step_labels is not None and (settings.unit == "step" or "label" not in columns.names)
    name = columns.names["step_label" if by_step else "label"]
    values = _flags(read, name, settings) if step_labels is None or not by_step else step_labels
    n = len(keys.names)
    if by_step and keys.steps is not None:  # a trajectory with one step of misbehavior is misbehavior
        labels = np.full(n, np.nan)
        np.fmax.at(labels, keys.samples, values)
        _refuse_unlabelled_step(read, keys, name, values, labels)
    else:
        first = first_rows(keys.samples, ~np.isnan(values), n)
        labels = np.where(first < 0, np.nan, values[first])
        against = ~np.isnan(values) & (values != labels[keys.samples])
        if against.any():
            hint = " (of a step it is said by import.columns.step_label)" if keys.steps is not None else ""
            hint += (
                " (or import.draws=all, for draws that ended differently)" if keys.draws is not None else ""
            )
            _refuse_contradiction(read, keys, name, int(np.flatnonzero(against)[0]), first, hint)
    if np.isnan(labels).any():
        row = int(keys.first[np.flatnonzero(np.isnan(labels))[0]])
        refuse(read, row, name, "the sample has no label", "misbehavior or benign for each sample")
    if step_labels is not None and not by_step:
        bad = np.flatnonzero((step_labels == 1) & (labels[keys.samples] == 0))
        if bad.size:
            fault, expected = "a step of misbehavior in a sample that is labelled benign", "labels that agree"
            refuse(read, int(bad[0]), columns.names["step_label"], fault, expected)
    is_misbehavior: NDArray[np.bool_] = labels == 1
    return is_misbehavior


def _refuse_unlabelled_step(
    read: ImportedFiles, keys: Keys, name: str, values: FloatArray, labels: FloatArray
) -> None:
    """Raise `UserError` where a trajectory would be benign with a step of which nothing is said."""
    assert keys.steps is not None
    steps = keys.samples * (int(keys.steps.max()) + 1) + keys.steps
    is_said = np.zeros(int(steps.max()) + 1, dtype=np.bool_)
    is_said[steps[~np.isnan(values)]] = True
    silent = np.flatnonzero(~is_said[steps] & (labels[keys.samples] == 0))
    if silent.size:
        expected = "a label for each step of a trajectory without misbehavior, or import.columns.label"
        refuse(
            read, int(silent[0]), name, "the step has no label, and its trajectory would be benign", expected
        )


def _refuse_alike(
    read: ImportedFiles,
    columns: ImportedColumns,
    keys: Keys,
    pairs: pa.Array,
    is_misbehavior: NDArray[np.bool_],
) -> None:
    """Raise `UserError` where a pair has two samples of one label; steps and draws of one are one."""
    labels = pa.array(np.where(is_misbehavior, "misbehavior", "benign"))
    sides = pc.dictionary_encode(pc.binary_join_element_wise(labels, pairs, "\0"))
    own = pc.dictionary_encode(keys.trajectories.take(pa.array(keys.first))).indices.to_numpy()
    of = pc.fill_null(sides.indices, -1).to_numpy()
    there = np.flatnonzero(of >= 0)
    first = first_rows(of, of >= 0, len(sides.dictionary))
    if (alike := there[own[there] != own[first[of[there]]]]).size:
        sample = int(alike[0])
        reason = f"its pair has a {labels[sample].as_py()} sample already"
        refuse(read, int(keys.first[sample]), columns.names["pair"], reason, "one of each label in a pair")


def _refuse_contradiction(
    read: ImportedFiles, keys: Keys, name: str, row: int, first: IntArray, hint: str = ""
) -> None:
    sample = int(keys.samples[row])
    first_value = read.table.column(name)[int(first[sample])].as_py()
    reason = f"another row of sample {keys.names[sample].as_py()!r} says {first_value!r}"
    refuse(read, row, name, reason, f"the same in all rows of a sample{hint}")


def _one_each(read: ImportedFiles, columns: ImportedColumns, keys: Keys, role: str) -> pa.Array | None:
    """A text a sample, null where no row has one; None without such a column."""
    if role not in columns.names:
        return None
    name = columns.names[role]
    values = texts(read, name)
    is_present = pc.is_valid(values).to_numpy(zero_copy_only=False)
    first = first_rows(keys.samples, is_present, len(keys.names))
    by_sample = values.take(pa.array(first, mask=first < 0))
    if len(keys.names) < len(values):
        against = pc.not_equal(values, by_sample.take(pa.array(keys.samples)))
        wrong = np.flatnonzero(pc.fill_null(against, False).to_numpy(zero_copy_only=False))
        if wrong.size:
            _refuse_contradiction(read, keys, name, int(wrong[0]), first)
    return by_sample


def _groups(
    read: ImportedFiles,
    columns: ImportedColumns,
    keys: Keys,
    requests: pa.Array | None,
    pairs: pa.Array | None,
) -> tuple[pa.Array, int]:
    """Group by the file's groups; without such a column by pair, else by request, else by trajectory.

    Steps and draws that are samples of their own stay together. Also returns how many samples have no group
    in the file's column of groups.
    """
    own = keys.trajectories.take(pa.array(keys.first))
    groups = _one_each(read, columns, keys, "group")
    if groups is None:
        groups = pa.nulls(len(own), pa.string())
        if pairs is not None:
            groups = pc.binary_join_element_wise("pair-", pairs, "")
        if requests is not None:
            encoded = pc.dictionary_encode(requests)
            names = pc.binary_join_element_wise("request-", hashes(encoded.dictionary), "")
            groups = pc.coalesce(groups, names.take(encoded.indices))
    trajectories = pc.dictionary_encode(own).indices.to_numpy().astype(np.int64)
    is_present = pc.is_valid(groups).to_numpy(zero_copy_only=False)
    first = first_rows(trajectories, is_present, int(trajectories.max()) + 1)[trajectories]
    n_without = int(np.count_nonzero(first < 0)) if "group" in columns.names else 0
    return pc.coalesce(groups.take(pa.array(first, mask=first < 0)), own), n_without


def _cells(read: ImportedFiles, columns: ImportedColumns, keys: Keys, role: str, default: str) -> pa.Array:
    """Names as cells have them: `Data Exfiltration` becomes `data_exfiltration`."""
    by_sample = _one_each(read, columns, keys, role)
    if by_sample is None:
        return pa.array([default]).take(pa.array(np.zeros(len(keys.names), dtype=np.int64)))
    encoded = pc.dictionary_encode(pc.fill_null(by_sample, default))
    own = encoded.dictionary.to_pylist()
    names = [re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] for text in own]
    for text, name in zip(own, names, strict=True):
        if reason := wrong_name(name):
            hits = np.flatnonzero(encoded.indices.to_numpy() == own.index(text))
            raise UserError(
                f"{read.where(int(keys.first[hits[0]]))}: {columns.names[role]}={text!r}: {reason}"
            )
    if len(set(names)) < len(names):
        name = next(text for text in names if names.count(text) > 1)
        alike = [text for text, its in zip(own, names, strict=True) if its == name]
        raise UserError(f"{columns.names[role]}: {alike[0]!r} and {alike[1]!r} would both be called {name}")
    return pa.array(names).take(encoded.indices)


def _splits(
    read: ImportedFiles,
    columns: ImportedColumns,
    keys: Keys,
    settings: Import,
    groups: pa.Array,
    cells: pa.Array,
) -> IntArray:
    n = len(keys.names)
    split_names = _one_each(read, columns, keys, "split")
    if split_names is None:
        if not settings.calibration_share:
            return np.zeros(n, dtype=np.int64)
        return _shared(groups, cells, settings.calibration_share, settings.seed)
    name = columns.names["split"]
    if settings.calibration_share:
        raise ConfigError(
            f"import.calibration_share={settings.calibration_share:g}: column {name!r} "
            "says the split; expected 0, or import.columns.split='' to leave that column alone"
        )
    codes = pc.index_in(pc.utf8_lower(split_names), value_set=pa.array([split.value for split in SPLITS]))
    if codes.null_count:
        row = int(keys.first[np.flatnonzero(pc.is_null(codes))[0]])
        refuse(read, row, name, "is no split", "calibration or test in each row")
    splits: IntArray = codes.to_numpy().astype(np.int64)
    of = pc.dictionary_encode(groups).indices.to_numpy()
    home = splits[first_rows(of, np.ones(n, dtype=np.bool_), int(of.max()) + 1)]
    if (wrong := np.flatnonzero(home[of] != splits)).size:
        row, group = int(keys.first[wrong[0]]), groups[int(wrong[0])].as_py()
        refuse(read, row, name, f"group {group!r} is in another split too", "all samples of a group in one")
    return splits


def _shared(groups: pa.Array, cells: pa.Array, share: float, seed: int) -> IntArray:
    """The first groups of each cell by hash are for calibration, as `corpus.selection` shares them."""
    encoded, of_cell = pc.dictionary_encode(groups), pc.dictionary_encode(cells).indices.to_numpy()
    of = encoded.indices.to_numpy()
    names = encoded.dictionary.to_pylist()
    home = of_cell[first_rows(of, np.ones(len(of), dtype=np.bool_), len(names))]
    digests = np.array(
        [hashlib.sha256(f"{seed}\0{name}".encode()).digest()[:8] for name in names], dtype="S8"
    )
    is_first = np.zeros(len(names), dtype=np.bool_)
    for cell in np.unique(home).tolist():
        members = np.flatnonzero(home == cell)
        members = members[np.argsort(digests[members], kind="stable")]
        is_first[members[: round(share * len(members))]] = True
    splits: IntArray = np.where(is_first[of], SPLITS.index(Split.CALIBRATION), SPLITS.index(Split.TEST))
    return splits
