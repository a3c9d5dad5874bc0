"""A full disk in the middle of a training: one line that says where, and the finished steps stay."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from monitorbench.config.base import UserError
from monitorbench.training.disk import writing

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("write", [torch.save, lambda value, path: save_file({"a": value}, path)])
def test_a_full_disk_is_one_line(write, tmp_path: Path):
    """Eighty lines of traceback from a library's C++ do not say that the disk is full."""
    place = FULL if write is torch.save else tmp_path / "missing" / "file"
    with (
        pytest.raises(UserError, match=r"runs: can't be written \(.+\); make room") as caught,
        writing(Path("runs")),
    ):
        write(torch.zeros(100_000), place)
    assert "\n" not in str(caught.value)


def test_other_failures_keep_their_traceback():
    """A bug behind the words of a full disk would never be found."""
    with pytest.raises(RuntimeError, match="shapes"), writing(Path("runs")):
        raise RuntimeError("shapes do not match")
