"""What is whole: every dataset and run below some folders, compared with its checksums. Changes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.runs.directory import LOGS, MANIFEST, checked_file, read_manifest, unrecorded_files
from monitorbench.runs.integrity import unsealed_line
from monitorbench.runs.progress import progress

_SWEEPS = "sweeps"
"""A sweep's manifest is of another kind; the runs that it made have their own."""


class Verified(NamedTuple):
    """What was found below the folders."""

    whole: list[Path]
    unfinished: list[Path]
    """Of these, logs are looked at; other files have no checksum yet."""
    problems: list[str]
    """One line each; a folder may have several."""
    n_files: int
    """How many files, and lines of logs, were compared."""
    n_lines: int
    unrecorded: list[Path]
    """Files in finished folders that no manifest knows."""


def verify(study: Study) -> Path:
    """Verify `study.run`, or all of `paths.data` and `paths.runs`, and print what is whole.

    Returns the folder that was verified, the runs' where it was both. Raises `UserError` where something is
    not whole, or no dataset or run is there.
    """
    folders = [study.run] if study.run is not None else [study.paths.data, study.paths.runs]
    found = verified(folders)
    if not found.whole and not found.unfinished and not found.problems:
        raise UserError(f"{' and '.join(map(str, folders))}: no dataset or run in it; expected run=DIRECTORY")
    print("\n".join(_in_words(found)))
    if found.problems:
        raise UserError(
            f"{len(found.problems)} not as written, named above; restore them, or remove the folders and run "
            "the same commands again"
        )
    return folders[-1]


def verified(folders: Sequence[Path]) -> Verified:
    """Compare every dataset and run below some folders, these included, with its checksums."""
    manifests = sorted({manifest for folder in folders for manifest in folder.rglob(MANIFEST)})
    directories = [manifest.parent for manifest in manifests if manifest.parent.parent.name != _SWEEPS]
    found = Verified([], [], [], 0, 0, [])
    with progress("verify", len(directories)) as ticker:
        for directory in directories:
            found = _with(found, directory)
            ticker.advance()
    return found


def _with(before: Verified, directory: Path) -> Verified:
    problems: list[str] = []
    n_files = n_lines = 0
    try:
        manifest = read_manifest(directory)
        is_done = manifest["status"] == "done"
        names = list(manifest["files"]) if is_done else []
    except UserError as error:
        return before._replace(problems=[*before.problems, str(error)])
    for name in names:
        n_files += 1
        try:
            checked_file(directory, name)
        except UserError as error:
            problems.append(str(error))
    for log in sorted(directory / name for name in LOGS if (directory / name).is_file()):
        *lines, torn = log.read_bytes().split(b"\n")
        n_lines += len(lines)
        problems += [
            f"{log}:{number}: not as it was written; remove the line to have it done again"
            for number, line in enumerate(lines, 1)
            if unsealed_line(line) is None
        ]
        n_logged = manifest["results"].get("n_logged", 0) if log.name == "verdicts.jsonl" else 0
        if is_done and (torn or len(lines) < n_logged):
            problems.append(f"{log}: lines are missing at its end; run the same command again")
    kind = before.whole if is_done else before.unfinished
    if not problems:
        kind.append(directory)
    return before._replace(
        problems=[*before.problems, *problems],
        n_files=before.n_files + n_files,
        n_lines=before.n_lines + n_lines,
        unrecorded=[*before.unrecorded, *(unrecorded_files(directory, manifest) if is_done else ())],
    )


def _in_words(found: Verified) -> list[str]:
    lines = [f"not whole   {problem}" for problem in found.problems]
    lines += [f"unfinished  {directory}" for directory in found.unfinished]
    lines += [f"unrecorded  {file}" for file in found.unrecorded]
    lines.append(
        f"{len(found.whole)} whole, {len(found.unfinished)} unfinished, {len(found.problems)} problems: "
        f"{found.n_files} files and {found.n_lines} lines of logs compared"
    )
    return lines
