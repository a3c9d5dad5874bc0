"""A training run of one step on a tiny model, to be spoilt in copies."""

import shutil
import sys
from pathlib import Path

import pytest
from sealed import seal
from small_models import planted_samples, tiny_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))

from small_runs import fp32, settings

from monitorbench.corpus.store import write_split
from monitorbench.records import Split


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model that is trained."""
    return tiny_model(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def other_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same shape."""
    return tiny_model(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture(scope="session")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training run on `base`, with its data and runs below one folder."""
    from monitorbench.training import sft

    root = tmp_path_factory.mktemp("trained")
    for split, (n_pairs, seed) in {Split.TRAIN: (8, 1), Split.VALIDATION: (2, 2)}.items():
        write_split(root / "data" / "planted-0", split, planted_samples(n_pairs, seed))
    seal(root / "data" / "planted-0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft, "ensure", lambda study, splits: root / "data" / "planted-0")
        return sft.train(settings(root, base, *fp32(1)))


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the training run."""
    return Path(shutil.copytree(trained, tmp_path / "runs" / "train" / trained.name))
