"""Candidate samples of every source, constructed once and kept by content hash: `data/.candidates/`.

A *unit* is one source, or a part of a large one. Units are constructed side by side in processes, which end
with the one that started them. Each writes one Parquet file per cell into a folder that is renamed into
place when it is whole, so a build that is killed resumes where it was, and the next dataset that needs the
same unit finds it.
"""

import multiprocessing
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.corpus.paper.units import PaperInputs, Unit, construct, require_files, unit_identity
from monitorbench.corpus.store import SAMPLE_SCHEMA, to_table
from monitorbench.records import Sample
from monitorbench.runs.directory import checked_file, is_finished, read_manifest, write_manifest
from monitorbench.runs.files import content_hash, file_sha256, folder_in_the_making
from monitorbench.runs.progress import progress


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes; what is not begun is cancelled when the body raises.

    Spawned, not forked: a fork of a process with threads (progress bars, Arrow) may hang.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_end_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_ROWS_PER_GROUP = 2048


class Candidates(NamedTuple):
    """One constructed unit and its folder."""

    unit: Unit
    folder: Path

    @property
    def facts(self) -> dict[str, Any]:
        """`samples`, `rejected` (the construction's reasons), `bad_rows` (the reader's reasons)."""
        facts: dict[str, Any] = read_manifest(self.folder)["results"]
        return facts

    def file(self, cell: str) -> Path | None:
        """The unit's samples of one cell; None where it has none.

        Raises `UserError` where the file is not as it was written.
        """
        name = _file_name(cell)
        return checked_file(self.folder, name) if name in read_manifest(self.folder)["files"] else None


def located(inputs: PaperInputs, units: Sequence[Unit]) -> list[Candidates]:
    """Pair each unit with its folder, built or not, named by the hash of what decides its candidates."""
    parent = inputs.paths.data / ".candidates"
    return [
        Candidates(unit, parent / f"{unit.label}-{content_hash(unit_identity(inputs, unit))}")
        for unit in units
    ]


def prepare(inputs: PaperInputs, units: Sequence[Unit], *, workers: int) -> list[Candidates]:
    """Construct every unit that is not there yet; returns all of them in the order of `units`.

    Raises what a unit raises, after the others that are running have ended; what is finished stays.
    """
    prepared = located(inputs, units)
    missing = [candidates for candidates in prepared if not is_finished(candidates.folder)]
    if not missing:
        return prepared
    require_files(inputs, [candidates.unit.source for candidates in missing])
    # The longest first, so that no core waits for the last one.
    missing.sort(key=lambda candidates: -candidates.unit.weight)
    with (
        progress("data: construct candidates", len(missing)) as ticker,
        worker_pool(min(workers, len(missing))) as pool,
    ):
        pending = {
            pool.submit(_write, inputs, candidate_set): candidate_set.unit.label for candidate_set in missing
        }
        ticker.doing(_running(pending.values(), workers))
        for done in as_completed(list(pending)):
            done.result()
            del pending[done]
            ticker.doing(_running(pending.values(), workers))
            ticker.advance()
    return prepared


def _running(labels: Iterable[str], workers: int) -> str:
    """The units that are being constructed: of those not done the first, which were handed out in order."""
    return ", ".join(islice(labels, workers))


def batches(files: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of candidate files, one table at a time, in order."""
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=columns)


def totals(prepared: Sequence[Candidates]) -> dict[str, dict[str, Any]]:
    """Per source: how many samples were constructed, how many rows were rejected or bad, and why."""
    summed: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    bad: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for candidates in prepared:
        facts, source = candidates.facts, candidates.unit.source
        summed[source]["samples"] += facts["samples"]
        rejected[source].update(facts["rejected"])
        bad[source].update(facts["bad_rows"])
    return {
        source: {
            "samples": count["samples"],
            "rejected": dict(rejected[source]),
            "bad_rows": dict(bad[source]),
        }
        for source, count in summed.items()
    }


def _write(inputs: PaperInputs, candidates: Candidates) -> None:
    try:
        with folder_in_the_making(candidates.folder) as staging:
            _write_files(inputs, candidates.unit, staging)
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise UserError(f"{candidates.folder}: can't be written ({reason})") from error


def _write_files(inputs: PaperInputs, unit: Unit, folder: Path) -> None:
    writers: dict[str, pq.ParquetWriter] = {}
    count, rejected, bad_rows = 0, Counter[str](), Counter[str]()
    try:
        for constructed in construct(inputs, unit, bad_rows):
            rejected.update(constructed.rejected)
            count += len(constructed.samples)
            by_cell: defaultdict[str, list[Sample]] = defaultdict(list)
            for sample in constructed.samples:
                by_cell[str(sample.cell)].append(sample)
            for cell, samples in sorted(by_cell.items()):
                if cell not in writers:
                    writers[cell] = pq.ParquetWriter(
                        folder / _file_name(cell), SAMPLE_SCHEMA, compression="zstd"
                    )
                for start in range(0, len(samples), _ROWS_PER_GROUP):
                    writers[cell].write_table(to_table(samples[start : start + _ROWS_PER_GROUP]))
    finally:
        for writer in writers.values():
            writer.close()
    facts = {
        "samples": count,
        "rejected": dict(sorted(rejected.items())),
        "bad_rows": dict(sorted(bad_rows.items())),
    }
    files = {file.name: file_sha256(file) for file in sorted(folder.glob("*.parquet"))}
    write_manifest(folder, {"status": "done", "results": facts, "files": files})


def _file_name(cell: str) -> str:
    return f"{cell.replace('/', '-')}.parquet"
