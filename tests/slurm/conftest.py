"""One private cluster for all tests of this room; where none can be had they are skipped, saying why."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import CannotStart, Cluster, private_cluster


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    try:
        with private_cluster(folder) as cluster:
            yield cluster
    except CannotStart as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(folder / "gpus", ignore_errors=True)


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """A folder with the scripts and a configuration of its own, and a small file of samples."""
    shutil.copytree(root / "conf", tmp_path / "conf", ignore=shutil.ignore_patterns("local"))
    for room in ("data_build", "train", "eval", "slurm"):
        shutil.copytree(root / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path
