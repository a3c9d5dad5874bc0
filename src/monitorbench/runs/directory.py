"""A run directory: `<what it is of>-<hash>`, with `config.json`, `manifest.json`, `code.diff` and results.

The hash covers what decides the result: the settings a stage reads and the identities of its
inputs, never a path. So the same command finds its own results again, finished or half-way.

A finished run's manifest has the SHA-256 of every file that the run left, and one of itself, which
`checked_file` and `read_manifest` compare. Logs are not among them: their lines have checksums of their own.
"""

import os
import platform
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from monitorbench.config.base import Config, Incomplete, UserError
from monitorbench.runs.files import (
    CHECKSUM,
    DIRECTORY_LOCK,
    StoredObject,
    content_hash,
    file_sha256,
    folder_in_the_making,
    locked,
    manifest_checksum,
    read_json,
    read_object,
    refuse_changed,
    write_atomically,
    write_json,
)
from monitorbench.runs.provenance import code_state, peak_memory_mib, versions

SCHEMA_VERSION = 1
"""Number to raise when the meaning of a run's files changes, so that no old run passes for a new one."""

MANIFEST = "manifest.json"
CODE_DIFF = "code.diff"
"""Differences of monitorbench's checkout from its commit; datasets, which others get, have none."""
LOGS = frozenset(
    (
        "verdicts.jsonl",
        "failures.jsonl",
        "answers.jsonl",
        "episodes.jsonl",
        "runs_alone.jsonl",
        "decisions.jsonl",
        "refusals.jsonl",
    )
)
"""Files that grow line by line, each line with its own checksum (`runs.keyed_log`)."""
KINDS = {
    "train": "a training run",
    "fit": "the fit of a probe",
    "evaluate": "an evaluation run",
    "calibrate": "a calibration run",
    "gate": "a gate, or a check of one",
    "wording": "the choice of a wording",
    "label": "a round of labels",
    "views": "a comparison of what a monitor sees",
    "stress": "a stress run",
    "control": "a control evaluation",
    "transfer": "a transfer run",
    "recommend": "a recommendation",
    "pilot": "a pilot run",
    "serve": "a server's run",
    "localisation": "a localisation run",
    "episodes": "a set of pilot runs",
    "baselines": "a set of baseline numbers",
}
"""The folders that stages write runs into, in the order they are shown, and what lies there."""
_UNRECORDED = frozenset(("wandb", "server.log"))
"""Files of other programs, which nothing here reads."""
_REMEDY = "restore it, or remove the folder and run the same command again"


class RunDirectory:
    """One stage's run. `done` says whether its results are complete."""

    def __init__(
        self,
        parent: Path,
        name: str,
        identity: Mapping[str, Any],
        *,
        is_shared: bool = False,
    ) -> None:
        """Name the directory; nothing is written before `recording`.

        Args:
            parent: the folder of the stage's runs.
            name: what a person knows the run by.
            identity: what decides the results.
            is_shared: whether others get the folder, as they get a dataset; no `code.diff` is put there.

        """
        self.identity = {"schema_version": SCHEMA_VERSION, **identity}
        self.path = parent / f"{name}-{content_hash(self.identity)}"
        self._is_owned = False
        self._is_shared = is_shared

    @property
    def done(self) -> bool:
        """Whether the run finished before."""
        return is_finished(self.path)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Wait until no other process writes the run; while the body runs, others wait or are refused."""
        with locked(self.path / DIRECTORY_LOCK, wait=True):
            self._is_owned = True
            try:
                yield
            finally:
                self._is_owned = False

    @contextmanager
    def recording(self, config: Config, *, temporary: Collection[str] = ()) -> Iterator[dict[str, Any]]:
        """Write config and manifest, run the body, then mark the run as done.

        Yields the manifest's `results`, which the body fills. `Incomplete` makes the status `incomplete`, any
        other exception leaves it at `running`: what is pending is done when the same run is opened again.

        Args:
            config: the settings of what is run.
            temporary: folders of the run that will not stay, whose files get no checksums.

        Raises:
            UserError: where another process is recording the same run, or a file can't be written.

        """
        with nullcontext() if self._is_owned else locked(self.path / DIRECTORY_LOCK):
            write_json(self.path / "config.json", config.model_dump(mode="json"))
            code = code_state()
            if not self._is_shared:
                write_atomically(self.path / CODE_DIFF, code.diff)
            results: dict[str, Any] = {}
            manifest: dict[str, Any] = {
                "status": "running",
                "identity": self.identity,
                "git_commit": code.commit,
                "git_dirty": bool(code.diff),
                "versions": versions(),
                "machine": {"platform": platform.platform(), "cpus": os.cpu_count()},
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "results": results,
            }
            write_manifest(self.path, manifest)
            began = time.monotonic()
            try:
                yield results
            except Incomplete:
                write_manifest(self.path, {**manifest, "status": "incomplete"})
                raise
            manifest["status"] = "done"
            manifest["seconds"] = round(time.monotonic() - began, 2)
            manifest["peak_memory_mib"] = peak_memory_mib()
            manifest["files"] = {
                name: file_sha256(self.path / name) for name in recorded_files(self.path, temporary)
            }
            write_manifest(self.path, manifest)

    @contextmanager
    def appearing(self, config: Config) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Record a run that is there whole or not at all, as one that can't be resumed should be.

        Yields a folder that nobody looks for, to be filled, and the manifest's `results`; when the body ends
        well the folder becomes the run's. Raises what `recording` raises.
        """
        with folder_in_the_making(self.path) as folder:
            making = copy(self)
            making.path = folder
            with making.recording(config) as results:
                yield folder, results

    @contextmanager
    def amending(self) -> Iterator[dict[str, Any]]:
        """Run a body that adds to the logs of a finished run, and take what it yields into `results`.

        The run stays finished, and its manifest as it was, wherever the body is stopped. Raises what
        `recording` raises.
        """
        with locked(self.path / DIRECTORY_LOCK):
            results: dict[str, Any] = {}
            yield results
            manifest = read_manifest(self.path)
            write_manifest(self.path, {**manifest, "results": {**manifest["results"], **results}})


