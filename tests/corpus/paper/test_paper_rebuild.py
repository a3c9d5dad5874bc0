"""The same settings and raw files give the same bytes: elsewhere, in steps, and after SIGKILL half-way."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from small_mirror import Mirrored, built, overrides, shards
from studies import study

from monitorbench.corpus.paper import candidates, units
from monitorbench.corpus.paper.units import Unit
from monitorbench.runs.directory import read_manifest


@pytest.mark.usefixtures("threads")
def test_rebuilt_elsewhere_it_is_the_same_bytes(small: Mirrored, tmp_path: Path):
    """Two people who build it have to be able to tell that they have the same data."""
    mirror = Path(shutil.copytree(small.mirror, tmp_path / "elsewhere" / "mirror"))
    # A mirror may compress as it likes: what counts is the content.
    lines = gzip.decompress((mirror / "sven.jsonl.gz").read_bytes())
    (mirror / "sven.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    directory = built(mirror, tmp_path / "data")
    assert directory.name == small.directory.name
    assert shards(directory) == shards(small.directory)
    assert read_manifest(directory)["results"] == small.results


@pytest.mark.usefixtures("threads")
def test_some_splits_first_and_the_rest_later_are_the_same_bytes(small: Mirrored, same_candidates: Path):
    """`dataset.splits=[test]` first is the README's own way; it must not choose another benchmark."""
    first = built(small.mirror, same_candidates, dataset__splits="[test]")
    only = shards(first)
    assert list(only) == ["test/part-00000.parquet"]
    assert built(small.mirror, same_candidates) == first
    assert shards(first) == shards(small.directory)
    assert only.items() <= shards(first).items()


def _build(root: Path, said: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    # Files, not pipes: what outlives the process would keep a pipe open.
    with said.open("wb") as out, said.with_suffix(".err").open("wb") as narrated:
        command = [sys.executable, str(root / "data_build" / "build.py"), *arguments]
        return subprocess.Popen(command, stdout=out, stderr=narrated, cwd=root)


@pytest.fixture(scope="module")
def killed(
    small: Mirrored, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, list[psutil.Process]]]:
    """A data folder whose build had SIGKILL half-way, and the worker processes of that build.

    The first process alone is killed, as the kernel does when memory is short.
    """
    folder = tmp_path_factory.mktemp("killed")
    process = _build(root, folder / "first", overrides(small.mirror, folder / "data"))
    workers: list[psutil.Process] = []
    try:
        while not any(path.name[0] != "." for path in (folder / "data" / ".candidates").glob("*")):
            assert process.poll() is None, (folder / "first.err").read_text()
            time.sleep(0.005)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        yield folder, workers
    finally:
        process.kill()
        for worker in workers:
            if worker.is_running():
                worker.kill()


@pytest.mark.slow
def test_killed_and_started_again_it_is_the_same_bytes(
    small: Mirrored, root: Path, killed: tuple[Path, list[psutil.Process]]
):
    """A build that was cut off would be a smaller corpus under the whole one's name."""
    folder, _ = killed
    again = _build(root, folder / "again", overrides(small.mirror, folder / "data"))
    try:
        assert again.wait(timeout=120) == 0, (folder / "again.err").read_text()
    finally:
        again.kill()
    directory = Path((folder / "again").read_text().splitlines()[-1])
    assert shards(directory) == shards(small.directory)
    assert read_manifest(directory)["results"] == small.results
    assert [path.name for path in (folder / "data").rglob(".*") if "part" in path.name] == []


@pytest.mark.slow
def test_a_killed_build_leaves_no_process_behind(killed: tuple[Path, list[psutil.Process]]):
    """Each would hold its memory for good, and could write into the next build's folder."""
    _, workers = killed
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=8)
    assert not alive


@pytest.mark.slow
def test_a_worker_left_over_from_a_killed_build_spoils_nothing(
    small: Mirrored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its workers outlive a killed build for a while: one must not move the next build's half into place."""
    inputs = units.paper_inputs(study(*overrides(small.mirror, tmp_path / "data"), primary="build"))
    unit = candidates.Candidates(Unit("sven"), tmp_path / "data" / ".candidates" / "sven-0")
    whole = list(units.construct(inputs, Unit("sven"), Counter()))
    both_are_at_work, first_is_done = threading.Event(), threading.Event()

    def construct(_inputs: Any, _unit: Any, _bad_rows: Any) -> Iterator[Any]:
        is_second = threading.current_thread() is second
        if is_second:
            both_are_at_work.set()
            first_is_done.wait(20)
        else:
            both_are_at_work.wait(20)
        yield from whole

    failures: list[BaseException] = []

    def work() -> None:
        try:
            candidates._write(inputs, unit)
        except Exception as error:
            if threading.current_thread() is second:  # what becomes of the first one is nobody's loss
                failures.append(error)

    monkeypatch.setattr(candidates, "construct", construct)
    monkeypatch.setattr(os, "getpid", threading.get_ident)  # two threads stand in for two processes
    first, second = threading.Thread(target=work), threading.Thread(target=work)
    first.start()
    while not (tmp_path / "data" / ".candidates").is_dir() and first.is_alive():
        time.sleep(0.005)
    second.start()
    first.join()
    if unit.folder.is_dir():
        assert unit.facts["samples"] == len(pq.read_table(unit.folder / "safety_permission-code.parquet"))
    first_is_done.set()
    second.join()
    assert not failures
    assert len(pq.read_table(unit.folder / "safety_permission-code.parquet")) == len(whole[0].samples)


def test_another_licence_is_another_set_of_candidates(small: Mirrored, tmp_path: Path):
    """A corrected licence in conf/source would never reach the samples that carry it."""
    one = study(*overrides(small.mirror, tmp_path), primary="build")
    other = study(*overrides(small.mirror, tmp_path, source__sven__licence="Apache-2.0"), primary="build")
    unit = Unit("sven")
    identities = [units.unit_identity(units.paper_inputs(each), unit) for each in (one, other)]
    assert identities[0] != identities[1]
