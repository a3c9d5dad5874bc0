"""A small `dataset=paper_local`, built once a session from made-up rows."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_mirror import Mirrored, built, write_mirror

from monitorbench.corpus.paper import candidates


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build in threads of this process, which start at once."""
    _use_threads(monkeypatch)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Mirrored:
    """The mirror, the data folder and the built dataset; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    mirror = write_mirror(folder / "mirror")
    with pytest.MonkeyPatch.context() as patch:
        _use_threads(patch)
        return Mirrored(mirror, folder / "data", built(mirror, folder / "data"))


@pytest.fixture
def same_candidates(small: Mirrored, tmp_path: Path) -> Path:
    """A data folder of its own that has the small dataset's candidates."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".candidates").symlink_to(small.data / ".candidates")
    return tmp_path / "data"


def _use_threads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(candidates, "ProcessPoolExecutor", lambda _workers, *_rest, **_more: ThreadPoolExecutor(1))
