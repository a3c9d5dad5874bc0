"""`monitorbench verify`: datasets and runs compared with the checksums that were written with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.ending import printable
from monitorbench.config.study import Study
from monitorbench.runs.directory import LOGS, MANIFEST, checked_file, read_manifest, recorded_files
from monitorbench.runs.files import unsealed_line
from monitorbench.runs.progress import progress


@dataclass
class Verified:
    """Outcome of comparing datasets and runs with their checksums."""

    whole: list[Path] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    """Folders whose logs alone were compared: other files have no checksum yet."""
    problems: list[str] = field(default_factory=list)
    """Problems, one line each; a folder may have several."""
    unrecorded: list[Path] = field(default_factory=list)
    """Files in finished folders that no manifest knows."""
    n_files: int = 0
    n_lines: int = 0
    """How many files, and lines of logs, were compared."""


def verify(study: Study) -> Path:
    """Verify `study.run`, or all of `paths.data` and `paths.runs`, and print what is whole.

    Returns the folder that was verified, the runs' where it was both. Raises `UserError` where something is
    not whole, or no dataset or run is there.
    """
    folders = [study.run] if study.run is not None else [study.paths.data, study.paths.runs]
    verified = verify_folders(folders)
    if not verified.whole and not verified.unfinished and not verified.problems:
        raise UserError(f"{' and '.join(map(str, folders))}: no dataset or run in it; expected run=DIRECTORY")
    for word, entries in (
        ("not whole", verified.problems),
        ("unfinished", verified.unfinished),
        ("unrecorded", verified.unrecorded),
    ):
        print(printable("".join(f"{word:<12}{entry}\n" for entry in entries)), end="")
    n_whole, n_unfinished, n_problems = len(verified.whole), len(verified.unfinished), len(verified.problems)
    compared = f"{verified.n_files} files and {verified.n_lines} lines of logs compared"
    print(f"{n_whole} whole, {n_unfinished} unfinished, {n_problems} problems: {compared}")
    if n_problems:
        raise UserError(
            f"{n_problems} not as written, named above; restore them, or remove the folders and run the same "
            "commands again"
        )
    return folders[-1]


def verify_folders(folders: Sequence[Path]) -> Verified:
    """Compare every dataset and run below some folders, these included, with its checksums."""
    manifests = sorted({manifest for folder in folders for manifest in folder.rglob(MANIFEST)})
    # A sweep's manifest is of another kind; the runs that it made have their own.
    directories = [manifest.parent for manifest in manifests if manifest.parent.parent.name != "sweeps"]
    verified = Verified()
    with progress("verify", len(directories)) as ticker:
        for directory in directories:
            _verify(directory, verified)
            ticker.advance()
    return verified


def _verify(directory: Path, verified: Verified) -> None:
    """Compare a dataset or a run with its checksums, and add what that comes to. Changes no file."""
    try:
        manifest = read_manifest(directory)
        is_done = manifest["status"] == "done"
        names = list(manifest["files"]) if is_done else []
    except UserError as error:
        verified.problems.append(str(error))
        return
    problems: list[str] = []
    for name in names:
        try:
            checked_file(directory, name)
        except UserError as error:
            problems.append(str(error))
    for log in sorted(directory / name for name in LOGS if (directory / name).is_file()):
        *lines, torn = log.read_bytes().split(b"\n")
        verified.n_lines += len(lines)
        problems += [
            f"{log}:{number}: not as it was written; remove the line to have it done again"
            for number, line in enumerate(lines, 1)
            if unsealed_line(line) is None
        ]
        n_logged = manifest["results"].get("n_logged", 0) if log.name == "verdicts.jsonl" else 0
        if is_done and (torn or len(lines) < n_logged):
            problems.append(f"{log}: lines are missing at its end; run the same command again")
    if is_done:
        unknown = (name for name in recorded_files(directory, ()) if name not in manifest["files"])
        verified.unrecorded += [directory / name for name in unknown]
    if not problems:
        (verified.whole if is_done else verified.unfinished).append(directory)
    verified.problems += problems
    verified.n_files += len(names)
