"""A training run of one step on a tiny model, to be spoilt in copies."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sealed import seal
from small_models import planted_samples
from small_runs import fp32, settings

from monitorbench.corpus.store import write_split
from monitorbench.records import Split


@pytest.fixture(scope="session")
def trained(tiny: Path, made_once: Callable[..., Path]) -> Path:
    """A finished training run on `tiny`, with its data and runs below one folder."""

    def train(root: Path) -> None:
        from monitorbench.training import sft

        for split, (n_pairs, seed) in {Split.TRAIN: (8, 1), Split.VALIDATION: (2, 2)}.items():
            write_split(root / "data" / "planted-0", split, planted_samples(n_pairs, seed))
        seal(root / "data" / "planted-0")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sft, "ensure", lambda study, splits: root / "data" / "planted-0")
            sft.train(settings(root, tiny, *fp32(1)))

    (run,) = (made_once("trained", train) / "runs" / "train").iterdir()
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the training run."""
    return Path(shutil.copytree(trained, tmp_path / "runs" / "train" / trained.name))