def recorded_files(directory: Path, temporary: Collection[str]) -> list[str]:
    """The files of a run that get a checksum, as paths below it."""
    left_out = {MANIFEST, *LOGS, *_UNRECORDED, *temporary}
    files = (path.relative_to(directory) for path in sorted(directory.rglob("*")) if path.is_file())
    return [
        file.as_posix()
        for file in files
        if file.parts[0] not in left_out and not any(name.startswith(".") for name in file.parts)
    ]


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write a run's manifest, whole or not at all, with its checksum."""
    write_json(directory / MANIFEST, {**manifest, CHECKSUM: manifest_checksum(manifest)})


def record_files(directory: Path, *names: str) -> None:
    """Take files that a later stage put into a finished run into its manifest, as they are now."""
    with locked(directory / DIRECTORY_LOCK, wait=True):
        manifest = read_manifest(directory)
        digests = {name: file_sha256(directory / name) for name in names}
        write_manifest(directory, {**manifest, "files": {**manifest.get("files", {}), **digests}})


def checked_file(directory: Path, name: str) -> Path:
    """The path of a file of a finished run, after it was compared with the checksum in the manifest.

    Raises `UserError` where it is missing, where its content is not what was written, or where the manifest
    does not know it. In a run that is not finished nothing is known, and nothing compared.
    """
    path = directory / name
    manifest = read_manifest(directory)
    if manifest["status"] == "done":
        refuse_changed(path, manifest["files"].get(name), _REMEDY)
    return path


def compared_file(path: Path) -> Path:
    """The path of a file that a setting names, after it was compared where a finished run recorded it.

    Raises `UserError` where it is in such a run's folder, and not as the run wrote it.
    """
    if (path.parent / MANIFEST).is_file():
        manifest = read_manifest(path.parent)
        if path.name in manifest.get("files", {}):
            refuse_changed(path, manifest["files"][path.name], _REMEDY)
    return path


def read_checked(directory: Path, name: str) -> Any:
    """The content of a JSON file of a finished run. Raises what `checked_file` raises."""
    return read_json(checked_file(directory, name))


def read_manifest(directory: Path) -> StoredObject:
    """A run's manifest; `UserError` where there is none, it can't be read or is not as a stage wrote it.

    In the manifest and in every object inside it, asking for a key that is not there is a `UserError` too.
    """
    path = directory / MANIFEST
    if not path.is_file():
        raise UserError(f"{directory}: no manifest.json there; expected a run directory")
    manifest = read_object(path)
    for key in {"identity", "results"} & manifest.keys():
        manifest.object(key)
    if manifest.get(CHECKSUM) != manifest_checksum(manifest):
        raise UserError(f"{path}: not as a stage wrote it, edited or damaged; {_REMEDY}")
    return manifest


def is_finished(directory: Path) -> bool:
    """Whether a run is there and was finished."""
    return (directory / MANIFEST).is_file() and read_manifest(directory)["status"] == "done"


def kind_of(directory: Path) -> str:
    """Say what kind of run a directory is, as far as the folder that it lies in tells."""
    return {**KINDS, "sweeps": "a sweep"}.get(directory.resolve().parent.name, "another kind of directory")


def read_finished(directory: Path) -> StoredObject:
    """The manifest of a finished run; `UserError` where it is missing or not finished."""
    manifest = read_manifest(directory)
    if manifest["status"] != "done":
        raise UserError(f"{directory}: that run did not finish; run the same command again, it resumes there")
    return manifest
